package otlp

import "go.opentelemetry.io/otel/sdk/metric/metricdata"

// The points that a Source has.
type (
	number      = metricdata.DataPoint[float64]
	explicit    = metricdata.HistogramDataPoint[float64]
	exponential = metricdata.ExponentialHistogramDataPoint[float64]
)

// blocks makes what is to be sent of what was read, deltas where d wants them; a nil d wants none. The data are used
// up.
func blocks(d *deltas, read []metricdata.ScopeMetrics) []*scope {
	scopes := make([]*scope, 0, len(read))
	for i := range read {
		s := &scope{ScopeMetrics: metricdata.ScopeMetrics{Scope: read[i].Scope}}
		for j := range read[i].Metrics {
			if b := blockOf(d, s, &read[i].Metrics[j]); b.points > 0 {
				s.blocks = append(s.blocks, b)
			}
		}
		scopes = append(scopes, s)
	}
	return scopes
}

// blockOf makes the block of a metric. It has no points if the metric has none, or none of those above.
func blockOf(d *deltas, s *scope, m *metricdata.Metrics) *block {
	const delta = metricdata.DeltaTemporality
	b := &block{metric: metricdata.Metrics{Name: m.Name, Description: m.Description, Unit: m.Unit}}
	switch data := m.Data.(type) {
	case metricdata.Gauge[float64]:
		fill(b, data.DataPoints, sizeOfNumber, func(points []number) metricdata.Aggregation {
			return metricdata.Gauge[float64]{DataPoints: points}
		})
	case metricdata.Sum[float64]:
		if d != nil && data.IsMonotonic && d.sums == delta {
			data.DataPoints, b.next = deltaSum(d, d.table(s, &b.metric, kindSum), data.DataPoints)
			data.Temporality = delta
		}
		fill(b, data.DataPoints, sizeOfNumber, func(points []number) metricdata.Aggregation {
			return metricdata.Sum[float64]{DataPoints: points, Temporality: data.Temporality,
				IsMonotonic: data.IsMonotonic}
		})
	case metricdata.Histogram[float64]:
		if d != nil && d.histograms == delta {
			data.DataPoints, b.next = deltaHistogram(d, d.table(s, &b.metric, kindHistogram), data.DataPoints)
			data.Temporality = delta
		}
		fill(b, data.DataPoints, sizeOfHistogram, func(points []explicit) metricdata.Aggregation {
			return metricdata.Histogram[float64]{DataPoints: points, Temporality: data.Temporality}
		})
	case metricdata.ExponentialHistogram[float64]:
		if d != nil && d.histograms == delta {
			data.DataPoints, b.next = deltaExponential(d, d.table(s, &b.metric, kindExponential), data.DataPoints)
			data.Temporality = delta
		}
		fill(b, data.DataPoints, sizeOfExponential, func(points []exponential) metricdata.Aggregation {
			return metricdata.ExponentialHistogram[float64]{DataPoints: points, Temporality: data.Temporality}
		})
	}
	return b
}

// fill gives a block its points.
func fill[P any](b *block, points []P, size func(p *P) int, data func(points []P) metricdata.Aggregation) {
	b.points = len(points)
	b.size = func(i int) int { return size(&points[i]) }
	b.cut = func(from, to int) metricdata.Aggregation { return data(points[from:to]) }
}
