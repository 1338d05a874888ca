package series

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Two communicators called c and one called d, of two elements each, as rules merge them.
func TestMergingByRule(t *testing.T) {
	level, count, high := on("v", mpit.ClassLevel, tInt), on("v", mpit.ClassCounter, tULong),
		on("v", mpit.ClassHighWatermark, tInt)
	for _, c := range []struct {
		name     string
		variable mpit.Variable
		rule     rules.Rule
		want     m
		freed    m // after the first c is freed
	}{
		{"the largest object", level, rules.Rule{Merge: mapping.MergeMax},
			m{"v_level{comm=c}": 7, "v_level{comm=d}": 9}, m{"v_level{comm=c}": 7, "v_level{comm=d}": 9}},
		{"the least element", level, rules.Rule{Elements: mapping.MergeMin},
			m{"v_level{comm=c}": 4, "v_level{comm=d}": 4}, m{"v_level{comm=c}": 3, "v_level{comm=d}": 4}},
		{"each object, where several share the name", level, rules.Rule{Merge: mapping.MergeEach},
			m{"v_level{comm=c,object=1}": 3, "v_level{comm=c,object=3}": 7, "v_level{comm=d}": 9},
			m{"v_level{comm=c}": 7, "v_level{comm=d}": 9}},
		{"no label for objects", level, rules.Rule{Object: &no}, m{"v_level": 19}, m{"v_level": 16}},
		{"no label, and the largest", level, rules.Rule{Object: &no, Merge: mapping.MergeMax}, m{"v_level": 9},
			m{"v_level": 9}},
		{"no label goes before each", level, rules.Rule{Object: &no, Merge: mapping.MergeEach}, m{"v_level": 19},
			m{"v_level": 16}},
		{"what counts is summed", count, rules.Rule{Merge: mapping.MergeMax, Elements: mapping.MergeMax},
			m{"v_total{comm=c}": 10, "v_total{comm=d}": 9}, m{"v_total{comm=c}": 10, "v_total{comm=d}": 9}},
		{
			"what counts, of each object: the freed one's remains have no number", count,
			rules.Rule{Merge: mapping.MergeEach},
			m{"v_total{comm=c,object=1}": 3, "v_total{comm=c,object=3}": 7, "v_total{comm=d,object=5}": 9},
			m{"v_total{comm=c}": 3, "v_total{comm=c,object=3}": 7, "v_total{comm=d,object=5}": 9},
		},
		{
			"and of each element", count, rules.Rule{Match: rules.Match{Name: "v"}, Object: &no,
				Elements: mapping.MergeIndex},
			m{"v_total{index=0}": 8, "v_total{index=1}": 11}, m{"v_total{index=0}": 8, "v_total{index=1}": 11},
		},
		{
			"a watermark of each object", high, rules.Rule{Merge: mapping.MergeEach},
			m{"v_highwatermark{comm=c,object=1}": 2, "v_highwatermark{comm=c,object=3}": 4,
				"v_highwatermark{comm=d,object=5}": 5},
			m{"v_highwatermark{comm=c}": 2, "v_highwatermark{comm=c,object=3}": 4,
				"v_highwatermark{comm=d,object=5}": 5},
		},
		{"GENERIC, where a rule says how", on("v", mpit.ClassGeneric, tInt), rules.Rule{Merge: mapping.MergeMin,
			Elements: mapping.MergeMax}, m{"v_generic{comm=c}": 2, "v_generic{comm=d}": 5},
			m{"v_generic{comm=c}": 4, "v_generic{comm=d}": 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAgent(c.variable)
			x := a.object("c", 2)
			a.set("v", x, 1, 2)
			a.set("v", a.object("c", 2), 3, 4)
			a.set("v", a.object("d", 2), 4, 5)
			r := newRank(t, c.rule)
			r.Update(a.sample())
			assert.Equal(t, c.want, show(r))
			a.free(x)
			r.Update(a.after(time.Second).sample())
			assert.Equal(t, c.freed, show(r))
			reload(t, r, a, c.rule)
			r.Update(a.sample())
			assert.Equal(t, c.freed, show(r), "after a restart")
			assert.Empty(t, r.Dropped())
		})
	}
}

