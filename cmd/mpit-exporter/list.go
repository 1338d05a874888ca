package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/client"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/listing"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/preload"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// listCommand shows what MPI_T offers: in the ranks that are connected to an exporter, or in a program that it runs.
type listCommand struct {
	exporter client.HTTP // where it is, unless a program is run

	settings preload.Settings
	program  []string

	selection       listing.Selection
	output          string
	saves, compares bool
	save, compare   string // files
}

// programRemedy is what else may be done where no exporter answers.
const programRemedy = "; or list the variables of a program: " + cli.ProgramName + " list -- ./program"

func newListCommand(app *kingpin.Application, do commands) {
	c := &listCommand{}
	do["list"] = c.run
	cmd := app.Command("list", "Show the performance variables of the ranks that are connected to a running exporter, "+
		"with their values: of all ranks and objects together what counts, and the largest of levels and watermarks. Or "+
		"show what a program has that is run once: mpit-exporter list -- ./program arguments.")
	cmd.HelpLong("mpit-exporter list\nmpit-exporter list -- ./program")
	c.exporter.AddFlags(cmd)
	c.exporter.AddRankFlag(cmd)
	cmd.Flag("all", "Show all that MPI_T offers, with all that it says of it.").BoolVar(&c.selection.All)
	cmd.Flag("cvars", "Show control variables with their values.").BoolVar(&c.selection.ControlVariables)
	cmd.Flag("objects", "Show MPI objects: communicators, windows, files and what else the program has made.").
		BoolVar(&c.selection.Objects)
	cmd.Flag("categories", "Show categories, as a tree.").BoolVar(&c.selection.Categories)
	cmd.Flag("category", "Show only this category: its variables, its control variables and the categories below it.").
		PlaceHolder("NAME").StringVar(&c.selection.Category)
	cmd.Flag("output", "table or json.").Short('o').Default("table").EnumVar(&c.output, "table", "json")
	cmd.Flag("save", "Write the variables and categories of one MPI_COMM_WORLD to a file, without values.").
		PlaceHolder("FILE").IsSetByUser(&c.saves).StringVar(&c.save)
	cmd.Flag("compare", "Show which variables and categories came, went or changed since --save wrote this file, such "+
		"as in another build of the MPI library. The exit status is 4 if any did.").
		PlaceHolder("FILE").IsSetByUser(&c.compares).StringVar(&c.compare)
	cmd.Flag("monitoring", "Open the variables for which each message pays, as exec --monitoring does.").
		BoolVar(&c.settings.Monitoring)
	c.settings.AddCalls(cmd, "Run the program with the call profile, which brings variables for the MPI functions "+
		"that it calls.")
	cmd.Flag("deny", "Variables that the agent must not open in the program, besides those known to crash; may be "+
		"repeated.").PlaceHolder("PATTERN").StringsVar(&c.settings.Deny)
	cmd.Arg("program", "Program to run, and its arguments; write -- in front of them. Its output goes to stderr.").
		StringsVar(&c.program)
}

func (c *listCommand) run(ctx context.Context, std cli.Stdio) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.saves || c.compares {
		return c.saveAndCompare(ctx, std)
	}
	if len(c.program) == 0 && c.selection.Short() && c.output == "table" {
		return c.writeValues(ctx, std)
	}
	list, err := c.catalogues(ctx, std)
	if err != nil {
		return err
	}
	if c.selection.Short() && c.output == "json" {
		c.selection.All = true // a program takes what it needs
	}
	found := false
	for i := range list.Catalogues {
		found = c.selection.Apply(&list.Catalogues[i]) || found
	}
	if !found && len(list.Catalogues) > 0 {
		return fmt.Errorf("list: there is no category %q; --categories shows all", c.selection.Category)
	}
	if c.output == "json" {
		if err := cli.WriteJSON(std.Out, list); err != nil {
			return fmt.Errorf("list: writing: %w", err)
		}
		return nil
	}
	for _, text := range list.Errors {
		std.Tell("%s", mapping.OneLine(text))
	}
	if list.More > 0 {
		std.Tell("%s", leftOut(units.Count(list.More, "MPI_COMM_WORLD"), list.LeftOut))
	}
	if len(list.Catalogues) == 0 {
		return c.noRank()
	}
	var text strings.Builder
	for i := range list.Catalogues {
		listing.Write(&text, &list.Catalogues[i], c.selection)
	}
	return c.show(text.String(), std)
}

// check finds flags that don't go together.
func (c *listCommand) check() error {
	switch {
	case (c.saves || c.compares) && (c.selection != listing.Selection{} || c.output == "json"):
		return cli.Usagef("list: --save and --compare are about all that there is, and have a form of their own; leave " +
			"out --all, --cvars, --objects, --categories, --category and --output")
	case len(c.program) > 0 && len(c.exporter.Labels()) > 0:
		return cli.Usagef("list: --jobid, --world, --user and --rank choose among the ranks of an exporter; " +
			"they can't be used with a program")
	case len(c.program) == 0 && (c.settings.CallsSaid || c.settings.Monitoring || len(c.settings.Deny) > 0):
		return cli.Usagef("list: --calls, --monitoring and --deny are about a program that list runs; name one: "+
			"%s list [flags] -- program arguments", cli.ProgramName)
	}
	return nil
}

