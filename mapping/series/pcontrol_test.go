package series

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// An object renamed during a pause, in which its values then fall: the name has counted nothing before it could be
// read.
func TestResetInAPauseAfterARename(t *testing.T) {
	const top = 1<<32 - 10 // from there to the bottom a value of 32 bits wraps, if the program counts
	for name, datatype := range map[string]mpit.Datatype{"signed": tInt, "unsigned, 32 bits": tUint,
		"double": tDouble} {
		t.Run(name, func(t *testing.T) {
			was := map[mpit.Datatype]any{tInt: 100, tUint: top, tDouble: 100.0}[datatype]
			before := map[mpit.Datatype]float64{tInt: 100, tUint: top, tDouble: 100}[datatype]
			a := newAgent(on("v", mpit.ClassCounter, datatype))
			x := a.object("a", 1)
			r := newRank(t)
			a.set("v", x, was)
			r.Update(a.sample())
			a.pause()
			a.rename(x, "b")
			a.handle("v", x).values[0] = 0
			a.resume()
			a.failed = map[uint32]bool{a.handle("v", x).ID: true}
			r.Update(a.after(time.Second).sample())
			assert.Equal(t, m{"v_total{comm=a}": before, "v_total{comm=b}": 0}, show(r))
			a.failed = map[uint32]bool{}
			r.Update(a.after(time.Second).sample())
			assert.Equal(t, m{"v_total{comm=a}": before, "v_total{comm=b}": 0}, show(r))
		})
	}
}

// An object renamed during a pause, whose values are older than its name.
func TestRenameInAPause(t *testing.T) {
	a := newAgent(on("v", mpit.ClassCounter, tULong))
	x := a.object("a", 1)
	r := newRank(t)
	a.set("v", x, 100)
	r.Update(a.sample())
	a.pause()
	a.set("v", x, 130)
	a.rename(x, "b")
	h := a.handle("v", x)
	h.Origin = []uint64{130} // an agent that takes the values of that moment
	want := m{"v_total{comm=a}": 100, "v_total{comm=b}": 0}
	fresh := newRank(t)
	for _, r := range []*Rank{r, fresh} {
		r.Update(a.after(time.Second).sample())
		assert.Equal(t, want, show(r))
	}
	h.frozen = []uint64{130}
	a.set("v", x, 150)
	a.resume()
	a.set("v", x, 157)
	want["v_total{comm=b}"] = 7
	for _, r := range []*Rank{r, fresh} {
		r.Update(a.after(time.Second).sample())
		assert.Equal(t, want, show(r))
		assert.Empty(t, r.Dropped())
	}
}

// A rank can say anything of what it excluded.
func TestExcludedNonsense(t *testing.T) {
	for _, excluded := range [][]uint64{{math.MaxUint64 >> 1}, {1 << 63}, {math.Float64bits(math.NaN())},
		{math.Float64bits(math.Inf(-1))}, {1, 2}, {}} {
		for _, d := range []mpit.Datatype{tInt, tUint, tLong, tULong, tDouble} {
			a := newAgent(mpit.Variable{Name: "v", Class: mpit.ClassCounter, Datatype: d, DatatypeBytes: bytesOf(d)})
			r := newRank(t)
			last, created := 0.0, time.Time{}
			for i := range 6 {
				if i%2 == 1 {
					a.handles[0].Excluded = excluded
				} else {
					a.handles[0].Excluded = nil
				}
				a.lastLayout = nil
				a.handles[0].values[0] += 1 << 20
				r.Update(a.after(time.Second).sample())
				for _, s := range r.Series() {
					if s.Valid {
						require.True(t, s.Value >= last || createdAt(s).After(created), "%s %x: %v after %v", d,
							excluded, s.Value, last)
						last, created = s.Value, createdAt(s)
					}
				}
			}
		}
	}
}