// A part of a sum would be a lie.
func TestSumOfWhatCouldBeRead(t *testing.T) {
	a := newAgent(on("most", mpit.ClassLevel, tInt), on("sum", mpit.ClassLevel, tInt))
	for i := range 2 {
		x := a.object("c", 1)
		a.set("most", x, 2+i)
		a.set("sum", x, 2+i)
	}
	a.failed[a.handles[1].ID] = true
	r := newRank(t, rules.Rule{Match: rules.Match{Name: "most"}, Merge: mapping.MergeMax})
	r.Update(a.sample())
	assert.Equal(t, m{"most_level{comm=c}": 3}, show(r))
}

// A job of 10,000 ranks: an element for each peer, of which this one has talked to three.
func TestNonzeroElements(t *testing.T) {
	const peers = 10_000
	rules := []rules.Rule{{Elements: mapping.MergePeer, Nonzero: &yes}}
	a := newAgent(on("n", mpit.ClassCounter, tULong), on("l", mpit.ClassLevel, tInt))
	r := newRank(t, rules...)
	x, y := a.object("c", peers), a.object("c", peers)
	r.Update(a.sample())
	assert.Empty(t, show(r))
	n, l := a.handle("n", x), a.handle("l", x)
	n.values[7], n.values[9999], l.values[3] = 5, 6, 1
	r.Update(a.sample())
	assert.Equal(t, m{"n_total{comm=c,peer=7}": 5, "n_total{comm=c,peer=9999}": 6, "l_level{comm=c,peer=3}": 1},
		show(r))
	structure := r.Structure()
	a.handle("n", y).values[7] = 10
	l.values[3] = 0
	r.Update(a.sample())
	want := m{"n_total{comm=c,peer=7}": 15, "n_total{comm=c,peer=9999}": 6, "l_level{comm=c,peer=3}": 0}
	assert.Equal(t, want, show(r), "0 again: the series stays")
	assert.Equal(t, structure, r.Structure())
	a.object("d", peers)
	r.Update(a.sample())
	assert.Equal(t, want, show(r))
	a.free(x)
	delete(want, "l_level{comm=c,peer=3}")
	r.Update(a.sample())
	got := show(r)
	delete(got, "l_level{comm=c,peer=3}")
	assert.Equal(t, want, got, "what was counted stays")
	again := restart(t, r, a, rules...)
	again.Update(a.sample())
	assert.Equal(t, want, show(again))

	t.Run("an update that changes nothing allocates nothing", func(t *testing.T) {
		s := a.sample()
		r.Update(s)
		assert.Zero(t, testing.AllocsPerRun(10, func() { r.Update(s) }))
	})
	t.Run("counted from the value at the rename", func(t *testing.T) {
		a := newAgent(on("n", mpit.ClassCounter, tULong))
		x := a.object("c", 2)
		a.set("n", x, 5, 0)
		a.rename(x, "d")
		r := newRank(t, rules...)
		r.Update(a.sample())
		assert.Equal(t, m{"n_total{comm=c,peer=0}": 5}, show(r))
		a.set("n", x, 5, 2)
		r.Update(a.sample())
		assert.Equal(t, m{"n_total{comm=c,peer=0}": 5, "n_total{comm=d,peer=1}": 2}, show(r))
	})
	t.Run("a reset and a wrap of such an element", func(t *testing.T) {
		a := newAgent(mpit.Variable{Name: "n", Class: mpit.ClassCounter, Datatype: tUint, DatatypeBytes: 4})
		r := newRank(t, rules...)
		for _, c := range []struct {
			value int
			want  m
		}{{0, m{}}, {1<<32 - 1, m{"n_total{peer=0}": 1<<32 - 1}}, {0, m{"n_total{peer=0}": 1 << 32}},
			{9, m{"n_total{peer=0}": 1<<32 + 9}}} {
			a.set("n", 0, c.value)
			r.Update(a.after(time.Second).sample())
			assert.Equal(t, c.want, show(r))
		}
	})
}

