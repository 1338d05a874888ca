package series

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// calls are variables as the call profile has them.
func calls(bind mpit.Bind, names ...string) []mpit.Variable {
	var list []mpit.Variable
	for _, name := range names {
		list = append(list, mpittest.DistributionVariable(name, bind))
	}
	return list
}

// took counts single durations of a distribution.
func (a *agent) took(variable string, object uint32, durations ...time.Duration) {
	a.handle(variable, object).took(durations...)
}

func (h *agentHandle) took(durations ...time.Duration) {
	for i, w := range mpittest.Distribution(durations...) {
		h.values[i] += w.(uint64)
	}
}

// exactBuckets is an exact histogram in words: how many durations end where, by the power of two, and that all of its
// parts agree.
func exactBuckets(t fataler, h *mapping.Histogram) map[string]uint64 {
	t.Helper()
	return checkedBuckets(t, h, true)
}

// checkedBuckets is exactBuckets; unless exactly, the classic buckets may be wider: those of a node's histogram,
// whose ranks have other bounds than it has.
func checkedBuckets(t fataler, h *mapping.Histogram, exactly bool) map[string]uint64 {
	t.Helper()
	out := map[string]uint64{}
	total := h.NativeZero
	if h.NativeZero > 0 {
		out["zero"] = h.NativeZero
	}
	for i, b := range h.Native {
		if i > 0 && h.Native[i-1].Index >= b.Index || b.Count == 0 {
			t.Fatalf("native buckets %v", h.Native)
		}
		out[fmt.Sprintf("2^%d", b.Index)] = b.Count
		total += b.Count
	}
	classic, last := uint64(0), int32(mpittest.DistributionElements-2-30)
	if h.Bytes {
		last += 30
	}
	for i, n := range h.Counts {
		classic += n
		// What the bounds say is what the native buckets say.
		below := h.NativeZero
		for _, b := range h.Native {
			if i < len(h.Bounds) && math.Ldexp(1, int(b.Index)) <= h.Bounds[i] && b.Index < last {
				below += b.Count
			}
		}
		if i < len(h.Bounds) && (below < classic || below > classic && exactly) {
			t.Fatalf("%d of at most %v, by the native buckets %d", classic, h.Bounds[i], below)
		}
	}
	if h.Schema != mapping.ExactSchema || total != h.Count || classic != h.Count {
		t.Fatalf("schema %d, %d in native buckets, %d in classic ones, %d in all", h.Schema, total, classic, h.Count)
	}
	return out
}

// histograms is all of a rank's, by the value of the label comm.
func histograms(t fataler, r *Rank) map[string]map[string]uint64 {
	t.Helper()
	out := map[string]map[string]uint64{}
	for _, s := range r.Series() {
		if s.Histogram == nil || !s.Valid {
			continue
		}
		name := ""
		for _, l := range s.Labels {
			name += l.Value
		}
		out[name] = exactBuckets(t, s.Histogram)
	}
	return out
}

type pows = map[string]uint64

