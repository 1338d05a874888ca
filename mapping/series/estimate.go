package series

import (
	"math"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// A TIMER says how much time something took in all, not how long each time: its histogram is estimated. From one
// interval to the next, what has been gained is one observation; where a COUNTER of the same events is known, the
// timer's companion, it is as many as that has counted, each as long as all of them in the mean.

// estimate is what a timer's cell keeps whose observations are estimated.
type estimate struct {
	events mapping.Count // of the companion, in its own unit

	// Of the companion's handles, in the running Update, and of its freed objects.
	sum        float64
	fixed      float64
	known      bool
	fixedKnown bool
}

// companion is a handle that counts the events of a timer.
type companion struct {
	h     *handle
	timer *variable
	cells []*cell // of the timer, one, or one for each element; nil as in element
}

// estimates says whether the variable is a timer whose cells count the events of its companion.
func (v *variable) estimates() bool {
	return v.Metric != nil && v.Metric.Kind == mapping.KindHistogram && !v.Exact
}

// read brings what a companion has counted to its timer's cells, once its handle has been read.
func (of *companion) read() {
	for i := range of.h.elems {
		e, c := &of.h.elems[i], of.cells[min(i, len(of.cells)-1)]
		if c == nil || !e.ok {
			continue
		}
		x, to := of.h.amount(i), c.timer.estimate
		if e.late && c.anew && of.h.before(c.v.of.Since) {
			to.events.SkipPart(x)
		}
		to.sum += x
		to.known = true
	}
}

// settle takes in how many events there have been; the histogram moves in observe.
func (e *estimate) settle(anew bool) {
	switch now := e.sum + e.fixed; {
	case !e.known && !e.fixedKnown || !mapping.Finite(now):
	case anew && !e.events.Known():
		e.events.Skip(now)
	default:
		e.events.Take(now)
	}
}

// observe ends an interval: what has been gained in it becomes observations. Time without an event waits for one,
// which the last sample's can't.
func (c *cell) observe(last bool) {
	hist, sum := &c.timer.hist, c.count.Total()*c.v.Scale
	gained := sum - hist.Sum
	if with := c.v.of.With; with != nil {
		n := math.Floor(c.timer.estimate.events.Total()*with.Scale - float64(hist.Count))
		if n >= 1 && n <= maxEvents-float64(min(hist.Count, maxEvents)) {
			hist.Sum = sum
			hist.Add(gained/n, uint64(n))
		} else if last {
			hist.Sum = sum
		}
	} else if gained > 0 {
		hist.Sum = sum
		hist.Add(gained, 1)
	}
}
