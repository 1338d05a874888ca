package main

import (
	"context"
	"fmt"
	"os"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/client"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/listing"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/preload"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/probe"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// listCommand shows what MPI_T offers: in the ranks that are connected to an exporter, or in a program that it runs.
type listCommand struct {
	name string

	exporter client.HTTP // where it is, unless a program is run

	settings preload.Settings
	program  []string

	selection listing.Selection
	objects   bool // the same as --what=objects
	output    string
}

func newListCommand(app *kingpin.Application) *listCommand {
	c := &listCommand{name: "list"}
	cmd := app.Command(c.name, "Show the performance variables, control variables, categories and MPI objects of "+
		"the ranks that are connected to a running exporter, or of a program that is run once: mpit-exporter list "+
		"-- ./program arguments.")
	c.exporter.AddFlags(cmd)
	c.exporter.AddRankFlag(cmd)
	cmd.Flag("what", "Show only variables, cvars, categories or objects.").Default(listing.All).
		EnumVar(&c.selection.What, listing.All, listing.Variables, listing.ControlVariables, listing.Categories,
			listing.Objects)
	cmd.Flag("objects", "Show only MPI objects: communicators, windows, files and what else the program has made.").
		BoolVar(&c.objects)
	cmd.Flag("category", "Show only this category: its variables, its control variables and the categories below it.").
		PlaceHolder("NAME").StringVar(&c.selection.Category)
	cmd.Flag("output", "table or json.").Short('o').Default("table").EnumVar(&c.output, "table", "json")
	cmd.Flag("monitoring", "Open the variables for which each message pays, as exec --monitoring does.").
		BoolVar(&c.settings.Monitoring)
	c.settings.AddCalls(cmd, "Run the program with the call profile, which brings variables for the MPI functions "+
		"that it calls.")
	cmd.Flag("deny", "Variables that the agent must not open in the program, besides those known to crash; may be "+
		"repeated.").PlaceHolder("PATTERN").StringsVar(&c.settings.Deny)
	cmd.Arg("program", "Program to run, and its arguments; write -- in front of them. Its output goes to stderr.").
		StringsVar(&c.program)
	return c
}

func (c *listCommand) run(ctx context.Context, std cli.Stdio) error {
	if c.objects {
		if c.selection.What != listing.All && c.selection.What != listing.Objects || c.selection.Category != "" {
			return cli.Usagef("list: --objects shows only objects; it can't be used with --what or --category")
		}
		c.selection.What = listing.Objects
	}
	var list api.CatalogueList
	if len(c.program) > 0 {
		if c.exporter.ChoosesRanks() {
			return cli.Usagef("list: --jobid, --world, --user and --rank choose among the ranks of an exporter; " +
				"they can't be used with a program")
		}
		catalogue, err := probe.Run(ctx, c.settings, c.program, os.Environ(), std)
		if err != nil {
			return err
		}
		list.Catalogues = []api.Catalogue{catalogue}
	} else {
		if c.settings.CallsSaid || c.settings.Monitoring || len(c.settings.Deny) > 0 {
			return cli.Usagef("list: --calls, --monitoring and --deny are about a program that list runs; name one: "+
				"%s list [flags] -- program arguments", cli.ProgramName)
		}
		const remedy = "; or list the variables of a program: " + cli.ProgramName + " list -- ./program"
		if err := c.exporter.Get(ctx, c.name, remedy, "catalogue", &list); err != nil {
			return err
		}
	}

	found := false
	for i := range list.Catalogues {
		found = c.selection.Apply(&list.Catalogues[i]) || found
	}
	if !found && len(list.Catalogues) > 0 {
		return fmt.Errorf("list: there is no category %q; --what=categories shows all", c.selection.Category)
	}
	if c.output == "json" {
		if err := cli.WriteJSON(std.Out, list); err != nil {
			return fmt.Errorf("list: writing: %w", err)
		}
		return nil
	}
	for _, text := range list.Errors {
		std.Tell("%s", table.Clean(text))
	}
	if len(list.Catalogues) == 0 {
		return fmt.Errorf("list: no rank is connected to the exporter at %s", c.exporter.URL)
	}
	for i := range list.Catalogues {
		if err := listing.Write(std.Out, &list.Catalogues[i], c.selection); err != nil {
			return fmt.Errorf("list: writing: %w", err)
		}
	}
	return nil
}
