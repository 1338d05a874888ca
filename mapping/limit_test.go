package mapping

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// limited is a rank with a limit.
func limited(t fataler, weight int, rules ...Rule) *Rank {
	t.Helper()
	r := newRank(t, nil, rules...)
	r.SetLimit(weight, ReasonRankOverLimit)
	return r
}

// lines counts the lines of a rank's series in the text format.
func lines(r *Rank) (n int) {
	for _, s := range r.Series() {
		if n++; s.Histogram != nil {
			n += len(s.Histogram.Bounds) + 2
		}
	}
	return n
}

// keys is what show has, sorted.
func keys(r *Rank) []string { return slices.Sorted(maps.Keys(show(r))) }

// objects makes communicators of these names, each with 1 of v.
func objects(a *agent, names ...string) (ids []uint32) {
	for _, name := range names {
		id := a.object(name, 1)
		for _, h := range a.handles {
			if h.Object == id {
				h.values[0] = word(1)
			}
		}
		ids = append(ids, id)
	}
	return ids
}

// Three communicators a, b and c, in this order, with a limit: what they become.
func TestTheNewestObjectsFold(t *testing.T) {
	for _, c := range []struct {
		name  string
		v     mpit.Variable
		limit int
		want  m
		lost  uint64
	}{
		{"enough room", on("v", mpit.ClassCounter, tULong), 3, m{"v_total{comm=a}": 1, "v_total{comm=b}": 2, "v_total{comm=c}": 4}, 0},
		{"counter", on("v", mpit.ClassCounter, tULong), 2, m{"v_total{comm=a}": 1, "v_total{comm=other}": 6}, 2},
		{"counter, room for one", on("v", mpit.ClassCounter, tULong), 1, m{"v_total{comm=other}": 7}, 3},
		{"counter, no room", on("v", mpit.ClassCounter, tULong), 0, m{}, 3},
		{"level", on("v", mpit.ClassLevel, tInt), 2, m{"v_level{comm=a}": 1, "v_level{comm=other}": 6}, 2},
		{"high watermark", on("v", mpit.ClassHighWatermark, tInt), 2, m{"v_highwatermark{comm=a}": 1, "v_highwatermark{comm=other}": 4}, 2},
		{"low watermark", on("v", mpit.ClassLowWatermark, tInt), 2, m{"v_lowwatermark{comm=a}": 1, "v_lowwatermark{comm=other}": 2}, 2},
		{"state: never merged, left out", on("v", mpit.ClassState, tInt), 2, m{"v_state{comm=a,state=1}": 1, "v_state{comm=b,state=2}": 1}, 1},
		{"generic: the same", on("v", mpit.ClassGeneric, tInt), 1, m{"v_generic{comm=a}": 1}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, a := limited(t, c.limit), newAgent(c.v)
			for i, name := range []string{"a", "b", "c"} {
				a.set("v", a.object(name, 1), 1<<i)
			}
			for range 2 {
				r.Update(a.after(time.Second).sample())
				assert.Equal(t, c.want, show(r))
				assert.Equal(t, c.lost, r.Dropped()[ReasonRankOverLimit], "counted once")
				assert.Equal(t, lines(r), r.Weight())
			}
		})
	}
}

func TestPredefinedObjectsComeFirst(t *testing.T) {
	r, a := limited(t, 2), newAgent(on("v", mpit.ClassCounter, tULong))
	objects(a, "a", "MPI_COMM_WORLD")
	a.objects[1].Predefined = true
	r.Update(a.sample())
	assert.Equal(t, []string{"v_total{comm=MPI_COMM_WORLD}", "v_total{comm=a}"}, keys(r))
	objects(a, "b")
	r.Update(a.sample())
	assert.Equal(t, []string{"v_total{comm=a}", "v_total{comm=other}"}[1], keys(r)[1])
	r.SetLimit(2, ReasonRankOverLimit)
	r.Update(a.sample())
	assert.Equal(t, []string{"v_total{comm=MPI_COMM_WORLD}", "v_total{comm=other}"}, keys(r))
}

