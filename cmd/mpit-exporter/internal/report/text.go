package report

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// JSON writes a report as JSON.
func JSON(r *job.Report, w io.Writer) error { return written(cli.WriteJSON(w, r.Written())) }

func written(err error) error {
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// Text writes a report for a terminal with so many columns; 0: lines are as long as they are.
func Text(r *job.Report, w io.Writer, columns int) error {
	var b strings.Builder
	v := viewOf(r)
	for _, text := range []string{v.Title, v.About, "", v.State + v.Why} {
		writeLines(&b, table.Wrap(text, columns, 0))
	}
	for _, s := range v.sections() {
		fmt.Fprintf(&b, "\n%s\n", s.Title)
		rows := make([][]string, len(s.Rows))
		for i, row := range s.Rows {
			rows[i] = row.Cells
		}
		writeLines(&b, table.Aligned(s.Heads, rows, columns))
		for _, note := range s.Notes {
			writeLines(&b, table.Wrap(note, columns, 0))
		}
	}
	_, err := io.WriteString(w, b.String())
	return written(err)
}

func writeLines(b *strings.Builder, lines []string) {
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
}

// lineColumns is how long a line for a job's record may be.
const lineColumns = 200

// Lines writes each report in a line, for a job's record: the job, its state, the useful share of its time, and the
// hours that its ranks have waited, each of which counts as a core. The verdict's sentence is the rest of the line.
// Those with most time come first.
func Lines(reports []*job.Report, w io.Writer) error {
	word := func(text string) string { return strings.ReplaceAll(mapping.OneLine(text), " ", "-") }
	var lines strings.Builder
	for _, r := range slices.SortedStableFunc(slices.Values(reports), func(a, b *job.Report) int {
		of, than := a.Spent(), b.Spent()
		return cmp.Compare(than.Sum(), of.Sum())
	}) {
		useful, lost := "unknown", "unknown"
		if e := r.Verdict.Efficiency; e != nil {
			useful, lost = strconv.FormatFloat(e.Parallel, 'f', 2, 64), strconv.FormatFloat(waited(r)/3600, 'f', 3, 64)
		}
		line := fmt.Sprintf("jobid=%s state=%s useful=%s lost_core_hours=%s %s", word(r.Job.ID), word(r.Verdict.State),
			useful, lost, mapping.OneLine(r.Verdict.Text))
		lines.WriteString(table.Shorten(line, lineColumns) + "\n")
	}
	_, err := io.WriteString(w, lines.String())
	return written(err)
}

// waited is how many seconds all ranks have waited for others, or for their messages.
func waited(r *job.Report) (seconds float64) {
	for i := range r.Ranks {
		seconds += r.Ranks[i].Time.Sum() * (1 - r.Ranks[i].Busy())
	}
	return seconds
}

// Comparison writes a comparison for a terminal with so many columns; 0: lines are as long as they are.
func Comparison(c *job.Comparison, w io.Writer, columns int) error {
	var b strings.Builder
	writeLines(&b, table.Wrap(mapping.OneLine(c.Text), columns, 0))
	b.WriteString("\n")
	for _, run := range []struct {
		name    string
		job     *job.Job
		verdict string
	}{{"Before", &c.Before, c.Verdicts.Before}, {"After", &c.After, c.Verdicts.After}} {
		writeLines(&b, table.Wrap(fmt.Sprintf("%s: job %s, %s, %s: %s", run.name, mapping.OneLine(run.job.ID),
			mapping.OneLine(path.Base(cmp.Or(run.job.Program, "unknown program"))), units.Count(run.job.Observed, "rank"),
			mapping.OneLine(run.verdict)), columns, 0))
	}
	b.WriteString("\n")
	var rows [][]string
	for i := range c.Changes[:min(len(c.Changes), shownCalls)] {
		change := &c.Changes[i]
		calls := []string{"", ""}
		if change.What != job.Outside {
			calls = []string{units.Number(change.CallsBefore), units.Number(change.CallsAfter)}
		}
		rows = append(rows, []string{signed(change.Costs()), units.Duration(change.Before), units.Duration(change.After),
			calls[0], calls[1], mapping.OneLine(change.What)})
	}
	writeLines(&b, table.Aligned([]string{">COSTS", ">BEFORE", ">AFTER", ">CALLS BEFORE", ">AFTER",
		"OF THE MEAN RANK, IN"}, rows, columns))
	if more := len(c.Changes) - shownCalls; more > 0 {
		fmt.Fprintf(&b, "… and %d more\n", more)
	}
	_, err := io.WriteString(w, b.String())
	return written(err)
}

func signed(seconds float64) string {
	if seconds < 0 {
		return "-" + units.Duration(-seconds)
	}
	return "+" + units.Duration(seconds)
}
