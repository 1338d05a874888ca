package mapping

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// restart is another exporter, to which the agent gives what the first one had it keep.
func restart(t *testing.T, r *Rank, rules ...Rule) *Rank {
	t.Helper()
	blob, _ := r.Blob()
	again := newRank(t, blob, rules...)
	again.limits.rank, again.limits.variable = r.limits.rank, r.limits.variable
	return again
}

// createdOf is when the value of a series was zero, in seconds after the agent's start.
func createdOf(t *testing.T, r *Rank, a *agent, object string) float64 {
	t.Helper()
	for _, s := range r.Series() {
		if s.Labels[0].Value == object {
			return s.Created().Sub(a.start).Seconds()
		}
	}
	require.Fail(t, "no series of "+object)
	return 0
}

func TestCreatedTimesOfWhatFolds(t *testing.T) {
	r, a := limited(t, 2), newAgent(on("v", mpit.ClassCounter, tULong))
	a.after(time.Second).object("a", 1)
	a.after(time.Second).object("b", 1)
	a.after(time.Second).object("c", 1)
	r.Update(a.after(time.Second).sample())
	assert.Equal(t, 1.0, createdOf(t, r, a, "a"))
	assert.Equal(t, 2.0, createdOf(t, r, a, Other), "the first that folded began then")
	r.SetLimit(-1, "")
	r.Update(a.after(time.Second).sample())
	assert.Equal(t, 5.0, createdOf(t, r, a, "b"), "what it counted before is not in its series")
	assert.Equal(t, 2.0, createdOf(t, r, a, Other))

	t.Run("what had series of its own goes on where they ended", func(t *testing.T) {
		r, a := limited(t, 2), newAgent(on("v", mpit.ClassCounter, tULong))
		b := a.after(time.Second).object("b", 1)
		a.object("c", 1)
		a.set("v", b, 100)
		r.Update(a.after(time.Second).sample())
		r.SetLimit(1, ReasonRankOverLimit)
		r.Update(a.after(time.Second).sample())
		r.SetLimit(-1, "")
		r.Update(a.after(time.Second).sample())
		require.Equal(t, 100.0, show(r)["v_total{comm=b}"])
		assert.Equal(t, 1.0, createdOf(t, r, a, "b"))
		assert.Equal(t, 4.0, createdOf(t, r, a, "c"), "nothing of it has ever been shown but zero")
	})

	t.Run("what had series of its own folds", func(t *testing.T) {
		r, a := limited(t, 2), newAgent(on("v", mpit.ClassCounter, tULong))
		a.after(time.Second).object("a", 1)
		a.object("b", 1)
		r.Update(a.after(time.Second).sample())
		r.SetLimit(1, ReasonRankOverLimit)
		r.Update(a.after(time.Second).sample())
		assert.Equal(t, 3.0, createdOf(t, r, a, Other), "other was zero until then")
		again := restart(t, r)
		again.Update(a.after(time.Second).sample())
		assert.Equal(t, 3.0, createdOf(t, again, a, Other))
	})
}

func TestWatermarksOfFreedObjectsStayInOther(t *testing.T) {
	r, a := limited(t, 2), newAgent(on("v", mpit.ClassHighWatermark, tULong))
	ids := objects(a, "a", "b", "c")
	a.set("v", ids[2], 50)
	r.Update(a.sample())
	a.free(ids[2])
	r.Update(a.sample())
	assert.Equal(t, m{"v_highwatermark{comm=a}": 1, "v_highwatermark{comm=other}": 50}, show(r), "by the agent's remains")
	a.loseRemains = true
	a.set("v", ids[1], 70)
	r.Update(a.sample())
	a.free(ids[1])
	r.Update(a.sample())
	assert.Equal(t, m{"v_highwatermark{comm=a}": 1, "v_highwatermark{comm=other}": 70}, show(r), "and without")
}