// A duration stands in the bucket of the power of two that it is not above, and all are counted.
func TestDistributionIsExact(t *testing.T) {
	for _, c := range []struct {
		name      string
		durations []time.Duration
		want      pows
		le        m // cumulative counts
		sum       float64
	}{
		{"nothing", nil, pows{}, m{"+Inf": 0}, 0},
		{"none at all", []time.Duration{0}, pows{"zero": 1}, m{"9.5367431640625e-07": 1, "+Inf": 1}, 0},
		{"a nanosecond is within one unit of 2^-30 s", []time.Duration{1}, pows{"zero": 1},
			m{"9.5367431640625e-07": 1}, 1.0 / (1 << 30)},
		{"just above", []time.Duration{2}, pows{"2^-29": 1}, m{"9.5367431640625e-07": 1}, 2.0 / (1 << 30)},
		{"a power of two stands in the bucket that it ends", []time.Duration{time.Second / 2, time.Second},
			pows{"2^-1": 1, "2^0": 1}, m{"0.25": 0, "1": 2}, 1.5},
		{"above a bound", []time.Duration{time.Second + 2}, pows{"2^1": 1}, m{"1": 0, "4": 1}, 1 + 2.0/(1<<30)},
		{"between the classic bounds", []time.Duration{2 * time.Second, 2 * time.Second, 4 * time.Second},
			pows{"2^1": 2, "2^2": 1}, m{"1": 0, "4": 3}, 8},
		{"the longest that has a bucket of its own", []time.Duration{4096 * time.Second}, pows{"2^12": 1},
			m{"16": 0, "+Inf": 1}, 4096},
		{"longer than any bucket", []time.Duration{5000 * time.Second, 90000 * time.Second}, pows{"2^13": 2},
			m{"16": 0, "+Inf": 2}, 95000},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAgent(calls(mpit.BindNone, "v")...)
			r := newRank(t)
			a.took("v", 0, c.durations...)
			r.Update(a.sample())
			require.Len(t, r.Series(), 1)
			h := r.Series()[0].Histogram
			assert.Equal(t, c.want, exactBuckets(t, h))
			assert.Equal(t, c.sum, h.Sum)
			assert.Equal(t, uint64(len(c.durations)), h.Count)
			le := m{}
			all := uint64(0)
			for i, bound := range append(slices.Clone(h.Bounds), math.Inf(1)) {
				all += h.Counts[i]
				le[strconv.FormatFloat(bound, 'g', -1, 64)] = float64(all)
			}
			for bound, want := range c.le {
				assert.Equal(t, want, le[bound], bound)
			}
		})
	}
}

// The same of sizes, in bytes; of messages without data are as many as there are.
func TestDistributionOfSizesIsExact(t *testing.T) {
	for _, c := range []struct {
		name  string
		sizes []uint64
		want  pows
		le    m // cumulative counts
		sum   float64
	}{
		{"nothing", nil, pows{}, m{"+Inf": 0}, 0},
		{"no data, and a byte", []uint64{0, 0, 1}, pows{"zero": 3}, m{"1": 3, "+Inf": 3}, 1},
		{"two bytes", []uint64{2}, pows{"2^1": 1}, m{"1": 0, "4": 1}, 2},
		{"a power of two stands in the bucket that it ends", []uint64{512, 1024}, pows{"2^9": 1, "2^10": 1},
			m{"256": 0, "1024": 2}, 1536},
		{"above a bound", []uint64{1025}, pows{"2^11": 1}, m{"1024": 0, "4096": 1}, 1025},
		{"the largest that has a bucket of its own", []uint64{1 << 42}, pows{"2^42": 1},
			m{"6.7108864e+07": 0, "+Inf": 1}, 1 << 42},
		{"larger than any bucket", []uint64{1<<42 + 1, 1 << 50}, pows{"2^43": 2}, m{"6.7108864e+07": 0, "+Inf": 2},
			1<<42 + 1 + 1<<50},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAgent(mpittest.SizesVariable("v", mpit.BindComm))
			r := newRank(t)
			h := a.handle("v", a.object("halo", 1))
			for i, w := range mpittest.Sizes(c.sizes...) {
				h.values[i] += w.(uint64)
			}
			r.Update(a.sample())
			require.Len(t, r.Series(), 1)
			s := r.Series()[0]
			assert.Equal(t, "mpit_v_aggregate_bytes[{comm halo}]", s.Metric.Name+fmt.Sprint(s.Labels))
			assert.Contains(t, s.Metric.Help, "class AGGREGATE, unit By. The agent counts every size")
			checkMetric(t, s.Metric)
			assert.Equal(t, c.want, exactBuckets(t, s.Histogram))
			assert.Equal(t, c.sum, s.Histogram.Sum)
			assert.Equal(t, 1.0, s.Histogram.ZeroThreshold())
			all := uint64(0)
			for i, bound := range append(slices.Clone(s.Histogram.Bounds), math.Inf(1)) {
				all += s.Histogram.Counts[i]
				if want, ok := c.le[strconv.FormatFloat(bound, 'g', -1, 64)]; ok {
					assert.Equal(t, want, float64(all), bound)
				}
			}
		})
	}
}

