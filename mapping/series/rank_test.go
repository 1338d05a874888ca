package series

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// on is a variable bound to communicators.
func on(name string, class mpit.Class, d mpit.Datatype) mpit.Variable {
	return mpit.Variable{Name: name, Class: class, Datatype: d, Bind: mpit.BindComm, DatatypeBytes: bytesOf(d)}
}

func bytesOf(d mpit.Datatype) int {
	switch d {
	case mpit.DatatypeInt, mpit.DatatypeUnsigned, mpit.DatatypeInt32, mpit.DatatypeUint32:
		return 4
	}
	return 8
}

func newRank(t fataler, list ...rules.Rule) *Rank {
	t.Helper()
	return NewRank(newMapper(t, list...), variables.Process{Library: mapping.Library{Name: mapping.MPICH,
		Version: "4.0.2"}})
}

type m = map[string]float64

const (
	tInt    = mpit.DatatypeInt
	tUint   = mpit.DatatypeUnsigned
	tLong   = mpit.DatatypeLongLong
	tULong  = mpit.DatatypeUnsignedLongLong
	tDouble = mpit.DatatypeDouble
)

// Two communicators called c, of two elements each: what they become together.
func TestMergingByClass(t *testing.T) {
	for _, c := range []struct {
		name     string
		class    mpit.Class
		datatype mpit.Datatype
		a, b     []any
		want     m
		freed    m // after b is freed
	}{
		{"level sums", mpit.ClassLevel, tInt, []any{1, 2}, []any{3, -1}, m{"v_level{comm=c}": 5},
			m{"v_level{comm=c}": 3}},
		{"size sums", mpit.ClassSize, tUint, []any{1, 2}, []any{3, 4}, m{"v_size{comm=c}": 10},
			m{"v_size{comm=c}": 3}},
		{"percentage: the largest", mpit.ClassPercentage, tDouble, []any{0.25, 0.5}, []any{0.75, 0.0},
			m{"v_ratio{comm=c}": 0.75}, m{"v_ratio{comm=c}": 0.5}},
		{"high watermark: the largest, also of the freed", mpit.ClassHighWatermark, tULong, []any{1, 2}, []any{9, 4},
			m{"v_highwatermark{comm=c}": 9}, m{"v_highwatermark{comm=c}": 9}},
		{"low watermark: the lowest, also of the freed", mpit.ClassLowWatermark, tInt, []any{5, 2}, []any{-3, 4},
			m{"v_lowwatermark{comm=c}": -3}, m{"v_lowwatermark{comm=c}": -3}},
		{"counter sums, also of the freed", mpit.ClassCounter, tULong, []any{1, 2}, []any{3, 4},
			m{"v_total{comm=c}": 10}, m{"v_total{comm=c}": 10}},
		{"aggregate sums, also of the freed", mpit.ClassAggregate, tDouble, []any{1.5, 2.0}, []any{3.0, 4.0},
			m{"v_aggregate_total{comm=c}": 10.5}, m{"v_aggregate_total{comm=c}": 10.5}},
		{"timer of no known unit", mpit.ClassTimer, tULong, []any{1, 2}, []any{3, 4}, m{"v_time_total{comm=c}": 10},
			m{"v_time_total{comm=c}": 10}},
		{"timer", mpit.ClassTimer, tDouble, []any{1.0, 2.0}, []any{3.0, 4.0}, m{"v_time_seconds{comm=c} sum": 10,
			"v_time_seconds{comm=c} count": 1}, m{"v_time_seconds{comm=c} sum": 10,
			"v_time_seconds{comm=c} count": 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, a := newRank(t), newAgent(on("v", c.class, c.datatype))
			x, y := a.object("c", 2), a.object("c", 2)
			a.set("v", x, c.a...)
			a.set("v", y, c.b...)
			r.Update(a.sample())
			assert.Equal(t, c.want, show(r))
			structure := r.Structure()
			a.free(y)
			r.Update(a.after(time.Second).sample())
			assert.Equal(t, c.freed, show(r))
			assert.Equal(t, structure, r.Structure(), "the same series")
		})
	}
}