// A histogram is as many series as it has lines, a STATE as many as it has items and one more.
func TestWeight(t *testing.T) {
	e := &mpit.Enum{Items: []mpit.EnumItem{{Value: 0, Name: "idle"}, {Value: 2, Name: "busy"}}}
	r, a := newRank(t, nil), newAgent(mpit.Variable{Name: "t", Class: mpit.ClassTimer, Datatype: tDouble}, mpit.Variable{Name: "n", Class: mpit.ClassCounter, Datatype: tULong},
		mpit.Variable{Name: "s", Class: mpit.ClassState, Datatype: tInt, Enum: e})
	r.Update(a.sample())
	assert.Equal(t, len(DefaultBuckets())+3+1+3, r.Weight())
	a.set("s", 0, 99)
	r.Update(a.sample())
	assert.Equal(t, lines(r), r.Weight(), "room was kept for it")
}

func TestWhoHasSeriesKeepsThem(t *testing.T) {
	r, a := limited(t, 3), newAgent(on("v", mpit.ClassCounter, tULong), on("l", mpit.ClassLevel, tInt))
	r.SetLimit(6, ReasonUserOverLimit)
	ids := objects(a, "c", "b", "a")
	r.Update(a.sample())
	assert.Equal(t, []string{"l_level{comm=a}", "l_level{comm=b}", "l_level{comm=c}", "v_total{comm=a}", "v_total{comm=b}", "v_total{comm=c}"}, keys(r))
	objects(a, "A", "B")
	r.Update(a.sample())
	assert.Equal(t, []string{"l_level{comm=b}", "l_level{comm=c}", "l_level{comm=other}", "v_total{comm=b}", "v_total{comm=c}", "v_total{comm=other}"}, keys(r))
	assert.Equal(t, uint64(6), r.Dropped()[ReasonUserOverLimit])

	// A level that leaves makes room, a counter stays. The oldest that folded gets it.
	a.free(ids[0])
	r.Update(a.sample())
	assert.Equal(t, []string{"l_level{comm=b}", "l_level{comm=other}", "v_total{comm=a}", "v_total{comm=b}", "v_total{comm=c}", "v_total{comm=other}"}, keys(r))
	structure := r.Structure()
	r.Update(a.sample())
	assert.Equal(t, structure, r.Structure())
}

// What was counted before an object folded stands in the series that ended; other gets what it counts from then on.
func TestLowerLimit(t *testing.T) {
	r, a := limited(t, 3), newAgent(on("v", mpit.ClassCounter, tULong))
	a.set("v", a.object("a", 1), 100)
	b, c := a.object("b", 1), a.object("c", 1)
	a.set("v", b, 1000)
	a.set("v", c, 10000)
	r.Update(a.sample())
	a.set("v", a.object("d", 1), 5)
	r.Update(a.sample())
	assert.Equal(t, m{"v_total{comm=a}": 100, "v_total{comm=b}": 1000, "v_total{comm=other}": 5}, show(r), "c was the newest that had a series")

	r.SetLimit(2, ReasonRankOverLimit)
	a.set("v", b, 1001)
	a.set("v", c, 10002)
	r.Update(a.sample())
	assert.Equal(t, m{"v_total{comm=a}": 100, "v_total{comm=other}": 5 + 1 + 2}, show(r))
	a.free(b)
	a.free(c)
	r.Update(a.sample())
	assert.Equal(t, m{"v_total{comm=a}": 100, "v_total{comm=other}": 8}, show(r), "freed objects stay in other")

	blob, changed := r.Blob()
	assert.True(t, changed)
	again := newRank(t, blob)
	again.SetLimit(2, ReasonRankOverLimit)
	again.Update(a.sample())
	assert.Equal(t, show(r), show(again), "after a restart")

	again.SetLimit(-1, "")
	again.Update(a.sample())
	assert.Equal(t, m{"v_total{comm=a}": 100, "v_total{comm=b}": 1000, "v_total{comm=c}": 10000, "v_total{comm=d}": 0, "v_total{comm=other}": 8}, show(again),
		"series go on where they ended, or begin at zero")
	a.set("v", a.objects[len(a.objects)-1].ID, 7)
	again.Update(a.sample())
	assert.Equal(t, 2.0, show(again)["v_total{comm=d}"])
	blob, _ = again.Blob()
	third := newRank(t, blob)
	third.Update(a.sample())
	assert.Equal(t, show(again), show(third))
}

