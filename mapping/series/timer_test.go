package series

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// buckets lists the buckets that hold something, by their upper bound.
func buckets(r *Rank, series int) map[float64]uint64 {
	out := map[float64]uint64{}
	h := r.Series()[series].Histogram
	var count uint64
	for i, n := range h.Counts {
		count += n
		if n > 0 {
			bound := -1.0 // the last, without one
			if i < len(h.Bounds) {
				bound = h.Bounds[i]
			}
			out[bound] = n
		}
	}
	native := h.NativeZero
	for _, b := range h.Native {
		native += b.Count
	}
	if native != count || count != h.Count {
		panic("buckets, native buckets and count differ")
	}
	return out
}

func TestTimerWithoutACounter(t *testing.T) {
	a := newAgent(mpit.Variable{Name: "v", Class: mpit.ClassTimer, Datatype: tDouble})
	r := newRank(t)
	at := func(d time.Duration, seconds float64) {
		a.set("v", 0, seconds)
		r.Update(a.after(d).sample())
	}
	at(0, 0)
	assert.Empty(t, buckets(r, 0), "it has not moved")
	at(11*time.Second, 1)
	at(11*time.Second, 1)
	at(11*time.Second, 3)
	assert.Equal(t, map[float64]uint64{1.048576: 1, 4.194304: 1}, buckets(r, 0))
	s := a.after(time.Second)
	s.set("v", 0, 3.5)
	last := s.sample()
	last.Status = mpit.SampleFinal
	r.Update(last)
	assert.Equal(t, map[float64]uint64{1.048576: 2, 4.194304: 1}, buckets(r, 0), "the last sample ends the interval")
	assert.Contains(t, r.Series()[0].Metric.Help, "count is of intervals")
}

func TestRulesChooseTheCompanion(t *testing.T) {
	yes := true
	vars := []mpit.Variable{
		{Name: "v", Class: mpit.ClassTimer, Datatype: tDouble},
		{Name: "v", Class: mpit.ClassCounter, Datatype: tULong},
		{Name: "calls", Class: mpit.ClassCounter, Datatype: tULong},
	}
	for _, c := range []struct {
		companion string
		want      uint64
	}{{"", 10}, {"calls", 20}, {mapping.NoCompanion, 1}, {"missing", 1}} {
		a := newAgent(vars...)
		a.handles[0].values[0], a.handles[1].values[0], a.handles[2].values[0] = word(1.0), 10, 20
		r := newRank(t, rules.Rule{Match: rules.Match{Name: "v", Class: rules.List{"timer"}},
			Companion: c.companion}, rules.Rule{Match: rules.Match{Class: rules.List{"counter"}}, Drop: &yes})
		r.Update(a.sample())
		require.Len(t, r.Series(), 1)
		assert.Equal(t, c.want, r.Series()[0].Histogram.Count, c.companion)
	}
}

// Events of a companion that could not be read just after a restart don't count twice.
func TestCompanionThatCouldNotBeRead(t *testing.T) {
	a := newAgent(mpit.Variable{Name: "v", Class: mpit.ClassTimer, Datatype: tDouble},
		mpit.Variable{Name: "v", Class: mpit.ClassCounter, Datatype: tULong})
	a.handles[0].values[0], a.handles[1].values[0] = word(1.0), 10
	r := newRank(t)
	r.Update(a.after(time.Second).sample())
	reload(t, r, a)
	a.failed[a.handles[1].ID] = true
	r.Update(a.after(time.Minute).sample())
	a.failed = map[uint32]bool{}
	r.Update(a.after(time.Minute).sample())
	assert.Equal(t, m{"v_time_seconds sum": 1, "v_time_seconds count": 10, "v_total": 10}, show(r))
}