func TestGenericIsNeverMerged(t *testing.T) {
	r, a := newRank(t), newAgent(on("v", mpit.ClassGeneric, tInt))
	x := a.object("c", 1)
	a.set("v", x, 4)
	r.Update(a.sample())
	assert.Equal(t, m{"v_generic{comm=c}": 4}, show(r))
	y := a.object("c", 1)
	a.set("v", y, 5)
	r.Update(a.sample())
	assert.Equal(t, m{"v_generic{comm=c,object=1}": 4, "v_generic{comm=c,object=3}": 5}, show(r))
	a.free(x)
	r.Update(a.sample())
	assert.Equal(t, m{"v_generic{comm=c}": 5}, show(r))
}

func TestState(t *testing.T) {
	e := &mpit.Enum{Items: []mpit.EnumItem{{Value: 0, Name: "idle"}, {Value: 2, Name: "busy"}}}
	v := mpit.Variable{Name: "v", Class: mpit.ClassState, Datatype: tInt, Enum: e}
	r, a := newRank(t), newAgent(v)
	a.set("v", 0, 2)
	r.Update(a.sample())
	assert.Equal(t, m{"v_state{state=idle}": 0, "v_state{state=busy}": 1}, show(r))
	structure := r.Structure()
	a.set("v", 0, 0)
	r.Update(a.sample())
	assert.Equal(t, m{"v_state{state=idle}": 1, "v_state{state=busy}": 0}, show(r))
	assert.Equal(t, structure, r.Structure())
	a.set("v", 0, -7)
	r.Update(a.sample())
	assert.Equal(t, m{"v_state{state=idle}": 0, "v_state{state=busy}": 0, "v_state{state=-7}": 1}, show(r))
	assert.NotEqual(t, structure, r.Structure())
	a.set("v", 0, 2)
	r.Update(a.sample())
	assert.Equal(t, m{"v_state{state=idle}": 0, "v_state{state=busy}": 1}, show(r))
	for _, s := range r.Series() {
		assert.False(t, s.Lasting)
	}
	t.Run("without an enumeration", func(t *testing.T) {
		v.Enum = nil
		r, a := newRank(t), newAgent(v)
		a.set("v", 0, 7)
		r.Update(a.sample())
		assert.Equal(t, m{"v_state{state=7}": 1}, show(r))
	})
	t.Run("items of one name", func(t *testing.T) {
		v.Enum = &mpit.Enum{Items: []mpit.EnumItem{{Value: 0, Name: "x"}, {Value: 1, Name: "x"},
			{Value: 1, Name: "y"}, {Value: 3, Name: ""}}}
		r, a := newRank(t), newAgent(v)
		r.Update(a.sample())
		assert.Equal(t, m{"v_state{state=x}": 1, "v_state{state=x (1)}": 0, "v_state{state=(3)}": 0}, show(r))
	})
}

func TestElementsOfTheirOwn(t *testing.T) {
	r := newRank(t, rules.Rule{Match: rules.Match{Class: rules.List{"counter"}}, Elements: mapping.MergePeer},
		rules.Rule{Elements: mapping.MergeIndex})
	a := newAgent(on("n", mpit.ClassCounter, tULong), on("l", mpit.ClassLevel, tInt))
	x := a.object("c", 2)
	a.set("n", x, 1, 2)
	a.set("l", x, 3, 4)
	r.Update(a.sample())
	assert.Equal(t, m{"n_total{comm=c,peer=0}": 1, "n_total{comm=c,peer=1}": 2, "l_level{comm=c,index=0}": 3,
		"l_level{comm=c,index=1}": 4}, show(r))
	a.free(x)
	r.Update(a.sample())
	assert.Equal(t, m{"n_total{comm=c,peer=0}": 1, "n_total{comm=c,peer=1}": 2}, show(r))
}

