// Package configuration reads rule files for the command: for an exporter (Load), and as text for people (Shipped and
// Effective).
//
// What rules mean is mapping's, and so are their mistakes; here is which files there are and how they are put
// together.
package configuration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/exporter"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
)

// FileHelp is the help of the flag --config.file, which several commands have.
const FileHelp = "File with rules that say what variables become, or directory with such files (*.yaml, *.yml); " +
	"repeatable. The first rule that matches and sets a property wins; the shipped rules come last."

// CheckPaths refuses an empty path, which a script's unset variable leaves.
func CheckPaths(what string, paths []string) error {
	if slices.Contains(paths, "") {
		return cli.Usagef("%s: the name of a file is empty", what)
	}
	return nil
}

// Load reads and compiles rule files. Beside the rules for an exporter it returns what the files say, which these are
// made from. If one of them is bad, the error is a *Mistakes with everything that is wrong in any of them.
func Load(paths []string, timerInterval time.Duration) (exporter.Rules, *rules.Settings, error) {
	settings, err := rules.Load(paths)
	if err != nil {
		return exporter.Rules{}, nil, &Mistakes{err}
	}
	config := variables.Config{Rules: settings.Rules, Rank: settings.Rank, TimerInterval: timerInterval}
	mapper, err := variables.New(config)
	if err != nil {
		return exporter.Rules{}, nil, &Mistakes{err}
	}
	rules := exporter.Rules{Mapper: mapper, Limits: settings.Limits, Identity: settings.Identity}
	// Limits and identities are checked by an exporter only.
	if _, err := exporter.New(exporter.Config{Mapper: mapper, Limits: rules.Limits,
		Identity: rules.Identity}); err != nil {
		return exporter.Rules{}, nil, &Mistakes{err}
	}
	return rules, settings, nil
}

// Mistakes is what is wrong in rule files: a line for each mistake, which begins with its place, as editors and
// scripts expect it.
type Mistakes struct{ error }

func (e *Mistakes) Unwrap() error { return e.error }

// Lines are those of what is wrong.
func (e *Mistakes) Lines() []string { return cli.Lines(e) }

// Files are the files that paths stand for, as rules.Load finds them: a path itself, or those of a directory that
// end in .yaml or .yml and are not hidden, by name.
func Files(paths []string) (files []string, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("rule files: %w", err)
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, fmt.Errorf("rule files: %w", err)
		}
		for _, entry := range entries {
			name := entry.Name()
			if strings.HasPrefix(name, ".") || filepath.Ext(name) != ".yaml" && filepath.Ext(name) != ".yml" {
				continue
			}
			file := filepath.Join(path, name)
			if info, err := os.Stat(file); err != nil || !info.IsDir() {
				files = append(files, file)
			}
		}
	}
	return files, nil
}
