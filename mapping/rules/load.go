package rules

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// Load reads rule files, and of directories all files that end in .yaml or .yml, in the order of their names; hidden
// ones, and directories therein, are passed over. The shipped rules come last. Without paths it is the defaults. The
// error is Problems: all that is wrong with all files.
func Load(paths []string) (*Settings, error) {
	var all together
	var problems Problems
	for _, path := range paths {
		files, problem := rulePaths(path)
		if problem != nil {
			problems = append(problems, *problem)
		}
		for _, file := range files {
			text, problem := readRules(file)
			if problem != nil {
				problems = append(problems, *problem)
				continue
			}
			p, found := parseFile(file, text)
			problems = append(problems, found...)
			if len(found) == 0 {
				problems = append(problems, all.add(p)...)
			}
		}
	}
	if problems = append(problems, all.check()...); len(problems) > 0 {
		return nil, sorted(problems)
	}
	s := &Settings{Rank: all.rank, Limits: all.limits.WithDefaults(), Identity: all.identity}
	if s.Rank == "" {
		s.Rank = mapping.RankKeep
	}
	for _, c := range all.rules {
		s.Rules = append(s.Rules, c.Rule)
	}
	s.Rules = append(s.Rules, Defaults()...)
	return s, nil
}

// unreadable is a problem with a file as such.
func unreadable(path string, err error, remedy string) *Problem {
	what := err.Error()
	var cause *os.PathError
	if errors.As(err, &cause) {
		what = cause.Op + ": " + cause.Err.Error()
	}
	return &Problem{File: path, What: what, Remedy: remedy, Err: err}
}

// rulePaths is path itself, or the rule files in it.
func rulePaths(path string) ([]string, *Problem) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, unreadable(path, err, "give a rule file or a directory of such that can be read")
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, unreadable(path, err, "give a directory that can be read")
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
		return nil, unreadable(path, errors.New("no file in this directory ends in .yaml or .yml"),
			"put rule files there, or give another directory")
	}
	return files, nil
}

// readRules reads a file, but not much more than a rule file may have.
func readRules(path string) ([]byte, *Problem) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("this is not a regular file (%v)", info.Mode().Type())
	}
	if err != nil {
		return nil, unreadable(path, err, "give a file that can be read")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err, "let the exporter's user read it")
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, unreadable(path, err, "give a file that can be read")
	}
	return text, nil
}
