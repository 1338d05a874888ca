package otlp

import "go.opentelemetry.io/otel/sdk/metric/metricdata"

// blocks makes what is to be sent of what was read, deltas where d wants them; a nil d wants none. The data are used
// up.
func blocks(d *deltas, read []metricdata.ScopeMetrics) []*scope {
	scopes := make([]*scope, 0, len(read))
	for i := range read {
		s := &scope{ScopeMetrics: metricdata.ScopeMetrics{Scope: read[i].Scope}}
		for j := range read[i].Metrics {
			if b := blockOf(d, s, &read[i].Metrics[j]); b != nil && b.points > 0 {
				s.blocks = append(s.blocks, b)
			}
		}
		scopes = append(scopes, s)
	}
	return scopes
}

// blockOf returns nil for what is no data.
func blockOf(d *deltas, s *scope, m *metricdata.Metrics) *block {
	b := &block{metric: metricdata.Metrics{Name: m.Name, Description: m.Description, Unit: m.Unit}}
	switch data := m.Data.(type) {
	case metricdata.Gauge[int64]:
		gauge(b, data)
	case metricdata.Gauge[float64]:
		gauge(b, data)
	case metricdata.Sum[int64]:
		sum(b, d, s, kindSumInt, data)
	case metricdata.Sum[float64]:
		sum(b, d, s, kindSumFloat, data)
	case metricdata.Histogram[int64]:
		histogram(b, d, s, kindHistogramInt, data)
	case metricdata.Histogram[float64]:
		histogram(b, d, s, kindHistogramFloat, data)
	case metricdata.ExponentialHistogram[int64]:
		exponential(b, d, s, kindExponentialInt, data)
	case metricdata.ExponentialHistogram[float64]:
		exponential(b, d, s, kindExponentialFloat, data)
	case metricdata.Summary:
		points := data.DataPoints
		b.points, b.size = len(points), func(i int) int { return sizeOfSummary(&points[i]) }
		b.cut = func(from, to int) metricdata.Aggregation { return metricdata.Summary{DataPoints: points[from:to]} }
	default:
		return nil
	}
	return b
}

func gauge[N int64 | float64](b *block, data metricdata.Gauge[N]) {
	points := data.DataPoints
	b.points, b.size = len(points), func(i int) int { return sizeOfNumber(&points[i]) }
	b.cut = func(from, to int) metricdata.Aggregation { return metricdata.Gauge[N]{DataPoints: points[from:to]} }
}

func sum[N int64 | float64](b *block, d *deltas, s *scope, k kind, data metricdata.Sum[N]) {
	points := data.DataPoints
	if d != nil && data.IsMonotonic && d.sums == metricdata.DeltaTemporality &&
		data.Temporality == metricdata.CumulativeTemporality {
		points, b.next = deltaSum(d, d.table(s, &b.metric, k), points)
		data.Temporality = metricdata.DeltaTemporality
	}
	b.points, b.size = len(points), func(i int) int { return sizeOfNumber(&points[i]) }
	b.cut = func(from, to int) metricdata.Aggregation {
		return metricdata.Sum[N]{DataPoints: points[from:to], Temporality: data.Temporality,
			IsMonotonic: data.IsMonotonic}
	}
}

func histogram[N int64 | float64](b *block, d *deltas, s *scope, k kind, data metricdata.Histogram[N]) {
	points := data.DataPoints
	if d != nil && d.histograms == metricdata.DeltaTemporality &&
		data.Temporality == metricdata.CumulativeTemporality {
		points, b.next = deltaHistogram(d, d.table(s, &b.metric, k), points)
		data.Temporality = metricdata.DeltaTemporality
	}
	b.points, b.size = len(points), func(i int) int { return sizeOfHistogram(&points[i]) }
	b.cut = func(from, to int) metricdata.Aggregation {
		return metricdata.Histogram[N]{DataPoints: points[from:to], Temporality: data.Temporality}
	}
}

func exponential[N int64 | float64](b *block, d *deltas, s *scope, k kind, data metricdata.ExponentialHistogram[N]) {
	points := data.DataPoints
	if d != nil && d.histograms == metricdata.DeltaTemporality &&
		data.Temporality == metricdata.CumulativeTemporality {
		points, b.next = deltaExponential(d, d.table(s, &b.metric, k), points)
		data.Temporality = metricdata.DeltaTemporality
	}
	b.points, b.size = len(points), func(i int) int { return sizeOfExponential(&points[i]) }
	b.cut = func(from, to int) metricdata.Aggregation {
		return metricdata.ExponentialHistogram[N]{DataPoints: points[from:to], Temporality: data.Temporality}
	}
}
