// Package top draws what "mpit-exporter top" shows of the jobs of a node: a verdict on each, and of one of them where
// its time goes, in which calls of MPI and in which ranks.
//
// It asks nobody. Begin with View.Screen and View.Plain, which draw lines for any terminal or none; OpenScreen and
// Draw show them.
package top

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// View is what is shown.
type View struct {
	Reports []*job.Report // those that need attention first
	Picked  int           // which of them is shown whole
}

// Screen draws a screen of so many columns and lines.
func (v *View) Screen(columns, lines int) []Line {
	all := []Line{v.head(columns)}
	if len(v.Reports) == 0 {
		return crop(append(all, nil, Line{{Text: "No rank has come yet. Start programs with mpit-exporter exec."}}),
			columns, lines)
	}
	r, room := v.Reports[v.Picked], 0
	if len(v.Reports) > 1 {
		room = max(3, lines/5)
		lines -= 2 // of the list: its heading, and what is empty below it
	}
	below := v.about(r, columns)
	below = append(below, v.details(r, columns, lines-len(all)-min(room, len(v.Reports))-len(below))...)
	if room > 0 { // the jobs have what the picked one leaves free
		all = append(all, v.jobs(max(room, lines-len(all)-len(below)), columns)...)
		all = append(all, nil)
		lines += 2
	}
	return crop(append(all, below...), columns, lines)
}

// Plain draws all of every job, for what is no terminal.
func (v *View) Plain() (all []Line) {
	for _, r := range v.Reports {
		all = append(all, v.about(r, 0)...)
		all = append(all, v.details(r, 0, math.MaxInt)...)
		all = append(all, nil)
	}
	return all
}

// crop cuts lines to a screen.
func crop(all []Line, columns, lines int) []Line {
	all = all[:min(len(all), max(lines, 0))]
	for i := range all {
		all[i] = fit(all[i], columns)
	}
	return all
}

// head says of when all of it is.
func (v *View) head(columns int) Line {
	words := []string{"mpit-exporter top"}
	if len(v.Reports) > 0 {
		r := v.Reports[v.Picked]
		words = append(words, r.Time.Local().Format(time.TimeOnly), interval(r))
		ranks, states := 0, map[string]int{}
		for _, r := range v.Reports {
			ranks += len(r.Ranks)
			for i := range r.Ranks {
				states[r.Ranks[i].State]++
			}
		}
		of := units.Count(len(v.Reports), "job") + ", " + units.Count(ranks, "rank")
		for _, state := range []string{"busy", "passive", "paused", "new", "late", "ended"} { // up is as it should be
			if states[state] > 0 {
				of += fmt.Sprintf(", %d %s", states[state], strings.Replace(state, "late", silent, 1))
			}
		}
		words = append(words, of)
	}
	const help = "? help"
	text := table.Shorten(strings.Join(words, "  "), max(columns-len(help)-2, 1))
	space := max(columns-table.Width(text)-len(help), 2)
	return Line{{Text: text + strings.Repeat(" ", space)}, {Text: help, Tone: Faint}}
}

// interval is of what time a report is.
func interval(r *job.Report) string {
	if r.Whole {
		return "since it began"
	}
	return "last " + units.Duration(r.Seconds)
}

// jobs are a line for each job.
func (v *View) jobs(room, columns int) []Line {
	g := grid{heads: []string{"  JOB", "PROGRAM", "USER", ">RANKS", "VERDICT", ""}}
	for i, r := range v.Reports {
		mark := "  "
		tone := Usual
		if i == v.Picked {
			mark, tone = "> ", Picked
		}
		badge, text := judged(r)
		row := cells(Usual, "", path.Base(r.Job.Program), r.Job.User, fmt.Sprint(r.Job.Observed), "", text)
		row[0] = Piece{Text: mark + table.Middle(v.name(r), max(columns/4, 20)), Tone: tone}
		row[4] = badge
		g.rows = append(g.rows, row)
	}
	if columns < 100 { // the verdict says more than the program's and the user's name
		g.heads = slices.Delete(g.heads, 1, 3)
		for i := range g.rows {
			g.rows[i] = slices.Delete(g.rows[i], 1, 3)
		}
	}
	if first := v.Picked - room + 2; first > 0 && len(g.rows) > room {
		g.rows = g.rows[first:]
	}
	return g.lines(room)
}