func TestUnitsAndScales(t *testing.T) {
	half := 0.5
	r := newRank(t,
		rules.Rule{Match: rules.Match{Name: "kib"}, Unit: "KiBy"},
		rules.Rule{Match: rules.Match{Name: "percent"}, Unit: "%", Scale: &half},
		rules.Rule{Match: rules.Match{Name: "micro"}, Unit: "us"})
	a := newAgent(mpit.Variable{Name: "kib", Class: mpit.ClassLevel, Datatype: tInt},
		mpit.Variable{Name: "percent", Class: mpit.ClassHighWatermark, Datatype: tInt},
		mpit.Variable{Name: "micro", Class: mpit.ClassTimer, Datatype: tULong})
	a.set("kib", 0, 3)
	a.set("percent", 0, 50)
	a.set("micro", 0, 2500000)
	r.Update(a.sample())
	assert.Equal(t, m{"kib_level_bytes": 3072, "percent_highwatermark_ratio": 0.25, "micro_time_seconds sum": 2.5,
		"micro_time_seconds count": 1}, show(r))
}

func TestWrapsAndResets(t *testing.T) {
	for _, c := range []struct {
		name     string
		datatype mpit.Datatype
		values   []any
		want     []float64
	}{
		{"unsigned int wraps", tUint, []any{uint64(1<<32 - 10), 5, 7}, []float64{1<<32 - 10, 1<<32 + 5, 1<<32 + 7}},
		{"int wraps to below zero", tInt, []any{1<<31 - 1, -(1 << 31) + 4, -1, 3},
			[]float64{1<<31 - 1, 1<<31 + 4, 1<<32 - 1, 1<<32 + 3}},
		{"64 bits never wrap", tULong, []any{uint64(math.MaxUint64 - 1<<20), 1 << 40, 1<<40 + 1<<20},
			[]float64{math.MaxUint64 - 1<<20, math.MaxUint64 - 1<<20, math.MaxUint64}},
		{"from the third quarter it is a reset", tUint, []any{uint64(3<<30 - 1), 5, 7},
			[]float64{3<<30 - 1, 3<<30 - 1, 3<<30 + 1}},
		{"to the second quarter it is a reset", tUint, []any{uint64(1<<32 - 1), uint64(1 << 30)},
			[]float64{1<<32 - 1, 1<<32 - 1}},
		{"reset: what came between is missing", tLong, []any{1000, 10, 30}, []float64{1000, 1000, 1020}},
		{"doubles never wrap", tDouble, []any{1e300, 2.0}, []float64{1e300, 1e300}},
		{"below zero: not this time", tLong, []any{10, -5, 12}, []float64{10, 10, 12}},
		{"not a number: not this time", tDouble, []any{1.0, math.NaN(), math.Inf(1), 2.0}, []float64{1, 1, 1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAgent(mpit.Variable{Name: "v", Class: mpit.ClassCounter, Datatype: c.datatype,
				DatatypeBytes: bytesOf(c.datatype)})
			r := newRank(t)
			for i, v := range c.values {
				a.set("v", 0, v)
				r.Update(a.after(time.Second).sample())
				s := r.Series()[0]
				require.True(t, s.Valid)
				assert.Equal(t, c.want[i], s.Value, "value %d", i)
				assert.Equal(t, a.start, createdAt(s))
			}
		})
	}
}

func TestDroppedValuesAreCounted(t *testing.T) {
	a := newAgent(mpit.Variable{Name: "v", Class: mpit.ClassCounter, Datatype: tLong},
		mpit.Variable{Name: "d", Class: mpit.ClassTimer, Datatype: tDouble},
		mpit.Variable{Name: "x", State: mpit.VariableDenied, Datatype: tInt}, mpit.Variable{Name: "x", Datatype: tInt})
	r := newRank(t)
	a.set("v", 0, -1)
	a.set("d", 0, math.NaN())
	a.failed[3] = true
	r.Update(a.sample())
	assert.Equal(t, map[mapping.Reason]uint64{mapping.ReasonNegative: 1, mapping.ReasonNotANumber: 1,
		mapping.ReasonDenied: 1, mapping.ReasonDuplicate: 1, mapping.ReasonReadFailed: 1}, r.Dropped())
	assert.Empty(t, show(r))
}

