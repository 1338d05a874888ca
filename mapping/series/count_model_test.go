package series

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// What a Count has taken: never less than before, and never more than all rises together; the last value itself where
// nothing fell.
func TestCountNeverFallsAndCountsNothingTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c mapping.Count
		values := rapid.SliceOf(rapid.OneOf(rapid.Float64Range(-10, 1e6), rapid.Float64(), rapid.Just(math.NaN()),
			rapid.Just(math.Inf(1)))).Draw(t, "values")
		last, rises, fell := 0.0, 0.0, false
		for _, x := range values {
			before := c.Total()
			gained := c.Take(x)
			if c.Total() < before || gained != c.Total()-before || !mapping.Finite(c.Total()) {
				t.Fatalf("after %v: %v, before %v, gained %v", x, c.Total(), before, gained)
			}
			if !mapping.Finite(x) {
				continue
			}
			rises += max(0, x-last)
			fell = fell || x < last
			last = x
			if mapping.Finite(rises) && c.Total() > rises*(1+1e-9) {
				t.Fatalf("%v is more than all rises, %v", c.Total(), rises)
			}
			if !fell && c.Total() != x {
				t.Fatalf("%v, and nothing has fallen from %v", c.Total(), x)
			}
		}
	})
}

func TestCountStaysFinite(t *testing.T) {
	var c mapping.Count
	for _, x := range []float64{1e308, 0, 1e308} {
		c.Take(x)
	}
	if c.Total() != 1e308 {
		t.Fatal(c.Total())
	}
}

func TestCountSkips(t *testing.T) {
	var c mapping.Count
	c.Skip(100)
	c.Take(107)
	c.SkipPart(50)
	c.Take(160)
	if c.Total() != 10 {
		t.Fatalf("%v, of 107-100 and 160-157", c.Total())
	}
}

// A program makes, names and frees communicators, counts, wraps, is reset, and switches observation off for a while;
// reads fail, limits and rules change, the agent learns late what it is to read, and the exporter is restarted.
// Whatever happens, no series falls, and a variable's series together never have more than the program counted. As
// long as nothing has been reset and nothing has wrapped, they have all of it.
func TestNothingFallsAndNothingCountsTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newCounted(t)
		t.Repeat(map[string]func(*rapid.T){
			"count":     m.countSome,
			"leap":      m.leap,
			"reset":     m.reset,
			"open":      m.open,
			"free":      m.free,
			"rename":    m.rename,
			"pause":     m.pause,
			"reconnect": func(*rapid.T) { m.a.reconnect() },
			"lost":      m.loseSample,
			"unread":    m.failToRead,
			"limit":     m.limit,
			"reload":    m.reload,
			"restart":   m.restart,
			"selected":  func(*rapid.T) { m.tell() },
			"look":      m.look,
			"":          func(*rapid.T) {},
		})
		m.look(t)
	})
}

// countedRules are what a reload can choose from.
var countedRules = [][]rules.Rule{
	nil,
	{{Match: rules.Match{Name: "small"}, Drop: &yes}},
	{{Match: rules.Match{Name: "small"}, Name: "nice"}, {Match: rules.Match{Name: "wide"}, Name: "small"}},
	{{Match: rules.Match{Class: rules.List{"timer"}}, Buckets: []float64{0.001, 1}}},
	{{Match: rules.Match{Name: "timer", Class: rules.List{"counter"}}, Drop: &yes},
		{Match: rules.Match{Name: "plain"}, Drop: &yes}},
	{{Match: rules.Match{Class: rules.List{"timer"}}, Companion: "wide"}},
	{{Elements: mapping.MergePeer, Nonzero: &yes}},
	{{Nonzero: &yes}, {Match: rules.Match{Name: "timer", Class: rules.List{"counter"}}, Drop: &yes}},
	{{Merge: mapping.MergeEach}},
	{{Object: &no}},
}

// nameAndClass is what a variable is known by.
type nameAndClass struct {
	name  string
	class mpit.Class
}

func keyOf(v *mpit.Variable) nameAndClass { return nameAndClass{v.Name, v.Class} }