// What has never moved has no series at all: neither lines of a histogram, nor a place in the limits.
func TestNonzeroVariables(t *testing.T) {
	list := []rules.Rule{{Nonzero: &yes}}
	a := newAgent(on("n", mpit.ClassCounter, tULong), on("l", mpit.ClassLevel, tInt),
		mpit.Variable{Name: "t", Class: mpit.ClassTimer, Datatype: tDouble},
		mpit.Variable{Name: "t", Class: mpit.ClassCounter, Datatype: tULong},
		mpit.Variable{Name: "untouched", Class: mpit.ClassTimer, Datatype: tDouble})
	r := newRank(t, list...)
	x, y := a.object("c", 3), a.object("c", 3)
	r.Update(a.sample())
	assert.Empty(t, show(r))
	assert.Zero(t, r.Weight())
	_, ids, _ := r.Select()
	for id, read := range ids {
		assert.True(t, read, "variable %d: how else would it be known when it moves?", id)
	}

	a.handle("n", y).values[2], a.handle("l", x).values[0] = 5, 1
	a.handles[0].values[0], a.handles[1].values[0] = word(0.5), 2
	want := m{"n_total{comm=c}": 5, "l_level{comm=c}": 1, "t_time_seconds sum": 0.5, "t_time_seconds count": 2,
		"t_total": 2}
	r.Update(a.after(time.Minute).sample())
	assert.Equal(t, want, show(r))
	assert.Equal(t, 3+17, r.Weight())
	for _, s := range r.Series() {
		assert.Equal(t, a.start, createdAt(s), "%s counts from the making of the handles", s.Metric.Name)
	}

	a.handle("n", x).values[0], a.handle("l", x).values[0] = 7, 0
	want["n_total{comm=c}"], want["l_level{comm=c}"] = 12, 0
	r.Update(a.after(time.Minute).sample())
	assert.Equal(t, want, show(r), "0 again: the series stays")
	a.free(x)
	a.free(y)
	delete(want, "l_level{comm=c}")
	r.Update(a.after(time.Minute).sample())
	assert.Equal(t, want, show(r), "what was counted stays")

	t.Run("beside what a freed object of that name has left", func(t *testing.T) {
		a := newAgent(on("n", mpit.ClassCounter, tULong))
		x := a.object("c", 1)
		a.handle("n", x).values[0] = 5
		a.free(x)
		y := a.object("c", 1)
		r := newRank(t, list...)
		r.Update(a.sample())
		assert.Equal(t, m{"n_total{comm=c}": 5}, show(r))
		a.handle("n", y).values[0] = 2
		r.Update(a.after(time.Minute).sample())
		assert.Equal(t, m{"n_total{comm=c}": 7}, show(r))
	})
	t.Run("an event too short to be measured", func(t *testing.T) {
		short := newAgent(mpit.Variable{Name: "t", Class: mpit.ClassTimer, Datatype: tDouble},
			mpit.Variable{Name: "t", Class: mpit.ClassCounter, Datatype: tULong})
		r := newRank(t, append(list, rules.Rule{Match: rules.Match{Class: rules.List{"counter"}}, Drop: &yes})...)
		r.Update(short.sample())
		assert.Empty(t, show(r))
		short.handles[1].values[0] = 1
		r.Update(short.after(time.Minute).sample())
		assert.Equal(t, m{"t_time_seconds sum": 0, "t_time_seconds count": 1}, show(r))
		assert.Equal(t, short.start, createdAt(r.Series()[0]))
		short.handles[0].values[0], short.handles[1].values[0] = word(0.5), 3
		r.Update(short.after(time.Minute).sample())
		assert.Equal(t, m{"t_time_seconds sum": 0.5, "t_time_seconds count": 3}, show(r))
	})

	again := restart(t, r, a, list...)
	again.Update(a.sample())
	assert.Equal(t, m{"n_total{comm=c}": 12, "t_time_seconds sum": 0, "t_time_seconds count": 0, "t_total": 2},
		show(again))
}

