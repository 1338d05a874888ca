package series

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// An agent that gives numbers to other variables gets no more room by it, and loses none.
func TestNumbersUsedAgainGiveTheirRoomBack(t *testing.T) {
	a := newAgent(on("x", mpit.ClassCounter, tULong), on("t", mpit.ClassTimer, tDouble),
		on("t", mpit.ClassCounter, tULong),
		on("y", mpit.ClassSize, tULong), on("y", mpit.ClassLevel, tULong))
	a.object("a", 1)
	r := newRank(t)
	limitTo(r, 100, mapping.ReasonRankOverLimit)
	r.Update(a.sample())
	used, reserved, order := r.room.used, r.room.reserved, len(r.all)
	for i := range 10 {
		a.vars = append([]mpit.Variable(nil), a.vars...)
		a.vars[0].Name = "x" + strconv.Itoa(i)
		a.vars[1].Name = []string{"u", "t"}[i%2]
		name := "y" + strconv.Itoa(i)
		a.vars[3].Name, a.vars[4].Name = name, name
		a.lastVars = nil
		r.Update(a.sample())
		require.Equal(t, used, r.room.used)
		require.Equal(t, reserved, r.room.reserved)
		require.Len(t, r.all, order)
		require.Len(t, slices.DeleteFunc(slices.Clone(r.all), func(v *variable) bool { return !v.of.IsRatio() }), 1)
		require.Len(t, r.timers[r.byID[2]], i%2)
	}
	assert.Empty(t, r.Dropped())
}

func TestRatioWithoutRoomIsCountedOnce(t *testing.T) {
	mapper := func() *variables.Mapper {
		m, err := variables.New(variables.Config{MaxFamilies: 4}) // a user has half of them
		require.NoError(t, err)
		return m
	}
	a := newAgent(on("x", mpit.ClassSize, tULong), on("x", mpit.ClassLevel, tULong))
	a.object("a", 1)
	r := NewRank(mapper(), variables.Process{})
	for range 3 {
		r.Update(a.sample())
		assert.Equal(t, map[mapping.Reason]uint64{mapping.ReasonFamiliesOverMax: 1}, r.Dropped())
		r.Reload(mapper(), a.after(time.Second).now())
	}
}

// The values of a reading that failed mean nothing, not even to the share of a size.
func TestRatioOfElementsThatCouldNotBeRead(t *testing.T) {
	a := newAgent(on("x", mpit.ClassSize, tULong), on("x", mpit.ClassHighWatermark, tULong))
	o := a.object("a", 2)
	a.set("x", o, 100, 100)
	watermark := a.handles[1]
	watermark.values = []uint64{50, 50}
	r := newRank(t)
	r.Update(a.sample())
	assert.Equal(t, 0.5, show(r)["x_highwatermark_ratio{comm=a}"])
	watermark.values = []uint64{0, 0}
	a.failed[watermark.ID] = true
	r.Update(a.after(time.Second).sample())
	assert.NotContains(t, show(r), "x_highwatermark_ratio{comm=a}")
	assert.Equal(t, 50.0, show(r)["x_highwatermark{comm=a}"])
}

// The highest share of an object that was freed stays when rules change that don't concern it.
func TestShareOfAFreedObjectOutlivesAReload(t *testing.T) {
	a := newAgent(on("x", mpit.ClassSize, tULong), on("x", mpit.ClassHighWatermark, tULong))
	freed := a.object("a", 1)
	a.object("b", 1)
	a.handle("x", freed).values[0] = 100
	a.handles[1].values[0] = 50
	r := newRank(t)
	r.Update(a.sample())
	a.free(freed)
	r.Update(a.after(time.Second).sample())
	require.Equal(t, 0.5, show(r)["x_highwatermark_ratio{comm=a}"])
	reload(t, r, a.after(time.Second), rules.Rule{Match: rules.Match{Name: "y"}, Drop: &yes})
	r.Update(a.sample())
	assert.Equal(t, 0.5, show(r)["x_highwatermark_ratio{comm=a}"])
}

// A variable that found no room is asked again when rules change, for these may have made some.
func TestReloadGivesRoomToWhatHadNone(t *testing.T) {
	a := newAgent(mpit.Variable{Name: "x", Class: mpit.ClassLevel, Datatype: tULong},
		mpit.Variable{Name: "y", Class: mpit.ClassLevel, Datatype: tULong})
	r := limited(t, 1)
	r.Update(a.sample())
	require.Len(t, r.Series(), 1)
	limitTo(r, 2, mapping.ReasonRankOverLimit)
	r.Update(a.after(time.Second).sample())
	require.Len(t, r.Series(), 1, "what has been decided stays")
	reload(t, r, a.after(time.Second))
	r.Update(a.sample())
	assert.Len(t, r.Series(), 2)
}

// What a variable really is decides how its values are read: from there on it counts, in each of its elements.
func TestReloadOfALevelThatCounts(t *testing.T) {
	for _, elements := range []int{1, 3} {
		a := newAgent(on("x", mpit.ClassLevel, tULong))
		o := a.object("a", elements)
		set := func(to uint64) {
			for i := range a.handle("x", o).values {
				a.handle("x", o).values[i] = to
			}
		}
		set(100)
		r := newRank(t)
		r.Update(a.sample())
		reload(t, r, a.after(time.Second), rules.Rule{Match: rules.Match{Name: "x"}, Class: "counter"})
		r.Update(a.sample())
		set(107)
		r.Update(a.after(time.Second).sample())
		assert.Equal(t, map[string]float64{"x_total{comm=a}": 7 * float64(elements)}, show(r))
	}
}
