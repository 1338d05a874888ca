package series

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// limited is a rank with a limit.
func limited(t fataler, weight int, list ...rules.Rule) *Rank {
	t.Helper()
	r := newRank(t, list...)
	limitTo(r, weight, mapping.ReasonRankOverLimit)
	return r
}

// ownRoom is a Room that one rank has for itself.
type ownRoom struct {
	r      *Rank
	weight int
	reason mapping.Reason
}

func (o ownRoom) Left() int { return o.weight - o.r.room.held }

func (o ownRoom) Take(weight int) mapping.Reason {
	if weight > o.Left() {
		return o.reason
	}
	return ""
}

// limitTo bounds the weight of a rank; below zero: not at all.
func limitTo(r *Rank, weight int, reason mapping.Reason) {
	if weight < 0 {
		r.SetRoom(nil)
		return
	}
	r.SetRoom(ownRoom{r, weight, reason})
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
		{"enough room, also for the next", on("v", mpit.ClassCounter, tULong), 4,
			m{"v_total{comm=a}": 1, "v_total{comm=b}": 2, "v_total{comm=c}": 4}, 0},
		{"a place is kept for other", on("v", mpit.ClassCounter, tULong), 3,
			m{"v_total{comm=a}": 1, "v_total{comm=b}": 2, "v_total{comm=other}": 4}, 1},
		{"counter", on("v", mpit.ClassCounter, tULong), 2, m{"v_total{comm=a}": 1, "v_total{comm=other}": 6}, 2},
		{"counter, room for one", on("v", mpit.ClassCounter, tULong), 1, m{"v_total{comm=other}": 7}, 3},
		{"counter, no room", on("v", mpit.ClassCounter, tULong), 0, m{}, 3},
		{"level", on("v", mpit.ClassLevel, tInt), 2, m{"v_level{comm=a}": 1, "v_level{comm=other}": 6}, 2},
		{"high watermark", on("v", mpit.ClassHighWatermark, tInt), 2,
			m{"v_highwatermark{comm=a}": 1, "v_highwatermark{comm=other}": 4}, 2},
		{"low watermark", on("v", mpit.ClassLowWatermark, tInt), 2,
			m{"v_lowwatermark{comm=a}": 1, "v_lowwatermark{comm=other}": 2}, 2},
		{"state: never merged, left out", on("v", mpit.ClassState, tInt), 2,
			m{"v_state{comm=a,state=1}": 1, "v_state{comm=b,state=2}": 1}, 1},
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
				assert.Equal(t, c.lost, r.Dropped()[mapping.ReasonRankOverLimit], "counted once")
				assert.Equal(t, lines(r), r.Weight())
			}
		})
	}
}

// A histogram is as many series as it has lines, a STATE as many as it has items and one more.
func TestWeight(t *testing.T) {
	e := &mpit.Enum{Items: []mpit.EnumItem{{Value: 0, Name: "idle"}, {Value: 2, Name: "busy"}}}
	r, a := newRank(t), newAgent(mpit.Variable{Name: "t", Class: mpit.ClassTimer, Datatype: tDouble},
		mpit.Variable{Name: "n", Class: mpit.ClassCounter, Datatype: tULong},
		mpit.Variable{Name: "s", Class: mpit.ClassState, Datatype: tInt, Enum: e})
	r.Update(a.sample())
	assert.Equal(t, len(mapping.DefaultBuckets())+3+1+3, r.Weight())
	a.set("s", 0, 99)
	r.Update(a.sample())
	assert.Equal(t, lines(r), r.Weight(), "room was kept for it")
}

// Five variables, four places.
func TestVariablesAreLeftOutByVerbosity(t *testing.T) {
	scalar := func(name string, v mpit.Verbosity) mpit.Variable {
		return mpit.Variable{Name: name, Class: mpit.ClassCounter, Datatype: tULong, Verbosity: v}
	}
	vars := []mpit.Variable{
		scalar("dev", mpit.VerbosityMPIDevAll), scalar("unknown", mpit.VerbosityUnknown),
		scalar("basic", mpit.VerbosityUserBasic),
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
			assert.Equal(t, uint64(5-c.limit), r.Dropped()[mapping.ReasonRankOverLimit])
			_, ids, changed := r.Select()
			assert.Equal(t, c.limit < 5, changed)
			for i, v := range vars {
				assert.Equal(t, slices.Contains(c.want, v.Name+"_total"), ids[uint32(i)],
					"%s is read if it is shown", v.Name)
			}
		})
	}
}

func TestLimitsHaveDefaults(t *testing.T) {
	assert.Equal(t, rules.Limits{Series: 500_000, SeriesPerJob: 200_000, SeriesPerUser: 250_000,
		SeriesPerRank: 20_000, SeriesPerVariable: 2_000}, rules.Limits{}.WithDefaults())
	assert.Equal(t, 7, rules.Limits{SeriesPerJob: 7}.WithDefaults().SeriesPerJob)
}

