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
	seconds float64       // accumulated time that stands in observations
	placed  float64       // events of the companion that do
	events  mapping.Count // of the companion, in its own unit

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

// settle brings a timer up to date whose time has been counted. fresh says that all of it has been read.
func (t *timer) settle(c *cell, in *intake, fresh bool) {
	t.hist.Sum = c.count.Total() * c.v.Scale
	e := t.estimate
	if e == nil {
		if fresh {
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
// the new events, each as long as all of them in the mean; else it is one.
func (c *cell) observe() {
	t, e := c.timer, c.timer.estimate
	gained := t.hist.Sum - e.seconds
	n := uint64(1)
	if c.v.of.With != nil {
		d := math.Floor(e.events.Total()*c.v.of.With.Scale - e.placed)
		if d < 1 || d > maxEvents-float64(min(t.hist.Count, maxEvents)) {
			return // the time of calls that haven't ended waits for them
		}
		n = uint64(d)
		e.placed += d
	} else if gained <= 0 {
		return
	}
	e.seconds = t.hist.Sum
	t.hist.Add(gained/float64(n), n)
}
