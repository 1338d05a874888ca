package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
)

// How much of each list a page for people has; JSON has all of it.
const (
	shownCalls  = 15
	shownLate   = 20 // ranks, from the late end
	shownEarly  = 5  // and from the early one
	shownLevels = 15
	shownPairs  = 10
)

// Text writes the report for a terminal.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	v := r.view()
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

// section is a table of the report, as text and as HTML.
type section struct {
	Title string
	Heads []string
	Rows  []row
	Notes []string
}

// row is a line of a section; parts are those of a bar, nil: there is none.
type row struct {
	Cells []string
	Parts []part
}

// part is a piece of a bar.
type part struct {
	Class string  // useful, send, wait, collective, file
	Share float64 // of the bar
}

// Percent is the part's width.
func (p part) Percent() string { return strconv.FormatFloat(100*p.Share, 'f', 2, 64) + "%" }

// view is a report in words.
type view struct {
	Title, About, Verdict string
	report                *Report
}

func (r *Report) view() *view {
	j := &r.Job
	title := "Job " + table.Clean(j.ID)
	if j.Name != "" {
		title += " (" + table.Clean(j.Name) + ")"
	}
	if j.Program != "" {
		title += ": " + table.Clean(path.Base(j.Program))
	}
	about := []string{"user " + cmp.Or(table.Clean(j.User), "unknown"), "world " + table.Clean(j.World),
		fmt.Sprintf("%d of %s", j.Observed, count(j.WorldSize, "rank")), count(j.Nodes, "node")}
	if j.Library != "" {
		about = append(about, table.Clean(j.Library))
	}
	if j.Started != nil {
		about = append(about, "began "+j.Started.Local().Format(time.DateTime), r.state()+" "+duration(r.Lasted()))
	}
	return &view{Title: title, About: strings.Join(about, ", "), Verdict: table.Clean(r.Verdict.Text), report: r}
}

func (r *Report) state() string {
	if r.Job.Ended != nil {
		return "ended after"
	}
	return "runs for"
}

func (v *view) sections() (all []section) {
	for _, s := range []section{v.efficiency(), v.underWay(), v.calls(), v.ranks(), v.sizes(), v.messages(),
		v.levels()} {
		if len(s.Rows) > 0 {
			all = append(all, s)
		}
	}
	if v.report.LeftOut > 0 {
		all = append(all, section{Title: "Left out", Heads: []string{""}, Rows: []row{{Cells: []string{fmt.Sprintf(
			"%d ranks or series had no room in an exporter's answer", v.report.LeftOut)}}}})
	}
	return all
}

func (v *view) calls() section {
	s := section{Title: "Time in MPI, of all ranks", Heads: []string{"SHARE", "TIME", "CALLS", "MEAN", "FUNCTION", "ON",
		"MOST IN RANK", "BYTES A CALL"}}
	list := v.report.Calls
	for i := range list[:min(len(list), shownCalls)] {
		c := &list[i]
		mean := ""
		if c.Calls > 0 {
			mean = duration(c.Seconds / c.Calls)
		}
		s.Rows = append(s.Rows, row{Cells: []string{percent(c.Share), duration(c.Seconds), number3(c.Calls), mean,
			c.Function, c.Object, fmt.Sprintf("%d: %s", c.Most, duration(c.MostSeconds)), c.bytesACall()},
			Parts: []part{{"mpi", min(c.Share, 1)}}})
	}
	if secondsOf(list) > 1.05*v.report.inside() {
		s.Notes = append(s.Notes, "Other threads than those that initialised MPI call it, too; shares are of these threads' time.")
	}
	if more := len(list) - shownCalls; more > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("… and %d more, with %s", more, duration(secondsOf(list[shownCalls:]))))
	}
	return s
}

func secondsOf(calls []Call) (seconds float64) {
	for i := range calls {
		seconds += calls[i].Seconds
	}
	return seconds
}

// inside is all ranks' time in MPI, of the threads that initialised it.
func (r *Report) inside() (seconds float64) {
	for i := range r.Ranks {
		seconds += r.Ranks[i].Inside
	}
	return seconds
}

// bytesACall is how many bytes a call has had on average, by direction.
func (c *Call) bytesACall() string {
	var parts []string
	for _, direction := range slices.Sorted(maps.Keys(c.Bytes)) {
		if c.Calls > 0 {
			parts = append(parts, bytesText(c.Bytes[direction]/c.Calls)+" "+direction)
		}
	}
	return strings.Join(parts, ", ")
}