// A limit that is lowered while the exporter is restarted: the new one knows nothing of values yet.
func TestLowerLimitAtRestart(t *testing.T) {
	a := newAgent(on("v", mpit.ClassCounter, tULong))
	r := limited(t, 3)
	ids := objects(a, "a", "b", "c", "d")
	r.Update(a.sample())
	require.Equal(t, m{"v_total{comm=a}": 1, "v_total{comm=b}": 1, "v_total{comm=other}": 2}, show(r))
	blob, _ := r.Blob()
	a.set("v", ids[1], 500)
	again := newRank(t, blob)
	again.SetLimit(2, ReasonRankOverLimit)
	again.Update(a.sample())
	assert.Equal(t, m{"v_total{comm=a}": 1, "v_total{comm=other}": 2}, show(again), "other does not jump")
	a.set("v", ids[1], 503)
	again.Update(a.sample())
	assert.Equal(t, m{"v_total{comm=a}": 1, "v_total{comm=other}": 5}, show(again))
}

func TestResetOfAFoldedObject(t *testing.T) {
	r, a := limited(t, 1), newAgent(on("v", mpit.ClassCounter, tULong))
	ids := objects(a, "a", "b")
	a.set("v", ids[0], 100)
	r.Update(a.sample())
	assert.Equal(t, m{"v_total{comm=other}": 101}, show(r))
	created := r.Series()[0].Created()
	a.set("v", ids[0], 3)
	r.Update(a.after(time.Second).sample())
	assert.Equal(t, m{"v_total{comm=other}": 104}, show(r), "what was counted stays")
	assert.Equal(t, created, r.Series()[0].Created())
	blob, _ := r.Blob()
	again := newRank(t, blob)
	again.SetLimit(1, ReasonRankOverLimit)
	again.Update(a.sample())
	assert.Equal(t, show(r), show(again))
}

// An object that the program itself calls other is one with those that fold.
func TestAnObjectThatIsCalledOther(t *testing.T) {
	r, a := limited(t, 2), newAgent(on("v", mpit.ClassCounter, tULong), on("l", mpit.ClassLevel, tInt))
	r.SetLimit(4, ReasonRankOverLimit)
	ids := objects(a, "a", Other, "b")
	r.Update(a.sample())
	assert.Equal(t, m{"v_total{comm=a}": 1, "v_total{comm=other}": 2, "l_level{comm=a}": 1, "l_level{comm=other}": 2}, show(r))
	a.free(ids[1])
	r.Update(a.sample())
	assert.Equal(t, m{"v_total{comm=a}": 1, "v_total{comm=other}": 2, "l_level{comm=a}": 1, "l_level{comm=b}": 1}, show(r))
}

func TestElementsFold(t *testing.T) {
	rule := Rule{Elements: ElementsPeer}
	t.Run("of a bound variable", func(t *testing.T) {
		r, a := newRank(t, nil, rule), newAgent(on("v", mpit.ClassCounter, tULong))
		r.SetVariableLimit(4)
		a.set("v", a.object("a", 4), 1, 2, 3, 4)
		a.set("v", a.object("b", 2), 5, 6)
		r.Update(a.sample())
		want := m{"v_total{comm=a,peer=0}": 1, "v_total{comm=a,peer=1}": 2, "v_total{comm=a,peer=2}": 3, "v_total{comm=other,peer=other}": 15}
		assert.Equal(t, want, show(r))
		assert.Equal(t, map[Reason]uint64{ReasonVariableOverLimit: 3}, r.Dropped())
		blob, _ := r.Blob()
		again := newRank(t, blob, rule)
		again.SetVariableLimit(4)
		again.Update(a.sample())
		assert.Equal(t, want, show(again))
	})
	t.Run("of one that isn't", func(t *testing.T) {
		r, a := newRank(t, nil, rule), newAgent()
		r.SetVariableLimit(2)
		a.vars = []mpit.Variable{{Name: "v", Class: mpit.ClassLevel, Datatype: tInt, DatatypeBytes: 4}}
		h := a.open(0, 0, 3)
		h.values = []uint64{1, 2, 3}
		r.Update(a.sample())
		assert.Equal(t, m{"v_level{peer=0}": 1, "v_level{peer=other}": 5}, show(r))
	})
}

