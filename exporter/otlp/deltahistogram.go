package otlp

import (
	"slices"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// deltaHistogram makes the points of a histogram deltas, in place. Least and greatest values are not known of an
// interval. A histogram of other bounds has begun anew.
func deltaHistogram[N int64 | float64](d *deltas, t *table,
	points []metricdata.HistogramDataPoint[N]) ([]metricdata.HistogramDataPoint[N], []advance) {
	kept, next := points[:0], make([]advance, 0, len(points))
	for _, p := range points {
		now := &distribution{count: p.Count, bounds: p.Bounds, buckets: p.BucketCounts}
		to := state{start: nanos(p.StartTime), at: nanos(p.Time), value: bitsOf(p.Sum), distribution: now}
		s := d.find(t, p.Attributes, to.start)
		var buckets []uint64
		fallen := true
		if last := s.last.distribution; last != nil && now.count >= last.count && p.Sum >= ofBits[N](s.last.value) &&
			slices.Equal(last.bounds, now.bounds) {
			buckets, fallen = subtractCounts(now.buckets, last.buckets)
		}
		start, subtract, send := d.begin(s, to, fallen)
		if !send {
			continue
		}
		if subtract {
			p.Count -= s.last.distribution.count
			p.Sum -= ofBits[N](s.last.value)
			p.BucketCounts = buckets
		}
		p.StartTime, p.Min, p.Max, p.Exemplars = timeAt(start), metricdata.Extrema[N]{}, metricdata.Extrema[N]{}, nil
		kept, next = append(kept, p), append(next, advance{s, to})
	}
	return kept, next
}

func subtractCounts(now, last []uint64) (difference []uint64, fallen bool) {
	if len(now) != len(last) {
		return nil, true
	}
	difference = make([]uint64, len(now))
	for i := range now {
		if now[i] < last[i] {
			return nil, true
		}
		difference[i] = now[i] - last[i]
	}
	return difference, false
}

// deltaExponential is deltaHistogram of exponential ones. The last counts are brought to the present scale where that
// is coarser; a finer one begins anew: so do Prometheus' native histograms.
func deltaExponential[N int64 | float64](d *deltas, t *table,
	points []metricdata.ExponentialHistogramDataPoint[N]) ([]metricdata.ExponentialHistogramDataPoint[N], []advance) {
	kept, next := points[:0], make([]advance, 0, len(points))
	for _, p := range points {
		now := &distribution{count: p.Count, scale: p.Scale, zeroes: p.ZeroCount, zeroThreshold: p.ZeroThreshold,
			positive: p.PositiveBucket, negative: p.NegativeBucket}
		to := state{start: nanos(p.StartTime), at: nanos(p.Time), value: bitsOf(p.Sum), distribution: now}
		s := d.find(t, p.Attributes, to.start)
		var positive, negative metricdata.ExponentialBucket
		fallen := true
		//nolint:gocritic // the same number, not a near one
		if last := s.last.distribution; last != nil && now.scale <= last.scale &&
			now.zeroThreshold == last.zeroThreshold &&
			now.count >= last.count && now.zeroes >= last.zeroes {
			var fell, also bool
			positive, fell = subtractIndexes(now.positive, coarser(last.positive, last.scale-now.scale))
			negative, also = subtractIndexes(now.negative, coarser(last.negative, last.scale-now.scale))
			fallen = fell || also || len(now.negative.Counts) == 0 && p.Sum < ofBits[N](s.last.value)
		}
		start, subtract, send := d.begin(s, to, fallen)
		if !send {
			continue
		}
		if subtract {
			p.Count -= s.last.distribution.count
			p.ZeroCount -= s.last.distribution.zeroes
			p.Sum -= ofBits[N](s.last.value)
			p.PositiveBucket, p.NegativeBucket = positive, negative
		}
		p.StartTime, p.Min, p.Max, p.Exemplars = timeAt(start), metricdata.Extrema[N]{}, metricdata.Extrema[N]{}, nil
		kept, next = append(kept, p), append(next, advance{s, to})
	}
	return kept, next
}

// coarser merges each 2^by neighbours.
func coarser(b metricdata.ExponentialBucket, by int32) metricdata.ExponentialBucket {
	if by == 0 || len(b.Counts) == 0 {
		return b
	}
	by = min(by, 31) // an index has no more bits
	merged := metricdata.ExponentialBucket{Offset: b.Offset >> by}
	for i, count := range b.Counts {
		at := int((int64(b.Offset)+int64(i))>>by - int64(merged.Offset))
		for len(merged.Counts) <= at {
			merged.Counts = append(merged.Counts, 0)
		}
		merged.Counts[at] += count
	}
	return merged
}

// subtractIndexes subtracts what has the same index.
func subtractIndexes(now, last metricdata.ExponentialBucket) (difference metricdata.ExponentialBucket, fallen bool) {
	difference = metricdata.ExponentialBucket{Offset: now.Offset, Counts: slices.Clone(now.Counts)}
	for i, count := range last.Counts {
		at := int64(last.Offset) + int64(i) - int64(now.Offset)
		switch {
		case count == 0:
		case at < 0 || at >= int64(len(difference.Counts)) || difference.Counts[at] < count:
			return metricdata.ExponentialBucket{}, true
		default:
			difference.Counts[at] -= count
		}
	}
	return difference, false
}