// Of sizes, too, only the agent knows the class and the unit.
func TestRulesOfDistributionsOfSizes(t *testing.T) {
	micro, yes := 1e-6, true
	for name, rule := range map[string]rules.Rule{
		"unit and scale": {Unit: "us", Scale: &micro},
		"class":          {Class: "timer"},
		"elements":       {Elements: mapping.MergePeer, Nonzero: &yes, Offset: &yes},
	} {
		t.Run(name, func(t *testing.T) {
			rule.Buckets = []float64{1000, 1024, 5000}
			a := newAgent(mpittest.SizesVariable("v", mpit.BindNone))
			r := newRank(t, rule)
			h := a.handle("v", 0)
			for i, w := range mpittest.Sizes(1, 1000, 1025, 5000) {
				h.values[i] += w.(uint64)
			}
			r.Update(a.sample())
			require.Len(t, r.Series(), 1)
			s := r.Series()[0]
			assert.Equal(t, "mpit_v_aggregate_bytes", s.Metric.Name)
			assert.Equal(t, []uint64{1, 1, 1, 1}, s.Histogram.Counts, "the first bound that is not below")
			assert.Equal(t, 7026.0, s.Histogram.Sum)
		})
	}
}

// What rules say of a distribution, and what they can't.
func TestRulesOfDistributions(t *testing.T) {
	micro, yes := 1e-6, true
	variable := mpittest.DistributionVariable("v", mpit.BindComm)
	standard := []float64{
		1.0 / (1 << 20), 1.0 / (1 << 18), 1.0 / (1 << 16), 1.0 / (1 << 14), 1.0 / (1 << 12), 1.0 / (1 << 10),
		1.0 / (1 << 8), 1.0 / (1 << 6),
		1.0 / (1 << 4), 1.0 / 4, 1, 4, 16,
	}
	for _, c := range []struct {
		name   string
		rule   rules.Rule
		want   string // name and labels of the only series
		bounds []float64
		counts []uint64 // of 1 µs, 1 s, 3 s
	}{
		{"no rule", rules.Rule{}, "mpit_v_time_seconds[{comm c}]", standard,
			[]uint64{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0}},
		{"buckets: the first bound that is not below", rules.Rule{Buckets: []float64{1e-6, 1.5e-6, 2, 3, 5}},
			"mpit_v_time_seconds[{comm c}]", []float64{1e-6, 1.5e-6, 2, 3, 5}, []uint64{0, 0, 2, 0, 1, 0}},
		{"name and label", rules.Rule{Match: rules.Match{Regexp: "(?P<letter>v)"}, Name: "call_time"},
			"mpit_call_time_seconds[{comm c} {letter v}]", standard, nil},
		{"without the object", rules.Rule{Object: &no}, "mpit_v_time_seconds[]", standard, nil},
		{"unit and scale", rules.Rule{Unit: "us", Scale: &micro}, "mpit_v_time_seconds[{comm c}]", standard, nil},
		{"no unit", rules.Rule{Unit: mapping.NoUnit}, "mpit_v_time_seconds[{comm c}]", standard, nil},
		{"class", rules.Rule{Class: "level"}, "mpit_v_time_seconds[{comm c}]", standard, nil},
		{"elements", rules.Rule{Elements: mapping.MergePeer, Nonzero: &yes}, "mpit_v_time_seconds[{comm c}]",
			standard, nil},
		{"companion", rules.Rule{Companion: "n"}, "mpit_v_time_seconds[{comm c}]", standard, nil},
		{"offset", rules.Rule{Offset: &yes}, "mpit_v_time_seconds[{comm c}]", standard, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAgent(variable, on("n", mpit.ClassCounter, tULong))
			r := newRank(t, c.rule, rules.Rule{Match: rules.Match{Class: rules.List{"counter"}}, Drop: &yes})
			x := a.object("c", 1)
			a.took("v", x, time.Microsecond, time.Second, 3*time.Second)
			r.Update(a.sample())
			require.Len(t, r.Series(), 1)
			s := r.Series()[0]
			assert.Equal(t, c.want, s.Metric.Name+fmt.Sprint(s.Labels))
			assert.Equal(t, c.bounds, s.Histogram.Bounds)
			if c.counts != nil {
				assert.Equal(t, c.counts, s.Histogram.Counts)
			}
			assert.Equal(t, uint64(3), s.Histogram.Count)
			assert.InDelta(t, 4.000001, s.Histogram.Sum, 1e-9)
			assert.Contains(t, s.Metric.Help, "The agent measures every duration")
			assert.Contains(t, s.Metric.Help, "class TIMER, unit s")
			checkMetric(t, s.Metric)
		})
	}
	t.Run("drop", func(t *testing.T) {
		_, reason, ok := newMapper(t, rules.Rule{Drop: &yes}).Metric(mapping.Library{}, variable)
		assert.False(t, ok)
		assert.Equal(t, mapping.ReasonRule, reason)
	})
	t.Run("explained", func(t *testing.T) {
		m := newMapper(t, rules.Rule{Unit: "us", Class: "level", Scale: &micro, Name: "w"})
		decisions, _ := m.Explain(mapping.Library{}, variable)
		assert.Equal(t, []rules.Decision{
			{Property: "class", By: rules.Agent, Value: "timer"}, {Property: "unit", By: rules.Agent, Value: "s"},
			{Property: "scale", By: rules.Agent, Value: "9.313225746154785e-10"},
			{Property: "name", By: "a rule", Value: "w"},
			{Property: "elements", By: rules.Agent, Value: ""}, {Property: "nonzero", By: rules.Agent, Value: "false"},
			{Property: "companion", By: rules.Agent, Value: "none"},
			{Property: "offset", By: rules.Agent, Value: "false"},
		}, decisions)
		metric, _, _ := m.Metric(mapping.Library{}, variable)
		assert.Equal(t, "mpit_w_seconds", metric.Name)
		_, unsure := newMapper(t, rules.Rule{Match: rules.Match{Verbosity: rules.List{"user_basic"}}, Unit: "us"}).
			Explain(mapping.Library{}, variable)
		assert.Empty(t, unsure, "whatever its verbosity is")
	})
}