// The events of an interval stand at their mean duration.
func TestTimerWithItsCounter(t *testing.T) {
	a := newAgent(mpit.Variable{Name: "v", Class: mpit.ClassTimer, Datatype: tDouble},
		mpit.Variable{Name: "v", Class: mpit.ClassCounter, Datatype: tULong})
	r := newRank(t)
	at := func(d time.Duration, seconds float64, events int) {
		a.handles[0].values[0], a.handles[1].values[0] = word(seconds), uint64(events)
		r.Update(a.after(d).sample())
	}
	at(0, 0.00003, 10) // 3 µs each
	assert.Equal(t, map[float64]uint64{4e-6: 10}, buckets(r, 0))
	at(5*time.Second, 2.00003, 11)
	assert.Equal(t, map[float64]uint64{4e-6: 10}, buckets(r, 0), "the interval hasn't ended")
	assert.Equal(t, 0.00003, r.Series()[0].Histogram.Sum, "neither has the sum moved")
	at(5*time.Second, 4.00003, 12)
	assert.Equal(t, map[float64]uint64{4e-6: 10, 4.194304: 2}, buckets(r, 0))
	at(10*time.Second, 5.00003, 12)
	assert.Equal(t, map[float64]uint64{4e-6: 10, 4.194304: 2}, buckets(r, 0), "no event has ended: its time waits")
	assert.Equal(t, 4.00003, r.Series()[0].Histogram.Sum)
	at(10*time.Second, 104.00003, 13)
	assert.Equal(t, map[float64]uint64{4e-6: 10, 4.194304: 2, -1: 1}, buckets(r, 0))
	assert.Equal(t, m{"v_time_seconds count": 13, "v_time_seconds sum": 104.00003, "v_total": 13}, show(r))
	assert.Contains(t, r.Series()[0].Metric.Help, "COUNTER v")

	a.handles[0].values[0] = word(105.00003)
	last := a.after(time.Second).sample()
	last.Status = mpit.SampleFinal
	r.Update(last)
	assert.Equal(t, m{"v_time_seconds count": 13, "v_time_seconds sum": 105.00003, "v_total": 13}, show(r),
		"nothing is left to wait for")
}

// An object that is given its own name again begins at zero with all that its histograms have.
func TestRenamedToItsOwnNameCountsItsEvents(t *testing.T) {
	a := newAgent(mpittest.DistributionVariable("calls", mpit.BindComm), on("timer", mpit.ClassTimer, tDouble),
		on("timer", mpit.ClassCounter, tULong))
	o := a.object("a", 1)
	r := newRank(t, rules.Rule{Merge: mapping.MergeEach})
	count := func(seconds float64, events int) {
		for _, h := range a.handles {
			switch v := a.vars[h.Variable]; {
			case v.Distribution:
				h.took(time.Second)
			case v.Class == mpit.ClassTimer:
				h.values[0] = word(seconds)
			default:
				h.values[0] = uint64(events)
			}
		}
		r.Update(a.after(20 * time.Second).sample())
	}
	r.Update(a.sample())
	count(0.5, 10)
	a.rename(o, "a")
	count(0.75, 15)
	now := show(r)
	assert.Equal(t, 5.0, now["timer_time_seconds{comm=a,object=1} count"])
	assert.Equal(t, 10.0, now["timer_time_seconds{comm=a} count"])
	assert.Equal(t, 1.0, now["calls_time_seconds{comm=a,object=1} count"])
	assert.Equal(t, 1.0, now["calls_time_seconds{comm=a} count"])
}

// However many events a rank claims, the number of observations does not come round to zero.
func TestObservationsDoNotOverflow(t *testing.T) {
	a := newAgent(on("timer", mpit.ClassTimer, tDouble), on("timer", mpit.ClassCounter, tULong))
	a.object("a", 1)
	r := newRank(t)
	last := 0.0
	for i := range 2100 {
		for _, h := range a.handles {
			if h.values[0] = uint64(i+1) << 53; a.vars[h.Variable].Class == mpit.ClassTimer {
				h.values[0] = word(float64(i + 1))
			}
		}
		r.Update(a.after(20 * time.Second).sample())
		count := show(r)["timer_time_seconds{comm=a} count"]
		require.GreaterOrEqual(t, count, last)
		last = count
	}
}

