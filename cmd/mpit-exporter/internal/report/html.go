package report

import (
	_ "embed" // page.html
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/page"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

//go:embed page.html
var pageHTML string

// Bars says whether rows of the section have bars.
func (s section) Bars() bool {
	return slices.ContainsFunc(s.Rows, func(r row) bool { return r.Parts != nil })
}

// HTML writes a report as a page that needs nothing else. The report itself stands in it, for job.Read.
func HTML(r *job.Report, w io.Writer) error {
	t, err := template.New("report").Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	data, err := json.Marshal(r.WithRanks(0))
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	v := viewOf(r)
	err = t.Execute(w, map[string]any{"Title": v.Title, "About": v.About, "Verdict": v.Verdict, "Whole": v.whole(),
		"Matrix": v.matrix(), "Palette": template.CSS(page.Palette), //nolint:gosec // G203: it is this program's
		"Sections": v.sections(), "JSON": json.RawMessage(mapping.EscapeHidden(data))})
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// whole is the time of all ranks together, by what they do.
func (v *view) whole() []part {
	var all job.Rank
	for i := range v.report.Ranks {
		for state, seconds := range v.report.Ranks[i].Time {
			all.Time[state] += seconds
		}
	}
	if all.Time.Sum() == 0 {
		return nil
	}
	return slices.DeleteFunc(partsOf(&all), func(p part) bool { return p.Share == 0 })
}

// maxMatrix is up to how many ranks there is a matrix of who sends to whom.
const maxMatrix = 64

// cell is a pair of ranks in the matrix.
type cell struct {
	Text  string // when the pointer is on it
	Share string // of the largest, from 0 to 1; empty: nothing was sent
}

// matrix is bytes by sender (row) and receiver; nil: nothing was counted, or there are too many ranks.
func (v *view) matrix() [][]cell {
	size := v.report.Job.WorldSize
	if len(v.report.Messages) == 0 || size < 1 || size > maxMatrix {
		return nil
	}
	rows := make([][]cell, size)
	for i := range rows {
		rows[i] = make([]cell, size)
	}
	most := max(v.report.Messages[0].Bytes, 1)
	for _, m := range v.report.Messages {
		to, err := strconv.Atoi(m.To)
		if err != nil || to < 0 || to >= size || m.From < 0 || m.From >= size {
			continue // other
		}
		rows[m.From][to] = cell{fmt.Sprintf("%d to %d: %s, %s messages", m.From, to, units.Bytes(m.Bytes),
			units.Number(m.Messages)),
			strconv.FormatFloat(max(m.Bytes/most, 0.05), 'f', 2, 64)}
	}
	return rows
}

// partsOf are a rank's time by what it does.
func partsOf(r *job.Rank) []part {
	return []part{{"useful", r.Useful()}, {"send", r.Share(api.Send)}, {"file", r.Share(api.File)},
		{"collective", r.Share(api.Collective)}, {"wait", r.Share(api.Wait)}, {"poll", r.Share(api.Poll)},
		{"finalize", r.Share(api.Finalize)}, {"ended", r.Share(api.Ended)}}
}