// As of one series: a part of a sum would be a lie.
func TestAPartOfOtherThatCannotBeRead(t *testing.T) {
	r, a := limited(t, 2), newAgent(on("v", mpit.ClassCounter, tULong), on("l", mpit.ClassLevel, tInt))
	ids := objects(a, "a", "b")
	r.Update(a.sample())
	all := m{"v_total{comm=other}": 2, "l_level{comm=other}": 2}
	assert.Equal(t, all, show(r))
	for _, h := range a.handles {
		a.failed[h.ID] = h.Object == ids[1]
	}
	for id, failed := range a.failed {
		if !failed {
			delete(a.failed, id)
		}
	}
	r.Update(a.sample())
	assert.Equal(t, m{"v_total{comm=other}": 2}, show(r))
	again := restart(t, r)
	again.Update(a.sample())
	assert.Empty(t, show(again), "an earlier exporter has shown more")
	a.failed = nil
	again.Update(a.sample())
	assert.Equal(t, all, show(again))
}

func TestResetOfATimerThatFolded(t *testing.T) {
	a := newAgent(on("t", mpit.ClassTimer, tDouble), on("t", mpit.ClassCounter, tULong))
	r := newRank(t, nil)
	r.SetVariableLimit(len(DefaultBuckets()) + 3)
	ids := []uint32{a.object("a", 1), a.object("b", 1)}
	set := func(object uint32, n int) {
		for _, h := range a.handles {
			if h.Object == object {
				h.values[0] = word(n)
				if a.vars[h.Variable].Class == mpit.ClassTimer {
					h.values[0] = word(float64(n))
				}
			}
		}
		a.clock += time.Minute
	}
	want := func(r *Rank, n float64) {
		t.Helper()
		assert.Equal(t, n, show(r)["t_time_seconds{comm=other} sum"])
		assert.Equal(t, n, show(r)["t_time_seconds{comm=other} count"])
	}
	set(ids[0], 10)
	set(ids[1], 20)
	r.Update(a.sample())
	want(r, 30)
	set(ids[0], 3)
	r.Update(a.sample())
	want(r, 33)
	again := restart(t, r)
	set(ids[1], 21) // while there is no exporter
	again.Update(a.sample())
	want(again, 34)

	// An object that is really called other takes part, and is reset.
	x := a.object(Other, 1)
	set(x, 6)
	again.Update(a.sample())
	want(again, 40)
	set(x, 5)
	again.Update(a.sample())
	want(again, 40)
	set(x, 9)
	again.Update(a.sample())
	want(again, 44)
}

// After a restart, an object that got its series late has them still.
func TestWhoGetsSeriesLateKeepsThemAtRestart(t *testing.T) {
	r, a := limited(t, 3), newAgent(on("v", mpit.ClassCounter, tULong))
	objects(a, "a", "b", "c", "d")
	r.Update(a.sample())
	_, _ = r.Blob()
	r.SetLimit(4, ReasonRankOverLimit)
	objects(a, "e")
	r.Update(a.sample())
	require.Equal(t, m{"v_total{comm=a}": 1, "v_total{comm=b}": 1, "v_total{comm=c}": 0, "v_total{comm=other}": 3}, show(r))
	again := restart(t, r)
	again.Update(a.sample())
	assert.Equal(t, show(r), show(again))

	again.SetLimit(10, ReasonRankOverLimit)
	again.Update(a.sample())
	_, _ = again.Blob()
	objects(a, "f") // has its own from the beginning
	again.Update(a.sample())
	require.Equal(t, 1.0, show(again)["v_total{comm=f}"])
	third := restart(t, again)
	third.Update(a.sample())
	assert.Equal(t, show(again), show(third))
}

// Without anything else to keep, the blob says at least that there was an exporter: what it has shown isn't counted twice.
func TestTheFirstBlob(t *testing.T) {
	r, a := limited(t, 2), newAgent(on("v", mpit.ClassCounter, tULong))
	ids := objects(a, "a", "b")
	r.Update(a.sample())
	blob, changed := r.Blob()
	assert.True(t, changed)
	assert.Less(t, len(blob), 20)
	_, changed = r.Blob()
	assert.False(t, changed)
	again := restart(t, r)
	again.SetLimit(1, ReasonRankOverLimit)
	again.Update(a.sample())
	assert.Equal(t, m{"v_total{comm=other}": 0}, show(again))
	a.set("v", ids[1], 5)
	again.Update(a.sample())
	assert.Equal(t, m{"v_total{comm=other}": 4}, show(again))
}