// Each timer has the buckets that its rule gives.
func TestBucketsByRule(t *testing.T) {
	a := newAgent(mpit.Variable{Name: "a_timer", Class: mpit.ClassTimer, Datatype: tDouble},
		mpit.Variable{Name: "other", Class: mpit.ClassTimer, Datatype: tDouble})
	a.set("a_timer", 0, 1.5)
	a.set("other", 0, 1.5)
	rules := []rules.Rule{{Match: rules.Match{Name: "a_timer"}, Buckets: []float64{1, 2}}}
	r := newRank(t, rules...)
	r.Update(a.sample())
	for range 2 {
		assert.Equal(t, map[float64]uint64{2: 1}, buckets(r, 0))
		assert.Equal(t, map[float64]uint64{4.194304: 1}, buckets(r, 1))
		assert.Equal(t, []float64{1, 2}, r.Series()[0].Histogram.Bounds)
		reload(t, r, a, rules...)
		r.Update(a.sample())
	}
}

// A timer's companion must be merged as the timer is; one that isn't shown follows it.
func TestCompanionsAreMergedAsTheirTimers(t *testing.T) {
	timer := rules.Match{Class: rules.List{"timer"}}
	for _, c := range []struct {
		name  string
		rules []rules.Rule
		want  string // count of each of the two series
		help  string
	}{
		{"both by peer", []rules.Rule{{Elements: mapping.MergePeer}}, "10 20", "COUNTER v"},
		{"the timer alone: no companion", []rules.Rule{{Match: timer, Elements: mapping.MergePeer}}, "1 1",
			"count is of intervals"},
		{"a counter that isn't shown follows", []rules.Rule{{Match: timer, Elements: mapping.MergePeer},
			{Match: rules.Match{Class: rules.List{"counter"}}, Drop: &yes}}, "10 20", "COUNTER v"},
		{"and so where elements have a series once they are not 0", []rules.Rule{{Match: timer,
			Elements: mapping.MergePeer, Nonzero: &yes},
			{Match: rules.Match{Class: rules.List{"counter"}}, Drop: &yes}}, "10 20", "COUNTER v"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAgent(on("v", mpit.ClassTimer, tDouble), on("v", mpit.ClassCounter, tULong))
			a.object("c", 2)
			a.handles[0].values = []uint64{word(1.0), word(2.0)}
			a.handles[1].values = []uint64{10, 20}
			r := newRank(t, c.rules...)
			r.Update(a.sample())
			var series []*mapping.Series
			for _, s := range r.Series() {
				if s.Histogram != nil {
					series = append(series, s)
				}
			}
			require.Len(t, series, 2)
			assert.Equal(t, c.want, fmt.Sprint(series[0].Histogram.Count, " ", series[1].Histogram.Count))
			assert.Contains(t, series[0].Metric.Help, c.help)
		})
	}
	t.Run("the first of two timers says how it is merged", func(t *testing.T) {
		a := newAgent(on("v", mpit.ClassTimer, tDouble), on("w", mpit.ClassTimer, tDouble),
			on("v", mpit.ClassCounter, tULong))
		a.object("c", 2)
		r := newRank(t, rules.Rule{Match: rules.Match{Name: "v", Class: rules.List{"timer"}},
			Elements: mapping.MergePeer}, rules.Rule{Match: rules.Match{Name: "w"}, Companion: "v"},
			rules.Rule{Match: rules.Match{Class: rules.List{"counter"}}, Drop: &yes})
		r.Update(a.sample())
		assert.Equal(t, "v", r.catalogue.ByID()[0].With.Info.Name)
		assert.Nil(t, r.catalogue.ByID()[1].With)
	})
	t.Run("bound to something else it can't be one", func(t *testing.T) {
		a := newAgent(on("v", mpit.ClassTimer, tDouble),
			mpit.Variable{Name: "v", Class: mpit.ClassCounter, Datatype: tULong})
		a.set("v", a.object("c", 1), 1.0)
		for _, rules := range [][]rules.Rule{nil, {{Match: rules.Match{Class: rules.List{"counter"}}, Drop: &yes}},
			{{Object: &no}}} {
			r := newRank(t, rules...)
			r.Update(a.sample())
			assert.Nil(t, r.catalogue.ByID()[0].With)
			assert.Equal(t, uint64(1), r.Series()[0].Histogram.Count)
		}
	})
}
