package report

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// JSON writes a report, or a comparison, as JSON.
func JSON[T job.Report | job.Comparison](of *T, w io.Writer) error {
	if err := cli.WriteJSON(w, of); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// Text writes a report for a terminal.
func Text(r *job.Report, w io.Writer) error {
	var b strings.Builder
	v := viewOf(r)
	fmt.Fprintf(&b, "%s\n%s\n", v.Title, v.About)
	fmt.Fprintf(&b, "\n%s\n", v.Verdict)
	for _, s := range v.sections() {
		fmt.Fprintf(&b, "\n%s\n", s.Title)
		t := table.New(&b)
		if s.Heads[0] != "" {
			table.Line(t, s.Heads...)
		}
		for _, row := range s.Rows {
			table.Row(t, slices.Clone(row.Cells)...)
		}
		_ = t.Flush()
		for _, note := range s.Notes {
			fmt.Fprintln(&b, note)
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// Comparison writes a comparison for a terminal.
func Comparison(c *job.Comparison, w io.Writer) error {
	var b strings.Builder
	for _, run := range []struct {
		name    string
		job     *job.Job
		verdict string
	}{{"Before", &c.Before, c.Verdicts.Before}, {"After", &c.After, c.Verdicts.After}} {
		fmt.Fprintf(&b, "%-7s job %s, %s, %s: %s\n", run.name+":", mapping.OneLine(run.job.ID),
			mapping.OneLine(path.Base(cmp.Or(run.job.Program, "unknown program"))), units.Count(run.job.Observed, "rank"),
			mapping.OneLine(run.verdict))
	}
	fmt.Fprintf(&b, "The mean rank takes %s; it took %s: %s\n\n", units.Duration(c.Observed.After),
		units.Duration(c.Observed.Before), signed(c.Observed.Costs()))
	t := table.New(&b)
	table.Line(t, "COSTS", "BEFORE", "AFTER", "CALLS BEFORE", "AFTER", "OF THE MEAN RANK, IN")
	for i := range c.Changes[:min(len(c.Changes), shownCalls)] {
		change := &c.Changes[i]
		calls := []string{"", ""}
		if change.What != job.Outside {
			calls = []string{units.Number(change.CallsBefore), units.Number(change.CallsAfter)}
		}
		table.Row(t, signed(change.Costs()), units.Duration(change.Before), units.Duration(change.After), calls[0], calls[1],
			change.What)
	}
	_ = t.Flush()
	if more := len(c.Changes) - shownCalls; more > 0 {
		fmt.Fprintf(&b, "… and %d more\n", more)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the comparison: %w", err)
	}
	return nil
}

func signed(seconds float64) string {
	if seconds < 0 {
		return "-" + units.Duration(-seconds)
	}
	return "+" + units.Duration(seconds)
}
