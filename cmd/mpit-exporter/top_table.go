package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// Orders of the variables.
const (
	byRate  = "rate"
	byValue = "value"
	byName  = "name"
)

// heading ends a line that is one. Nothing that a rank says has it: clean takes such characters away.
const heading = "\x01"

// unlimited is as many lines as there are.
const unlimited = math.MaxInt

// movement is what has changed between two looks.
type movement struct {
	at      time.Time
	ranks   []api.RankValues
	more    int
	before  map[seriesKey]figure
	values  map[seriesKey]figure
	elapsed float64 // seconds; 0: there was one look only
}

// figure is a series' value.
type figure struct {
	value  float64 // of a histogram: its sum
	count  float64 // of a histogram's observations
	counts bool    // it only grows, so that those of several ranks can be added up
	timer  bool    // a histogram
}

// seriesKey names a series of a rank, or of all ranks of a world together.
type seriesKey struct {
	jobID, world, user string
	rank, dup          int
	metric             string
	labels             string
}

// together is the rank of series that stand for all ranks of a world.
const together = -1

// take takes a look in. It returns false where it is the first, or one that says nothing new: the exporter asks the ranks once a second
// at most.
func (m *movement) take(list *api.ValueList) bool {
	if !m.at.IsZero() && !list.Time.After(m.at) {
		return false
	}
	m.elapsed = 0
	if !m.at.IsZero() {
		m.elapsed = list.Time.Sub(m.at).Seconds()
	}
	m.at, m.ranks, m.more = list.Time, list.Ranks, list.More
	m.before, m.values = m.values, map[seriesKey]figure{}
	for i := range list.Ranks {
		r := &list.Ranks[i]
		m.more += r.Cut
		m.add(seriesKey{jobID: r.Rank.JobID, world: r.Rank.World, user: r.Rank.User, rank: r.Rank.Rank, dup: r.Rank.Dup}, r.Variables)
	}
	for i := range list.Together {
		w := &list.Together[i]
		m.add(seriesKey{jobID: w.JobID, world: w.World, user: w.User, rank: together, dup: w.Dup}, w.Variables)
	}
	return m.elapsed > 0
}

func (m *movement) add(key seriesKey, variables []api.VariableValues) {
	for i := range variables {
		v := &variables[i]
		key.metric = v.Metric
		if v.Kind == "histogram" {
			key.metric += "_sum" // what timers take is their time
		}
		for _, s := range v.Series {
			key.labels = labelCell(s.Labels)
			value, err := strconv.ParseFloat(cmp.Or(s.Value, s.Sum), 64)
			if err != nil || math.IsNaN(value) {
				continue
			}
			f := figure{value: value, counts: v.Kind == "counter" || v.Kind == "histogram"}
			if count, err := strconv.ParseFloat(s.Count, 64); err == nil && v.Kind == "histogram" {
				f.count, f.timer = count, true
			}
			m.values[key] = f
		}
	}
}