func TestTimersFoldWithTheirCompanions(t *testing.T) {
	a := newAgent(on("t", mpit.ClassTimer, tDouble), on("t", mpit.ClassCounter, tULong))
	r := newRank(t, nil)
	unit := len(DefaultBuckets()) + 3
	r.SetVariableLimit(2*unit + 3) // two histograms, any number of counters
	names := []string{"a", "b", "c"}
	add := func(n int) {
		for _, h := range a.handles {
			if a.vars[h.Variable].Class == mpit.ClassTimer {
				h.values[0] = word(float64FromWord(h.values[0]) + 0.5*float64(n))
			} else {
				h.values[0] += uint64(n)
			}
		}
	}
	objects(a, names...)
	for _, h := range a.handles {
		h.values[0] = 0
	}
	add(1)
	r.Update(a.sample())
	add(3)
	r.Update(a.after(time.Minute).sample())
	want := m{
		"t_time_seconds{comm=a} sum": 2, "t_time_seconds{comm=a} count": 4, "t_time_seconds{comm=other} sum": 4, "t_time_seconds{comm=other} count": 8,
		"t_total{comm=a}": 4, "t_total{comm=b}": 4, "t_total{comm=c}": 4,
	}
	assert.Equal(t, want, show(r))
	for _, s := range r.Series() {
		if s.Histogram != nil {
			at, _ := slices.BinarySearch(s.Histogram.Bounds, 0.5)
			assert.Equal(t, s.Histogram.Count, s.Histogram.Counts[at], "all at their mean duration")
		}
	}
	blob, _ := r.Blob()
	again := newRank(t, blob)
	again.SetVariableLimit(2*unit + 3)
	again.Update(a.sample())
	assert.Equal(t, want, show(again))
}

// Five variables, four places.
func TestVariablesAreLeftOutByVerbosity(t *testing.T) {
	scalar := func(name string, v mpit.Verbosity) mpit.Variable {
		return mpit.Variable{Name: name, Class: mpit.ClassCounter, Datatype: tULong, Verbosity: v}
	}
	vars := []mpit.Variable{
		scalar("dev", mpit.VerbosityMPIDevAll), scalar("unknown", mpit.VerbosityUnknown), scalar("basic", mpit.VerbosityUserBasic),
		scalar("tuner", mpit.VerbosityTunerDetail), scalar("late", mpit.VerbosityTunerDetail),
	}
	for _, c := range []struct {
		limit int
		want  []string
	}{
		{5, []string{"basic_total", "dev_total", "late_total", "tuner_total", "unknown_total"}},
		{4, []string{"basic_total", "dev_total", "late_total", "tuner_total"}},
		{3, []string{"basic_total", "late_total", "tuner_total"}},
		{2, []string{"basic_total", "tuner_total"}},
		{1, []string{"basic_total"}},
		{0, nil},
	} {
		t.Run(strconv.Itoa(c.limit), func(t *testing.T) {
			r, a := limited(t, c.limit), newAgent(vars...)
			r.Update(a.sample())
			assert.Equal(t, c.want, keys(r))
			assert.Equal(t, uint64(5-c.limit), r.Dropped()[ReasonRankOverLimit])
			_, ids, changed := r.Select()
			assert.Equal(t, c.limit < 5, changed)
			for i, v := range vars {
				assert.Equal(t, slices.Contains(c.want, v.Name+"_total"), ids[uint32(i)], "%s is read if it is shown", v.Name)
			}
		})
	}
}

func TestObjectsFoldBeforeVariablesAreLeftOut(t *testing.T) {
	dev := on("dev", mpit.ClassCounter, tULong)
	dev.Verbosity = mpit.VerbosityMPIDevAll
	r, a := limited(t, 3), newAgent(on("v", mpit.ClassCounter, tULong), dev)
	a.vars[0].Verbosity = mpit.VerbosityUserBasic
	objects(a, "a", "b", "c")
	r.Update(a.sample())
	assert.Equal(t, []string{"dev_total{comm=other}", "v_total{comm=a}", "v_total{comm=other}"}, keys(r))
	r.SetLimit(1, ReasonJobOverLimit)
	r.Update(a.sample())
	assert.Equal(t, []string{"v_total{comm=other}"}, keys(r))
	assert.Equal(t, uint64(2), r.Dropped()[ReasonJobOverLimit], "the series of a, and dev")
}

