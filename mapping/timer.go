package mapping

import (
	"math"
	"slices"
	"sort"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// timer is what a cell of a timer keeps besides its count: the observations, and up to where they have been made.
type timer struct {
	hist    Histogram
	seconds float64 // accumulated time that stands in observations
	events  float64 // events of the companion that do
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
	now := c.count.value * c.v.scale
	t.hist.Sum = now
	var events float64
	var companion *cell
	if c.v.with != nil {
		if companion = c.v.with.cells[c.id]; companion != nil {
			events = companion.count.value * c.v.with.scale
		}
	}
	if c.count.restarted {
		clear(t.hist.Counts)
		t.hist.Count, t.hist.Native, t.hist.NativeZero = 0, nil, 0
		t.seconds, t.events = 0, events
		r.dirty = true
	}
	if companion != nil && companion.count.restarted {
		t.events = 0
	}
	if now < t.seconds {
		t.seconds = now
	}
	if events < t.events {
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

// add makes n observations of x seconds.
func (h *Histogram) add(x float64, n uint64) {
	h.Count += n
	h.Counts[sort.SearchFloat64s(h.Bounds, x)] += n
	if x <= NativeZeroThreshold {
		h.NativeZero += n
		return
	}
	index := int32(math.Ceil(math.Log2(x) * (1 << NativeSchema)))
	i, found := slices.BinarySearchFunc(h.Native, index, func(b NativeBucket, index int32) int { return int(b.Index - index) })
	if !found {
		h.Native = slices.Insert(h.Native, i, NativeBucket{Index: index})
	}
	h.Native[i].Count += n
}
