package mapping

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// A program makes, names and frees communicators, calls, and switches observation off and on; limits and rules change, the exporter is
// restarted, the agent learns late what it is to read. Whatever happens, the histograms of a variable together have each single duration
// once, in its bucket; no bucket of any series ever falls; and a node's histograms have what its ranks' have.

// callRules are what a reload can choose from.
var callRules = []struct {
	name  string
	rules []Rule
	other bool // other labels, or another name
}{
	{name: "plain"},
	{name: "without one", rules: []Rule{{Match: Match{Name: "v"}, Drop: &yes}}},
	{name: "buckets", rules: []Rule{{Buckets: []float64{0.001, 1, 3}}}},
	{name: "unit", rules: []Rule{{Match: Match{Class: List{"timer"}}, Unit: "us", Offset: &yes}}},
	{name: "peers", rules: []Rule{{Match: Match{Class: List{"timer"}}, Elements: ElementsPeer, Nonzero: &yes}}},
	{name: "one for all objects", rules: []Rule{{Object: &no}}, other: true},
	{name: "labels", rules: []Rule{{Match: Match{Regexp: "(?P<letter>[vw])"}, Name: "call"}}, other: true},
	{name: "name", rules: []Rule{{Match: Match{Name: "v"}, Name: "spent"}}, other: true},
	{name: "each", rules: []Rule{{Match: Match{Class: List{"timer"}}, Merge: MergeEach}}, other: true},
}

type bucketCounts = [mpittest.DistributionElements - 1]uint64

type callModel struct {
	*rapid.T
	a     *agent
	r     *Rank
	g     *Group
	rules int

	rank, variable int
	counted        map[uint32]*bucketCounts // by variable
	last           map[string]histogramSeen // of all series so far
	told           map[uint32]bool          // what the exporter has asked for, and the agent has not got yet
	patience       int                      // how often something may be unread since the restart
	each           bool                     // each object has had series of its own
	named          map[uint32]map[string]bool
	limited        bool // there has been a limit: of a series that has ended a new Group knows nothing
	grouped        bool // the Group has seen nothing but these rules
}

type histogramSeen struct {
	buckets bucketCounts
	sum     float64
	created int64
	classic map[float64]uint64 // cumulative
}

func seenOf(t fataler, s *Series, exactly bool) histogramSeen {
	checkedBuckets(t, s.Histogram, exactly)
	h := s.Histogram
	is := histogramSeen{sum: h.Sum, created: s.Since, classic: map[float64]uint64{}}
	h.spread(is.buckets[:])
	var le uint64
	for i, b := range h.Bounds {
		le += h.Counts[i]
		is.classic[b] = le
	}
	return is
}

func (m *callModel) call(h *agentHandle) {
	units := rapid.SampledFrom([]time.Duration{0, 0, 1, 2, 3, 1000, time.Millisecond, time.Second, 3 * time.Second, 5000 * time.Second})
	for range rapid.IntRange(0, 3).Draw(m.T, "calls") {
		d := units.Draw(m.T, "duration")
		h.took(d)
		if !m.a.paused {
			for k, w := range mpittest.Distribution(d)[1:] {
				m.counted[h.Variable][k] += w.(uint64)
			}
		}
	}
}

// called notes a name that an object has had.
func (m *callModel) called(object uint32, name string) {
	if m.named[object] == nil {
		m.named[object] = map[string]bool{}
	}
	m.named[object][name] = true
}

func (m *callModel) setLimits() {
	m.limited = m.limited || m.rank >= 0 || m.variable >= 0
	m.r.SetLimit(m.rank, ReasonUserOverLimit)
	m.r.SetVariableLimit(m.variable)
}

func (m *callModel) allRules() []Rule {
	return append(slices.Clone(callRules[m.rules].rules), Rule{Rank: RankBoth})
}

