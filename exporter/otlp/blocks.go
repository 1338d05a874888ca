package otlp

import "go.opentelemetry.io/otel/sdk/metric/metricdata"

// The points that a Source has.
type (
	number    = metricdata.DataPoint[float64]
	histogram = metricdata.HistogramDataPoint[float64]
)

// blocks makes what is to be sent of what was read.
func blocks(read []metricdata.ScopeMetrics) []*scope {
	scopes := make([]*scope, 0, len(read))
	for i := range read {
		s := &scope{ScopeMetrics: metricdata.ScopeMetrics{Scope: read[i].Scope}}
		for j := range read[i].Metrics {
			if b := blockOf(&read[i].Metrics[j]); b.points > 0 {
				s.blocks = append(s.blocks, b)
			}
		}
		scopes = append(scopes, s)
	}
	return scopes
}

// blockOf makes the block of a metric. It has no points if the metric has none, or none of those above.
func blockOf(m *metricdata.Metrics) *block {
	b := &block{metric: metricdata.Metrics{Name: m.Name, Description: m.Description, Unit: m.Unit}}
	switch data := m.Data.(type) {
	case metricdata.Gauge[float64]:
		fill(b, data.DataPoints, sizeOfNumber, func(points []number) metricdata.Aggregation {
			return metricdata.Gauge[float64]{DataPoints: points}
		})
	case metricdata.Sum[float64]:
		fill(b, data.DataPoints, sizeOfNumber, func(points []number) metricdata.Aggregation {
			return metricdata.Sum[float64]{DataPoints: points, Temporality: data.Temporality,
				IsMonotonic: data.IsMonotonic}
		})
	case metricdata.Histogram[float64]:
		fill(b, data.DataPoints, sizeOfHistogram, func(points []histogram) metricdata.Aggregation {
			return metricdata.Histogram[float64]{DataPoints: points, Temporality: data.Temporality}
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
