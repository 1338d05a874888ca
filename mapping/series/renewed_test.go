package series

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
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
		require.Len(t, r.timers[r.byID[2]], i%2)
	}
	assert.Empty(t, r.Dropped())
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
