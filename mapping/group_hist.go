package mapping

import (
	"slices"
	"sort"
)

// groupBuckets is what of a member's histogram is in the cell.
type groupBuckets struct {
	bounds     []float64
	place      []int // of each bucket in the cell's; nil: the same
	counts     []uint64
	count      uint64
	nativeZero uint64
	native     []NativeBucket
}

// newGroupBuckets prepares a histogram of such bounds for a cell of others. A bucket that the cell hasn't got goes into the next
// wider one: what it says stays true.
func newGroupBuckets(bounds, cell []float64) *groupBuckets {
	b := &groupBuckets{bounds: bounds, counts: make([]uint64, len(bounds)+1)}
	if slices.Equal(bounds, cell) {
		return b
	}
	b.place = make([]int, len(bounds)+1)
	for i, bound := range bounds {
		b.place[i] = sort.SearchFloat64s(cell, bound)
	}
	b.place[len(bounds)] = len(cell)
	return b
}

func (b *groupBuckets) clear() {
	clear(b.counts)
	b.count, b.nativeZero, b.native = 0, 0, b.native[:0]
}

// observe adds the observations that are new to the cell; with late they only count as known. Those of a histogram that holds
// less than before, in any bucket, are all new: it has been reset, or begun anew as it was not in the blob.
func (p *groupPart) observe(h *Histogram, late, reset bool) {
	b := p.hist
	if len(h.Counts) != len(b.counts) {
		return // no Rank makes such a thing
	}
	if h.Count == b.count && !reset {
		return
	}
	if reset || b.shrinks(h) {
		b.clear()
	}
	if !late {
		b.addTo(p.cell.series.Histogram, h)
	}
	copy(b.counts, h.Counts)
	b.count, b.nativeZero = h.Count, h.NativeZero
	b.native = append(b.native[:0], h.Native...)
}

// shrinks says whether h has less in any bucket than was there before.
func (b *groupBuckets) shrinks(h *Histogram) bool {
	if h.Count < b.count || h.NativeZero < b.nativeZero {
		return true
	}
	for i, n := range b.counts {
		if h.Counts[i] < n {
			return true
		}
	}
	i := 0
	for _, old := range b.native {
		for i < len(h.Native) && h.Native[i].Index < old.Index {
			i++
		}
		if i == len(h.Native) || h.Native[i].Index != old.Index || h.Native[i].Count < old.Count {
			return true
		}
	}
	return false
}

// addTo adds what h has more than was there before.
func (b *groupBuckets) addTo(to, h *Histogram) {
	to.Count += h.Count - b.count
	for i, n := range h.Counts {
		at := i
		if b.place != nil {
			at = b.place[i]
		}
		to.Counts[at] += n - b.counts[i]
	}
	to.NativeZero += h.NativeZero - b.nativeZero
	old := b.native
	for _, bucket := range h.Native {
		n := bucket.Count
		if len(old) > 0 && old[0].Index == bucket.Index {
			n -= old[0].Count
			old = old[1:]
		}
		if n > 0 {
			to.addNative(bucket.Index, n)
		}
	}
}

// addNative adds n to a native bucket. Of more than maxNative the rest is left out; the classic ones have it.
func (h *Histogram) addNative(index int32, n uint64) {
	i, found := slices.BinarySearchFunc(h.Native, index, func(b NativeBucket, index int32) int { return int(b.Index) - int(index) })
	if !found {
		if len(h.Native) >= maxNative {
			return
		}
		h.Native = slices.Insert(h.Native, i, NativeBucket{Index: index})
	}
	h.Native[i].Count += n
}