// What happens while observation is off is neither a wrap nor counted.
func TestValuesInAPause(t *testing.T) {
	const top = 1<<32 - 1
	for _, c := range []struct {
		name          string
		datatype      mpit.Datatype
		before, after any // in the pause
		then          any // later
		first, last   float64
	}{
		{"it jumps", tUint, 10, 3 << 30, 3<<30 + 5, 10, 15},
		{"it wraps", tUint, top - 5, 10, 20, top - 5, top + 5},
		{"it wraps to below zero", tInt, math.MaxInt32, math.MinInt32, math.MinInt32 + 10, math.MaxInt32,
			math.MaxInt32 + 10},
		{"it wraps with all bits", tULong, uint64(1 << 63), 1<<63 + uint64(math.MaxInt64),
			1<<63 + uint64(math.MaxInt64), 1 << 63, 1 << 63},
		{"it is reset", tLong, 1000, 10, 15, 1000, 1005},
		{"it is reset to nothing", tULong, 1000, 0, 0, 1000, 1000},
		{"it is reset, and counts on", tULong, 1000, 5000, 5001, 1000, 1001},
		{"a double", tDouble, 1.5, 100.25, 101.0, 1.5, 2.25},
		{"a double is reset", tDouble, 100.0, 0.5, 0.75, 100, 100.25},
		{"a double near minus the time of day", tDouble, 5.0, 1.8e9, 1.8e9 + 3, 5, 8},
	} {
		for _, seen := range []string{"", "before", "during", "after", "at all times"} {
			t.Run(c.name+", seen "+seen, func(t *testing.T) {
				a := newAgent(mpit.Variable{Name: "v", Class: mpit.ClassCounter, Datatype: c.datatype,
					DatatypeBytes: bytesOf(c.datatype)})
				r := newRank(t)
				look := func(when string, want float64) {
					if seen == when || seen == "at all times" {
						r.Update(a.after(time.Second).sample())
						assert.Equal(t, m{"v_total": want}, show(r))
					}
				}
				a.set("v", 0, c.before)
				look("before", c.first)
				a.pause()
				a.set("v", 0, c.after)
				look("during", c.first)
				a.resume()
				look("after", c.first)
				a.set("v", 0, c.then)
				r.Update(a.after(time.Second).sample())
				assert.Equal(t, a.start, createdAt(r.Series()[0]).In(a.start.Location()))
				assert.Equal(t, m{"v_total": c.last}, show(r))
				assert.Empty(t, r.Dropped())
			})
		}
	}
}

// MPI_Pcontrol(0) keeps out what only grows; all else is what it is.
func TestPcontrol(t *testing.T) {
	vars := []mpit.Variable{
		on("n", mpit.ClassCounter, tULong), on("agg", mpit.ClassAggregate, tLong), on("lie", mpit.ClassSize, tUint),
		on("took", mpit.ClassTimer, tDouble),
		on("l", mpit.ClassLevel, tInt), on("room", mpit.ClassSize, tULong),
		on("high", mpit.ClassHighWatermark, tULong),
		on("low", mpit.ClassLowWatermark, tULong), on("share", mpit.ClassPercentage, tDouble),
		on("phase", mpit.ClassState, tInt), on("any", mpit.ClassGeneric, tInt),
	}
	lie := rules.Rule{Match: rules.Match{Name: "lie", Class: rules.List{"size"}}, Class: "counter"}
	a := newAgent(vars...)
	x := a.object("c", 1)
	set := func(n int) {
		for _, v := range vars {
			switch v.Class {
			case mpit.ClassPercentage:
				a.set(v.Name, x, float64(n)/1000)
			case mpit.ClassTimer:
				a.set(v.Name, x, float64(n))
			default:
				a.set(v.Name, x, n)
			}
		}
	}
	want := func(counted, present int, observations float64) m {
		c, p := float64(counted), float64(present)
		return m{
			"n_total{comm=c}": c, "agg_aggregate_total{comm=c}": c, "lie_total{comm=c}": c,
			"took_time_seconds{comm=c} sum":   c,
			"took_time_seconds{comm=c} count": observations,
			"l_level{comm=c}":                 p, "room_size{comm=c}": p, "high_highwatermark{comm=c}": p,
			"low_lowwatermark{comm=c}": p,
			"share_ratio{comm=c}":      p / 1000, "phase_state{comm=c,state=" + strconv.FormatInt(int64(present),
				10) + "}": 1, "any_generic{comm=c}": p,
		}
	}
	r := newRank(t, lie)
	look := func() m { r.Update(a.after(time.Minute).sample()); return show(r) }
	set(100)
	assert.Equal(t, want(100, 100, 1), look())
	set(110)
	a.pause()
	set(500)
	assert.Equal(t, want(110, 110, 2), look(), "all stands still")
	set(600)
	assert.Equal(t, want(110, 110, 2), look())
	a.resume()
	assert.Equal(t, want(110, 600, 2), look(), "what is present is shown again")
	set(605)
	assert.Equal(t, want(115, 605, 3), look(), "one interval, of 5 seconds net")
	assert.Equal(t, map[float64]uint64{-1: 1, 16.777216: 2}, func() map[float64]uint64 {
		for i, s := range r.Series() {
			if s.Histogram != nil {
				return buckets(r, i)
			}
		}
		return nil
	}())
	for _, s := range r.Series() {
		if s.Metric.Kind == mapping.KindGauge {
			continue
		}
		assert.Equal(t, a.start, createdAt(s).In(a.start.Location()), "%s was not reset", s.Metric.Name)
	}

	a.pause()
	set(700)
	a.free(x)
	a.resume()
	r.Update(a.after(time.Minute).sample())
	got := show(r)
	assert.Equal(t, 115.0, got["n_total{comm=c}"])
	assert.Equal(t, 115.0, got["lie_total{comm=c}"])
	assert.Equal(t, 115.0, got["took_time_seconds{comm=c} sum"])
	assert.Equal(t, 605.0, got["high_highwatermark{comm=c}"])
	assert.Empty(t, r.Dropped())
}