// exporter makes another exporter, or the same with other rules.
func (m *callModel) exporter(t *rapid.T, rules int) {
	if m.a.loseRemains && callRules[rules].rules != nil && callRules[rules].rules[0].Drop != nil {
		t.Skip("what is not read, and lost, is known to nobody")
	}
	m.look(t)
	if m.r.Dropped()[ReasonBlobFull] > 0 {
		t.Fatalf("a full blob")
	}
	blob, _ := m.r.Blob()
	m.r.Close()
	if callRules[rules].other || callRules[m.rules].other {
		m.last = map[string]histogramSeen{}
	}
	if rules == m.rules {
		m.g, m.grouped = NewGroup(), true
		if m.a.loseRemains { // the Group knew what was lost while other rules were in force; the next one doesn't
			maps.DeleteFunc(m.last, func(id string, _ histogramSeen) bool { return strings.HasPrefix(id, "node ") })
		}
	} else {
		m.grouped = false
	}
	m.rules, m.told, m.patience = rules, nil, 0
	m.each = m.each || callRules[rules].name == "each"
	m.r = newRank(t, blob, m.allRules()...)
	m.setLimits()
	if m.a.loseRemains {
		m.look(t) // what was lost before anybody looked, was lost
	}
}

func (m *callModel) look(t *rapid.T) {
	m.r.Update(m.a.after(time.Duration(rapid.IntRange(0, 12).Draw(t, "seconds"))*time.Second + time.Millisecond).sample())
	if _, ids, changed := m.r.Select(); changed {
		m.told = ids
	}
	if n := m.r.Weight(); m.rank >= 0 && n > m.rank {
		t.Fatalf("weight %d, limit %d", n, m.rank)
	}
	m.g.Update([]Member{{Key: mpit.RankID{1}, Figures: m.r, Structure: m.r.Structure(), Rules: uint64(m.rules), Series: m.r.Series(), Live: true}})
	m.checkNothingFalls(t, m.r.Series(), "")
	m.checkNothingFalls(t, m.g.Series(), "node ")
	m.checkWhole(t)
}

func (m *callModel) checkNothingFalls(t *rapid.T, series []*Series, of string) {
	there := map[string]bool{}
	defer func() {
		// A series of one object that ends has handed over what it had.
		maps.DeleteFunc(m.last, func(id string, _ histogramSeen) bool {
			return !there[id] && of == "" && strings.Contains(id, "{object ")
		})
	}()
	for _, s := range series {
		if s.Histogram == nil || !s.Valid {
			continue
		}
		id, is := of+s.Metric.Name+fmt.Sprint(s.Labels), seenOf(t, s, of == "")
		was, ok := m.last[id]
		m.last[id], there[id] = is, true
		if !ok || is.created > was.created {
			continue
		}
		for k, n := range was.buckets {
			if is.buckets[k] < n {
				t.Fatalf("with %s, bucket %d of %s falls from %d to %d", callRules[m.rules].name, k, id, n, is.buckets[k])
			}
		}
		for _, b := range slices.Sorted(maps.Keys(was.classic)) {
			if n, there := is.classic[b]; there && n < was.classic[b] {
				t.Fatalf("with %s, what is at most %v of %s falls from %d to %d", callRules[m.rules].name, b, id, was.classic[b], n)
			}
		}
		if is.sum < was.sum*(1-1e-12) {
			t.Fatalf("with %s, the sum of %s falls from %v to %v", callRules[m.rules].name, id, was.sum, is.sum)
		}
	}
}

// checkWhole: each duration stands in one series, and in one only.
func (m *callModel) checkWhole(t *rapid.T) {
	group := map[string]*bucketCounts{} // by the label of call, and the family
	place := func(name string, labels []Label) string {
		for _, l := range labels {
			if l.Name == "letter" {
				name += l.Value
			}
		}
		return name
	}
	for _, s := range m.g.Series() {
		id := place(s.Metric.Name, s.Labels)
		if group[id] == nil {
			group[id] = &bucketCounts{}
		}
		if s.Valid {
			for k, n := range seenOf(t, s, false).buckets {
				group[id][k] += n
			}
		}
	}
	for _, v := range m.r.order {
		if !v.exact || v.metric == nil || v.off || len(m.a.failed) > 0 || m.a.loseRemains {
			continue
		}
		whole := true
		for _, h := range m.r.plan {
			whole = whole && (h.v != v || h.offset >= 0)
		}
		var all bucketCounts
		for _, c := range v.list {
			if c.series != nil && !c.series.Valid {
				whole = whole && c.want == 0
				continue
			}
			var own bucketCounts // what stands in a series that has ended, as well
			c.timer.hist.spread(own[:])
			for k, n := range own {
				all[k] += n
			}
		}
		if want := *m.counted[v.info.ID]; whole && all != want {
			t.Fatalf("with %s, %s has\n%v in all, the program\n%v", callRules[m.rules].name, v.info.Name, all, want)
		} else if node := group[place(nodeName(v.metric.Name), v.labels)]; whole && m.grouped && node != nil {
			for k, n := range *node {
				if n > want[k] || n < want[k] && !m.limited {
					t.Fatalf("with %s, %s has\n%v on the node, the program\n%v", callRules[m.rules].name, v.info.Name, *node, want)
				}
			}
		}
	}
}