// New rules make other cells of the same objects: what folded by the old ones says nothing of them.
func TestRulesChangeWhatFolds(t *testing.T) {
	r, a := newRank(t, nil, Rule{Elements: ElementsPeer}), newAgent(on("v", mpit.ClassCounter, tULong))
	r.SetVariableLimit(2)
	a.set("v", a.object("a", 2), 1, 2)
	a.set("v", a.object("b", 2), 3, 4)
	r.Update(a.sample())
	assert.Equal(t, m{"v_total{comm=a,peer=0}": 1, "v_total{comm=other,peer=other}": 9}, show(r))
	again := restart(t, r)
	again.Update(a.sample())
	assert.Equal(t, m{"v_total{comm=a}": 3, "v_total{comm=b}": 7}, show(again))
}

// A counter has room that a histogram, left out after it, did not have.
func TestWhatIsSmallEnoughStays(t *testing.T) {
	r, a := limited(t, 10), newAgent(mpit.Variable{Name: "t", Class: mpit.ClassTimer, Datatype: tDouble, Verbosity: mpit.VerbosityUserBasic},
		mpit.Variable{Name: "n", Class: mpit.ClassCounter, Datatype: tULong})
	r.Update(a.sample())
	assert.Equal(t, []string{"n_total"}, keys(r))
}

// A variable that comes back takes nobody's series.
func TestAVariableThatComesBackTakesNobodysRoom(t *testing.T) {
	unit := len(DefaultBuckets()) + 3
	r, a := limited(t, unit-5), newAgent(on("v", mpit.ClassCounter, tULong), mpit.Variable{Name: "t", Class: mpit.ClassTimer, Datatype: tDouble})
	a.vars[0].Verbosity = mpit.VerbosityUserBasic
	for i := range 10 {
		a.object(strconv.Itoa(i), 1)
	}
	for _, c := range []struct{ limit, want int }{{unit - 5, 10}, {unit + 7, 10}, {unit + 10, 10}, {unit + 15, 10 + unit}, {unit + 10, 10 + unit}} {
		r.SetLimit(c.limit, ReasonRankOverLimit)
		r.Update(a.sample())
		assert.Equal(t, c.want, r.Weight(), c.limit)
	}
}

// More names than may stay, of which not even remains are left: other keeps what they had there, over a restart as well.
func TestWhatIsForgottenStaysInOther(t *testing.T) {
	r, a := limited(t, 2), newAgent(on("v", mpit.ClassCounter, tULong))
	names := make([]string, maxGone+100)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	objects(a, names...)
	r.Update(a.sample())
	want := m{"v_total{comm=0}": 1, "v_total{comm=other}": float64(len(names) - 1)}
	assert.Equal(t, want, show(r))
	a.handles, a.objects = a.handles[:2], a.objects[:2]
	a.reconnect()
	a.handles[1].values[0] += 7
	want["v_total{comm=other}"] += 7
	for range 2 {
		r.Update(a.sample())
		assert.Equal(t, want, show(r))
	}
	assert.Equal(t, uint64(98), r.Dropped()[ReasonRemainsLost])
}

func TestSumsNeverFallByADigit(t *testing.T) {
	s := sum{kept: 0.1}
	s.settle(0.7)
	was := s.total
	assert.True(t, s.settle(math.Nextafter(0.7, 0)-1e-12))
	assert.GreaterOrEqual(t, s.total, was)
	assert.GreaterOrEqual(t, s.kept+(math.Nextafter(0.7, 0)-1e-12), was, "an exporter that comes later has it from the blob")
	assert.False(t, s.settle(0.8))

	for _, c := range [][2]float64{{0.3, 0.1}, {1.3e-06, 8.4e-06}, {0.1, 0.3}, {5, 2}} {
		p := portion{part: c[1]}
		p.flip(c[0])
		assert.GreaterOrEqual(t, c[0]-p.part, min(c[0], c[1]))
	}
}
