package mapping

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// What folds goes on as it was, whatever rules come and go in between, and whenever its cells come.

// An element that has a cell only once it is read as not 0 is as folded as it was before the restart.
func TestElementsThatAreNotZeroFoldAgain(t *testing.T) {
	rule := Rule{Elements: ElementsPeer, Nonzero: &yes}
	r, a := limited(t, 2, rule), newAgent(on("v", mpit.ClassCounter, tULong))
	x := a.object("c", 3)
	a.set("v", x, 100, 40, 1)
	r.Update(a.sample())
	want := m{"v_total{comm=c,peer=0}": 100, "v_total{comm=other,peer=other}": 41}
	assert.Equal(t, want, show(r))
	again := restart(t, r, rule)
	again.SetLimit(-1, "")
	again.Update(a.after(time.Second).sample())
	a.set("v", x, 100, 45, 7)
	again.Update(a.after(time.Second).sample())
	want["v_total{comm=c,peer=1}"], want["v_total{comm=c,peer=2}"] = 5, 6
	assert.Equal(t, want, show(again), "other does not fall, nor does anything count twice")
}

// A variable that a rule leaves out, or shows with other labels, folds as before when it is back.
func TestFoldingOutlastsOtherRules(t *testing.T) {
	for name, rule := range map[string]Rule{
		"left out": {Drop: &yes}, "one for all objects": {Object: &no}, "each element": {Elements: ElementsPeer}, "a level": {Class: "level"},
		"known by its category": {Match: Match{Category: "x"}, Help: "until that is known"},
	} {
		t.Run(name, func(t *testing.T) {
			r, a := limited(t, 2), newAgent(on("v", mpit.ClassCounter, tULong))
			x, y := a.object("a", 1), a.object("b", 1)
			a.set("v", x, 5)
			a.set("v", y, 50)
			r.Update(a.sample())
			r.SetLimit(1, ReasonRankOverLimit)
			r.Update(a.sample())
			a.set("v", x, 6)
			a.set("v", y, 57)
			r.Update(a.sample())
			assert.Equal(t, m{"v_total{comm=other}": 8}, show(r), "what came since they have folded")
			for range 2 {
				r = reload(t, r, rule)
				r.Update(a.after(time.Second).sample())
				r.dirty = true // the blob is written anew
			}
			r = reload(t, r)
			r.SetLimit(1, ReasonRankOverLimit)
			a.set("v", y, 60)
			r.Update(a.after(time.Second).sample())
			assert.Equal(t, m{"v_total{comm=other}": 11}, show(r))
			r.SetLimit(-1, "")
			r.Update(a.after(time.Second).sample())
			assert.Equal(t, m{"v_total{comm=a}": 5, "v_total{comm=b}": 50, "v_total{comm=other}": 11}, show(r))
		})
	}
}

// With another scale, other goes on from where it was, as all counters do.
func TestFoldingWithAnotherScale(t *testing.T) {
	kilo := 1024.0
	r, a := limited(t, 2, Rule{Scale: &kilo}), newAgent(on("v", mpit.ClassCounter, tULong))
	x, y := a.object("a", 1), a.object("b", 1)
	step := func(of, and uint64) m {
		a.set("v", x, of)
		a.set("v", y, and)
		r.Update(a.after(time.Second).sample())
		return show(r)
	}
	assert.Equal(t, m{"v_total{comm=a}": 1024, "v_total{comm=b}": 2048}, step(1, 2))
	r.SetLimit(1, ReasonRankOverLimit)
	step(1, 2)
	assert.Equal(t, m{"v_total{comm=other}": 3072}, step(2, 4))
	r = reload(t, r)
	r.SetLimit(1, ReasonRankOverLimit)
	assert.Equal(t, m{"v_total{comm=other}": 3072}, step(2, 4), "what was counted until then has the old one")
	assert.Equal(t, m{"v_total{comm=other}": 3075}, step(3, 6))
	r.SetLimit(-1, "")
	assert.Equal(t, m{"v_total{comm=a}": 1024, "v_total{comm=b}": 2048, "v_total{comm=other}": 3075}, step(3, 6))
}

// An object that is really called other, and can't be read at first, is waited for as the rest is.
func TestOtherWaitsForTheObjectOfThatName(t *testing.T) {
	r, a := limited(t, 1), newAgent(on("v", mpit.ClassCounter, tULong))
	x, y := a.object(Other, 1), a.object("b", 1)
	a.set("v", x, 10)
	a.set("v", y, 5)
	r.Update(a.sample())
	assert.Equal(t, m{"v_total{comm=other}": 15}, show(r))
	again := restart(t, r)
	a.failed[a.handle("v", x).ID] = true
	again.Update(a.after(time.Second).sample())
	assert.Empty(t, show(again))
	a.failed = map[uint32]bool{}
	again.Update(a.after(time.Second).sample())
	assert.Equal(t, m{"v_total{comm=other}": 15}, show(again))
}

// Of another companion, a folded timer's events are those that come from then on.
func TestFoldingWithAnotherCompanion(t *testing.T) {
	a := newAgent(on("t", mpit.ClassTimer, tDouble), on("t", mpit.ClassCounter, tULong), on("calls", mpit.ClassCounter, tULong))
	counters := Rule{Match: Match{Class: List{"counter"}}, Drop: &yes}
	r := limited(t, 34, counters)
	look := func(seconds float64, events, calls uint64) float64 {
		for i, x := range []uint64{word(seconds), events, calls} {
			a.handles[i].values[0], a.handles[i+3].values[0] = x, x
		}
		r.Update(a.after(time.Minute).sample())
		return show(r)["t_time_seconds{comm=other} count"]
	}
	a.object("a", 1)
	a.object("b", 1)
	look(1, 1000, 10)
	r.SetLimit(17, ReasonRankOverLimit)
	look(1, 1000, 10)
	assert.Equal(t, 20.0, look(2, 1010, 20))
	r = reload(t, r, Rule{Match: Match{Class: List{"timer"}}, Companion: "calls"}, counters)
	r.SetLimit(17, ReasonRankOverLimit)
	assert.Equal(t, 20.0, look(3, 1020, 30), "begins with what it has now")
	assert.Equal(t, 30.0, look(4, 1030, 35))
}