func (v *view) ranks() section {
	s := section{Title: "Ranks, from late to early", Heads: []string{"RANK", "NODE", "STATE", "USEFUL", "SEND", "FILE",
		"COLLECTIVE", "WAIT"}}
	list := v.report.Ranks
	for i := range list {
		if len(list) > shownLate+shownEarly && i >= shownLate && i < len(list)-shownEarly {
			if i == shownLate {
				s.Rows = append(s.Rows, row{Cells: []string{fmt.Sprintf("… %d more", len(list)-shownLate-shownEarly)}})
			}
			continue
		}
		r := &list[i]
		name := strconv.Itoa(r.Rank)
		if r.Dup > 0 {
			name += fmt.Sprintf(" (dup %d)", r.Dup)
		}
		parts := r.parts()
		cells := []string{name, r.Node, cmp.Or(r.End, r.State)}
		for _, p := range parts {
			if r.Observed > 0 {
				cells = append(cells, percent(p.Share))
			} else {
				cells = append(cells, "") // its calls are not measured
			}
		}
		s.Rows = append(s.Rows, row{Cells: cells, Parts: parts})
	}
	return s
}

func (v *view) sizes() section {
	s := section{Title: "Sizes of calls", Heads: []string{"CALLS", "MEDIAN UP TO", "90 % UP TO", "ALL UP TO", "FUNCTION",
		"ON"}}
	list := v.report.Sizes
	for i := range list[:min(len(list), shownCalls)] {
		of := &list[i]
		s.Rows = append(s.Rows, row{Cells: []string{number3(of.Calls), upTo(of.AtMost(0.5)), upTo(of.AtMost(0.9)),
			upTo(of.AtMost(1)), of.Function, of.Object}})
	}
	if more := len(list) - shownCalls; more > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("… and %d more", more))
	}
	return s
}

func upTo(size float64) string {
	if size == LargestSize {
		return "more"
	}
	return bytesText(size)
}

func (v *view) messages() section {
	s := section{Title: "Messages, by sender and receiver", Heads: []string{"BYTES", "MESSAGES", "MEAN", "FROM", "TO"}}
	list := v.report.Messages
	for i := range list[:min(len(list), shownPairs)] {
		m := &list[i]
		s.Rows = append(s.Rows, row{Cells: []string{bytesText(m.Bytes), number3(m.Messages),
			bytesText(m.Bytes / m.Messages), strconv.Itoa(m.From), m.To}, Parts: []part{{"send", m.Bytes / max(list[0].Bytes, 1)}}})
	}
	if more := len(list) - shownPairs; more > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("… and %d more pairs", more))
	}
	return s
}

func (v *view) levels() section {
	s := section{Title: "Queues and watermarks of the library", Heads: []string{"MOST", "IN RANK", "OF"}}
	list := v.report.Levels
	for i := range list[:min(len(list), shownLevels)] {
		l := &list[i]
		s.Rows = append(s.Rows, row{Cells: []string{number3(l.Most), strconv.Itoa(l.Rank),
			l.Metric + labelText(l.Labels)}})
	}
	if more := len(list) - shownLevels; more > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("… and %d more", more))
	}
	return s
}

// ---- words ----

func percent(share float64) string {
	if share > 0 && share < 0.0095 {
		return strconv.FormatFloat(100*share, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(100*share, 'f', 0, 64) + " %"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// duration writes seconds with three digits.
func duration(seconds float64) string {
	switch {
	case seconds <= 0:
		return "0s"
	case seconds < 1e-6:
		return three(seconds*1e9) + "ns"
	case seconds < 1e-3:
		return three(seconds*1e6) + "µs"
	case seconds < 1:
		return three(seconds*1e3) + "ms"
	case seconds < 100:
		return three(seconds) + "s"
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

// three writes a number below 1000 with three digits.
func three(x float64) string {
	switch {
	case x < 10:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case x < 100:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}

// number3 writes a number with three digits: 1.23k, 4.5M.
func number3(x float64) string {
	return scaled(x, 1000, "", "k", "M", "G", "T", "P")
}

func bytesText(x float64) string {
	return scaled(x, 1024, " B", " KiB", " MiB", " GiB", " TiB", " PiB")
}

func scaled(x, step float64, units ...string) string {
	i := 0
	for math.Abs(x) >= step && i < len(units)-1 {
		x /= step
		i++
	}
	if i == 0 && x == math.Trunc(x) {
		return strconv.FormatFloat(x, 'f', 0, 64) + units[i]
	}
	return three(x) + units[i]
}
