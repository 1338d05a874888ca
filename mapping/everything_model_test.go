package mapping

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// The limits' model (limit_model_test.go) has one set of rules, that of rules (reload_test.go) no limits. Here is all of it
// together: a program makes, names and frees communicators, counts, and pauses; limits and rules change, the exporter is restarted,
// the agent learns late what it is to read. merge: each is left to reload_test.go: there, an object that is renamed between two
// exporters begins anew.

// mixedRules are what a reload can choose from. The first ones leave the labels alone, so that what stands on the page is the whole
// truth.
var mixedRules = []struct {
	name  string
	rules []Rule
	other bool // other labels, or another meaning
}{
	{name: "plain"},
	{name: "without the counters", rules: []Rule{{Match: Match{Name: "n", Class: List{"counter"}}, Drop: &yes}, {Match: Match{Name: "far"}, Drop: &yes}}},
	{name: "without the companion", rules: []Rule{{Match: Match{Name: "t", Class: List{"counter"}}, Drop: &yes}}},
	{name: "without the timer", rules: []Rule{{Match: Match{Class: List{"timer"}}, Drop: &yes}}},
	{name: "buckets", rules: []Rule{{Match: Match{Class: List{"timer"}}, Buckets: []float64{0.001, 1}}}},
	{name: "node", rules: []Rule{{Match: Match{Class: List{"counter"}}, Rank: RankNode}}},
	{name: "no companion", rules: []Rule{{Match: Match{Class: List{"timer"}}, Companion: NoCompanion}}, other: true},
	{name: "companion", rules: []Rule{{Match: Match{Class: List{"timer"}}, Companion: "n"}}, other: true},
	{name: "peers", rules: []Rule{{Elements: ElementsPeer}}, other: true},
	{name: "peers that are not 0", rules: []Rule{{Elements: ElementsPeer, Nonzero: &yes}}, other: true},
	{name: "one for all objects", rules: []Rule{{Object: &no}}, other: true},
	{name: "mean", rules: []Rule{{Merge: MergeMean, Elements: ElementsMean}}, other: true},
	{name: "labels", rules: []Rule{{Match: Match{Regexp: "(?P<letter>[nt]).*"}}}, other: true},
	{name: "name", rules: []Rule{{Match: Match{Name: "n", Class: List{"counter"}}, Name: "spent"}}, other: true},
	{name: "scale", rules: []Rule{{Match: Match{Class: List{"counter", "timer"}}, Scale: func() *float64 { x := 1024.0; return &x }()}}, other: true},
	{name: "level", rules: []Rule{{Match: Match{Name: "n"}, Class: "level"}}, other: true},
}

type mixed struct {
	*rapid.T
	a     *agent
	r     *Rank
	base  []Rule // behind those of a choice
	rules int

	rank, variable int
	counted        map[variableKey]float64
	last, now      map[string]seen // of all series so far, of the last page
	sure           bool            // the page has all that was counted
	told           map[uint32]bool // what the exporter has asked for, and the agent has not got yet
	patience       int             // how often something may be unread since the restart
	pauses         bool
	scaled         bool // rules have changed the scale
	relabelled     bool // or labels
}

func (m *mixed) allRules() []Rule {
	return append(append([]Rule{}, mixedRules[m.rules].rules...), m.base...)
}

func (m *mixed) key(h *agentHandle) variableKey {
	v := m.a.vars[h.Variable]
	return variableKey{v.Name, v.Class}
}

func (m *mixed) count(h *agentHandle) {
	for i := range h.values {
		n := rapid.IntRange(0, 100).Draw(m.T, "n")
		gained := float64(n)
		switch v := m.a.vars[h.Variable]; {
		case v.Class == mpit.ClassState:
			h.values[i] = uint64(n % 4)
			continue
		case v.Datatype == tDouble:
			gained /= 1024 // sums of these are exact
			h.values[i] = word(math.Float64frombits(h.values[i]) + gained)
		case v.Class == mpit.ClassLevel:
			h.values[i] = uint64(n)
			continue
		default:
			h.values[i] += uint64(n)
		}
		if !m.a.paused {
			m.counted[m.key(h)] += gained
		}
	}
}

