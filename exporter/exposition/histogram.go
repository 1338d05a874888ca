package exposition

import "github.com/mpit-exporter/mpit-exporter/mapping"

// CopyHistogram copies from's numbers, using the memory that to has. Bounds never change.
func CopyHistogram(to, from *mapping.Histogram) {
	if from == nil {
		return
	}
	counts, native := append(to.Counts[:0], from.Counts...), append(to.Native[:0], from.Native...)
	*to = *from
	to.Counts, to.Native = counts, native
}

// CountOfAll is the count of a histogram's observations: never less than a bucket's, whatever came from the rank. sum
// is what the buckets with a bound hold.
func CountOfAll(h *mapping.Histogram, sum uint64) uint64 { return max(sum, h.Count) }

// nativeCount is how many observations the buckets of a native histogram have.
func nativeCount(h *mapping.Histogram) uint64 {
	total := h.NativeZero
	for _, b := range h.Native {
		total += b.Count
	}
	return total
}
