package mapping

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// limitModel is a program that makes, names and frees communicators and counts, with an exporter whose limits change and which is
// restarted.
type limitModel struct {
	*rapid.T
	a     *agent
	r     *Rank
	rules []Rule

	rank, variable int
	counted        map[uint32]float64 // the same by number
	highest        map[string]float64 // of all series that only grow
	others         map[uint32]float64 // value of other, and counted, at the last look
	before         map[uint32]float64
	sure           bool // every value could be read since the last restart
}

func (m *limitModel) setLimits() {
	m.r.SetLimit(m.rank, ReasonUserOverLimit)
	m.r.SetVariableLimit(m.variable)
}

func (m *limitModel) update() {
	m.r.Update(m.a.after(time.Duration(rapid.IntRange(0, 12).Draw(m.T, "seconds")) * time.Second).sample())
	m.checkWeight()
	m.checkNothingFalls()
	m.checkNothingIsLost()
}

// checkWeight: never more on the page than the limits allow.
func (m *limitModel) checkWeight() {
	if n := lines(m.r); m.rank >= 0 && n > m.rank || n > m.r.Weight() || m.rank >= 0 && m.r.Weight() > m.rank {
		m.Fatalf("%d lines, weight %d, limit %d", n, m.r.Weight(), m.rank)
	}
	perMetric := map[*Metric]int{}
	for _, s := range m.r.Series() {
		if perMetric[s.Metric]++; s.Histogram != nil {
			perMetric[s.Metric] += len(s.Histogram.Bounds) + 2
		}
		if m.variable >= 0 && perMetric[s.Metric] > m.variable {
			m.Fatalf("%s has %d lines, limit %d", s.Metric.Name, perMetric[s.Metric], m.variable)
		}
	}
}

// checkNothingFalls: no series of what only grows is ever below what it has been, even if it was away in between.
func (m *limitModel) checkNothingFalls() {
	twice := map[string]bool{}
	see := func(id string, x float64) {
		if x < m.highest[id] {
			m.Fatalf("%s falls from %v to %v", id, m.highest[id], x)
		}
		m.highest[id] = x
	}
	for _, s := range m.r.Series() {
		id := s.Metric.Name + fmt.Sprint(s.Labels)
		if twice[id] {
			m.Fatalf("%s stands twice", id)
		}
		twice[id] = true
		if !s.Valid || !s.Metric.Monotonic {
			continue
		}
		if h := s.Histogram; h != nil {
			see(id+"sum", h.Sum)
			see(id+"count", float64(h.Count))
			for i, n := range h.Counts {
				see(id+strconv.Itoa(i), float64(n))
			}
			continue
		}
		see(id, s.Value)
	}
}

// checkNothingIsLost: what a program counts stands in a series of its object or in other, and in one only; other gains no more
// than the program has counted since.
func (m *limitModel) checkNothingIsLost() {
	dropped := m.r.Dropped()
	for id, v := range m.r.byID {
		if v.metric == nil || len(v.list) == 0 {
			continue
		}
		missing := v.off
		for _, c := range v.list {
			hidden := c.series == nil && (c.state == nil || len(c.state.series) == 0 && c.state.outside == nil) && (v.mode != modeState || c.lost)
			if hidden != (v.off || c.lost) {
				m.Fatalf("%s of %q is neither shown nor counted", v.info.Name, c.id.object)
			}
			missing = missing || hidden
			if hidden && !v.off && !v.separate && (v.other == nil || v.other.series == nil || !c.folded && !c.pending) {
				m.Fatalf("%s of %q is not in other", v.info.Name, c.id.object)
			}
		}
		if missing && dropped[ReasonUserOverLimit]+dropped[ReasonVariableOverLimit] == 0 {
			m.Fatalf("%s lacks series, and none is counted", v.info.Name)
		}
		if v.mode != modeCount || v.off || !m.sure {
			continue
		}
		all, other := 0.0, 0.0
		for _, c := range v.list {
			switch {
			case c == v.other:
				other = c.rest().value.total
				all += other
			case c.count.has:
				p := c.seldom().value
				all += p.own(c.folded, c.count.value)
			}
		}
		if math.Abs(all-m.counted[uint32(id)]) > 1e-6 {
			m.Fatalf("%s counts %v in all, the program %v", v.info.Name, all, m.counted[uint32(id)])
		}
		if v.other != nil {
			if was, ok := m.others[uint32(id)]; ok && other-was > m.counted[uint32(id)]-m.before[uint32(id)]+1e-6 {
				m.Fatalf("other of %s jumps from %v to %v", v.info.Name, was, other)
			}
			m.others[uint32(id)] = other
		}
		m.before[uint32(id)] = m.counted[uint32(id)]
	}
}

