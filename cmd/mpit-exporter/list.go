package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/exporter"
)

// What list can be asked for.
const (
	listAll        = "all"
	listVariables  = "variables"
	listControls   = "cvars"
	listCategories = "categories"
)

// listCommand shows what MPI_T offers: in the ranks that are connected to an exporter, or in a program that it runs.
type listCommand struct {
	name string

	url                  string
	jobID, world, number string

	settings agentSettings
	program  []string

	what, output string
}

func newListCommand(app *kingpin.Application) *listCommand {
	c := &listCommand{name: "list"}
	cmd := app.Command(c.name, "Show the performance variables, control variables and categories of the ranks that are connected to a running exporter, "+
		"or of a program that is run once: mpit-exporter list -- ./program arguments.")
	cmd.Flag("url", "Address of the exporter.").Default("http://localhost:" + defaultPort).StringVar(&c.url)
	cmd.Flag("jobid", "Show only ranks of this job.").PlaceHolder("ID").StringVar(&c.jobID)
	cmd.Flag("world", "Show only ranks of this MPI_COMM_WORLD.").PlaceHolder("WORLD").StringVar(&c.world)
	cmd.Flag("rank", "Show only this rank.").PlaceHolder("N").StringVar(&c.number)
	cmd.Flag("what", "Show only variables, cvars or categories.").Default(listAll).EnumVar(&c.what, listAll, listVariables, listControls, listCategories)
	cmd.Flag("output", "table or json.").Short('o').Default("table").EnumVar(&c.output, "table", "json")
	cmd.Flag("monitoring", "Run the program with Open MPI's monitoring component, which brings more variables.").BoolVar(&c.settings.monitoring)
	cmd.Flag("deny", "Variables that the agent must not open in the program, besides those known to crash; may be repeated.").
		PlaceHolder("PATTERN").StringsVar(&c.settings.deny)
	cmd.Arg("program", "Program to run, and its arguments; write -- in front of them. Its output goes to stderr.").StringsVar(&c.program)
	return c
}

func (c *listCommand) run(ctx context.Context, std stdio) error {
	var list exporter.CatalogueList
	if len(c.program) > 0 {
		if c.jobID != "" || c.world != "" || c.number != "" {
			return usageErrorf("list: --jobid, --world and --rank choose among the ranks of an exporter; they can't be used with a program")
		}
		catalogue, err := c.listProgram(ctx, os.Environ(), std)
		if err != nil {
			return err
		}
		list.Catalogues = []exporter.Catalogue{catalogue}
	} else {
		var err error
		if list, err = fetchCatalogues(ctx, c.url, c.jobID, c.world, c.number); err != nil {
			return err
		}
	}

	for i := range list.Catalogues {
		c.reduce(&list.Catalogues[i])
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

func (c *listCommand) shows(what string) bool { return c.what == listAll || c.what == what }

// reduce takes away what was not asked for.
func (c *listCommand) reduce(catalogue *exporter.Catalogue) {
	if !c.shows(listVariables) {
		catalogue.Variables = []exporter.VariableStatus{}
	}
	if !c.shows(listControls) {
		catalogue.ControlVariables = []exporter.ControlVariableStatus{}
	}
	if !c.shows(listCategories) {
		catalogue.Categories = []exporter.CategoryStatus{}
	}
}
