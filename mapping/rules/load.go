package rules

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Load reads rule files, and of directories all files that end in .yaml or .yml, in the order of their names; hidden
// ones, and directories therein, are passed over. The shipped rules come last. Of the rank and of each limit, the first
// file that sets it wins. Without paths it is the defaults. The error is Problems: all that is wrong with all files.
func Load(paths []string) (*Settings, error) {
	s := &Settings{}
	var problems Problems
	for _, path := range paths {
		files, err := Files(path)
		if err != nil {
			problems = append(problems, unreadable(path, err))
		}
		for _, file := range files {
			text, err := readRules(file)
			if err != nil {
				problems = append(problems, unreadable(file, err))
				continue
			}
			p, found := parseFile(file, text)
			problems = append(problems, found...)
			s.Files = append(s.Files, file)
			s.Limits = s.Limits.or(p.Limits)
			s.Identity = append(s.Identity, p.Identity...)
			before := len(s.Rules)
			if s.Rules = append(s.Rules, p.Rules...); len(s.Rules) > maxRules && before <= maxRules && len(found) == 0 {
				problems = append(problems, Problem{File: file, Line: 1, Column: 1}.because(
					"write patterns that hold for many variables at once", "with this file there are more than %d rules", maxRules))
			}
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	s.Limits = s.Limits.WithDefaults()
	s.Rules = append(s.Rules, Defaults()...)
	return s, nil
}

// unreadable is a problem with a file as such.
func unreadable(path string, err error) Problem {
	what := err.Error()
	if cause, is := errors.AsType[*os.PathError](err); is {
		what = cause.Op + ": " + cause.Err.Error()
	}
	return Problem{File: path}.because("give a rule file, or a directory of such, that the exporter's user may "+
		"read", "%s", what)
}

// Files is path itself, or the rule files in it.
func Files(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries { // sorted by name
		name := e.Name()
		if strings.HasPrefix(name, ".") || !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name)) {
			continue
		}
		file := filepath.Join(path, name)
		if info, err := os.Stat(file); err == nil && info.IsDir() { // a link may lead to a file, or nowhere
			continue
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil, errors.New("no file in this directory ends in .yaml or .yml")
	}
	return files, nil
}

// readRules reads a file, but not much more than a rule file may have.
func readRules(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for its other end
		return nil, fmt.Errorf("this is not a regular file (%v)", info.Mode().Type())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}