// counted is the state machine. Doubles count n/1024, which is exact.
type counted struct {
	a     *agent
	r     *Rank
	rules int
	rank  int // limits
	each  int

	truth  map[nameAndClass]float64 // counted while observation was on, in the variable's own unit
	calls  float64                  // single durations of the distribution
	lossy  map[nameAndClass]bool    // something has been reset, or wrapped
	base   map[nameAndClass]float64 // of truth, when the series began at zero
	later  map[nameAndClass]bool    // that was later than the program began
	last   map[string]float64       // series, and buckets of histograms
	asked  map[uint32]bool          // what the exporter has asked for, and the agent may not have got yet
	pauses bool
}

func newCounted(t *rapid.T) *counted {
	m := &counted{
		a: newAgent(on("small", mpit.ClassCounter, tUint), on("signed", mpit.ClassAggregate, tInt),
			on("wide", mpit.ClassCounter, tULong),
			on("timer", mpit.ClassTimer, tDouble), on("timer", mpit.ClassCounter, tULong),
			on("plain", mpit.ClassTimer, tDouble),
			mpittest.DistributionVariable("calls", mpit.BindComm),
			mpit.Variable{Name: "scalar", Class: mpit.ClassCounter, Datatype: tULong}),
		truth: map[nameAndClass]float64{}, lossy: map[nameAndClass]bool{}, base: map[nameAndClass]float64{},
		later: map[nameAndClass]bool{}, last: map[string]float64{}, rank: -1, each: -1,
	}
	for i := range m.a.vars {
		m.a.vars[i].Verbosity = mpit.Verbosity(rapid.IntRange(0, 9).Draw(t, "verbosity"))
	}
	m.pauses = rapid.Bool().Draw(t, "pauses")
	if rapid.Bool().Draw(t, "limited") {
		m.rank, m.each = rapid.IntRange(0, 200).Draw(t, "limit"), rapid.IntRange(-1, 60).Draw(t, "of a variable")
	}
	m.r = newRank(t)
	m.setLimits()
	return m
}

func (m *counted) setLimits() {
	limitTo(m.r, m.rank, mapping.ReasonUserOverLimit)
	m.r.SetVariableLimit(m.each)
}

func (m *counted) limit(t *rapid.T) {
	if m.rank < 0 {
		t.Skip("without limits")
	}
	m.rank, m.each = rapid.IntRange(0, 200).Draw(t, "limit"), rapid.IntRange(-1, 60).Draw(t, "of a variable")
	m.setLimits()
}

func (m *counted) key(h *agentHandle) nameAndClass {
	return keyOf(&m.a.vars[h.Variable])
}

func (m *counted) object(t *rapid.T) uint32 {
	if len(m.a.objects) == 0 {
		t.Skip("no object")
	}
	return rapid.SampledFrom(m.a.objects).Draw(t, "object").ID
}

// count lets an element gain n.
func (m *counted) count(h *agentHandle, i, n int) {
	gained := float64(n)
	switch v := m.a.vars[h.Variable]; {
	case v.Distribution:
		before := h.values[0]
		h.took(time.Duration(n) * time.Millisecond)
		if gained = float64(h.values[0] - before); !m.a.paused {
			m.calls++
		}
	case v.Datatype == tUint:
		if before := h.values[i]; before+uint64(n) > math.MaxUint32 {
			m.lossy[m.key(h)] = true
		}
		h.values[i] = uint64(uint32(h.values[i] + uint64(n)))
	case v.Datatype == tInt:
		if before := int64(h.values[i]); before+int64(n) > math.MaxInt32 {
			m.lossy[m.key(h)] = true
		}
		h.values[i] = uint64(int64(int32(h.values[i] + uint64(n))))
	case v.Datatype == tDouble:
		gained /= 1024
		h.values[i] = word(math.Float64frombits(h.values[i]) + gained)
	default:
		h.values[i] += uint64(n)
	}
	if !m.a.paused {
		m.truth[m.key(h)] += gained
	}
}

func (m *counted) countSome(t *rapid.T) {
	o := m.object(t)
	for _, h := range m.a.handles {
		if h.Object == o || h.Object == 0 {
			m.count(h, rapid.IntRange(0, min(1, h.Count-1)).Draw(t, "element"), rapid.IntRange(0, 1000).Draw(t, "n"))
		}
	}
}

// leap is up to a quarter of the range of a small counter.
func (m *counted) leap(t *rapid.T) {
	o := m.object(t)
	for _, h := range m.a.handles {
		if h.Object == o && m.a.vars[h.Variable].DatatypeBytes == 4 {
			m.count(h, rapid.IntRange(0, 1).Draw(t, "element"), rapid.IntRange(0, 1<<30-1).Draw(t, "n"))
		}
	}
}

