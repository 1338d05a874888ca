// Package movement says what has changed between two looks at the values of an exporter's ranks, for people: top's
// table.
//
// It asks nobody and draws nothing: the caller brings each answer (Movement.Take) and shows the text
// (Movement.Table).
package movement

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// Orders of the variables.
const (
	ByRate  = "rate"
	ByValue = "value"
	ByName  = "name"
)

// Movement is what has changed between two looks.
type Movement struct {
	// Place says where in a program a rank's long call was made; "": not known. nil: nobody knows, and module and
	// offset are shown.
	Place func(r *api.RankStatus) string

	at      time.Time
	ranks   []api.RankValues
	more    int
	before  map[seriesKey]figure
	values  map[seriesKey]figure
	elapsed float64 // seconds; 0: there was one look only

	callsBefore, calls map[rankKey]*api.Calls
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

// Take takes in an answer. It returns false for the first one, and for one that says nothing new: the exporter asks
// the ranks once a second at most.
func (m *Movement) Take(list *api.ValueList) bool {
	if !m.at.IsZero() && !list.Time.After(m.at) {
		return false
	}
	m.elapsed = 0
	if !m.at.IsZero() {
		m.elapsed = list.Time.Sub(m.at).Seconds()
	}
	m.at, m.ranks, m.more = list.Time, list.Ranks, list.More
	m.before, m.values = m.values, map[seriesKey]figure{}
	m.takeCalls(list.Ranks)
	for i := range list.Ranks {
		r := &list.Ranks[i]
		m.more += r.Cut
		id := &r.Rank
		m.add(seriesKey{jobID: id.JobID, world: id.World, user: id.User, rank: id.Rank, dup: id.Dup}, r.Variables)
	}
	for i := range list.Together {
		w := &list.Together[i]
		m.add(seriesKey{jobID: w.JobID, world: w.World, user: w.User, rank: together, dup: w.Dup}, w.Variables)
	}
	return m.elapsed > 0
}

func (m *Movement) add(key seriesKey, variables []api.VariableValues) {
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

	timer bool // a histogram's sum
	// the number of its observations between the two looks, and their sum; with one look only, of all there are
	count, took float64
	who         seriesKey
}

// moved adds up the ranks of each world. A value that falls was reset, or is a gauge: either way it has moved.
func (m *Movement) moved(order string) []moving {
	type name struct{ jobID, world, user, metric, labels string }
	lines := map[name]*moving{}
	for key, now := range m.values {
		n := name{key.jobID, key.world, key.user, key.metric, key.labels}
		l := lines[n]
		if l == nil {
			l = &moving{jobID: n.jobID, world: n.world, user: n.user, metric: n.metric, labels: n.labels,
				value: math.Inf(-1), who: key}
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
		case ByRate:
			c = cmp.Or(cmp.Compare(math.Abs(b.most), math.Abs(a.most)), cmp.Compare(b.value, a.value))
		case ByValue:
			c = cmp.Compare(b.value, a.value)
		}
		return cmp.Or(c, strings.Compare(a.metric, b.metric), strings.Compare(a.labels, b.labels),
			strings.Compare(a.jobID, b.jobID), strings.Compare(a.world, b.world), strings.Compare(a.user, b.user))
	})
	return list
}

func lessRank(a, b seriesKey) bool {
	return cmp.Or(strings.Compare(a.jobID, b.jobID), strings.Compare(a.world, b.world),
		strings.Compare(a.user, b.user),
		cmp.Compare(a.rank, b.rank), cmp.Compare(a.dup, b.dup)) < 0
}