func (m *mixed) setLimits() {
	m.r.SetLimit(m.rank, ReasonUserOverLimit)
	m.r.SetVariableLimit(m.variable)
}

func (m *mixed) exporter(t *rapid.T, rules int) {
	// What was corrected for another scale under other labels is not known when these come back.
	if scale := mixedRules[rules].name == "scale"; scale && m.relabelled || mixedRules[rules].other && !scale && m.scaled {
		t.Skip("both")
	}
	m.scaled = m.scaled || mixedRules[rules].name == "scale"
	m.relabelled = m.relabelled || mixedRules[rules].other && !m.scaled
	m.look(t)
	if m.r.Dropped()[ReasonBlobFull] > 0 {
		t.Skip("a full blob")
	}
	blob, _ := m.r.Blob()
	m.r.Close()
	if mixedRules[rules].other || mixedRules[m.rules].other {
		m.last = m.now // what was shown by other rules before those may be another variable's by now
	}
	m.rules = rules
	m.r = newRank(t, blob, m.allRules()...)
	m.setLimits()
	m.told, m.patience = nil, 0
	m.sure = m.sure && !mixedRules[rules].other
}

func (m *mixed) look(t *rapid.T) {
	m.r.Update(m.a.after(time.Duration(rapid.IntRange(0, 12).Draw(t, "seconds"))*time.Second + time.Millisecond).sample())
	if _, ids, changed := m.r.Select(); changed {
		m.told = ids
	}
	m.check(t)
}

func (m *mixed) check(t *rapid.T) {
	if n := m.r.Weight(); m.rank >= 0 && n > m.rank {
		t.Fatalf("weight %d, limit %d", n, m.rank)
	}
	now := map[string]seen{}
	twice := map[string]bool{}
	for _, s := range m.r.Series() {
		id := s.Metric.Name + fmt.Sprint(s.Labels)
		if twice[id] {
			t.Fatalf("%s stands twice", id)
		}
		twice[id] = true
		if !s.Valid || !s.Metric.Monotonic {
			continue
		}
		if h := s.Histogram; h != nil {
			now[id+" sum"] = seen{value: h.Sum, created: s.Created()}
			now[id+" count"] = seen{value: float64(h.Count), created: s.Created()}
			var le uint64
			for i, b := range h.Bounds {
				le += h.Counts[i]
				now[id+" le "+strconv.FormatFloat(b, 'g', -1, 64)] = seen{value: float64(le), created: s.Created()}
			}
			continue
		}
		now[id] = seen{value: s.Value, created: s.Created()}
	}
	for id, is := range now {
		was, ok := m.last[id]
		if ok && is.value < was.value*(1-1e-12) && !is.created.After(was.created) {
			t.Fatalf("with %s, %s falls from %v to %v, created %v, %v", mixedRules[m.rules].name, id, was.value, is.value, was.created, is.created)
		}
		m.last[id] = is
	}
	m.now = now
	m.checkWhole(t)
}

// checkWhole: what a program counts stands in one series, and in one only.
func (m *mixed) checkWhole(t *rapid.T) {
	for _, v := range m.r.order {
		if v.mode != modeCount || v.metric == nil || v.off || !m.sure {
			continue
		}
		all, whole := 0.0, true
		for _, c := range v.list {
			switch {
			case c == v.other:
				whole = whole && (c.series == nil || c.series.Valid)
				all += c.rest().value.total
			case c.count.has:
				p := c.seldom().value
				all += p.own(c.folded, c.count.value)
			}
		}
		whole = whole && len(m.a.failed) == 0
		for _, h := range m.r.plan {
			whole = whole && (h.v != v || h.offset >= 0)
		}
		if want := m.counted[v.key()]; whole && math.Abs(all-want) > 1e-6 {
			t.Fatalf("with %s, %v counts %v in all, the program %v", mixedRules[m.rules].name, v.key(), all, want)
		}
	}
}