// MPICH's timers begin at minus the time of day.
func TestOffset(t *testing.T) {
	yes := true
	a := newAgent(on("v", mpit.ClassTimer, tDouble), on("n", mpit.ClassCounter, tLong))
	x := a.object("c", 1)
	h := a.handle("v", x)
	h.First, h.values[0] = []uint64{math.Float64bits(-1.8e9)}, math.Float64bits(-1.8e9+2)
	n := a.handle("n", x)
	n.First, n.values[0] = []uint64{40}, 42
	a.lastLayout = nil
	r := newRank(t, rules.Rule{Match: rules.Match{Class: rules.List{"timer"}}, Offset: &yes})
	r.Update(a.sample())
	want := m{"v_time_seconds{comm=c} sum": 2, "v_time_seconds{comm=c} count": 1, "n_total{comm=c}": 42}
	assert.Equal(t, want, show(r), "a counter counts from zero, the timer from its first value")
	a.free(x)
	r.Update(a.sample())
	assert.Equal(t, want, show(r))
	assert.Empty(t, r.Dropped())
	again := newRank(t, rules.Rule{Match: rules.Match{Class: rules.List{"timer"}}, Offset: &yes})
	again.Update(a.sample())
	assert.Equal(t, want, show(again), "an exporter that has never seen it alive")
	t.Run("without a rule it is dropped", func(t *testing.T) {
		a := newAgent(mpit.Variable{Name: "v", Class: mpit.ClassTimer, Datatype: tDouble})
		a.set("v", 0, -1.8e9)
		r := newRank(t)
		r.Update(a.sample())
		assert.Empty(t, show(r))
		assert.Equal(t, uint64(1), r.Dropped()[mapping.ReasonNegative])
	})
}

func TestWhatCannotBeRead(t *testing.T) {
	a := newAgent(on("v", mpit.ClassCounter, tULong), on("l", mpit.ClassLevel, tInt),
		on("high", mpit.ClassHighWatermark, tInt))
	x, y := a.object("c", 1), a.object("c", 1)
	r := newRank(t)
	for _, n := range []string{"v", "l", "high"} {
		a.set(n, x, 2)
		a.set(n, y, 3)
	}
	r.Update(a.sample())
	all := m{"v_total{comm=c}": 5, "l_level{comm=c}": 5, "high_highwatermark{comm=c}": 3}
	assert.Equal(t, all, show(r))
	lasting := m{"v_total{comm=c}": 5, "high_highwatermark{comm=c}": 3}
	for _, h := range a.handles {
		if h.Object == y {
			a.failed[h.ID] = true
			h.values[0] = 0
		}
	}
	r.Update(a.sample())
	assert.Equal(t, lasting, show(r), "a part of a sum would be a lie; what lasts is as it was")
	r.Update(&mpit.Sample{Status: mpit.SampleBusy, Variables: a.lastVars, Layout: a.lastLayout})
	assert.Equal(t, lasting, show(r))
	s := a.sample()
	s.Values = s.Values[:1]
	r.Update(s)
	assert.Equal(t, lasting, show(r), "a sample that is too short")
}

func TestAnOlderSampleIsLeftOut(t *testing.T) {
	a := newAgent(mpit.Variable{Name: "v", Class: mpit.ClassCounter, Datatype: tULong})
	r := newRank(t)
	a.set("v", 0, 5)
	old := a.sample()
	a.set("v", 0, 9)
	r.Update(a.after(time.Second).sample())
	r.Update(old)
	assert.Equal(t, m{"v_total": 9}, show(r))
}

