package otlp

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// deltaHistogram makes the points of a histogram deltas, in place. Least and greatest values are not known of an
// interval. A histogram of other bounds has begun anew.
func deltaHistogram(d *deltas, t *table, points []explicit) ([]explicit, []advance) {
	return change(d, t, points,
		func(p *explicit) (attribute.Set, state) {
			return p.Attributes, state{start: nanos(p.StartTime), at: nanos(p.Time), value: p.Sum,
				distribution: &distribution{count: p.Count, bounds: p.Bounds, buckets: p.BucketCounts}}
		},
		func(p *explicit, was state) (fallen bool) {
			last := was.distribution
			if last == nil || p.Count < last.count || !(p.Sum >= was.value) || !slices.Equal(last.bounds, p.Bounds) {
				return true
			}
			p.Count -= last.count
			p.Sum -= was.value
			p.BucketCounts, fallen = subtractCounts(p.BucketCounts, last.buckets)
			return fallen
		},
		func(p *explicit, start time.Time) {
			p.StartTime, p.Min, p.Max = start, metricdata.Extrema[float64]{}, metricdata.Extrema[float64]{}
		})
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
func deltaExponential(d *deltas, t *table, points []exponential) ([]exponential, []advance) {
	return change(d, t, points,
		func(p *exponential) (attribute.Set, state) {
			return p.Attributes, state{start: nanos(p.StartTime), at: nanos(p.Time), value: p.Sum,
				distribution: &distribution{count: p.Count, scale: p.Scale, zeroes: p.ZeroCount,
					zeroThreshold: p.ZeroThreshold, positive: p.PositiveBucket, negative: p.NegativeBucket}}
		},
		func(p *exponential, was state) (fallen bool) {
			last := was.distribution
			//nolint:gocritic // the same number, not a near one
			if last == nil || p.Scale > last.scale || p.ZeroThreshold != last.zeroThreshold ||
				p.Count < last.count || p.ZeroCount < last.zeroes ||
				len(p.NegativeBucket.Counts) == 0 && p.Sum < was.value {
				return true
			}
			var also bool
			p.PositiveBucket, fallen = subtractIndexes(p.PositiveBucket, coarser(last.positive, last.scale-p.Scale))
			p.NegativeBucket, also = subtractIndexes(p.NegativeBucket, coarser(last.negative, last.scale-p.Scale))
			p.Count -= last.count
			p.ZeroCount -= last.zeroes
			p.Sum -= was.value
			return fallen || also
		},
		func(p *exponential, start time.Time) {
			p.StartTime, p.Min, p.Max = start, metricdata.Extrema[float64]{}, metricdata.Extrema[float64]{}
		})
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