// A rank may say what it likes: what can't be a distribution is left out and counted, and nothing else suffers.
func TestLiesAboutDistributions(t *testing.T) {
	v := mpittest.DistributionVariable("v", mpit.BindComm)
	for name, change := range map[string]func(v *mpit.Variable){
		"a counter":   func(v *mpit.Variable) { v.Class = mpit.ClassCounter },
		"a state":     func(v *mpit.Variable) { v.Class = mpit.ClassState },
		"a generic":   func(v *mpit.Variable) { v.Class = mpit.ClassGeneric },
		"of no class": func(v *mpit.Variable) { v.Class = mpit.ClassUnknown },
		"doubles":     func(v *mpit.Variable) { v.Datatype = tDouble },
		"ints":        func(v *mpit.Variable) { v.Datatype, v.DatatypeBytes = tInt, 4 },
		"a string":    func(v *mpit.Variable) { v.Datatype, v.DatatypeBytes = mpit.DatatypeChar, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			wrong := v
			change(&wrong)
			a := newAgent(wrong, mpit.Variable{Name: "n", Class: mpit.ClassCounter, Datatype: tULong})
			r := newRank(t)
			a.object("c", 1)
			r.Update(a.sample())
			assert.Equal(t, m{"n_total": 0}, show(r))
			assert.Equal(t, map[mapping.Reason]uint64{mapping.ReasonDistribution: 1}, r.Dropped())
		})
	}
	for _, c := range []struct {
		name     string
		elements []int
		want     m
		dropped  uint64
	}{
		{"the time alone", []int{1}, m{}, 1},
		{"too many", []int{129}, m{}, 1},
		{"the fewest", []int{2}, m{"v_time_seconds{comm=0} sum": 1, "v_time_seconds{comm=0} count": 1}, 0},
		{"the most", []int{128}, m{"v_time_seconds{comm=0} sum": 1, "v_time_seconds{comm=0} count": 127}, 0},
		{"others than the first has", []int{45, 44, 45, 1}, m{
			"v_time_seconds{comm=0} sum": 1, "v_time_seconds{comm=0} count": 44, "v_time_seconds{comm=2} sum": 1,
			"v_time_seconds{comm=2} count": 44,
		}, 2},
		{"and the first has none", []int{1, 45}, m{"v_time_seconds{comm=1} sum": 1,
			"v_time_seconds{comm=1} count": 44}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAgent(v)
			r := newRank(t)
			for i, n := range c.elements {
				x := a.object(fmt.Sprint(i), 1)
				h := a.handle("v", x)
				h.Count, h.values = n, make([]uint64, n)
				for k := range h.values {
					h.values[k] = 1
				}
				h.values[0] = 1 << 30
			}
			for range 3 {
				r.Update(a.sample())
				a.reconnect()
			}
			assert.Equal(t, c.want, show(r))
			assert.Equal(t, c.dropped, r.Dropped()[mapping.ReasonDistribution], "each handle once")
			for _, o := range slices.Clone(a.objects) {
				a.free(o.ID)
			}
			r.Update(a.sample())
			assert.Equal(t, c.want, show(r), "what remains of them is as good")
		})
	}
	t.Run("counts beyond all measure", func(t *testing.T) {
		a := newAgent(v)
		r := newRank(t)
		for range 3 {
			x := a.object("c", 1)
			h := a.handle("v", x)
			for k := range h.values {
				h.values[k] = math.MaxUint64 - 5
			}
		}
		for range 3 {
			r.Update(a.sample())
			assert.Equal(t, uint64(44*maxEvents), r.Series()[0].Histogram.Count)
			for _, h := range a.handles {
				for k := range h.values {
					h.values[k]++
				}
			}
		}
	})
	t.Run("a bucket that falls, and its time doesn't", func(t *testing.T) {
		a := newAgent(v)
		r := newRank(t)
		x := a.object("c", 1)
		a.took("v", x, time.Second, time.Second, 2*time.Second)
		r.Update(a.sample())
		a.handle("v", x).values[31]--
		r.Update(a.sample())
		assert.Equal(t, map[string]pows{"c": {"2^0": 2, "2^1": 1}}, histograms(t, r), "it stays")
		a.took("v", x, time.Second, time.Second)
		r.Update(a.sample())
		assert.Equal(t, map[string]pows{"c": {"2^0": 4, "2^1": 1}}, histograms(t, r),
			"and counts on from where it fell to")
	})
	t.Run("one of two that is reset", func(t *testing.T) {
		a := newAgent(v)
		r := newRank(t)
		x, y := a.object("c", 1), a.object("c", 1)
		a.took("v", x, 4*time.Second)
		a.took("v", y, time.Second)
		r.Update(a.sample())
		was := r.Series()[0].Since
		clear(a.handle("v", x).values)
		r.Update(a.after(time.Minute).sample())
		a.took("v", x, 2*time.Second)
		a.took("v", y, time.Second)
		r.Update(a.after(time.Minute).sample())
		assert.Equal(t, map[string]pows{"c": {"2^0": 2, "2^1": 1, "2^2": 1}}, histograms(t, r),
			"all that has been counted")
		assert.Equal(t, 8.0, r.Series()[0].Histogram.Sum)
		assert.Equal(t, was, r.Series()[0].Since)
	})
	t.Run("it was none a moment ago", func(t *testing.T) {
		plain := v
		plain.Distribution = false
		a := newAgent(plain)
		r := newRank(t)
		a.object("c", 45)
		r.Update(a.sample())
		assert.Contains(t, show(r), "v_time_total{comm=c}")
		a.vars[0].Distribution, a.lastVars = true, nil
		r.Update(a.sample())
		assert.Equal(t, m{"v_time_seconds{comm=c} sum": 0, "v_time_seconds{comm=c} count": 0}, show(r))
	})
}