func TestPredefinedObjectsComeFirst(t *testing.T) {
	r, a := limited(t, 2), newAgent(on("v", mpit.ClassCounter, tULong))
	objects(a, "a", "MPI_COMM_WORLD")
	a.objects[1].Predefined = true
	r.Update(a.sample())
	assert.Equal(t, []string{"v_total{comm=MPI_COMM_WORLD}", "v_total{comm=other}"}, keys(r))
}

// An object that the program itself calls other is one with those that find no room.
func TestAnObjectThatIsCalledOther(t *testing.T) {
	r, a := limited(t, 4), newAgent(on("v", mpit.ClassCounter, tULong), on("l", mpit.ClassLevel, tInt))
	ids := objects(a, "a", mapping.Other, "b")
	r.Update(a.sample())
	assert.Equal(t, m{"v_total{comm=a}": 1, "v_total{comm=other}": 2, "l_level{comm=a}": 1,
		"l_level{comm=other}": 2}, show(r))
	a.free(ids[1])
	r.Update(a.sample())
	assert.Equal(t, m{"v_total{comm=a}": 1, "v_total{comm=other}": 2, "l_level{comm=a}": 1,
		"l_level{comm=other}": 1}, show(r))
}

// The timer is too large for the room that there is; its counter is shown, and read.
func TestATimerThatIsLeftOut(t *testing.T) {
	r, a := limited(t, 5), newAgent(mpit.Variable{Name: "t", Class: mpit.ClassTimer, Datatype: tDouble,
		Verbosity: mpit.VerbosityUserBasic},
		mpit.Variable{Name: "t", Class: mpit.ClassCounter, Datatype: tULong})
	r.Update(a.sample())
	assert.Equal(t, []string{"t_total"}, keys(r))
	_, ids, _ := r.Select()
	assert.Equal(t, map[uint32]bool{0: false, 1: true}, ids)
	assert.Equal(t, uint64(len(mapping.DefaultBuckets())+3), r.Dropped()[mapping.ReasonRankOverLimit])
}

func TestElementsFold(t *testing.T) {
	rule := rules.Rule{Elements: mapping.MergePeer}
	t.Run("of a bound variable", func(t *testing.T) {
		r, a := newRank(t, rule), newAgent(on("v", mpit.ClassCounter, tULong))
		r.SetVariableLimit(4)
		a.set("v", a.object("a", 4), 1, 2, 3, 4)
		a.set("v", a.object("b", 2), 5, 6)
		r.Update(a.sample())
		assert.Equal(t, m{"v_total{comm=a,peer=0}": 1, "v_total{comm=a,peer=1}": 2, "v_total{comm=a,peer=2}": 3,
			"v_total{comm=other,peer=other}": 15}, show(r))
		assert.Equal(t, map[mapping.Reason]uint64{mapping.ReasonVariableOverLimit: 3}, r.Dropped())
	})
	t.Run("of one that isn't", func(t *testing.T) {
		r, a := newRank(t, rule), newAgent()
		r.SetVariableLimit(2)
		a.vars = []mpit.Variable{{Name: "v", Class: mpit.ClassLevel, Datatype: tInt, DatatypeBytes: 4}}
		h := a.open(0, 0, 3)
		h.values = []uint64{1, 2, 3}
		r.Update(a.sample())
		assert.Equal(t, m{"v_level{peer=0}": 1, "v_level{peer=other}": 5}, show(r))
	})
}

// Thousands of names, most of them of objects that are gone, cost no more than the limit, and nothing that they count
// is lost.
func TestFlood(t *testing.T) {
	r, a := limited(t, 1000), newAgent(on("v", mpit.ClassCounter, tUint), on("w", mpit.ClassLevel, tInt))
	objects := 4000
	if testing.Short() {
		objects /= 2 // of which the agent that is simulated takes a quarter of the time
	}
	for i := range objects {
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
	assert.Equal(t, float64(objects), sum)
}

// Which objects have series of their own is a question of age, not of names, in a rank's first sample as well.
func TestOldestObjectsKeepTheirSeries(t *testing.T) {
	a := newAgent(on("v", mpit.ClassCounter, tULong))
	for _, name := range []string{"z", "y", "x", "w", "v"} {
		a.object(name, 1)
	}
	for _, h := range a.handles {
		h.values[0] = 1
	}
	r := newRank(t)
	r.SetVariableLimit(4)
	r.Update(a.sample())
	assert.Equal(t, map[string]float64{"v_total{comm=z}": 1, "v_total{comm=y}": 1, "v_total{comm=x}": 1,
		"v_total{comm=other}": 2}, show(r))
}