func TestDistributionsAreTrueAndNeverFall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vars := append(calls(mpit.BindComm, "v", "w"), calls(mpit.BindNone, "scalar")...)
		limit := rapid.OneOf(rapid.Just(-1), rapid.IntRange(0, 100), rapid.IntRange(100, 400))
		m := &callModel{
			T: t, a: newAgent(vars...), g: NewGroup(), grouped: true, rank: limit.Draw(t, "limit"), variable: limit.Draw(t, "of a variable"),
			counted: map[uint32]*bucketCounts{0: {}, 1: {}, 2: {}}, last: map[string]histogramSeen{}, named: map[uint32]map[string]bool{},
		}
		m.r = newRank(t, nil, m.allRules()...)
		m.setLimits()
		names := rapid.SampledFrom([]string{"", "a", "b", "c", "d", Other})
		pauses, loses := rapid.Bool().Draw(t, "pauses"), rapid.IntRange(0, 3).Draw(t, "loses") == 0
		m.a.loseRemains = loses
		object := func(t *rapid.T) uint32 {
			if len(m.a.objects) == 0 {
				t.Skip("no object")
			}
			return rapid.SampledFrom(m.a.objects).Draw(t, "object").ID
		}
		t.Repeat(map[string]func(*rapid.T){
			"call": func(*rapid.T) {
				for _, h := range m.a.handles {
					m.call(h)
				}
			},
			"call on one": func(t *rapid.T) {
				o := object(t)
				for _, h := range m.a.handles {
					if h.Object == o {
						m.call(h)
					}
				}
			},
			"open": func(t *rapid.T) {
				if len(m.a.objects) < 8 {
					name := names.Draw(t, "name")
					m.called(m.a.object(name, 1), name)
				}
			},
			"an object that is not tracked": func(t *rapid.T) {
				if !slices.ContainsFunc(m.a.handles, func(h *agentHandle) bool { return h.Variable == 0 && h.Object == 0 }) {
					m.a.open(0, 0, 1)
				}
			},
			"free": func(t *rapid.T) { m.a.free(object(t)) },
			"rename": func(t *rapid.T) {
				o, to := object(t), names.Draw(t, "to")
				if to == m.a.nameOf(o) {
					t.Skip("the agent sees that it is the same")
				}
				if m.each && m.named[o][to] {
					t.Skip("what the blob has of that object's own series is of the time before it was renamed")
				}
				m.called(o, to)
				m.a.rename(o, to)
				if callRules[m.rules].name == "each" {
					m.look(t) // who is renamed back before anybody looks seems to have been reset
				}
			},
			"restart":   func(t *rapid.T) { m.exporter(t, m.rules) },
			"reload":    func(t *rapid.T) { m.exporter(t, rapid.IntRange(0, len(callRules)-1).Draw(t, "rules")) },
			"reconnect": func(*rapid.T) { m.a.reconnect() },
			"limit": func(t *rapid.T) {
				m.rank, m.variable = limit.Draw(t, "limit"), limit.Draw(t, "of a variable")
				m.setLimits()
			},
			"selected": func(*rapid.T) {
				if m.told != nil && !loses {
					m.a.selects(m.told)
					m.told = nil
				}
			},
			"pause": func(t *rapid.T) {
				switch {
				case !pauses:
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
