package series

import (
	"math"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// timer is what a cell of a timer, or of a distribution of sizes, keeps besides the sum that has been counted.
type timer struct {
	hist mapping.Histogram

	// One of the two: observations are counted by the agent, or estimated here.
	exact    *exact
	estimate *estimate
}

// estimate is what a timer keeps whose observations are estimated.
type estimate struct {
	events mapping.Count // of the companion, in its own unit

	// Of the companion's handles, in the running Update, and of its freed objects.
	sum        float64
	fixed      float64
	known      bool
	fixedKnown bool
}

func (t *timer) begin(v *variable) {
	t.hist = mapping.Histogram{Bytes: v.Sizes(), Schema: mapping.NativeSchema, Bounds: v.Buckets,
		Counts: make([]uint64, len(v.Buckets)+1)}
	if v.Exact {
		t.hist.Schema, t.exact = mapping.ExactSchema, &exact{}
	} else {
		t.estimate = &estimate{}
	}
}

// fromZero says that the observations begin at zero, too: what is read first counts as a whole.
func (t *timer) fromZero() {
	if t.exact != nil {
		t.exact.known = true
		return
	}
	t.estimate.events.Skip(0)
}

// settle brings a timer up to date whose time has been counted; an estimated histogram moves in observe. fresh says
// that all of it has been read.
func (t *timer) settle(c *cell, in *intake, fresh bool) {
	e := t.estimate
	if e == nil {
		if t.hist.Sum = c.count.Total() * c.v.Scale; fresh {
			t.tally(c, in)
		}
		return
	}
	switch now := e.sum + e.fixed; {
	case !e.known && !e.fixedKnown || !mapping.Finite(now):
	case c.anew && !e.events.Known():
		e.events.Skip(now)
	default:
		e.events.Take(now)
	}
}

// lose says that nothing contributes any more, of so many buckets.
func (t *timer) lose(buckets int) {
	if t.exact != nil {
		t.exact.last = make([]uint64, buckets)
		return
	}
	t.estimate.events.Skip(0)
}

// observe ends an interval: what has been gained in it becomes observations. Of a timer with a companion these are
// the new events, each as long as all of them in the mean; else it is one. Time without an event waits for one, which
// the last sample's can't.
func (c *cell) observe(last bool) {
	t, sum := c.timer, c.count.Total()*c.v.Scale
	gained := sum - t.hist.Sum
	if with := c.v.of.With; with != nil {
		n := math.Floor(c.timer.estimate.events.Total()*with.Scale - float64(t.hist.Count))
		if n >= 1 && n <= maxEvents-float64(min(t.hist.Count, maxEvents)) {
			t.hist.Sum = sum
			t.hist.Add(gained/n, uint64(n))
		} else if last {
			t.hist.Sum = sum
		}
	} else if gained > 0 {
		t.hist.Sum = sum
		t.hist.Add(gained, 1)
	}
}
