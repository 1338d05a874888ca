package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/client"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/report"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// reportCommand writes a page about one job, or what has changed between two of its runs.
type reportCommand struct {
	exporter   client.HTTP
	prometheus string
	since      time.Duration
	compare    bool
	output     string
	line       bool
	pprof      string
	files      []string
}

func newReportCommand(app *kingpin.Application, do commands) {
	c := &reportCommand{}
	do["report"] = c.run
	cmd := app.Command("report", "Write a page about one job that runs or has just ended: how efficient it is, where its "+
		"time goes, which ranks are late. It asks the exporter of this node, or, for a job over many nodes or one that "+
		"is over, Prometheus. With a file it shows a report that exec --report has written; with two, and --compare, "+
		"what has changed from the first to the second.")
	cmd.HelpLong("mpit-exporter report --jobid=4711\n" +
		"mpit-exporter report --compare before.json after.json")
	c.exporter.AddFlags(cmd)
	c.exporter.AddRankFlag(cmd)
	cmd.Flag("prometheus", "Address of a Prometheus that scrapes the exporters of all nodes, to be asked instead.").
		PlaceHolder("URL").StringVar(&c.prometheus)
	cmd.Flag("since", "How far Prometheus looks back for a job that is over.").Default("24h").DurationVar(&c.since)
	cmd.Flag("compare", "Compare two reports, of files as JSON or as pages.").BoolVar(&c.compare)
	cmd.Flag("output", "text, html (a page that needs no other host) or json.").Short('o').Default("text").
		EnumVar(&c.output, "text", "html", "json")
	cmd.Flag("line", "Write one line instead, for a job's record: jobid=, state=, useful=, lost_core_hours= and the "+
		"verdict's sentence. Each MPI_COMM_WORLD has one, those with most time first.").BoolVar(&c.line)
	cmd.Flag("pprof", "Write a profile to this file instead, for go tool pprof: calls, time, waiting and bytes of each "+
		"place that a running job calls MPI from. It must have been started with exec --calls=sites.").
		PlaceHolder("FILE").StringVar(&c.pprof)
	cmd.Arg("file", "Report to show, or two to compare; or a directory REPORT.nodes.").StringsVar(&c.files)
}

