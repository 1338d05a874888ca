package main

import (
	"fmt"
	"io/fs"

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
	explain explain.Flags
}

func newConfigCommand(app *kingpin.Application) *configCommand {
	c := &configCommand{checkName: "config check", showName: "config show", explainName: "config explain"}
	cmd := app.Command("config", "Check, show and explain rule files.")

	check := cmd.Command("check", "Say what is wrong in rule files, one line for each mistake.")
	check.HelpLong("mpit-exporter config check rules.yaml\nmpit-exporter config check /etc/mpit-exporter/rules.d")
	check.Arg("file", "Rule file, or directory with such files. They are checked together, in this order.").
		Required().StringsVar(&c.checked)

	show := cmd.Command("show", "Show the rules that are shipped, file by file.")
	show.HelpLong("mpit-exporter config show\nmpit-exporter config show | less")
	explain := cmd.Command("explain", "Say what a performance variable becomes, and which rules decide it.")
	explain.HelpLong("mpit-exporter config explain pml_ob1_unexpected_msgq_length --class=SIZE\n" +
		"mpit-exporter config explain NAME --class=COUNTER --config.file=rules.yaml")
	c.explain.AddTo(explain)
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

// show writes the shipped rule files one after the other, in the order in which they hold.
func (c *configCommand) show(std cli.Stdio) error {
	files := rules.DefaultFiles()
	names, err := fs.Glob(files, "*/*.yaml")
	for _, name := range names {
		var text []byte
		if text, err = fs.ReadFile(files, name); err != nil {
			break
		}
		if _, err = fmt.Fprintf(std.Out, "# ---- %s\n%s\n", name, text); err != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("%s: writing: %w", c.showName, err)
	}
	return nil
}