func TestACompanionIsReadWhereItIsNotShown(t *testing.T) {
	r, a := limited(t, len(DefaultBuckets())+3), newAgent(mpit.Variable{Name: "t", Class: mpit.ClassTimer, Datatype: tDouble, Verbosity: mpit.VerbosityUserBasic},
		mpit.Variable{Name: "t", Class: mpit.ClassCounter, Datatype: tULong})
	r.Update(a.sample())
	assert.Len(t, r.Series(), 1)
	_, ids, _ := r.Select()
	assert.Equal(t, map[uint32]bool{0: true, 1: true}, ids)
	r.SetLimit(5, ReasonRankOverLimit)
	r.Update(a.sample())
	_, ids, _ = r.Select()
	assert.Equal(t, map[uint32]bool{0: false, 1: true}, ids, "the histogram is too much for five, the counter isn't")
}

// A variable that was left out does not come and go with each object.
func TestAVariableComesBackWhenThereIsRoomToSpare(t *testing.T) {
	dev := mpit.Variable{Name: "dev", Class: mpit.ClassCounter, Datatype: tULong}
	r, a := limited(t, 16), newAgent(dev)
	for i := range 17 {
		a.add(mpit.Variable{Name: fmt.Sprintf("v%d", i), Class: mpit.ClassCounter, Datatype: tULong, Verbosity: mpit.VerbosityUserBasic})
	}
	a.set("dev", 0, 5)
	shown := func() bool { return slices.Contains(keys(r), "dev_total") }
	r.Update(a.sample())
	assert.False(t, shown())
	for _, c := range []struct {
		limit int
		want  bool
	}{{17, false}, {18, false}, {19, false}, {21, true}, {18, true}, {17, false}, {18, false}, {-1, true}} {
		r.SetLimit(c.limit, ReasonRankOverLimit)
		structure := r.Structure()
		r.Update(a.sample())
		r.Update(a.sample())
		assert.Equal(t, c.want, shown(), c)
		assert.LessOrEqual(t, r.Structure(), structure+1)
	}
	assert.Equal(t, 5.0, show(r)["dev_total"])
}

// Whoever asks each time, with a limit that changes a little each time, makes nothing anew.
func TestNothingIsDoneWhileNothingChanges(t *testing.T) {
	r, a := limited(t, 100), newAgent(on("v", mpit.ClassCounter, tULong), on("l", mpit.ClassLevel, tInt))
	for i := range 200 {
		a.object(strconv.Itoa(i), 1)
	}
	s := a.sample()
	r.Update(s)
	structure, i := r.Structure(), 0
	n := testing.AllocsPerRun(100, func() {
		i++
		r.SetLimit(100+i%5, ReasonRankOverLimit)
		r.SetVariableLimit(-1)
		r.Update(s)
	})
	assert.Zero(t, n)
	assert.Equal(t, structure, r.Structure())
	r.SetLimit(120, ReasonRankOverLimit)
	r.Update(s)
	assert.Equal(t, 120, r.Weight(), "enough to be given out")
}

func TestLimitsHaveDefaults(t *testing.T) {
	assert.Equal(t, Limits{500_000, 200_000, 250_000, 20_000, 2_000}, Limits{}.WithDefaults())
	assert.Equal(t, 7, Limits{SeriesPerJob: 7}.WithDefaults().SeriesPerJob)
}

// Thousands of names, most of them of objects that are gone, cost no more than the limit, and the blob has room for what counts.
func TestFlood(t *testing.T) {
	r, a := limited(t, 1000), newAgent(on("v", mpit.ClassCounter, tUint), on("w", mpit.ClassLevel, tInt))
	for i := range 4000 {
		id := a.object("halo exchange number "+strconv.Itoa(i), 1)
		a.set("v", id, 1)
		if i%100 == 0 {
			r.Update(a.sample())
			require.LessOrEqual(t, lines(r), 1000)
		}
		if i%3 > 0 {
			a.free(id)
		}
	}
	r.Update(a.sample())
	require.LessOrEqual(t, lines(r), 1000)
	sum := 0.0
	for key, x := range show(r) {
		if strings.HasPrefix(key, "v_total") {
			sum += x
		}
	}
	assert.Equal(t, 4000.0, sum)
	blob, _ := r.Blob()
	assert.Zero(t, r.Dropped()[ReasonBlobFull])
	again := newRank(t, blob)
	again.SetLimit(1000, ReasonRankOverLimit)
	again.Update(a.sample())
	for key, x := range show(r) {
		if strings.HasPrefix(key, "v_total") {
			assert.Equal(t, x, show(again)[key], key)
		}
	}
}

func float64FromWord(w uint64) float64 { return math.Float64frombits(w) }