func (c *reportCommand) run(ctx context.Context, std cli.Stdio) error {
	var err error
	switch {
	case c.compare && len(c.files) != 2:
		return cli.Usagef("report: --compare compares two files: mpit-exporter report --compare before.html after.html")
	case c.compare && c.output == "html":
		return cli.Usagef("report: a comparison is text or json")
	case c.line && (c.compare || c.output != "text"):
		return cli.Usagef("report: --line is a form of its own, without --compare and --output")
	case c.pprof != "" && (c.compare || c.line || c.output != "text" || c.prometheus != "" || len(c.files) > 0):
		return cli.Usagef("report: --pprof asks the exporter about a job that runs, and writes nothing else")
	case !c.compare && len(c.files) > 1:
		return cli.Usagef("report: one file is shown; add --compare to compare two")
	case c.since < time.Second:
		return cli.Usagef("report: --since %s: must be at least 1s", c.since)
	case c.compare:
		err = c.writeComparison(ctx, std)
	default:
		err = cli.Await(ctx, func() error { return c.write(ctx, std) })
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return errors.New("report: interrupted")
	case err != nil:
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

func (c *reportCommand) write(ctx context.Context, std cli.Stdio) error {
	found, err := c.find(ctx, std)
	if err != nil {
		return err
	}
	if c.line {
		return report.Lines(found, std.Out)
	}
	r, err := oneOf(found)
	if err != nil {
		return err
	}
	if c.pprof != "" {
		return c.writeProfile(ctx, r, std)
	}
	if c.prometheus == "" && len(c.files) == 0 {
		new(client.Callers).AskSites(ctx, &c.exporter, r)
	}
	switch c.output {
	case "html":
		return report.HTML(r, std.Out)
	case "json":
		return report.JSON(r, std.Out)
	}
	return report.Text(r, std.Out, table.Columns(std.Out))
}

// writeProfile writes the profile of a job. Functions and lines that call MPI are looked up in the caller's own jobs
// only: other users' ranks name files that are better not opened.
func (c *reportCommand) writeProfile(ctx context.Context, r *job.Report, std cli.Stdio) error {
	p, err := c.exporter.Of(r.Job.ID, r.Job.World, r.Job.User).Profile(ctx, "asking the exporter", "")
	if err != nil {
		return err
	}
	if client.Own(uidOf(&r)) {
		client.Symbolise(p)
	}
	f, err := os.Create(c.pprof)
	if err != nil {
		return err
	}
	if err := errors.Join(p.Write(f), f.Close()); err != nil {
		return err
	}
	std.Tell("report: %s written; look at it with: go tool pprof -top -cum -sample_index=waiting %s", c.pprof, c.pprof)
	return nil
}

func (c *reportCommand) writeComparison(ctx context.Context, std cli.Stdio) error {
	before, err := report.Load(ctx, c.files[0])
	if err != nil {
		return err
	}
	after, err := report.Load(ctx, c.files[1])
	if err != nil {
		return err
	}
	compared, err := job.Compare(before, after)
	switch {
	case err != nil:
		return err
	case c.output == "json":
		return cli.WriteJSON(std.Out, compared)
	}
	return report.Comparison(compared, std.Out, table.Columns(std.Out))
}

// find finds the jobs that may be meant; there is at least one.
func (c *reportCommand) find(ctx context.Context, std cli.Stdio) ([]*job.Report, error) {
	if len(c.files) == 1 {
		r, err := report.Load(ctx, c.files[0])
		return []*job.Report{r}, err
	}
	var found []*job.Report
	var err error
	if c.prometheus != "" {
		found, err = report.AskPrometheus(ctx, c.prometheus, c.exporter.Labels(), time.Now(), c.since)
	} else {
		var answer api.ValueList
		answer, err = c.exporter.Values(ctx, "asking the exporter", "; or ask Prometheus: --prometheus=URL")
		found = job.Of([]api.ValueList{answer}, new(client.Callers).OfRank)
	}
	if err != nil {
		return nil, err
	}
	if own := c.own(found); len(own) < len(found) {
		std.Tell("report: %s of %s left out; choose with --user", units.Count(len(found)-len(own), "MPI_COMM_WORLD"),
			othersOf(found))
		found = own
	}
	if len(found) == 0 {
		return nil, errors.New("there is no such job, or nothing has run under mpit-exporter exec lately")
	}
	return found, nil
}

// oneOf is the one that is meant: of several the one that runs, if there is one.
func oneOf(found []*job.Report) (*job.Report, error) {
	if len(found) == 1 {
		return found[0], nil
	}
	running := slices.DeleteFunc(slices.Clone(found), func(r *job.Report) bool { return r.Job.Ended != nil })
	if len(running) == 1 {
		return running[0], nil
	}
	return nil, manyJobs(found)
}

// own are the caller's own jobs, if there are any: others may claim the same id, or hang, to be looked at instead. Who
// names a user means no others.
func (c *reportCommand) own(found []*job.Report) []*job.Report {
	own := slices.DeleteFunc(slices.Clone(found), func(r *job.Report) bool { return !client.Own(uidOf(&r)) })
	if len(own) == 0 || c.exporter.Labels()["user"] != "" {
		return found
	}
	return own
}

// othersOf names whose jobs aren't the caller's, the first few.
func othersOf(found []*job.Report) string {
	names := map[string]bool{}
	for _, r := range found {
		if !client.Own(uidOf(&r)) {
			names[cmp.Or(mapping.OneLine(r.Job.User), "unknown")] = true
		}
	}
	return "user " + table.Shorten(strings.Join(slices.Sorted(maps.Keys(names)), ", "), table.MaxCell)
}

// maxLines bounds how many worlds are listed.
const maxLines = 20

// manyJobs is the error that several worlds match, of one job or of several.
type manyJobs []*job.Report

func (m manyJobs) Error() string {
	return fmt.Sprintf("there are %d MPI_COMM_WORLDs; choose one with --jobid, --user or --world", len(m))
}

// Lines has a line for each of the first maxLines worlds; those that need attention come first.
func (m manyJobs) Lines() []string {
	lines := []string{fmt.Sprintf("%s: report: %v:", cli.ProgramName, m)}
	for _, r := range job.ByNeed(m) {
		state := "runs"
		if r.Job.Ended != nil {
			state = "ended " + r.Job.Ended.Local().Format(time.DateTime)
		}
		if len(lines) > maxLines {
			return append(lines, fmt.Sprintf("  and %d more", len(m)-maxLines))
		}
		lines = append(lines, fmt.Sprintf("  %s (--user=%s, --world=%s, %s, %s): %s", mapping.OneLine(r.Job.ID),
			mapping.OneLine(r.Job.User), mapping.OneLine(r.Job.World), mapping.OneLine(path.Base(r.Job.Program)), state,
			r.Verdict.Sentence()))
	}
	return lines
}
