package merge

import (
	"slices"
	"sort"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// maxTogether is how many observations a Group's histogram takes, so that what ranks claim never overflows: none has
// more than 2^60, and what came once there are so many would be lost in the others' rounding anyway.
const maxTogether = 1 << 62

// buckets is what of a member's histogram the cell has taken last.
type buckets struct {
	bounds     []float64
	place      []int // of each bucket in the cell's; nil: the same
	counts     []uint64
	nativeZero uint64
	native     []mapping.NativeBucket
	schema     int32
}

// newBuckets prepares a histogram for a cell of others. A bucket that the cell hasn't got goes into the next wider
// one: what it says stays true.
func newBuckets(h *mapping.Histogram, cell []float64) *buckets {
	b := &buckets{bounds: h.Bounds, counts: make([]uint64, len(h.Bounds)+1), schema: h.Schema}
	if slices.Equal(h.Bounds, cell) {
		return b
	}
	b.place = make([]int, len(h.Bounds)+1)
	for i, bound := range h.Bounds {
		b.place[i] = sort.SearchFloat64s(cell, bound)
	}
	b.place[len(h.Bounds)] = len(cell)
	return b
}

// fits says whether the buckets are those of a histogram.
func (b *buckets) fits(h *mapping.Histogram) bool {
	return b != nil && b.schema == h.Schema && slices.Equal(b.bounds, h.Bounds)
}

// take adds to a cell's histogram what a member's has gained since the last time: bucket by bucket, as Count does;
// with skip nothing.
func (b *buckets) take(to, h *mapping.Histogram, skip bool) {
	if len(h.Counts) != len(b.counts) {
		return // no Rank makes such a thing
	}
	add := !skip && to.Count < maxTogether
	for i, n := range h.Counts {
		if n > b.counts[i] && add {
			at := i
			if b.place != nil {
				at = b.place[i]
			}
			to.Counts[at] += n - b.counts[i]
			to.Count += n - b.counts[i]
		}
		b.counts[i] = n
	}
	if h.NativeZero > b.nativeZero && add {
		to.NativeZero += h.NativeZero - b.nativeZero
	}
	b.nativeZero = h.NativeZero
	if add && h.Schema == to.Schema { // else no buckets can be both's: there is no native histogram then
		old := b.native
		for _, bucket := range h.Native {
			for len(old) > 0 && old[0].Index < bucket.Index {
				old = old[1:]
			}
			n := bucket.Count
			if len(old) > 0 && old[0].Index == bucket.Index {
				n -= min(n, old[0].Count)
			}
			if n > 0 {
				to.AddNative(bucket.Index, n)
			}
		}
	}
	b.native = append(b.native[:0], h.Native...)
}
