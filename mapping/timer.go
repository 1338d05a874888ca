package mapping

import (
	"math"
	"sort"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// timer is what a cell of a timer keeps besides its count: the observations, and up to where they have been made.
type timer struct {
	hist      Histogram
	seconds   float64 // accumulated time that stands in observations
	events    float64 // events of the companion that do
	recount   bool    // events are another companion's: from now on those of this one
	companion *cell   // the companion's, in this plan; nil: not looked for, or none
	exact     *exact  // of a distribution; nil: it isn't, and what follows of it stands in no other field
}

func newTimer(bounds []float64) timer {
	return timer{hist: Histogram{Schema: NativeSchema, Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}}
}

// closing says whether the interval ends with this sample. The rank's own clock decides, so that it doesn't matter how
// many scrapers there are, nor how late a scrape is served.
func (r *Rank) closing(s *mpit.Sample) bool {
	if r.hasClosed && s.Status != mpit.SampleFinal && s.Monotonic >= r.closed && s.Monotonic-r.closed < r.mapper.interval {
		return false
	}
	r.closed, r.hasClosed = s.Monotonic, true
	return true
}

// observe brings a timer's histogram up to date; cells are settled.
func (c *cell) observe(r *Rank, closing bool) {
	t := c.timer
	if t == nil || t.exact != nil || !c.count.has && c.rest() == nil {
		return
	}
	now := c.amount() * c.v.scale
	t.hist.Sum = now
	events, fresh, counted := c.companionEvents()
	if c.count.restarted && c.rest() == nil {
		t.hist.clear()
		t.seconds, t.events, t.recount = 0, 0, true
		r.dirty = true
	}
	if t.recount && counted {
		t.events, t.recount, r.dirty = events, false, true
	}
	if fresh >= 0 && c.rest() == nil {
		t.events = min(t.events, events-fresh)
	}
	if now < t.seconds {
		t.seconds = now
	}
	if counted && events < t.events {
		t.events = events
	}
	if !closing {
		return
	}
	gained := now - t.seconds
	n := uint64(1)
	if c.v.with != nil {
		d := math.Floor(events - t.events)
		if d < 1 || d > 1<<53 {
			return // the time of calls that haven't ended waits for them
		}
		n = uint64(d)
		t.events += d
	} else if gained <= 0 {
		return
	}
	t.seconds = now
	t.hist.add(gained/float64(n), n)
	r.dirty = true
}

// companionEvents is how many events the timer's series stands for, and how many of them came since its companion was reset in this
// Update; below zero, if it was not. Not known is what has not been read yet.
func (c *cell) companionEvents() (n, fresh float64, known bool) {
	if rest := c.rest(); rest != nil {
		return rest.events.total * c.v.with.unitScale(), -1, rest.events.has
	}
	n, fresh, known = c.companionCount()
	if c.v.with == nil || !known {
		return 0, -1, known
	}
	p := c.seldom().events
	return p.own(c.folded, n) * c.v.with.scale, fresh * c.v.with.scale, true
}

// unitScale is 1 where there is no variable.
func (v *variable) unitScale() float64 {
	if v == nil {
		return 1
	}
	return v.scale
}

// companion is the companion's cell that is like the timer's; nil: there is none.
func (c *cell) companion() *cell {
	if c.timer == nil {
		return c.v.with.find(c.id)
	}
	if c.timer.companion == nil {
		c.timer.companion = c.v.with.find(c.id)
	}
	return c.timer.companion
}

// companionCount is what the timer's companion has counted, in the companion's own unit, and how much of it since it was reset in
// this Update; below zero, if it was not. It stands in a cell like the timer's, for both are merged alike. Not known is what has
// not been read yet; of a timer without a companion that is always known.
func (c *cell) companionCount() (n, fresh float64, known bool) {
	if c.v.with == nil {
		return 0, -1, true
	}
	o := c.companion()
	if o == nil || !o.count.has {
		return 0, -1, false
	}
	if fresh = -1; o.count.restarted {
		fresh = o.count.value
	}
	return o.count.value, fresh, true
}

// add makes n observations of x seconds.
func (h *Histogram) add(x float64, n uint64) {
	h.Count += n
	h.Counts[sort.SearchFloat64s(h.Bounds, x)] += n
	if x <= NativeZeroThreshold {
		h.NativeZero += n
		return
	}
	h.addNative(int32(math.Ceil(math.Log2(x)*(1<<NativeSchema))), n)
}

func (h *Histogram) clear() {
	clear(h.Counts)
	h.Count, h.Native, h.NativeZero = 0, nil, 0
}

// join adds the observations of another timer of the same variable.
func (t *timer) join(o *timer) {
	for i, n := range o.hist.Counts {
		t.hist.Counts[i] += n
	}
	t.hist.Count += o.hist.Count
	t.hist.NativeZero += o.hist.NativeZero
	for _, b := range o.hist.Native {
		t.hist.addNative(b.Index, b.Count)
	}
	t.seconds += o.seconds
	t.events += o.events
	t.recount = t.recount || o.recount
}
