package mapping

import (
	"slices"
	"sort"
)

// maxTogether is how many observations a Group's histogram takes, so that what ranks claim never overflows: none has more than 2^60, and
// what came once there are so many would be lost in the others' rounding anyway.
const maxTogether = 1 << 62

// maxNative is how many native buckets a histogram has at most.
const maxNative = 1024

// groupBuckets is what of a member's histogram the cell has taken last.
type groupBuckets struct {
	bounds     []float64
	place      []int // of each bucket in the cell's; nil: the same
	counts     []uint64
	nativeZero uint64
	native     []NativeBucket
	schema     int32
}

// newGroupBuckets prepares a histogram for a cell of others. A bucket that the cell hasn't got goes into the next wider one: what it says
// stays true.
func newGroupBuckets(h *Histogram, cell []float64) *groupBuckets {
	b := &groupBuckets{bounds: h.Bounds, counts: make([]uint64, len(h.Bounds)+1), schema: h.Schema}
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
func (b *groupBuckets) fits(h *Histogram) bool {
	return b != nil && b.schema == h.Schema && slices.Equal(b.bounds, h.Bounds)
}

// take adds to a cell's histogram what a member's has gained since the last time: bucket by bucket, as Count does; with skip nothing.
func (b *groupBuckets) take(to, h *Histogram, skip bool) {
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
	if add {
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
				to.addNative(lowerIndex(bucket.Index, h.Schema, to.Schema), n)
			}
		}
	}
	b.native = append(b.native[:0], h.Native...)
}

// lower gives a histogram a lower schema, so that it can have the observations of one that has it. Schemas never rise again.
func (h *Histogram) lower(schema int32) {
	if h.Schema > schema {
		h.Native, h.Schema = lowered(h.Native, h.Schema, schema), schema
	}
}

// lowered is native buckets in those of a lower schema, or the same.
func lowered(native []NativeBucket, from, to int32) []NativeBucket {
	if from <= to {
		return native
	}
	var h Histogram
	for _, b := range native {
		h.addNative(lowerIndex(b.Index, from, to), b.Count)
	}
	return h.Native
}

// lowerIndex is the bucket of a lower schema that has all of one of a higher; of the same schema it is that bucket.
func lowerIndex(index, from, to int32) int32 {
	if from <= to {
		return index
	}
	by := from - to
	return (index + 1<<by - 1) >> by
}

// findNative looks for a native bucket.
func (h *Histogram) findNative(index int32) (int, bool) {
	return slices.BinarySearchFunc(h.Native, index, func(b NativeBucket, index int32) int { return int(b.Index) - int(index) })
}

// addNative adds n to a native bucket. Of more than maxNative the rest is left out; the classic ones have it.
func (h *Histogram) addNative(index int32, n uint64) {
	i, found := h.findNative(index)
	if !found {
		if len(h.Native) >= maxNative {
			return
		}
		h.Native = slices.Insert(h.Native, i, NativeBucket{Index: index})
	}
	h.Native[i].Count += n
}