func TestLimitsRulesAndRestarts(t *testing.T) {
	enum := &mpit.Enum{Items: []mpit.EnumItem{{Value: 0, Name: "idle"}, {Value: 2, Name: "busy"}}}
	state := on("state", mpit.ClassState, tInt)
	state.Enum = enum
	rapid.Check(t, func(t *rapid.T) {
		vars := []mpit.Variable{
			on("n", mpit.ClassCounter, tULong), on("t", mpit.ClassTimer, tDouble), on("t", mpit.ClassCounter, tULong),
			on("level", mpit.ClassLevel, tInt), on("high", mpit.ClassHighWatermark, tULong), on("high", mpit.ClassSize, tULong), state,
			{Name: "scalar", Class: mpit.ClassCounter, Datatype: tULong},
		}
		for i := range vars {
			vars[i].Verbosity = mpit.Verbosity(rapid.IntRange(0, 9).Draw(t, "verbosity"))
		}
		limit := rapid.OneOf(rapid.Just(-1), rapid.IntRange(0, 20), rapid.IntRange(20, 200))
		m := &mixed{
			T: t, a: newAgent(vars...), rank: limit.Draw(t, "limit"), variable: limit.Draw(t, "of a variable"),
			counted: map[variableKey]float64{}, last: map[string]seen{}, sure: true, pauses: rapid.Bool().Draw(t, "pauses"),
		}
		if rapid.Bool().Draw(t, "elements") {
			m.base = []Rule{{Match: Match{Class: List{"counter", "timer"}}, Elements: ElementsPeer}}
			if rapid.Bool().Draw(t, "nonzero") {
				m.base[0].Nonzero = &yes
			}
		}
		m.r = newRank(t, nil, m.allRules()...)
		m.setLimits()
		names := rapid.SampledFrom([]string{"", "a", "b", "c", "d", Other})
		object := func(t *rapid.T) uint32 {
			if len(m.a.objects) == 0 {
				t.Skip("no object")
			}
			return rapid.SampledFrom(m.a.objects).Draw(t, "object").ID
		}
		t.Repeat(map[string]func(*rapid.T){
			"count": func(t *rapid.T) {
				o := object(t)
				for _, h := range m.a.handles {
					if h.Object == o || h.Object == 0 {
						m.count(h)
					}
				}
			},
			"open": func(t *rapid.T) {
				if len(m.a.objects) < 8 {
					m.a.object(names.Draw(t, "name"), 2)
				}
			},
			"free": func(t *rapid.T) { m.a.free(object(t)) },
			"rename": func(t *rapid.T) {
				m.a.rename(object(t), names.Draw(t, "to"))
			},
			"restart":   func(t *rapid.T) { m.exporter(t, m.rules) },
			"reload":    func(t *rapid.T) { m.exporter(t, rapid.IntRange(0, len(mixedRules)-1).Draw(t, "rules")) },
			"reconnect": func(*rapid.T) { m.a.reconnect() },
			"limit": func(t *rapid.T) {
				m.rank, m.variable = limit.Draw(t, "limit"), limit.Draw(t, "of a variable")
				m.setLimits()
			},
			"selected": func(*rapid.T) {
				if m.told != nil {
					m.a.selects(m.told)
					m.told = nil
				}
			},
			"pause": func(t *rapid.T) {
				switch {
				case !m.pauses:
					t.Skip("a program that does not")
				case m.a.paused:
					m.a.resume()
				default:
					m.a.pause()
				}
			},
			"fail": func(t *rapid.T) {
				if len(m.a.handles) == 0 || m.patience >= maxWait {
					t.Skip("no handle")
				}
				m.patience++
				m.a.failed = map[uint32]bool{rapid.SampledFrom(m.a.handles).Draw(t, "which").ID: true}
				m.look(t)
				m.a.failed = map[uint32]bool{}
			},
			"look": m.look,
			"":     func(*rapid.T) {},
		})
		m.look(t)
	})
}