func (m *limitModel) count(h *agentHandle) {
	for i := range h.values {
		n := rapid.IntRange(0, 100).Draw(m.T, "n")
		switch v := m.a.vars[h.Variable]; {
		case v.Class == mpit.ClassState:
			h.values[i] = uint64(n % 4)
		case v.Datatype == tDouble:
			before := math.Float64frombits(h.values[i])
			h.values[i] = word(before + float64(n)/1024) // sums of these are exact
			m.counted[h.Variable] += math.Float64frombits(h.values[i]) - before
		case v.Class == mpit.ClassLevel:
			h.values[i] = uint64(n)
		default:
			h.values[i] += uint64(n)
			m.counted[h.Variable] += float64(n)
		}
	}
}

func (m *limitModel) restart() {
	m.update()
	if m.r.Dropped()[ReasonBlobFull] > 0 {
		m.Fatalf("the blob is full")
	}
	blob, _ := m.r.Blob()
	m.r = newRank(m.T, blob, m.rules...)
	m.setLimits()
	if len(blob) == 0 {
		m.others = map[uint32]float64{} // nothing had folded: other is a new series
	}
}

func TestLimitsHold(t *testing.T) {
	enum := &mpit.Enum{Items: []mpit.EnumItem{{Value: 0, Name: "idle"}, {Value: 2, Name: "busy"}}}
	state := on("state", mpit.ClassState, tInt)
	state.Enum = enum
	vars := []mpit.Variable{
		on("uint", mpit.ClassCounter, tULong), on("timer", mpit.ClassTimer, tDouble), on("timer", mpit.ClassCounter, tULong), on("peers", mpit.ClassCounter, tULong),
		on("level", mpit.ClassLevel, tInt), on("high", mpit.ClassHighWatermark, tULong), state, {Name: "scalar", Class: mpit.ClassCounter, Datatype: tULong},
		on("plain", mpit.ClassTimer, tDouble),
	}
	rapid.Check(t, func(t *rapid.T) {
		vars := slices.Clone(vars)
		for i := range vars {
			vars[i].Verbosity = mpit.Verbosity(rapid.IntRange(0, 9).Draw(t, "verbosity"))
		}
		limit := rapid.OneOf(rapid.Just(-1), rapid.IntRange(0, 20), rapid.IntRange(20, 200))
		m := &limitModel{
			T: t, a: newAgent(vars...), rules: []Rule{{Match: Match{Name: "peers"}, Elements: ElementsPeer}},
			rank: limit.Draw(t, "limit"), variable: limit.Draw(t, "of a variable"),
			counted: map[uint32]float64{}, highest: map[string]float64{}, others: map[uint32]float64{}, before: map[uint32]float64{}, sure: true,
		}
		m.r = newRank(t, nil, m.rules...)
		m.setLimits()
		names := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e", "f", "g", Other})
		object := func() (uint32, bool) {
			if len(m.a.objects) == 0 {
				return 0, false
			}
			return rapid.SampledFrom(m.a.objects).Draw(t, "object").ID, true
		}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"count", "count", "open", "open", "free", "rename", "restart", "limit", "reconnect"}).Draw(t, "what") {
			case "count":
				for _, h := range m.a.handles {
					m.count(h)
				}
			case "open":
				if len(m.a.objects) < 10 {
					m.a.object(names.Draw(t, "name"), 2)
				}
			case "free":
				if o, ok := object(); ok {
					m.a.free(o)
				}
			case "rename":
				if o, ok := object(); ok {
					m.a.rename(o, names.Draw(t, "to"))
				}
			case "restart":
				m.restart()
			case "limit":
				m.rank, m.variable = limit.Draw(t, "limit"), limit.Draw(t, "of a variable")
				m.setLimits()
			case "reconnect":
				m.a.reconnect()
			}
			if rapid.Bool().Draw(t, "looks") {
				m.update()
			}
		}
		m.update()
	})
}