// A variable that is opened on request is requested where a rule asks, once, and counts from then on.
func TestRequests(t *testing.T) {
	yes, no := true, false
	costly := func(name string, class mpit.Class) mpit.Variable {
		return mpit.Variable{Name: name, Class: class, Datatype: tULong, State: mpit.VariableOnRequest,
			OnRequest: true}
	}
	a := newAgent(mpit.Variable{Name: "cheap", Class: mpit.ClassCounter, Datatype: tULong},
		costly("sends", mpit.ClassCounter),
		costly("sends_dropped", mpit.ClassCounter), costly("sends_never", mpit.ClassCounter),
		costly("receives", mpit.ClassCounter),
		costly("text", mpit.ClassGeneric))
	a.vars[5].Datatype = mpit.DatatypeChar
	r := newRank(t,
		rules.Rule{Match: rules.Match{Name: "sends_dropped"}, Drop: &yes},
		rules.Rule{Match: rules.Match{Name: "sends_never"}, Open: &no},
		rules.Rule{Match: rules.Match{Name: "sends*"}, Open: &yes},
		rules.Rule{Match: rules.Match{Name: "cheap"}, Open: &yes},
		rules.Rule{Match: rules.Match{Name: "text"}, Open: &yes},
	)
	r.Update(a.sample())
	assert.Equal(t, []uint32{1}, r.Requests(), "what is dropped is not opened")
	assert.Equal(t, m{"cheap_total": 0}, show(r))
	assert.Equal(t, map[mapping.Reason]uint64{mapping.ReasonRule: 1, mapping.ReasonGenericString: 1}, r.Dropped(),
		"what nobody has asked for is not dropped")

	a.after(time.Minute)
	a.vars[1].State, a.lastVars = mpit.VariableOpen, nil
	a.open(1, 0, 1)
	h := a.handle("sends", 0)
	h.First, h.values[0] = []uint64{1000}, 1004
	h.Created = a.start.Add(time.Minute)
	a.lastLayout = nil
	r.Update(a.sample())
	assert.Empty(t, r.Requests())
	assert.Equal(t, m{"cheap_total": 0, "sends_total": 4}, show(r), "what was there before is not counted")
	for _, s := range r.Series() {
		if s.Metric.Name == "mpit_sends_total" {
			assert.Equal(t, a.start.Add(time.Minute).UnixNano(), createdAt(s).UnixNano())
			assert.Contains(t, s.Metric.Help, "Opened on request: counting begins with exec --monitoring or when a "+
				"rule asks (open: true).")
		} else {
			assert.NotContains(t, s.Metric.Help, "on request")
		}
	}

	// By rules that don't ask for it any more it goes on.
	other := newRank(t)
	other.Update(a.sample())
	assert.Empty(t, other.Requests())
	assert.Equal(t, m{"cheap_total": 0, "sends_total": 4}, show(other))
}

func TestSelect(t *testing.T) {
	yes := true
	r := newRank(t, rules.Rule{Match: rules.Match{Name: "drop*"}, Drop: &yes})
	a := newAgent(mpit.Variable{Name: "v", Class: mpit.ClassCounter, Datatype: tULong},
		mpit.Variable{Name: "keep", Datatype: tInt})
	r.Update(a.sample())
	_, _, changed := r.Select()
	assert.False(t, changed, "without SELECT all are read")
	a.add(mpit.Variable{Name: "drop", Class: mpit.ClassTimer, Datatype: tDouble})
	a.add(mpit.Variable{Name: "text", Class: mpit.ClassGeneric, Datatype: mpit.DatatypeChar})
	a.add(mpit.Variable{Name: "dropped_but_companion", Class: mpit.ClassCounter, Datatype: tULong})
	r.Update(a.sample())
	def, ids, changed := r.Select()
	assert.True(t, def)
	assert.True(t, changed)
	assert.Equal(t, map[uint32]bool{0: true, 1: true, 2: false, 3: false, 4: false}, ids)
	_, _, changed = r.Select()
	assert.False(t, changed)

	t.Run("an agent told otherwise by an earlier exporter", func(t *testing.T) {
		r := newRank(t)
		s := a.sample()
		s.Layout.Handles[0].Offset = -1
		r.Update(s)
		_, ids, changed := r.Select()
		assert.True(t, changed)
		assert.True(t, ids[0])
		_, _, changed = r.Select()
		assert.False(t, changed)
	})
}

func TestObjectsAndInfos(t *testing.T) {
	a := newAgent(on("v", mpit.ClassCounter, tUint))
	a.vars[0].Verbosity = mpit.VerbosityTunerAll
	a.object("", 1)
	a.object("", 1)
	x := a.object("h\xffalo"+strings.Repeat("é", 100), 1)
	r := newRank(t)
	r.Update(a.sample())
	objects := r.Objects()
	require.Len(t, objects, 2)
	assert.Equal(t, "hÿalo", objects[0].Name[:6])
	assert.LessOrEqual(t, len(objects[0].Name), 128)
	assert.Equal(t, x, objects[0].Object.ID)
	assert.Equal(t, ObjectInfo{Kind: mpit.BindComm, Name: "unnamed", Number: 2}, objects[1])
	infos := r.Infos()
	require.Len(t, infos, 1)
	assert.Equal(t, 32, infos[0].Bits)
	assert.Equal(t, "mpit_v_total", infos[0].Metric.Name)
}