// labelCell writes labels as in PromQL.
func labelCell(labels map[string]string) string {
	parts := make([]string, 0, len(labels))
	for name, value := range labels {
		parts = append(parts, name+"="+strconv.Quote(value))
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// moving is one line: a series name with labels, of all ranks of a world that have it.
type moving struct {
	jobID, world   string
	user           string
	metric, labels string
	ranks          int
	value, rate    float64 // of all ranks: added up of what counts, else the largest; the rate in 1/s
	most           float64 // the largest rate of a rank

	timer       bool    // a histogram's sum
	count, took float64 // of it: how many observations there were between the two looks, and the sum of them; of one look, all there are
	who         seriesKey
}

// moved brings the ranks of each world together. What falls has been reset, or is a gauge: either way it has moved.
func (m *movement) moved(order string) []moving {
	type name struct{ jobID, world, user, metric, labels string }
	lines := map[name]*moving{}
	for key, now := range m.values {
		n := name{key.jobID, key.world, key.user, key.metric, key.labels}
		l := lines[n]
		if l == nil {
			l = &moving{jobID: n.jobID, world: n.world, user: n.user, metric: n.metric, labels: n.labels, value: math.Inf(-1), who: key}
			if now.counts {
				l.value = 0
			}
			lines[n] = l
		}
		l.ranks++
		before, known := m.before[key]
		rate := 0.0
		if known && m.elapsed > 0 {
			rate = (now.value - before.value) / m.elapsed
		}
		if now.timer {
			l.timer = true
			l.count += now.count
			l.took += now.value
			if known && m.elapsed > 0 {
				l.count -= before.count
				l.took -= before.value
			}
		}
		if math.Abs(rate) > math.Abs(l.most) || math.Abs(rate) == math.Abs(l.most) && lessRank(key, l.who) {
			l.most, l.who = rate, key
		}
		if now.counts {
			l.value += now.value
			l.rate += rate
		} else {
			// Watermarks and shares of several ranks have no sum.
			l.value, l.rate = max(l.value, now.value), l.most
		}
	}
	list := make([]moving, 0, len(lines))
	for _, l := range lines {
		list = append(list, *l)
	}
	slices.SortFunc(list, func(a, b moving) int {
		c := 0
		switch order {
		case byRate:
			c = cmp.Or(cmp.Compare(math.Abs(b.most), math.Abs(a.most)), cmp.Compare(b.value, a.value))
		case byValue:
			c = cmp.Compare(b.value, a.value)
		}
		return cmp.Or(c, strings.Compare(a.metric, b.metric), strings.Compare(a.labels, b.labels),
			strings.Compare(a.jobID, b.jobID), strings.Compare(a.world, b.world), strings.Compare(a.user, b.user))
	})
	return list
}

func lessRank(a, b seriesKey) bool {
	return cmp.Or(strings.Compare(a.jobID, b.jobID), strings.Compare(a.world, b.world), strings.Compare(a.user, b.user), cmp.Compare(a.rank, b.rank), cmp.Compare(a.dup, b.dup)) < 0
}

// table writes what there is to be seen, in so many lines at most, each of so many characters; 0: as many as it takes. Headings end
// with heading.
func (m *movement) table(order string, lines, columns int) string {
	if m.at.IsZero() {
		return ""
	}
	states := map[string]int{}
	for i := range m.ranks {
		states[m.ranks[i].Rank.State]++
	}
	var b strings.Builder
	plural := "s"
	if len(m.ranks) == 1 {
		plural = ""
	}
	fmt.Fprintf(&b, "%s  %d rank%s", m.at.Local().Format(time.TimeOnly), len(m.ranks), plural)
	for _, state := range []string{"up", "busy", "passive", "paused", "new", "late", "ended"} {
		if n := states[state]; n > 0 {
			fmt.Fprintf(&b, ", %d %s", n, state)
		}
	}
	if m.more > 0 {
		fmt.Fprintf(&b, "; more than fits into an answer: choose with --jobid, --world, --user or --rank")
	}
	b.WriteString(heading + "\n")

	// A third of a screen is for ranks, the rest for what moves.
	room := unlimited
	if lines < unlimited {
		room = max(1, (lines-4)/3)
	}
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line(t, "JOBID", "WORLD", "RANK", "STATE", "USER", "HOST", "PID", "LIBRARY", "PROGRAM"+heading)
	for i := range m.ranks[:min(len(m.ranks), room)] {
		r := &m.ranks[i].Rank
		number := strconv.Itoa(r.Rank)
		if r.Dup > 0 {
			number += fmt.Sprintf(" (dup %d)", r.Dup)
		}
		row(t, true, r.JobID, r.World, number, r.State, r.User, r.Host, strconv.Itoa(r.PID), r.Library+" "+r.LibraryVersion, r.Executable)
	}
	_ = t.Flush()
	if left := len(m.ranks) - room; left > 0 {
		fmt.Fprintf(&b, "… and %d more\n", left)
	}
	b.WriteString("\n")

	t = tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	moved := m.moved(order)
	timers := slices.ContainsFunc(moved, func(l moving) bool { return l.timer })
	headings := []string{"RATE/s", "MOST/s", "OF RANK", "VALUE", "COUNT/s", "MEAN", "RANKS", "JOBID", "USER", "SERIES" + heading}
	if !timers {
		headings = slices.Delete(headings, 4, 6)
	}
	line(t, headings...)
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
		row(t, true, append(cells, strconv.Itoa(l.ranks), l.jobID, l.user, series)...)
	}
	_ = t.Flush()
	if len(moved) == 0 && len(m.ranks) > 0 {
		b.WriteString("nothing: the MPI library of these ranks has no performance variables, or rules leave them out (mpit-exporter list)\n")
	}
	return crop(b.String(), lines, columns)
}

func (m *movement) rateCell(rate float64) string {
	if m.elapsed == 0 {
		return ""
	}
	return numberText(rate)
}

// countCell is how often a second what a timer times has been observed; empty where there is no rate, or no timer.
func (l *moving) countCell(elapsed float64) string {
	if !l.timer || elapsed == 0 {
		return ""
	}
	return numberText(l.count / elapsed)
}

// meanCell is how long each took; empty where nothing was observed, or has been reset.
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
		l, isHeading := strings.CutSuffix(strings.TrimRight(l, " \n"), heading)
		if columns > 0 {
			l = shorten(l, columns)
		}
		if isHeading {
			l += heading
		}
		b.WriteString(l + "\n")
	}
	return b.String()
}
