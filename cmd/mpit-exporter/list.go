package main

import (
	"context"
	"fmt"
	"os"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/exporter"
)

// listCommand shows what MPI_T offers: in the ranks that are connected to an exporter, or in a program that it runs.
type listCommand struct {
	name string

	exporter httpClient // where it is, unless a program is run

	settings agentSettings
	program  []string

	selection selection
	objects   bool // the same as --what=objects
	output    string
}

func newListCommand(app *kingpin.Application) *listCommand {
	c := &listCommand{name: "list"}
	cmd := app.Command(c.name, "Show the performance variables, control variables, categories and MPI objects of the ranks that are connected to a running exporter, "+
		"or of a program that is run once: mpit-exporter list -- ./program arguments.")
	c.exporter.addFlags(cmd)
	cmd.Flag("what", "Show only variables, cvars, categories or objects.").Default(listAll).
		EnumVar(&c.selection.what, listAll, listVariables, listControls, listCategories, listObjects)
	cmd.Flag("objects", "Show only MPI objects: communicators, windows, files and what else the program has made.").BoolVar(&c.objects)
	cmd.Flag("category", "Show only this category: its variables, its control variables and the categories below it.").
		PlaceHolder("NAME").StringVar(&c.selection.category)
	cmd.Flag("output", "table or json.").Short('o').Default("table").EnumVar(&c.output, "table", "json")
	cmd.Flag("monitoring", "Open the variables for which each message pays, as exec --monitoring does.").BoolVar(&c.settings.monitoring)
	c.settings.addCalls(cmd, "Run the program with the call profile, which brings variables for the MPI functions that it calls.")
	cmd.Flag("deny", "Variables that the agent must not open in the program, besides those known to crash; may be repeated.").
		PlaceHolder("PATTERN").StringsVar(&c.settings.deny)
	cmd.Arg("program", "Program to run, and its arguments; write -- in front of them. Its output goes to stderr.").StringsVar(&c.program)
	return c
}

func (c *listCommand) run(ctx context.Context, std stdio) error {
	if c.objects {
		if c.selection.what != listAll && c.selection.what != listObjects || c.selection.category != "" {
			return usageErrorf("list: --objects shows only objects; it can't be used with --what or --category")
		}
		c.selection.what = listObjects
	}
	var list exporter.CatalogueList
	if len(c.program) > 0 {
		if c.exporter.choosesRanks() {
			return usageErrorf("list: --jobid, --world, --user and --rank choose among the ranks of an exporter; they can't be used with a program")
		}
		catalogue, err := probeProgram(ctx, c.settings, c.program, os.Environ(), std)
		if err != nil {
			return err
		}
		list.Catalogues = []exporter.Catalogue{catalogue}
	} else {
		if c.settings.callsSaid || c.settings.monitoring || len(c.settings.deny) > 0 {
			return usageErrorf("list: --calls, --monitoring and --deny are about a program that list runs; name one: %s list [flags] -- program arguments", programName)
		}
		const remedy = "; or list the variables of a program: " + programName + " list -- ./program"
		if err := c.exporter.get(ctx, c.name, remedy, "catalogue", &list); err != nil {
			return err
		}
	}

	found := false
	for i := range list.Catalogues {
		found = c.selection.apply(&list.Catalogues[i]) || found
	}
	if !found && len(list.Catalogues) > 0 {
		return fmt.Errorf("list: there is no category %q; --what=categories shows all", c.selection.category)
	}
	if c.output == "json" {
		if err := writeJSON(std.out, list); err != nil {
			return fmt.Errorf("list: writing: %w", err)
		}
		return nil
	}
	for _, text := range list.Errors {
		std.tell("%s", clean(text))
	}
	if len(list.Catalogues) == 0 {
		return fmt.Errorf("list: no rank is connected to the exporter at %s", c.exporter.url)
	}
	for i := range list.Catalogues {
		if err := writeTables(std.out, &list.Catalogues[i], c.selection); err != nil {
			return fmt.Errorf("list: writing: %w", err)
		}
	}
	return nil
}