// Objects that aren't tracked are object 0, and so is what nobody has named.
func TestDistributionOfObjectsThatAreNotTracked(t *testing.T) {
	a := newAgent(calls(mpit.BindComm, "v")...)
	a.open(0, 0, 45).took(time.Second)
	a.object("", 1)
	a.took("v", a.objects[0].ID, 2*time.Second)
	x := a.object("c", 1)
	a.took("v", x, 4*time.Second)
	r := newRank(t)
	r.Update(a.sample())
	assert.Equal(t, map[string]pows{mapping.Unnamed: {"2^0": 1, "2^1": 1}, "c": {"2^2": 1}}, histograms(t, r))
}

// A program's own object called other is one with them; if it is reset, other goes on.
func TestDistributionOfAnObjectCalledOther(t *testing.T) {
	a := newAgent(calls(mpit.BindComm, "v")...)
	a.object("a", 1)
	x, y := a.object(mapping.Other, 1), a.object("b", 1)
	r := newRank(t)
	look := func() pows {
		r.SetVariableLimit(32)
		r.Update(a.after(time.Minute).sample())
		return histograms(t, r)[mapping.Other]
	}
	a.took("v", x, time.Second, time.Second, time.Second)
	a.took("v", y, time.Second)
	assert.Equal(t, pows{"2^0": 4}, look())
	clear(a.handle("v", x).values)
	a.took("v", x, 0)
	assert.Equal(t, pows{"2^0": 4, "zero": 1}, look())
	a.took("v", x, time.Second)
	a.took("v", y, time.Second)
	assert.Equal(t, pows{"2^0": 6, "zero": 1}, look())
	reload(t, r, a)
	assert.Equal(t, pows{"2^0": 6, "zero": 1}, look())
}

