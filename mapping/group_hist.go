package mapping

import (
	"math"
	"slices"
	"sort"
)

// maxTogether is how many observations a Group's histogram takes, so that what ranks claim never overflows: none has more than 2^60, and
// what came once there are so many would be lost in the others' rounding anyway.
const maxTogether = 1 << 62

// groupBuckets is what of a member's histogram is in the cell.
type groupBuckets struct {
	bounds     []float64
	place      []int // of each bucket in the cell's; nil: the same
	counts     []uint64
	count      uint64
	nativeZero uint64
	native     []NativeBucket
	schema     int32
	moved      bool // count and the native buckets are of a histogram of other bounds, or another schema
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

// follow is the same for a histogram that has taken the place of the one before: with other rules it has other bounds, and the same
// observations.
func (b *groupBuckets) follow(h *Histogram, cell []float64) *groupBuckets {
	switch {
	case b == nil:
		made := newGroupBuckets(h.Bounds, cell)
		made.schema = h.Schema
		return made
	case b.schema == h.Schema && slices.Equal(b.bounds, h.Bounds):
		return b
	}
	made := newGroupBuckets(h.Bounds, cell)
	made.count, made.nativeZero, made.native, made.schema, made.moved = b.count, b.nativeZero, b.native, b.schema, true
	return made
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
	if h.Count == b.count && !reset && !b.moved {
		return
	}
	to := p.cell.series.Histogram
	late = late || to.Count >= maxTogether
	switch {
	case b.moved && !reset && !late && b.moveTo(to, h):
	case reset || b.moved || b.shrinks(h):
		b.clear()
		fallthrough
	default:
		if !late {
			b.addTo(to, h)
		}
	}
	b.moved, b.schema = false, h.Schema
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
			to.addNative(lowerIndex(bucket.Index, h.Schema, to.Schema), n)
		}
	}
}

// moveTo adds what h has more than the histogram that it has taken the place of, as the native buckets say: each goes where its upper
// end belongs. False: it has less of something.
func (b *groupBuckets) moveTo(to, h *Histogram) bool {
	schema := min(b.schema, h.Schema)
	was := Histogram{Native: lowered(b.native, b.schema, schema)}
	now := &Histogram{Native: lowered(h.Native, h.Schema, schema), NativeZero: h.NativeZero}
	old := groupBuckets{nativeZero: b.nativeZero, native: was.Native}
	if now.Count = math.MaxUint64; old.shrinks(now) {
		return false
	}
	add := func(place int, n uint64) {
		to.Counts[place] += n
		to.Count += n
	}
	add(0, h.NativeZero-b.nativeZero)
	to.NativeZero += h.NativeZero - b.nativeZero
	for _, bucket := range now.Native {
		n := bucket.Count
		if i, found := was.findNative(bucket.Index); found {
			n -= was.Native[i].Count
		}
		if n > 0 {
			upper := math.Exp2(math.Ldexp(float64(bucket.Index), -int(schema)))
			add(sort.SearchFloat64s(to.Bounds, upper), n)
			to.addNative(lowerIndex(bucket.Index, schema, to.Schema), n)
		}
	}
	return true
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