// MPICH's TIMERs begin at one number of the process's. What a TIMER had accumulated when its handle was made, at the
// library's first use of it, counts with the events that its COUNTER had.
func TestTimerFoundAfterItsFirstUse(t *testing.T) {
	const start = -1.8e9
	variable := func(name string, class mpit.Class, datatype mpit.Datatype) mpit.Variable {
		return mpit.Variable{Name: name, Class: class, Datatype: datatype}
	}
	begun := func(a *agent, timer mpit.Variable, first, value float64, events int) {
		a.add(timer)
		h := a.handles[len(a.handles)-1]
		h.First, h.values[0] = []uint64{word(first)}, word(value)
		a.add(variable(timer.Name, mpit.ClassCounter, tULong))
		n := a.handles[len(a.handles)-1]
		n.First, n.values[0] = []uint64{uint64(events)}, uint64(events)
	}
	timer := variable("v", mpit.ClassTimer, tDouble)
	bound := on("v", mpit.ClassTimer, tDouble)
	requested := timer
	requested.OnRequest = true
	for _, c := range []struct {
		name         string
		other        float64 // where another TIMER was found, in MPI_Init
		timer        mpit.Variable
		first, value float64
		want         float64
	}{
		{"it has run", start, timer, start + 0.25, start + 0.25, 0.25},
		{"it goes on", start, timer, start + 0.25, start + 1, 1},
		{"it has not run", start, timer, start, start + 1, 1},
		{"all begin at zero", 0, timer, 0.25, 0.5, 0.5},
		{"both have run", start + 0.5, timer, start + 0.25, start + 1, 1},
		{"it begins at zero, the other doesn't", start, timer, 5, 8, 8},
		{"it begins at zero, and the other has run for longer", 20, timer, 5, 8, 8},
		{"it doesn't begin at zero, the other does", 20, timer, start + 0.25, start + 1, 1},
		{"it can't have run for so long", start, timer, start + 3600, start + 3601, 1},
		{"it begins above zero", start, timer, 3600, 3601, 1},
		{"the other is no number", math.NaN(), timer, start + 0.25, start + 1, 1},
		{"the other can't be", math.Inf(-1), timer, start + 0.25, start + 1, 1},
		{"it has run for somebody else", start, requested, start + 0.25, start + 1, 0.75},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAgent()
			begun(a, variable("other", mpit.ClassTimer, tDouble), c.other, c.other, 0)
			r := newRank(t, rules.Rule{Match: rules.Match{Class: rules.List{"timer"}}, Offset: &yes})
			r.Update(a.sample())
			a.after(time.Minute)
			begun(a, c.timer, c.first, c.value, 3)
			final := a.sample()
			final.Status = mpit.SampleFinal
			r.Update(final)
			assert.Equal(t, c.want, show(r)["v_time_seconds sum"])
			assert.Equal(t, 3.0, show(r)["v_time_seconds count"])
			again := newRank(t, rules.Rule{Match: rules.Match{Class: rules.List{"timer"}}, Offset: &yes},
				rules.Rule{Match: rules.Match{Name: "other"}, Drop: &yes})
			again.Update(final)
			assert.Equal(t, c.want, show(again)["v_time_seconds sum"], "the last sample is the first, the other dropped")
		})
	}
	t.Run("an object's begins with the object", func(t *testing.T) {
		a := newAgent()
		begun(a, variable("other", mpit.ClassTimer, tDouble), start, start, 0)
		a.add(bound)
		x := a.after(time.Minute).object("c", 1)
		h := a.handle("v", x)
		h.First, h.values[0] = []uint64{word(start + 0.25)}, word(start+1.0)
		a.lastLayout = nil
		r := newRank(t, rules.Rule{Match: rules.Match{Class: rules.List{"timer"}}, Offset: &yes})
		r.Update(a.sample())
		assert.Equal(t, 0.75, show(r)["v_time_seconds{comm=c} sum"])
	})
}

