package main

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/node"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
)

// newConfigCommand adds what can be done with rule files without an exporter, a rank or a network.
func newConfigCommand(app *kingpin.Application, do commands) {
	cmd := app.Command("config", "Check, show and explain rule files.")
	check := cmd.Command("check", "Say what is wrong in rule files, one line for each mistake.")
	check.HelpLong("mpit-exporter config check rules.yaml\nmpit-exporter config check /etc/mpit-exporter/rules.d")
	files := check.Arg("file", "Rule file, or directory with such files. They are checked together, in this order.").
		Required().Strings()
	do["config check"] = func(_ context.Context, std cli.Stdio) error { return checkRules(*files, std) }

	show := cmd.Command("show", "Show the rules that are shipped, file by file.")
	show.HelpLong("mpit-exporter config show\nmpit-exporter config show | less")
	do["config show"] = showRules
	newExplainCommand(cmd, do)
}

// checkRules reads rule files as serve would.
func checkRules(files []string, std cli.Stdio) error {
	_, settings, err := node.LoadRules("config check", files, 0)
	if err != nil {
		return err
	}
	rules := len(settings.Rules) - len(rules.Defaults())
	fmt.Fprintf(std.Out, "%s of %s: all is well\n", units.Count(rules, "rule"), units.Count(len(settings.Files), "file"))
	return nil
}

// showRules writes the shipped rule files one after the other, in the order in which they hold. They are in the
// program: reading them can't fail.
func showRules(_ context.Context, std cli.Stdio) error {
	files := rules.DefaultFiles()
	names, _ := fs.Glob(files, "*/*.yaml")
	for _, name := range names {
		text, _ := fs.ReadFile(files, name)
		if _, err := fmt.Fprintf(std.Out, "# ---- %s\n%s\n", name, text); err != nil {
			return fmt.Errorf("config show: writing: %w", err)
		}
	}
	return nil
}
