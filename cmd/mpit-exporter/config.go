package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/exporter"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// configCommand is what can be done with rule files without an exporter, a rank or a network.
type configCommand struct {
	checkName, showName, explainName string

	checked []string // files and directories

	shown        []string
	defaultsOnly bool

	explain explainFlags
}

// configFileHelp is of the flag --config.file, which several commands have.
const configFileHelp = "File with rules that say what variables become, or directory with such files (*.yaml, *.yml); repeatable. The first rule " +
	"that matches and sets a property wins; the shipped rules come last."

func newConfigCommand(app *kingpin.Application) *configCommand {
	c := &configCommand{checkName: "config check", showName: "config show", explainName: "config explain"}
	cmd := app.Command("config", "Check, show and explain rule files.")

	check := cmd.Command("check", "Say what is wrong in rule files, one line for each mistake.")
	check.Arg("file", "Rule file, or directory with such files. They are checked together, in this order.").Required().StringsVar(&c.checked)

	show := cmd.Command("show", "Show the rules that are shipped. The output is a rule file.")
	show.Flag("defaults", "Show the shipped rules only, which is the default.").BoolVar(&c.defaultsOnly)
	show.Flag("config.file", "Show these rules in front of the shipped ones, with the limits and all else that is in force then. "+configFileHelp).
		PlaceHolder("PATH").StringsVar(&c.shown)

	c.explain.register(cmd.Command("explain", "Say what a performance variable becomes, and which rules decide it."))
	return c
}

func (c *configCommand) run(command string, std stdio) error {
	switch command {
	case c.checkName:
		return c.check(std)
	case c.showName:
		return c.show(std)
	}
	return c.explain.run(std)
}

// check reads rule files as serve would.
func (c *configCommand) check(std stdio) error {
	if err := checkPaths(c.checkName, c.checked); err != nil {
		return err
	}
	_, settings, err := loadRules(c.checked, 0)
	if err != nil {
		return err
	}
	files := 0
	for _, path := range c.checked {
		list, err := ruleFiles(path)
		if err != nil {
			return err
		}
		files += len(list)
	}
	rules := len(settings.Rules) - len(mapping.Defaults())
	fmt.Fprintf(std.out, "%s of %s: all is well\n", counted(rules, "rule"), counted(files, "file"))
	return nil
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// checkPaths refuses an empty path, which a script's unset variable leaves.
func checkPaths(what string, paths []string) error {
	if slices.Contains(paths, "") {
		return usageErrorf("%s: the name of a file is empty", what)
	}
	return nil
}

// loadRules reads the files and compiles all that stands in them. A bad file is a *badRules, with all that is wrong in all of them.
func loadRules(paths []string, timerInterval time.Duration) (exporter.Rules, *mapping.Settings, error) {
	settings, err := mapping.Load(paths)
	if err != nil {
		return exporter.Rules{}, nil, &badRules{err}
	}
	mapper, err := mapping.New(mapping.Config{Rules: settings.Rules, Rank: settings.Rank, TimerInterval: timerInterval})
	if err != nil {
		return exporter.Rules{}, nil, &badRules{err}
	}
	rules := exporter.Rules{Mapper: mapper, Limits: settings.Limits, Identity: settings.Identity}
	// An exporter of its own, for what only it can say of limits and identities.
	if _, err := exporter.New(exporter.Config{Mapper: mapper, Limits: rules.Limits, Identity: rules.Identity}); err != nil {
		return exporter.Rules{}, nil, &badRules{err}
	}
	return rules, settings, nil
}

// badRules is what is wrong in rule files: a line for each mistake, each with its place in front, as editors and scripts expect it.
type badRules struct{ error }

func (e *badRules) Unwrap() error { return e.error }

// lines are those of what is wrong.
func (e *badRules) lines() []string {
	return strings.FieldsFunc(e.Error(), func(r rune) bool { return r == '\n' })
}

// ruleFiles is the files that a path stands for, as mapping.Load finds them: itself, or those of a directory that end in .yaml or
// .yml and are not hidden, by name.
func ruleFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("rule files: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("rule files: %w", err)
	}
	var files []string
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") || filepath.Ext(name) != ".yaml" && filepath.Ext(name) != ".yml" {
			continue
		}
		file := filepath.Join(path, name)
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			continue
		}
		files = append(files, file)
	}
	return files, nil
}