// catalogues are those of the program, or one of each MPI_COMM_WORLD of the exporter.
func (c *listCommand) catalogues(ctx context.Context, std cli.Stdio) (list api.CatalogueList, err error) {
	if len(c.program) > 0 {
		catalogue, err := listing.RunProgram(ctx, c.settings, c.program, os.Environ(), std)
		return api.CatalogueList{Catalogues: []api.Catalogue{catalogue}}, err
	}
	list, err = c.exporter.Catalogues(ctx, "list", programRemedy)
	list.Catalogues = c.oneOfEach(list.Catalogues)
	return list, err
}

func (c *listCommand) noRank() error {
	return fmt.Errorf("list: no rank is connected to the exporter at %s", c.exporter.URL)
}

// saveAndCompare does either or both: the file that is compared may be the one that is written.
func (c *listCommand) saveAndCompare(ctx context.Context, std cli.Stdio) error {
	var before *listing.Saved
	var err error
	if c.compares { // a mistake is found before a program runs
		if before, err = listing.Load(c.compare); err != nil {
			return fmt.Errorf("list: --compare %s: %w", c.compare, err)
		}
	}
	list, err := c.catalogues(ctx, std)
	if err != nil {
		return err
	}
	switch worlds := len(list.Catalogues) + list.More + len(list.Errors); {
	case worlds == 0:
		return c.noRank()
	case worlds > 1:
		return fmt.Errorf("list: --save and --compare are about one MPI_COMM_WORLD, and the exporter at %s has %d; "+
			"choose with --jobid, --world or --user", c.exporter.URL, worlds)
	case list.Catalogues[0].Rank.State == "ended": // only the performance variables are known
		return errors.New("list: nothing is saved or compared, as the program ended too early")
	}
	now, err := listing.NewSaved(&list.Catalogues[0])
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	if c.saves {
		if err := now.Save(c.save); err != nil {
			return fmt.Errorf("list: --save %s: %w", c.save, err)
		}
	}
	if !c.compares {
		return nil
	}
	switch equal, err := listing.Compare(std.Out, c.compare, before, now); {
	case err != nil:
		return fmt.Errorf("list: writing: %w", err)
	case !equal:
		return cli.Errorf(cli.Differs, "")
	}
	return nil
}

// leftOut says what an answer had no room for, and whose it is.
func leftOut(what string, of []api.LeftOut) string {
	var users []string
	for _, l := range of {
		if user := mapping.OneLine(l.User); !slices.Contains(users, user) {
			users = append(users, user)
		}
	}
	if len(users) > 0 {
		what += " of " + strings.Join(users, ", ")
	}
	return what + " left out; choose with --jobid or --user"
}

// oneOfEach leaves one catalogue of each MPI_COMM_WORLD: its ranks have the same library. With --rank it is that
// rank's.
func (c *listCommand) oneOfEach(all []api.Catalogue) []api.Catalogue {
	type world struct {
		jobKey
		dup int // where several have the same labels
	}
	seen := map[world]bool{}
	return slices.DeleteFunc(all, func(one api.Catalogue) bool {
		of := world{jobKey{one.Rank.JobID, one.Rank.World, one.Rank.User}, one.Rank.Dup}
		again := seen[of]
		seen[of] = true
		return again
	})
}

// show writes a text. In a terminal lines are cut to its width, but if all is wanted.
func (c *listCommand) show(text string, std cli.Stdio) error {
	if columns := table.Columns(std.Out); columns > 0 && !c.selection.All {
		var cut strings.Builder
		for line := range strings.Lines(text) {
			cut.WriteString(table.Shorten(strings.TrimRight(line, " \n"), columns) + "\n")
		}
		if text = cut.String(); c.selection.Short() {
			text += "--cvars shows control variables, --all all that MPI_T says.\n"
		}
	}
	if _, err := io.WriteString(std.Out, text); err != nil {
		return fmt.Errorf("list: writing: %w", err)
	}
	return nil
}

// writeValues shows the variables of an exporter's ranks, a line for each.
func (c *listCommand) writeValues(ctx context.Context, std cli.Stdio) error {
	values, err := c.exporter.Values(ctx, "list", programRemedy)
	if err != nil {
		return err
	}
	if len(values.Ranks) == 0 {
		return c.noRank()
	}
	if values.More > 0 {
		std.Tell("%s", leftOut(units.Count(values.More, "rank"), values.LeftOut))
	}
	var text strings.Builder
	listing.WriteValues(&text, &values)
	return c.show(text.String(), std)
}
