package series

import (
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// A TIMER that is a distribution (docs/internals/protocol.md) has, besides its accumulated time, the numbers of single
// durations in buckets of powers of two; an AGGREGATE has those of single sizes, besides the sum of all. The sum goes
// the way of all that only grows (mapping.Count), as the one element of its handle. The buckets go beside it: the
// agent has their totals at any time, so that a cell's histogram is those, and needs no memory of its own. Only where
// the totals have fallen, or what was counted before is not to show, does a cell keep the last ones.

const (
	minDistribution = 2 // elements: the sum, and a bucket
	maxDistribution = 128
)

// hasElements says whether a distribution has so many: as many as the first handle that could be one.
func (v *variable) hasElements(n int) bool {
	if v.bucketCount == 0 && n >= minDistribution && n <= maxDistribution {
		v.bucketCount = int32(n - 1)
	}
	return v.bucketCount > 0 && int(v.bucketCount) == n-1
}

// exact is what a cell of a distribution keeps besides its timer's histogram.
type exact struct {
	// What the totals are made of, in this plan.
	handles []*handle
	remains []*mpit.Remain

	known bool     // totals have been read
	last  []uint64 // those of the last Update; nil: the histogram has them
}

// forget lets a plan begin anew.
func (d *exact) forget() { d.handles, d.remains = d.handles[:0], d.remains[:0] }

// totals sums what the agent has counted, in to. All handles have been read.
func (d *exact) totals(in *intake, to []uint64) {
	for _, h := range d.handles {
		words, _ := h.words(in.values)
		before, wrong := h.of.Before(), false
		plain := len(before.Origin) == 0 && len(before.Excluded) == 0
		for k := range to {
			w := words[k+1]
			if w == 0 && plain {
				continue
			}
			base := h.v.baseOf(h.of, k+1)
			n, good := countOf(w, base, int64(excludedOf(h.of, k+1)))
			wrong = wrong || !good
			to[k] = min(to[k]+n, maxEvents)
		}
		if wrong {
			in.dropped[mapping.ReasonNegative]++
		}
	}
	for _, rm := range d.remains {
		for k := range to {
			to[k] = min(to[k]+remainOf(rm, k+1), maxEvents)
		}
	}
}

// countOf is w-base-excluded, from 0 to maxEvents. Whatever lies outside is nothing that an agent counts.
func countOf(w, base uint64, excluded int64) (n uint64, good bool) {
	if w < base {
		return 0, false
	}
	switch n = w - base; {
	case excluded > 0 && n < uint64(excluded):
		return 0, false
	case excluded > 0:
		n -= uint64(excluded)
	case excluded < 0: // it can't have been reset
		return min(n, maxEvents), false
	}
	return min(n, maxEvents), true
}

// remainOf is what freed objects have counted in an element, from 0 to maxEvents.
func remainOf(rm *mpit.Remain, i int) uint64 {
	n := int64(0)
	for _, part := range [][]uint64{rm.Gained, rm.First} {
		if i < len(part) {
			n += min(max(0, int64(part[i])), maxEvents)
		}
	}
	return uint64(min(n, maxEvents))
}

// tally brings the buckets of a cell up to date, all of which have been read.
func (t *timer) tally(c *cell, in *intake) {
	d := t.exact
	var sums, had, shown [maxDistribution]uint64
	n := int(c.v.bucketCount)
	total, was, now := sums[:n], had[:n], shown[:n]
	d.totals(in, total)
	t.hist.Spread(was)
	if !d.known {
		if d.known = true; c.anew {
			d.last = slices.Clone(total)
			return
		}
	}
	if d.last == nil {
		fell := false
		for k, x := range total {
			fell = fell || x < was[k]
		}
		if !fell {
			t.hist.Rise(was, total)
			return
		}
		d.last = slices.Clone(was)
	}
	copy(now, was)
	for k, x := range total {
		if x > d.last[k] {
			now[k] = min(was[k]+(x-d.last[k]), maxEvents)
		}
		d.last[k] = x
	}
	t.hist.Rise(was, now)
}

// maxEvents bounds counts, so that sums of them cannot overflow.
const maxEvents = 1 << 53