// What is no number of seconds has no such beginning: a TIMER of a library like MPICH that counts ticks begins at 0,
// and becomes a counter of an unknown unit.
func TestIntegerTimerOfALibraryLikeMPICH(t *testing.T) {
	for _, library := range []string{mapping.MPICH, mapping.MVAPICH, mapping.IntelMPI, mapping.CrayMPICH} {
		a := newAgent(mpit.Variable{Name: "ticks", Class: mpit.ClassTimer, Datatype: tULong})
		a.handles[0].First, a.handles[0].values[0] = []uint64{5000}, 8000
		r := NewRank(newMapper(t, rules.Defaults()...), variables.Process{Library: mapping.Library{Name: library,
			Version: "4.0.2"}})
		r.Update(a.sample())
		assert.Equal(t, m{"ticks_time_total": 8000}, show(r), library)
		assert.Contains(t, r.Series()[0].Metric.Help, "unit of this time is not known")
	}
}

// A histogram's sum, count and buckets move together, with the interval and at the end, however a timer gains time and
// its COUNTER events; and at the end it has all of both.
func TestHistogramsMoveAsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newAgent(mpit.Variable{Name: "plain", Class: mpit.ClassTimer, Datatype: tDouble},
			mpit.Variable{Name: "timed", Class: mpit.ClassTimer, Datatype: tDouble},
			mpit.Variable{Name: "timed", Class: mpit.ClassCounter, Datatype: tULong})
		plain, timed, events := a.handles[0], a.handles[1], a.handles[2]
		r := newRank(t)
		gain := func(h *agentHandle, label string) {
			h.values[0] = word(math.Float64frombits(h.values[0]) +
				float64(rapid.IntRange(0, 4096).Draw(t, label))/1024)
		}
		before, closed := map[string]float64{}, time.Duration(-1)
		take := func(s *mpit.Sample) {
			r.Update(s)
			ends := closed < 0 || s.Monotonic-closed >= 10*time.Second || s.Status == mpit.SampleFinal
			if ends {
				closed = s.Monotonic
			}
			now := show(r)
			for _, name := range []string{"plain_time_seconds", "timed_time_seconds"} {
				sum, count := now[name+" sum"], now[name+" count"]
				gained, more := sum-before[name+" sum"], count-before[name+" count"]
				if (gained != 0 || more != 0) && !ends {
					t.Fatalf("%s moves by %v s and %v within an interval", name, gained, more)
				}
				if gained > 0 && more == 0 && s.Status != mpit.SampleFinal {
					t.Fatalf("the sum of %s gains %v s of nothing", name, gained)
				}
			}
			before = now
		}
		for range rapid.IntRange(1, 20).Draw(t, "samples") {
			gain(plain, "time")
			gain(timed, "time of events")
			events.values[0] += uint64(rapid.IntRange(0, 3).Draw(t, "events"))
			take(a.after(time.Duration(rapid.IntRange(0, 12).Draw(t, "seconds")) * time.Second).sample())
		}
		last := a.after(time.Millisecond).sample()
		last.Status = mpit.SampleFinal
		take(last)
		want := m{"plain_time_seconds sum": math.Float64frombits(plain.values[0]),
			"timed_time_seconds sum":   math.Float64frombits(timed.values[0]),
			"timed_time_seconds count": float64(events.values[0])}
		for name, x := range want {
			if before[name] != x {
				t.Fatalf("in the end %s is %v, not %v", name, before[name], x)
			}
		}
	})
}

// What starts anywhere can start just below the end of its range, and goes on behind it.
func TestOffsetNearTheEndOfTheRange(t *testing.T) {
	a := newAgent(mpit.Variable{Name: "v", Class: mpit.ClassCounter, Datatype: tULong})
	a.open(0, 0, 2)
	a.handles = a.handles[1:]
	h := a.handles[0]
	h.First, h.values[0], h.values[1] = []uint64{math.MaxUint64 - 4, 1 << 40}, math.MaxUint64-4, 1<<40
	r := newRank(t, rules.Rule{Offset: &yes})
	for _, step := range []struct {
		first, second uint64
		want          float64
	}{{math.MaxUint64 - 4, 1 << 40, 0}, {math.MaxUint64, 1<<40 + 1, 5}, {5, 1<<40 + 1, 11}, {1005, 1<<40 + 1, 1011}} {
		h.values[0], h.values[1] = step.first, step.second
		r.Update(a.after(time.Second).sample())
		assert.Equal(t, step.want, show(r)["v_total"])
	}
}