func (m *counted) reset(t *rapid.T) {
	o := m.object(t)
	which := rapid.SampledFrom([]string{"small", "signed", "wide", "timer", "plain"}).Draw(t, "which")
	for _, h := range m.a.handles {
		if h.Object == o && m.a.vars[h.Variable].Name == which {
			clear(h.values)
			m.lossy[m.key(h)] = true
		}
	}
}

func (m *counted) open(t *rapid.T) {
	if len(m.a.objects) >= 6 {
		t.Skip("enough")
	}
	m.a.after(time.Millisecond).object(rapid.SampledFrom([]string{"", "a", "b", "c", mapping.Other}).Draw(t, "name"), 2)
}

func (m *counted) free(t *rapid.T) { m.a.free(m.object(t)) }

func (m *counted) rename(t *rapid.T) {
	m.a.rename(m.object(t), rapid.SampledFrom([]string{"", "a", "b", "c", mapping.Other}).Draw(t, "to"))
}

func (m *counted) pause(t *rapid.T) {
	switch {
	case !m.pauses:
		t.Skip("a program that does not")
	case m.a.paused:
		m.a.resume()
	default:
		m.a.pause()
	}
}

func (m *counted) loseSample(t *rapid.T) {
	switch rapid.IntRange(0, 2).Draw(t, "how") {
	case 0:
		m.r.Update(nil)
	case 1:
		m.r.Update(&mpit.Sample{Status: mpit.SampleBusy, Monotonic: m.a.clock, Variables: m.a.lastVars,
			Layout: m.a.lastLayout})
	default:
		s := m.a.sample()
		s.Monotonic--
		m.r.Update(s)
	}
}

func (m *counted) failToRead(t *rapid.T) {
	if len(m.a.handles) == 0 {
		t.Skip("no handle")
	}
	m.a.failed = map[uint32]bool{rapid.SampledFrom(m.a.handles).Draw(t, "which").ID: true}
	m.update(t, false)
	m.a.failed = map[uint32]bool{}
}

// reload puts other rules into force: what they leave as it is goes on, what they change begins anew.
func (m *counted) reload(t *rapid.T) {
	m.look(t)
	before := map[*variable]uint32{}
	for _, v := range m.r.byID {
		before[v] = v.meaning
	}
	m.rules = rapid.IntRange(0, len(countedRules)-1).Draw(t, "rules")
	m.a.after(time.Millisecond)
	reload(t, m.r, m.a, countedRules[m.rules]...)
	m.a.after(time.Millisecond)
	m.r.Update(m.a.sample())
	for _, v := range m.r.byID {
		if v.meaning == before[v] && v.meaning != 0 {
			continue
		}
		if m.base[keyOf(v.of.Info)], m.later[keyOf(v.of.Info)] = 0, false; v.of.Since > 0 {
			m.base[keyOf(v.of.Info)] = -1 // nobody knows: when it is read first
		}
	}
	kept := map[string]bool{}
	for _, v := range m.r.byID {
		if v.meaning == before[v] && v.meaning != 0 {
			for id := range m.values(v) {
				kept[id] = true
			}
		}
	}
	maps.DeleteFunc(m.last, func(id string, _ float64) bool { return !kept[id] })
	m.compare(t, true)
	m.choose()
}

// restart is another exporter, which knows nothing.
func (m *counted) restart(t *rapid.T) {
	m.a.after(time.Millisecond)
	m.r.Close()
	m.r = restart(t, m.r, m.a, countedRules[m.rules]...)
	m.a.after(time.Millisecond)
	m.last, m.asked = map[string]float64{}, nil
	for key := range m.truth {
		m.base[key], m.later[key] = 0, false
	}
	m.r.Update(m.a.sample())
	for _, v := range m.r.byID {
		if v.of.Since > 0 {
			m.base[keyOf(v.of.Info)] = -1
		}
	}
	m.compare(t, true)
	m.choose()
}

func (m *counted) choose() {
	if _, ids, changed := m.r.Select(); changed {
		m.asked = ids
	}
}

// tell brings the agent what the exporter wants to be read.
func (m *counted) tell() {
	if m.asked != nil {
		m.a.selects(m.asked)
		m.asked = nil
	}
}

