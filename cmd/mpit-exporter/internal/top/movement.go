package top

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// Together is the rank of series that stand for all ranks of a world.
const Together = -1

// Series is one of a metric with its labels, of all ranks of a world that have it. Those that count are added up; of
// levels, watermarks and shares, which have no sum, it is the largest.
type Series struct {
	Metric, Labels string // as in PromQL
	Unit           string // in UCUM
	Counts         bool   // it is a counter, or the sum of a histogram
	Value          float64
	Rate           float64 // change of the value in a second; below zero: it falls, or has been reset
	// MostRate is the largest of a rank, by its size, and Most that rank, or Together.
	MostRate float64
	Most     int
	// Of a histogram: how many observations there were in a second, and how large they were on average.
	Histogram    bool
	Events, Mean float64
}

// Moves says whether there is something to be said of it: it has changed, or it is a level and not zero.
func (s *Series) Moves() bool { return s.Rate != 0 || s.Events != 0 || !s.Counts && s.Value != 0 }

// Movement is what has changed between two looks at the ranks of one world.
type Movement struct {
	Seconds float64 // between the two looks; 0: there was one only

	at     time.Time
	values map[series]figure
	Series []Series
}

// figure is a series' value in a rank.
type figure struct {
	unit              string
	value             float64 // of a histogram: its sum
	events            float64 // of a histogram
	counts, histogram bool
}

// series names one of a rank.
type series struct {
	metric, labels string
	rank, dup      int
}

// Take takes in an answer. It returns false for one that says nothing new: the exporter asks the ranks once a second
// at most.
func (m *Movement) Take(list *api.ValueList) bool {
	if !m.at.IsZero() && !list.Time.After(m.at) {
		return false
	}
	m.Seconds = 0
	if !m.at.IsZero() {
		m.Seconds = list.Time.Sub(m.at).Seconds()
	}
	before := m.values
	m.at, m.values = list.Time, map[series]figure{}
	for i := range list.Ranks {
		r := &list.Ranks[i]
		m.take(series{rank: r.Rank.Rank, dup: r.Rank.Dup}, r.Variables)
	}
	for i := range list.Together {
		m.take(series{rank: Together, dup: list.Together[i].Dup}, list.Together[i].Variables)
	}
	m.addUp(before)
	return true
}

func (m *Movement) take(key series, variables []api.VariableValues) {
	for i := range variables {
		v := &variables[i]
		key.metric = v.Metric
		for _, s := range v.Series {
			key.labels = labelText(s.Labels)
			value, err := strconv.ParseFloat(cmp.Or(s.Value, s.Sum), 64)
			if err != nil || math.IsNaN(value) {
				continue
			}
			f := figure{unit: v.Unit, value: value, histogram: v.Kind == "histogram"}
			f.counts = f.histogram || v.Kind == "counter"
			if f.histogram {
				f.events, _ = strconv.ParseFloat(s.Count, 64)
			}
			m.values[key] = f
		}
	}
}

// labelText writes labels as in PromQL.
func labelText(labels map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, name+"="+strconv.Quote(labels[name]))
	}
	if parts == nil {
		return ""
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// addUp adds up the ranks. A value that falls was reset, or is a level: either way it has moved.
func (m *Movement) addUp(before map[series]figure) {
	type name struct{ metric, labels string }
	all := map[name]*Series{}
	took := map[name]float64{} // by the events of a histogram, in the time between
	for key, now := range m.values {
		n := name{key.metric, key.labels}
		s := all[n]
		if s == nil {
			s = &Series{Metric: n.metric, Labels: n.labels, Unit: now.unit, Counts: now.counts, Histogram: now.histogram,
				Value: math.Inf(-1), Most: key.rank}
			if now.counts {
				s.Value = 0
			}
			all[n] = s
		}
		rate := 0.0
		if was, known := before[key]; known && m.Seconds > 0 {
			rate = (now.value - was.value) / m.Seconds
			s.Events += (now.events - was.events) / m.Seconds
			took[n] += now.value - was.value
		}
		if a, b := math.Abs(rate), math.Abs(s.MostRate); a > b || a == b && key.rank < s.Most {
			s.MostRate, s.Most = rate, key.rank
		}
		if now.counts {
			s.Value += now.value
			s.Rate += rate
		} else {
			s.Value, s.Rate = max(s.Value, now.value), s.MostRate
		}
	}
	m.Series = nil
	for n, s := range all {
		if s.Events > 0 && took[n] >= 0 {
			s.Mean = took[n] / (s.Events * m.Seconds)
		}
		m.Series = append(m.Series, *s)
	}
	slices.SortFunc(m.Series, func(a, b Series) int {
		return cmp.Or(strings.Compare(a.Metric, b.Metric), strings.Compare(a.Labels, b.Labels))
	})
}