func TestSeriesArePointersThatStay(t *testing.T) {
	a := newAgent(on("v", mpit.ClassCounter, tULong))
	r := newRank(t)
	a.object("c", 1)
	r.Update(a.sample())
	before, structure := r.Series()[0], r.Structure()
	a.reconnect()
	r.Update(a.sample())
	assert.Same(t, before, r.Series()[0])
	assert.Equal(t, structure, r.Structure())
	a.object("b", 1)
	r.Update(a.sample())
	assert.NotEqual(t, structure, r.Structure())
	assert.Same(t, before, r.Series()[1])
}

func TestTwoVariablesOfOneFamilyInARank(t *testing.T) {
	a := newAgent(mpit.Variable{Name: "a", Class: mpit.ClassCounter, Datatype: tInt},
		mpit.Variable{Name: "b", Class: mpit.ClassCounter, Datatype: tInt})
	r := newRank(t, rules.Rule{Name: "same"})
	a.set("a", 0, 1)
	r.Update(a.sample())
	assert.Equal(t, m{"same_total": 1}, show(r))
	assert.Equal(t, map[mapping.Reason]uint64{mapping.ReasonLabelConflict: 1}, r.Dropped())
}

// Debian's MPICH has no performance variables; its communicators are there all the same.
func TestARankWithoutVariablesHasObjects(t *testing.T) {
	r := newRank(t)
	r.Update(&mpit.Sample{
		Monotonic: time.Second,
		Layout: &mpit.Layout{Generation: 1, Objects: []mpit.Object{{ID: 1, Kind: mpit.BindComm, Name: "halo",
			Size: 4, Rank: 1}}},
	})
	require.Len(t, r.Objects(), 1)
	assert.Equal(t, "halo", r.Objects()[0].Name)
	assert.Empty(t, r.Series())
}

// A process that was there before the exporter: what nobody can vouch for begins at zero when it is read first,
// created then.
func TestOlderRank(t *testing.T) {
	exact := mpittest.DistributionVariable("calls", mpit.BindComm)
	a := newAgent(on("small", mpit.ClassCounter, tUint), on("wide", mpit.ClassCounter, tULong),
		on("took", mpit.ClassTimer, tDouble),
		on("took", mpit.ClassCounter, tULong), on("depth", mpit.ClassLevel, tInt), exact)
	x := a.object("c", 1)
	count := func(object uint32, n int) {
		for _, h := range a.handles {
			switch v := a.vars[h.Variable]; {
			case h.Object != object:
			case v.Distribution:
				h.took(time.Second)
			case v.Datatype == tDouble:
				h.values[0] = word(math.Float64frombits(h.values[0]) + float64(n))
			default:
				h.values[0] += uint64(n)
			}
		}
	}
	count(x, 100)
	a.after(time.Hour)
	r := NewRank(newMapper(t), variables.Process{Older: a.now()})
	begun := a.after(time.Second).now()
	r.Update(a.sample())
	want := m{
		"small_total{comm=c}": 0, "wide_total{comm=c}": 100, "took_time_seconds{comm=c} sum": 0,
		"took_time_seconds{comm=c} count": 0,
		"took_total{comm=c}":              100, "depth_level{comm=c}": 100, "calls_time_seconds{comm=c} sum": 1,
		"calls_time_seconds{comm=c} count": 1,
	}
	assert.Equal(t, want, show(r))
	for _, s := range r.Series() {
		switch at := createdAt(s); s.Metric.Name {
		case "mpit_small_total", "mpit_took_time_seconds":
			assert.True(t, at.Equal(begun), s.Metric.Name)
		default:
			assert.True(t, at.Equal(a.start), s.Metric.Name)
		}
	}

	y := a.after(time.Second).object("d", 1)
	count(x, 10)
	count(y, 7)
	r.Update(a.after(time.Minute).sample())
	got := show(r)
	assert.Equal(t, 10.0, got["small_total{comm=c}"])
	assert.Equal(t, 7.0, got["small_total{comm=d}"], "an object of later counts from its beginning")
	assert.Equal(t, 10.0, got["took_time_seconds{comm=c} count"])
	assert.Equal(t, 10.0, got["took_time_seconds{comm=c} sum"])
	assert.Equal(t, 7.0, got["took_time_seconds{comm=d} count"])
	assert.Equal(t, 110.0, got["wide_total{comm=c}"])
}

