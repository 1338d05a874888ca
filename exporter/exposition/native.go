package exposition

import (
	dto "github.com/prometheus/client_model/go"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// native is the part of a histogram's message that makes it a native one beside its classic buckets: protobuf carries
// both, the text formats leave this one out. Its memory is used again in each round.
type native struct {
	schema    int32
	threshold float64
	zero      uint64
	deltas    []int64
	spans     []*dto.BucketSpan // all that were ever made
}

// set writes h's buckets into the message to. Prometheus refuses a whole page for a histogram whose buckets don't add
// up to its count, so such a one stays classic.
func (n *native) set(to *dto.Histogram, h *mapping.Histogram) {
	n.schema, n.threshold, n.deltas, n.zero = h.Schema, h.ZeroThreshold(), n.deltas[:0], h.NativeZero
	before, used := uint64(0), 0
	for i, b := range h.Native {
		if i > 0 && b.Index == h.Native[i-1].Index+1 {
			*n.spans[used-1].Length++
		} else {
			offset := b.Index // of the first span: its first bucket
			if i > 0 {
				offset -= h.Native[i-1].Index + 1 // of the others: the gap before it
			}
			if used == len(n.spans) {
				n.spans = append(n.spans, &dto.BucketSpan{Offset: new(int32), Length: new(uint32)})
			}
			*n.spans[used].Offset, *n.spans[used].Length = offset, 1
			used++
		}
		n.deltas = append(n.deltas, int64(b.Count-before))
		before = b.Count
	}
	if nativeCount(h) != to.GetSampleCount() {
		to.Schema, to.ZeroThreshold, to.ZeroCount, to.PositiveSpan, to.PositiveDelta = nil, nil, nil, nil, nil
		return
	}
	to.Schema, to.ZeroThreshold, to.ZeroCount = &n.schema, &n.threshold, &n.zero
	to.PositiveSpan, to.PositiveDelta = n.spans[:used], n.deltas
}

// nativeCount is how many observations the buckets of a native histogram have.
func nativeCount(h *mapping.Histogram) uint64 {
	total := h.NativeZero
	for _, b := range h.Native {
		total += b.Count
	}
	return total
}
