package mapping

import (
	"math"
	"slices"
	"sort"
)

// Histogram is the value of a timer, or of a distribution of sizes. Counts are not cumulative.
type Histogram struct {
	Bytes bool // the observations are sizes in bytes, not durations in seconds

	// upper bounds, shared by all of a variable; the last bucket, without a bound, is not among them
	Bounds []float64
	Counts []uint64 // one more than Bounds
	Count  uint64
	Sum    float64

	// The same observations as a native histogram of schema Schema, sorted by Index. What is at most ZeroThreshold
	// stands in NativeZero.
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
// one where the agent has counted single durations or sizes in buckets of powers of two (mpit.Variable, Distribution).
const (
	NativeSchema        = 2
	ExactSchema         = 0
	NativeZeroThreshold = 1e-9 // seconds
)

// ZeroThreshold is how wide the native histogram's zero bucket is. Of sizes it is the agent's first bucket, which has
// messages without data.
func (h *Histogram) ZeroThreshold() float64 {
	if h.Bytes {
		return 1
	}
	return NativeZeroThreshold
}

// first is where the first of the agent's buckets ends, as a power of two: bucket k ends at 2^(first+k).
func (h *Histogram) first() int {
	if h.Bytes {
		return 0
	}
	return -30
}

// maxNative is how many native buckets a histogram has at most.
const maxNative = 1024

// AddNative adds n to a native bucket. Of more than maxNative the rest is left out; the classic ones have it.
func (h *Histogram) AddNative(index int32, n uint64) {
	i, found := slices.BinarySearchFunc(h.Native, index, func(b NativeBucket, index int32) int {
		return int(b.Index) - int(index)
	})
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
	first := h.first()
	for _, b := range h.Native {
		if k := int(b.Index) - first; k >= 0 && k < len(to) {
			to[k] += b.Count
		}
	}
}

// Rise adds to an exact histogram what buckets have more than before. The last one has no upper end.
func (h *Histogram) Rise(was, now []uint64) {
	place, last, first, zero := 0, len(now)-1, h.first(), h.ZeroThreshold()
	for k, n := range now {
		if n <= was[k] {
			continue
		}
		n -= was[k]
		h.Count += n
		upper := powerOfTwo(first + k)
		for place < len(h.Bounds) && (k == last || h.Bounds[place] < upper) {
			place++
		}
		h.Counts[place] += n
		if k < last && upper <= zero {
			h.NativeZero += n
			continue
		}
		h.AddNative(int32(first+k), n)
	}
}

// powerOfTwo is what math.Ldexp says, without the cases that it has to tell apart.
func powerOfTwo(exponent int) float64 { return math.Float64frombits(uint64(1023+exponent) << 52) }

// Add makes n observations of x seconds.
func (h *Histogram) Add(x float64, n uint64) {
	h.Count += n
	h.Counts[sort.SearchFloat64s(h.Bounds, x)] += n
	if x <= NativeZeroThreshold {
		h.NativeZero += n
		return
	}
	h.AddNative(int32(math.Ceil(math.Log2(x)*(1<<NativeSchema))), n)
}