// One of two objects of a name can't be read at first: what it had counted by then is not new when it can.
func TestOlderRankThatIsReadLate(t *testing.T) {
	a := newAgent(on("n", mpit.ClassCounter, tUint), on("n", mpit.ClassTimer, tDouble))
	x, y := a.object("c", 1), a.object("c", 1)
	set := func(n int) {
		for _, object := range []uint32{x, y} {
			for _, h := range a.handles {
				if h.Object == object {
					h.values[0] = uint64(n)
					if a.vars[h.Variable].Datatype == tDouble {
						h.values[0] = word(float64(n))
					}
				}
			}
		}
	}
	set(100)
	a.after(time.Hour)
	r := NewRank(newMapper(t), variables.Process{Older: a.now()})
	for _, h := range a.handles {
		a.failed[h.ID] = h.Object == y
	}
	r.Update(a.after(time.Minute).sample())
	clear(a.failed)
	set(101)
	r.Update(a.after(time.Minute).sample())
	set(103)
	r.Update(a.after(time.Minute).sample())
	assert.Equal(t, m{"n_total{comm=c}": 5, "n_time_seconds{comm=c} sum": 5, "n_time_seconds{comm=c} count": 5},
		show(r),
		"one that was read from the start has counted 3, the other 2")
}

// An element of an older rank that was 0 when it was first read, and has no series for that reason, loses nothing
// when it gets one.
func TestOlderRanksElementThatWasZero(t *testing.T) {
	a := newAgent(on("v", mpit.ClassCounter, tUint))
	object := a.object("c", 3)
	a.set("v", object, 1, 0, 0)
	a.after(time.Hour)
	r := NewRank(newMapper(t, rules.Rule{Elements: mapping.MergeIndex, Nonzero: &yes}),
		variables.Process{Older: a.now()})
	r.Update(a.after(time.Second).sample())
	assert.Equal(t, m{"v_total{comm=c,index=0}": 0}, show(r))
	a.set("v", object, 2, 5, 0)
	r.Update(a.after(time.Second).sample())
	a.set("v", object, 2, 7, 0)
	r.Update(a.after(time.Second).sample())
	assert.Equal(t, m{"v_total{comm=c,index=0}": 1, "v_total{comm=c,index=1}": 7}, show(r))
}

// Freed objects' remains are lost, and another one of the name comes: it counts as a whole.
func TestWhatComesAfterLostRemainsCounts(t *testing.T) {
	a := newAgent(on("n", mpit.ClassCounter, tULong), mpittest.DistributionVariable("calls", mpit.BindComm))
	a.loseRemains = true
	r := newRank(t)
	look := func(object uint32, n int) {
		a.set("n", object, n)
		for range n {
			a.took("calls", object, time.Second)
		}
		r.Update(a.after(time.Minute).sample())
	}
	x := a.object("c", 1)
	look(x, 10)
	a.free(x)
	r.Update(a.after(time.Minute).sample())
	assert.Equal(t, m{"n_total{comm=c}": 10, "calls_time_seconds{comm=c} count": 10,
		"calls_time_seconds{comm=c} sum": 10}, show(r))
	look(a.object("c", 1), 3)
	assert.Equal(t, m{"n_total{comm=c}": 13, "calls_time_seconds{comm=c} count": 13,
		"calls_time_seconds{comm=c} sum": 13}, show(r))
}

