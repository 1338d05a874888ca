package report

import (
	"cmp"
	_ "embed" // page.html
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"

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
	t := template.Must(template.New("report").Funcs(template.FuncMap{
		"name":    func(head string) string { return strings.TrimPrefix(head, ">") },
		"width":   func(share float64) string { return strconv.FormatFloat(100*share, 'f', 2, 64) + "%" },
		"percent": units.Percent,
		"right":   func(heads []string, at int) bool { return strings.HasPrefix(heads[at], ">") },
	}).Parse(pageHTML))
	v := viewOf(r)
	data, err := json.Marshal(v.report)
	if err != nil {
		return written(err)
	}
	colour := cmp.Or(job.StateOf(v.State).Colour, "line")
	return written(t.Execute(w, map[string]any{"View": v, "Bar": r.Verdict.Bar(), "Whole": v.whole(), "Matrix": v.matrix(),
		"Colour":   template.CSS("var(--" + colour + ")"), //nolint:gosec // G203: from a table
		"Palette":  template.CSS(page.Palette),            //nolint:gosec // G203: it is this program's
		"Sections": v.sections(), "JSON": json.RawMessage(mapping.EscapeHidden(data))}))
}

// whole is the time of all ranks together, by what they do.
func (v *view) whole() []job.Part {
	all := job.Rank{Time: v.report.Spent()}
	if all.Time.Sum() == 0 {
		return nil
	}
	return slices.DeleteFunc(partsOf(&all), func(p job.Part) bool { return p.Share == 0 })
}

// maxMatrix is up to how many ranks there is a matrix of who sends to whom.
const maxMatrix = 64

// cell is a pair of ranks in the matrix.
type cell struct {
	Text  string // when the pointer is on it
	Share string // of the largest, from 0 to 1; empty: nothing was sent
}

// matrix is bytes by sender (row) and receiver, and what shades mean.
type matrix struct {
	Rows   [][]cell
	Legend []cell
}

// matrix is nil if nothing was counted, or there are too many ranks.
func (v *view) matrix() *matrix {
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
			units.Number(m.Messages)), shade(m.Bytes / most)}
	}
	return &matrix{rows, []cell{{"up to " + units.Bytes(palest*most), shade(0)}, {units.Bytes(most / 2), shade(0.5)},
		{units.Bytes(most), shade(1)}, {"none", "0"}}}
}

// palest is the share of the largest that can still be seen; what is less looks alike.
const palest = 0.05

func shade(share float64) string { return strconv.FormatFloat(max(share, palest), 'f', 2, 64) }

// partsOf are a rank's time by what it does: useful, and the states of MPI.
func partsOf(r *job.Rank) []job.Part {
	parts := []job.Part{{Name: "useful", Colour: "useful", Share: r.Useful()}}
	for state := api.Outside + 1; state < api.TimeStates; state++ {
		name := api.TimeStateNames[state]
		parts = append(parts, job.Part{Name: name, Colour: name, Share: r.Share(state)})
	}
	return parts
}
