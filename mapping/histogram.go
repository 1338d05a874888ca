package mapping

import (
	"math"
	"slices"
	"sort"
)

// Histogram is the value of a timer. Counts are not cumulative.
type Histogram struct {
	// upper bounds in seconds, shared by all of a variable; the last bucket, without a bound, is not among them
	Bounds []float64
	Counts []uint64 // one more than Bounds
	Count  uint64
	Sum    float64 // seconds

	// The same observations as a native histogram of schema Schema, sorted by Index. What is at most
	// NativeZeroThreshold stands in NativeZero.
	Schema     int32 // NativeSchema, or ExactSchema
	Native     []NativeBucket
	NativeZero uint64
}

// NativeBucket counts what lies in (base^(Index-1), base^Index] with base 2^(1/2^Schema), as Prometheus numbers
// the buckets of native histograms.
type NativeBucket struct {
	Index int32
	Count uint64
}

// The resolution of native histograms: four buckets for each doubling where the mean of an interval is what is known,
// one where the agent has counted single durations in buckets of powers of two (mpit.Variable, Distribution).
const (
	NativeSchema        = 2
	ExactSchema         = 0
	NativeZeroThreshold = 1e-9 // seconds
)

// maxNative is how many native buckets a histogram has at most.
const maxNative = 1024

// Lower gives a histogram a lower schema, so that it can have the observations of one that has it. Schemas never rise
// again.
func (h *Histogram) Lower(schema int32) {
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
	return slices.BinarySearchFunc(h.Native, index, func(b NativeBucket,
		index int32) int {
		return int(b.Index) - int(index)
	})
}

// AddNative adds n observations of a bucket of a histogram with that schema, which is no lower than this one's.
func (h *Histogram) AddNative(schema, index int32, n uint64) {
	h.addNative(lowerIndex(index, schema, h.Schema), n)
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

// Spread writes an exact histogram's counts into buckets as agents have them.
func (h *Histogram) Spread(to []uint64) {
	clear(to)
	if len(to) > 0 {
		to[0] = h.NativeZero
	}
	for _, b := range h.Native {
		if k := int(b.Index) + secondBucket; k >= 0 && k < len(to) {
			to[k] += b.Count
		}
	}
}

// Rise adds to an exact histogram what buckets have more than before. The last one has no upper end.
func (h *Histogram) Rise(was, now []uint64) {
	place, last := 0, len(now)-1
	for k, n := range now {
		if n <= was[k] {
			continue
		}
		n -= was[k]
		h.Count += n
		upper := upperEnd(k)
		for place < len(h.Bounds) && (k == last || h.Bounds[place] < upper) {
			place++
		}
		h.Counts[place] += n
		if k < last && upper <= NativeZeroThreshold {
			h.NativeZero += n
			continue
		}
		h.addNative(int32(k-secondBucket), n)
	}
}

// upperEnd is where bucket k ends, in seconds: what math.Ldexp says, without the cases that it has to tell apart.
func upperEnd(k int) float64 { return math.Float64frombits(uint64(1023+k-secondBucket) << 52) }

// Add makes n observations of x seconds.
func (h *Histogram) Add(x float64, n uint64) {
	h.Count += n
	h.Counts[sort.SearchFloat64s(h.Bounds, x)] += n
	if x <= NativeZeroThreshold {
		h.NativeZero += n
		return
	}
	h.addNative(int32(math.Ceil(math.Log2(x)*(1<<NativeSchema))), n)
}

// secondBucket is the bucket of a distribution that ends at a second: bucket k ends at 2^(k-secondBucket) s.
const secondBucket = 30