// Two doubles of one name that are finite, and together are not: none of them is shown, and what was counted stays.
func TestSumsAreFinite(t *testing.T) {
	a := newAgent(on("v", mpit.ClassCounter, tDouble), on("l", mpit.ClassLevel, tDouble),
		on("t", mpit.ClassTimer, tDouble))
	x, y := a.object("c", 1), a.object("c", 1)
	r := newRank(t)
	for _, v := range []string{"v", "l", "t"} {
		a.set(v, x, 1.0)
		a.set(v, y, 2.0)
	}
	r.Update(a.sample())
	for _, v := range []string{"v", "l", "t"} {
		a.set(v, x, 1e308)
		a.set(v, y, 1e308)
	}
	for range 2 {
		r.Update(a.after(time.Minute).sample())
		assert.Equal(t, m{"v_total{comm=c}": 3, "t_time_seconds{comm=c} sum": 3, "t_time_seconds{comm=c} count": 1},
			show(r))
	}
	assert.Equal(t, uint64(6), r.Dropped()[mapping.ReasonNotANumber])
}

// A renamed object counts under its new name from there; what it had counted stays under the old one.
func TestRename(t *testing.T) {
	a := newAgent(on("v", mpit.ClassCounter, tUint), on("l", mpit.ClassLevel, tInt))
	r := newRank(t)
	x := a.object("", 1)
	a.set("v", x, 100)
	a.set("l", x, 1)
	r.Update(a.sample())
	assert.Equal(t, m{"v_total{comm=unnamed}": 100, "l_level{comm=unnamed}": 1}, show(r))
	a.set("v", x, 103)
	a.rename(x, "halo")
	a.set("v", x, 110)
	r.Update(a.sample())
	assert.Equal(t, m{"v_total{comm=unnamed}": 103, "v_total{comm=halo}": 7, "l_level{comm=halo}": 1}, show(r))
	a.free(x)
	r.Update(a.sample())
	assert.Equal(t, m{"v_total{comm=unnamed}": 103, "v_total{comm=halo}": 7}, show(r))
}

// What a counter of a renamed object had wrapped belongs to its old name, even where the new one is the same.
func TestRenameToTheSameNameAfterAWrap(t *testing.T) {
	a := newAgent(on("v", mpit.ClassCounter, tUint))
	r := newRank(t)
	x := a.object("c", 1)
	for _, v := range []uint64{1<<32 - 10, 5} {
		a.set("v", x, v)
		r.Update(a.sample())
	}
	a.rename(x, "c")
	a.set("v", x, 8)
	r.Update(a.sample())
	a.set("v", x, 12)
	r.Update(a.sample())
	assert.Equal(t, m{"v_total{comm=c}": 1<<32 + 5 + 4}, show(r),
		"the 3 before it was looked at are in what the agent has lost by the wrap")
}

// With another scale of its companion, a timer's events mean something else.
func TestReloadOfACompanion(t *testing.T) {
	a := newAgent(mpit.Variable{Name: "v", Class: mpit.ClassTimer, Datatype: tDouble},
		mpit.Variable{Name: "v", Class: mpit.ClassCounter, Datatype: tULong})
	r := newRank(t)
	at := func(seconds float64, events int) m {
		a.handles[0].values[0], a.handles[1].values[0] = word(seconds), uint64(events)
		r.Update(a.after(time.Minute).sample())
		return show(r)
	}
	assert.Equal(t, m{"v_time_seconds sum": 1, "v_time_seconds count": 10, "v_total": 10}, at(1, 10))
	thousand := 1000.0
	reload(t, r, a, rules.Rule{Match: rules.Match{Class: rules.List{"counter"}}, Scale: &thousand})
	assert.Equal(t, m{"v_time_seconds sum": 0, "v_time_seconds count": 0, "v_total": 0}, at(2, 20))
	assert.Equal(t, m{"v_time_seconds sum": 1, "v_time_seconds count": 1000, "v_total": 1000}, at(3, 21))
	reload(t, r, a, rules.Rule{Match: rules.Match{Class: rules.List{"counter"}}, Scale: &thousand},
		rules.Rule{Help: "Other words."})
	assert.Equal(t, m{"v_time_seconds sum": 2, "v_time_seconds count": 2000, "v_total": 2000}, at(4, 22),
		"what means the same goes on")
	assert.Contains(t, r.Series()[0].Metric.Help, "Other words.")
}
