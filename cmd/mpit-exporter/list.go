package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// What list can be asked for.
const (
	listAll        = "all"
	listVariables  = "variables"
	listControls   = "cvars"
	listCategories = "categories"
	listObjects    = "objects"
)

// listCommand shows what MPI_T offers: in the ranks that are connected to an exporter, or in a program that it runs.
type listCommand struct {
	name string

	url   string
	which rankFlags

	settings agentSettings
	program  []string

	what, output string
	objects      bool   // the same as what: objects
	category     string // only this one and what is in it
}

func newListCommand(app *kingpin.Application) *listCommand {
	c := &listCommand{name: "list"}
	cmd := app.Command(c.name, "Show the performance variables, control variables, categories and MPI objects of the ranks that are connected to a running exporter, "+
		"or of a program that is run once: mpit-exporter list -- ./program arguments.")
	cmd.Flag("url", "Address of the exporter.").Default("http://localhost:" + defaultPort).StringVar(&c.url)
	c.which.add(cmd)
	cmd.Flag("what", "Show only variables, cvars, categories or objects.").Default(listAll).
		EnumVar(&c.what, listAll, listVariables, listControls, listCategories, listObjects)
	cmd.Flag("objects", "Show only MPI objects: communicators, windows, files and what else the program has made.").BoolVar(&c.objects)
	cmd.Flag("category", "Show only this category: its variables, its control variables and the categories below it.").
		PlaceHolder("NAME").StringVar(&c.category)
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
		if c.what != listAll && c.what != listObjects || c.category != "" {
			return usageErrorf("list: --objects shows only objects; it can't be used with --what or --category")
		}
		c.what = listObjects
	}
	var list api.CatalogueList
	if len(c.program) > 0 {
		if c.which != (rankFlags{}) {
			return usageErrorf("list: --jobid, --world, --user and --rank choose among the ranks of an exporter; they can't be used with a program")
		}
		catalogue, err := c.listProgram(ctx, os.Environ(), std)
		if err != nil {
			return err
		}
		list.Catalogues = []api.Catalogue{catalogue}
	} else {
		if c.settings.callsSaid || c.settings.monitoring || len(c.settings.deny) > 0 {
			return usageErrorf("list: --calls, --monitoring and --deny are about a program that list runs; name one: %s list [flags] -- program arguments", programName)
		}
		var err error
		if list, err = fetchCatalogues(ctx, c.url, c.which); err != nil {
			return err
		}
	}

	found := false
	for i := range list.Catalogues {
		if c.category != "" {
			found = keepCategory(&list.Catalogues[i], c.category) || found
		}
		c.reduce(&list.Catalogues[i])
	}
	if c.category != "" && !found && len(list.Catalogues) > 0 {
		return fmt.Errorf("list: there is no category %q; --what=categories shows all", c.category)
	}
	if c.output == "json" {
		encoder := json.NewEncoder(std.out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(list); err != nil {
			return fmt.Errorf("list: writing: %w", err)
		}
		return nil
	}
	for _, text := range list.Errors {
		fmt.Fprintf(std.err, "%s: %s\n", programName, clean(text))
	}
	if len(list.Catalogues) == 0 {
		return fmt.Errorf("list: no rank is connected to the exporter at %s", c.url)
	}
	for i := range list.Catalogues {
		if err := writeTables(std.out, &list.Catalogues[i], c.shows); err != nil {
			return fmt.Errorf("list: writing: %w", err)
		}
	}
	return nil
}

func (c *listCommand) shows(what string) bool {
	return c.what == what || c.what == listAll && (what != listObjects || c.category == "")
}

// keepCategory leaves of a catalogue what is in one category, and the categories below it. It returns false if there is none of
// that name.
func keepCategory(catalogue *api.Catalogue, name string) bool {
	byName := map[string]*api.CategoryStatus{}
	for i := range catalogue.Categories {
		byName[catalogue.Categories[i].Name] = &catalogue.Categories[i]
	}
	below := map[string]bool{}
	next := []string{name}
	for len(next) > 0 {
		g := byName[next[0]]
		if g != nil && !below[g.Name] {
			below[g.Name] = true
			next = append(next, g.Subcategories...)
		}
		next = next[1:]
	}
	catalogue.Categories = slices.DeleteFunc(catalogue.Categories, func(g api.CategoryStatus) bool { return !below[g.Name] })
	catalogue.Variables = slices.DeleteFunc(catalogue.Variables, func(v api.VariableStatus) bool { return !slices.Contains(v.Categories, name) })
	catalogue.ControlVariables = slices.DeleteFunc(catalogue.ControlVariables, func(v api.ControlVariableStatus) bool { return !slices.Contains(v.Categories, name) })
	return below[name]
}

// reduce takes away what was not asked for.
func (c *listCommand) reduce(catalogue *api.Catalogue) {
	if !c.shows(listVariables) {
		catalogue.Variables = []api.VariableStatus{}
	}
	if !c.shows(listControls) {
		catalogue.ControlVariables = []api.ControlVariableStatus{}
	}
	if !c.shows(listCategories) {
		catalogue.Categories = []api.CategoryStatus{}
	}
	if !c.shows(listObjects) {
		catalogue.Objects = []api.ObjectStatus{}
	}
}