// name is what a job is called, told apart from others.
func (v *View) name(r *job.Report) string {
	same := 0
	for _, other := range v.Reports {
		if other.Job.ID == r.Job.ID {
			same++
		}
	}
	if name := cmp.Or(mapping.OneLine(r.Job.ID), "-"); same == 1 || r.Job.World == "" {
		return name
	}
	return mapping.OneLine(r.Job.ID + "/" + r.Job.World)
}

// judged is the verdict's word, and what is to be said besides.
func judged(r *job.Report) (badge Piece, text string) {
	state, text := r.Verdict.State, mapping.OneLine(r.Verdict.Text)
	tone := Poor
	switch job.StateOf(state).Colour {
	case "hung":
		tone = Bad
	case "useful":
		tone = Good
	case "":
		tone = Faint
	}
	text = strings.TrimPrefix(strings.TrimPrefix(text, state), ": ") // the text of some begins with it
	return Piece{Text: strings.ToUpper(state), Tone: tone}, strings.TrimSpace(text)
}

// about says what is to be said of a job, which one it is, and how efficient it is.
func (v *View) about(r *job.Report, columns int) []Line {
	j := &r.Job
	name := v.name(r)
	if columns > 0 {
		name = table.Middle(name, max(columns/3, 20))
	}
	title := "Job " + name
	if name := strings.Trim(mapping.OneLine(j.Name)+", "+mapping.OneLine(path.Base(j.Program)), ", "); name != "" &&
		name != "." {
		title += ": " + name
	}
	title += ", user " + cmp.Or(mapping.OneLine(j.User), "unknown") + ", "
	if j.Observed != j.WorldSize {
		title += fmt.Sprintf("%d of ", j.Observed) // the others are elsewhere
	}
	title += units.Count(j.WorldSize, "rank")
	if j.Nodes > 1 {
		title += fmt.Sprintf(" on %d nodes", j.Nodes)
	}
	if j.Library != "" {
		title += ", " + mapping.OneLine(j.Library)
	}
	if lasted := r.Lasted(); lasted > 0 {
		state := ", runs for "
		if j.Ended != nil {
			state = ", ended after "
		}
		title += state + time.Duration(lasted*float64(time.Second)).Truncate(time.Second).String()
	}
	var lines []Line
	badge, text := judged(r)
	for i, part := range table.Wrap(text, columns, table.Width(badge.Text)+2) {
		if i == 0 {
			lines = append(lines, Line{badge, {Text: "  " + part}})
		} else {
			lines = append(lines, Line{{Text: part}})
		}
	}
	lines = append(lines, Line{{Text: title, Tone: Heading}})
	if parts := r.Verdict.Bar(); len(parts) > 1 { // otherwise the state says it
		var line Line
		if columns > 0 {
			full, inside, waited := strip(min(columns/4, 30), parts[0].Share, parts[1].Share)
			line = Line{{Text: full, Tone: Good}, {Text: inside},
				{Text: waited, Tone: Poor}, {Text: " "}}
		}
		words := make([]string, len(parts))
		for i, p := range parts {
			words[i] = units.Percent(p.Share) + " " + p.Name
		}
		lines = append(lines, append(line, Piece{Text: strings.Join(words, ", ")}))
	}
	return lines
}

// details are the tables on a job, in so many lines. What the calls leave free the ranks have, and the other way round.
func (v *View) details(r *job.Report, columns, lines int) (all []Line) {
	add := func(g grid, rows int) {
		if some := g.lines(rows); some != nil {
			all = append(append(all, nil), some...)
		}
	}
	add(underWay(r), max(lines/4, 2))
	if lines > 30 {
		add(sites(r), len(r.Sites))
	}
	calls := callsOf(r)
	room := lines - len(all) - 2 // for rows: each table has a heading and an empty line above it
	if len(calls.rows) > 0 {
		room -= 2
	}
	groups := fold(r.Ranks, max(room-min(len(calls.rows), room/2), 1))
	add(calls, max(room-len(groups), room/2))
	add(ranks(r, groups, columns), lines-len(all)-2)
	return all
}
