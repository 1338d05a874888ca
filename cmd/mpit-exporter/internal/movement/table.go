package movement

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/terminal"
)

// Unlimited is as many lines as there are.
const Unlimited = math.MaxInt

// Table is the text: at most so many lines, each of at most so many characters (0: as many as it takes). Headings end
// with terminal.Heading.
func (m *Movement) Table(order string, lines, columns int) string {
	if m.at.IsZero() {
		return ""
	}
	// A third of a screen is for ranks, the rest for what moves.
	room := Unlimited
	if lines < Unlimited {
		room = max(1, (lines-4)/3)
	}
	var b strings.Builder
	m.writeSummary(&b)
	m.writeJobs(&b, max(1, room/2))
	m.writeRanks(&b, room)
	m.writeCalls(&b, room)
	b.WriteString("\n")
	m.writeMoving(&b, order)
	return crop(b.String(), lines, columns)
}

func (m *Movement) writeSummary(b *strings.Builder) {
	states := map[string]int{}
	for i := range m.ranks {
		states[m.ranks[i].Rank.State]++
	}
	plural := "s"
	if len(m.ranks) == 1 {
		plural = ""
	}
	fmt.Fprintf(b, "%s  %d rank%s", m.at.Local().Format(time.TimeOnly), len(m.ranks), plural)
	for _, state := range []string{"up", "busy", "passive", "paused", "new", "late", "ended"} {
		if n := states[state]; n > 0 {
			fmt.Fprintf(b, ", %d %s", n, state)
		}
	}
	if m.more > 0 {
		b.WriteString("; more than fits into an answer: choose with --jobid, --world, --user or --rank")
	}
	b.WriteString(terminal.Heading + "\n")
}

// writeRanks writes the first ranks, a line for each.
func (m *Movement) writeRanks(b *strings.Builder, room int) {
	t := table.New(b)
	headings := []string{"JOBID", "WORLD", "RANK", "STATE", "IN MPI", "USER", "HOST", "PID", "LIBRARY",
		"PROGRAM" + terminal.Heading}
	if len(m.calls) == 0 {
		headings = slices.Delete(headings, 4, 5)
	}
	table.Line(t, headings...)
	for i := range m.ranks[:min(len(m.ranks), room)] {
		r := &m.ranks[i].Rank
		number := strconv.Itoa(r.Rank)
		if r.Dup > 0 {
			number += fmt.Sprintf(" (dup %d)", r.Dup)
		}
		cells := []string{r.JobID, r.World, number, r.State, m.insideCell(r), r.User, r.Host, strconv.Itoa(r.PID),
			r.Library + " " + r.LibraryVersion, r.Executable}
		if len(m.calls) == 0 {
			cells = slices.Delete(cells, 4, 5)
		}
		table.Row(t, cells...)
	}
	_ = t.Flush()
	if left := len(m.ranks) - room; left > 0 {
		fmt.Fprintf(b, "… and %d more\n", left)
	}
}

// writeMoving writes what moves, a line for each series of a world. If there are timers, it says how often and how
// long.
func (m *Movement) writeMoving(b *strings.Builder, order string) {
	moved := m.moved(order)
	timers := slices.ContainsFunc(moved, func(l moving) bool { return l.timer })
	headings := []string{"RATE/s", "MOST/s", "OF RANK", "VALUE", "COUNT/s", "MEAN", "RANKS", "JOBID", "USER",
		"SERIES" + terminal.Heading}
	if !timers {
		headings = slices.Delete(headings, 4, 6)
	}
	t := table.New(b)
	table.Line(t, headings...)
	for _, l := range moved {
		who := "all"
		switch {
		case m.elapsed == 0 || l.most == 0:
			who = ""
		case l.who.rank != together:
			who = strconv.Itoa(l.who.rank)
		}
		series := l.metric
		if l.labels != "" {
			series += "{" + l.labels + "}"
		}
		cells := []string{m.rateCell(l.rate), m.rateCell(l.most), who, numberText(l.value)}
		if timers {
			cells = append(cells, l.countCell(m.elapsed), l.meanCell())
		}
		table.Row(t, append(cells, strconv.Itoa(l.ranks), l.jobID, l.user, series)...)
	}
	_ = t.Flush()
	if len(moved) == 0 && len(m.ranks) > 0 {
		b.WriteString("nothing: the MPI library of these ranks has no performance variables, or rules leave them " +
			"out (mpit-exporter list)\n")
	}
}

func (m *Movement) rateCell(rate float64) string {
	if m.elapsed == 0 {
		return ""
	}
	return numberText(rate)
}

// countCell is the number of a timer's observations per second; empty if there is no rate, or no timer.
func (l *moving) countCell(elapsed float64) string {
	if !l.timer || elapsed == 0 {
		return ""
	}
	return numberText(l.count / elapsed)
}

// meanCell is how long each took; empty if there were none, or after a reset.
func (l *moving) meanCell() string {
	if !l.timer || l.count <= 0 || l.took < 0 {
		return ""
	}
	return numberText(l.took / l.count)
}

// numberText is short enough for a column: four digits and a power of 1000.
func numberText(v float64) string {
	a := math.Abs(v)
	for _, unit := range []struct {
		size float64
		name string
	}{{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {9999.5, "k"}} {
		if a >= unit.size {
			size := unit.size
			if unit.name == "k" {
				size = 1e3
			}
			return strconv.FormatFloat(v/size, 'g', 4, 64) + unit.name
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// crop cuts a text to so many lines and columns.
func crop(text string, lines, columns int) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		if lines--; lines < 0 {
			break
		}
		l, isHeading := strings.CutSuffix(strings.TrimRight(l, " \n"), terminal.Heading)
		if columns > 0 {
			l = table.Shorten(l, columns)
		}
		if isHeading {
			l += terminal.Heading
		}
		b.WriteString(l + "\n")
	}
	return b.String()
}