func (m *counted) look(t *rapid.T) { m.update(t, true) }

func (m *counted) update(t *rapid.T, whole bool) {
	m.r.Update(m.a.after(time.Duration(rapid.IntRange(0, 12).Draw(t,
		"seconds"))*time.Second + time.Millisecond).sample())
	m.compare(t, whole)
	m.choose()
}

// values is all that the series of a variable say: their totals, and the buckets of histograms.
func (m *counted) values(v *variable) map[string]float64 {
	now := map[string]float64{}
	for _, c := range v.list {
		if !c.series.Valid {
			continue
		}
		id := c.series.Metric.Name + fmt.Sprint(c.series.Labels)
		if c.id.number != 0 { // its own series begins anew where an object gets the same name again
			id += createdAt(c.series).String()
		}
		now[id] = c.count.Total()
		if h := c.series.Histogram; h != nil {
			now[id+" count"] = float64(h.Count)
			for i, n := range h.Counts {
				now[fmt.Sprintf("%s bucket %d", id, i)] = float64(n)
			}
			for _, b := range h.Native {
				now[fmt.Sprintf("%s native %d", id, b.Index)] = float64(b.Count)
			}
		}
	}
	return now
}

// compare checks the page against the last one, and against what the program counted: whole says that everything
// could be read.
func (m *counted) compare(t *rapid.T, whole bool) {
	used, reserved := 0, 0
	for _, v := range m.r.all {
		used += len(v.list) * charge(v)
		if v.Metric != nil {
			reserved += v.reserve()
		}
		if v.Mode != mapping.ModeCount || v.Metric == nil {
			continue
		}
		now := m.values(v)
		for id, is := range now {
			if was, ok := m.last[id]; ok && is < was {
				t.Fatalf("%s falls from %v to %v", id, was, is)
			}
		}
		maps.Copy(m.last, now)
		m.compareWithTruth(t, v, whole)
	}
	if used != m.r.Weight() || reserved != m.r.room.reserved {
		t.Fatalf("weight %d, cells have %d; %d reserved, should be %d", m.r.Weight(), used, m.r.room.reserved,
			reserved)
	}
}

func charge(v *variable) int {
	if v.Metric == nil {
		return 0
	}
	return v.lines()
}

func (m *counted) compareWithTruth(t *rapid.T, v *variable, whole bool) {
	key := keyOf(v.of.Info)
	sum, read := 0.0, true
	for _, c := range v.list {
		sum += c.count.Total()
		read = read && c.known == c.want && (c.want == 0 || c.count.Known())
		if h := c.series.Histogram; h != nil && c.series.Valid {
			if v.Exact {
				checkedBuckets(t, h, true)
			} else if h.Sum > 0 && h.Count == 0 {
				t.Fatalf("%v has %v s of nothing", key, h.Sum)
			}
		}
	}
	read = read && !slices.ContainsFunc(m.r.reading, func(h *handle) bool { return h.v == v && h.of.Offset < 0 })
	truth := m.truth[key]
	if sum > truth {
		t.Fatalf("%v: the program counted %v, and %v is shown", key, truth, sum)
	}
	missing := v.enter == refused || v.Separate // what ends with its object goes elsewhere
	missing = missing || v.overflow != nil && v.overflow.cell == nil
	if !whole || !read || missing || m.lossy[key] {
		return
	}
	base, known := m.base[key]
	// from here on it is known; an element that was zero till then loses its first gain
	if known && base < 0 && !v.Nonzero {
		base = truth - sum
		m.base[key], m.later[key] = base, true
	}
	if known && base < 0 {
		return
	}
	if sum != truth-base {
		t.Fatalf("%v is %v, the program counted %v", key, sum, truth-base)
	}
	events, want := 0.0, m.calls
	for _, c := range v.list {
		switch {
		case v.Exact:
			events += float64(c.timer.hist.Count)
		case v.of.With != nil:
			events += c.timer.estimate.events.Total()
			want = m.truth[keyOf(v.of.With.Info)]
		}
	}
	if !m.later[key] && (v.Exact || v.of.With != nil && !m.lossy[keyOf(v.of.With.Info)]) && events != want {
		t.Fatalf("%v has %v events, the program counted %v", key, events, want)
	}
}
