package report

import (
	"bytes"
	_ "embed" // page.html
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
)

//go:embed page.html
var page string

// Bars says whether rows of the section have bars.
func (s section) Bars() bool {
	return slices.ContainsFunc(s.Rows, func(r row) bool { return r.Parts != nil })
}

// HTML writes the report as a page that needs nothing else. The report itself stands in it, for Read.
func (r *Report) HTML(w io.Writer) error {
	t, err := template.New("report").Parse(page)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	v := r.view()
	err = t.Execute(w, map[string]any{"Title": v.Title, "About": v.About, "Verdict": v.Verdict, "Whole": v.whole(),
		"Matrix":   v.matrix(),
		"Sections": v.sections(), "JSON": r.WithRanks(0)})
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// whole is the time of all ranks together, by what they do.
func (v *view) whole() []part {
	var all Rank
	for i := range v.report.Ranks {
		r := &v.report.Ranks[i]
		all.Observed += r.Observed
		all.Inside += r.Inside
		all.Kind.Send += r.Kind.Send
		all.Kind.File += r.Kind.File
		all.Kind.Collective += r.Kind.Collective
		all.Kind.Wait += r.Kind.Wait
	}
	if all.Observed == 0 {
		return nil
	}
	return all.parts()
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
		rows[m.From][to] = cell{fmt.Sprintf("%d to %d: %s, %s messages", m.From, to, bytesText(m.Bytes), number3(m.Messages)),
			strconv.FormatFloat(max(m.Bytes/most, 0.05), 'f', 2, 64)}
	}
	return rows
}

// parts are a rank's time by what it does.
func (r *Rank) parts() []part {
	return []part{{"useful", r.Useful()}, {"send", r.share(r.Kind.Send)}, {"file", r.share(r.Kind.File)},
		{"collective", r.share(r.Kind.Collective)}, {"wait", r.share(r.Kind.Wait)}}
}

// JSON writes the report as JSON.
func (r *Report) JSON(w io.Writer) error {
	text, err := json.MarshalIndent(r.WithRanks(0), "", "  ")
	if err == nil {
		_, err = w.Write(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// Read reads a report that JSON or HTML has written.
func Read(text []byte) (*Report, error) {
	const begin, end = `<script type="application/json" id="report">`, `</script>`
	if _, after, is := bytes.Cut(text, []byte(begin)); is {
		text, _, _ = bytes.Cut(after, []byte(end))
	}
	r := &Report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("this is no report, neither as JSON nor as a page: %w", err)
	}
	if r.Format != Format {
		return nil, fmt.Errorf("this is a report of format %d; this version reads %d", r.Format, Format)
	}
	return r, nil
}
