package main

import (
	"fmt"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/configuration"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/explain"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
)

// configCommand is what can be done with rule files without an exporter, a rank or a network.
type configCommand struct {
	checkName, showName, explainName string

	checked []string // files and directories

	shown        []string
	defaultsOnly bool

	explain explain.Flags
}

func newConfigCommand(app *kingpin.Application) *configCommand {
	c := &configCommand{checkName: "config check", showName: "config show", explainName: "config explain"}
	cmd := app.Command("config", "Check, show and explain rule files.")

	check := cmd.Command("check", "Say what is wrong in rule files, one line for each mistake.")
	check.Arg("file", "Rule file, or directory with such files. They are checked together, in this order.").
		Required().StringsVar(&c.checked)

	show := cmd.Command("show", "Show the rules that are shipped. The output is a rule file.")
	show.Flag("defaults", "Show the shipped rules only, which is the default.").BoolVar(&c.defaultsOnly)
	show.Flag("config.file", "Show these rules in front of the shipped ones, with the limits and all else that is "+
		"in force then. "+configuration.FileHelp).PlaceHolder("PATH").StringsVar(&c.shown)

	c.explain.AddTo(cmd.Command("explain", "Say what a performance variable becomes, and which rules decide it."))
	return c
}

func (c *configCommand) run(command string, std cli.Stdio) error {
	switch command {
	case c.checkName:
		return c.check(std)
	case c.showName:
		return c.show(std)
	}
	return c.explain.Run(std)
}

// check reads rule files as serve would.
func (c *configCommand) check(std cli.Stdio) error {
	if err := configuration.CheckPaths(c.checkName, c.checked); err != nil {
		return err
	}
	_, settings, err := configuration.Load(c.checked, 0)
	if err != nil {
		return err
	}
	rules := len(settings.Rules) - len(rules.Defaults())
	fmt.Fprintf(std.Out, "%s of %s: all is well\n", units.Count(rules, "rule"), units.Count(len(settings.Files), "file"))
	return nil
}

// show writes rules as one rule file: the shipped ones, or those of files with the shipped ones behind them.
func (c *configCommand) show(std cli.Stdio) error {
	if err := configuration.CheckPaths(c.showName+": --config.file", c.shown); err != nil {
		return err
	}
	show := configuration.Shipped
	if len(c.shown) > 0 {
		if c.defaultsOnly {
			return cli.Usagef("%s: --defaults shows the shipped rules alone; it can't be used with --config.file",
				c.showName)
		}
		show = func() (string, error) { return configuration.Effective(c.shown) }
	}
	text, err := show()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(std.Out, text); err != nil {
		return fmt.Errorf("%s: writing: %w", c.showName, err)
	}
	return nil
}