// What a handle, or what remains of one, has in a bucket lies between nothing and what fits a float64.
func TestCountsOfBuckets(t *testing.T) {
	for _, c := range []struct {
		name     string
		w, base  uint64
		excluded int64
		want     uint64
		good     bool
	}{
		{"counted", 7, 0, 0, 7, true},
		{"since a rename", 7, 5, 0, 2, true},
		{"but for a pause", 7, 2, 4, 1, true},
		{"less than at the rename", 5, 7, 0, 0, false},
		{"more in pauses than in all", 7, 2, 6, 0, false},
		{"a pause that took something away", 7, 0, -5, 7, false},
		{"more than there are calls", math.MaxUint64, 1, 0, maxEvents, true},
		{"all of it in pauses", math.MaxUint64, 0, math.MaxInt64, maxEvents, true},
		{"the longest pause", 0, 0, math.MinInt64, 0, false},
	} {
		n, good := countOf(c.w, c.base, c.excluded)
		assert.Equal(t, [2]any{c.want, c.good}, [2]any{n, good}, c.name)
	}
	for _, c := range []struct {
		gained, first []uint64
		want          uint64
	}{
		{[]uint64{9, 4}, []uint64{9, 3}, 7},
		{[]uint64{9, 4}, nil, 4},
		{[]uint64{9, math.MaxUint64}, []uint64{9, 3}, 3}, // -1
		{[]uint64{9, math.MaxInt64}, []uint64{9, math.MaxInt64}, maxEvents},
		{[]uint64{9}, nil, 0},
	} {
		assert.Equal(t, c.want, remainOf(&mpit.Remain{Gained: c.gained, First: c.first}, 1), c)
	}
}

// With other buckets a histogram begins at zero, sum and buckets together.
func TestReloadOfADistribution(t *testing.T) {
	a := newAgent(calls(mpit.BindComm, "v")...)
	x := a.object("c", 1)
	r := newRank(t)
	a.took("v", x, time.Second, 4*time.Second)
	r.Update(a.after(time.Minute).sample())
	reload(t, r, a, rules.Rule{Buckets: []float64{2, 8}})
	a.took("v", x, time.Second)
	r.Update(a.after(time.Minute).sample())
	assert.Equal(t, map[string]pows{"c": {}}, histograms(t, r))
	assert.Zero(t, r.Series()[0].Histogram.Sum)
	assert.Equal(t, a.now().UnixNano(), r.Series()[0].Since)
	a.took("v", x, 4*time.Second)
	r.Update(a.after(time.Minute).sample())
	assert.Equal(t, map[string]pows{"c": {"2^2": 1}}, histograms(t, r))
	assert.Equal(t, 4.0, r.Series()[0].Histogram.Sum)
	assert.Equal(t, []uint64{0, 1, 0}, r.Series()[0].Histogram.Counts)
}
