package exposition

import (
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// OwnPoints makes metric data of the exporter's figures of itself: few, so nothing is kept. Their histograms always
// have explicit buckets. described says what each family is.
func OwnPoints(families []*dto.MetricFamily, described map[string]*Family, at time.Time) []metricdata.Metrics {
	list := make([]metricdata.Metrics, 0, len(families))
	for _, f := range families {
		if len(f.Metric) == 0 {
			continue
		}
		of := described[f.GetName()]
		o, own := otelOfOwn(of), of.attributes()
		m := metricdata.Metrics{Name: o.name, Description: f.GetHelp(), Unit: o.unit}
		switch f.GetType() {
		case dto.MetricType_HISTOGRAM:
			points := make([]metricdata.HistogramDataPoint[float64], len(f.Metric))
			for i, metric := range f.Metric {
				points[i] = ownHistogram(metric.Histogram)
				points[i].Attributes, points[i].Time = ownSet(own, metric), at
			}
			m.Data = metricdata.Histogram[float64]{DataPoints: points, Temporality: metricdata.CumulativeTemporality}
		case dto.MetricType_COUNTER:
			points := make([]metricdata.DataPoint[float64], len(f.Metric))
			for i, metric := range f.Metric {
				points[i] = metricdata.DataPoint[float64]{
					Attributes: ownSet(own, metric), StartTime: metric.Counter.GetCreatedTimestamp().AsTime(),
					Time: at, Value: metric.Counter.GetValue(),
				}
			}
			m.Data = metricdata.Sum[float64]{DataPoints: points, Temporality: metricdata.CumulativeTemporality,
				IsMonotonic: true}
		default:
			points := make([]metricdata.DataPoint[float64], len(f.Metric))
			for i, metric := range f.Metric {
				points[i] = metricdata.DataPoint[float64]{Attributes: ownSet(own, metric), Time: at,
					Value: metric.Gauge.GetValue()}
			}
			m.Data = metricdata.Gauge[float64]{DataPoints: points}
		}
		list = append(list, m)
	}
	return list
}

func ownSet(own map[string]Label, m *dto.Metric) attribute.Set {
	list := make([]attribute.KeyValue, len(m.Label))
	for i, l := range m.Label {
		list[i] = keyValue(own, l.GetName(), l.GetValue())
	}
	return attribute.NewSet(list...)
}

// ownHistogram undoes the adding up of buckets.
func ownHistogram(h *dto.Histogram) metricdata.HistogramDataPoint[float64] {
	point := metricdata.HistogramDataPoint[float64]{
		StartTime: h.GetCreatedTimestamp().AsTime(), Count: h.GetSampleCount(), Sum: h.GetSampleSum(),
	}
	before := uint64(0)
	for _, b := range h.Bucket {
		point.Bounds = append(point.Bounds, b.GetUpperBound())
		point.BucketCounts = append(point.BucketCounts, b.GetCumulativeCount()-before)
		before = b.GetCumulativeCount()
	}
	point.BucketCounts = append(point.BucketCounts, h.GetSampleCount()-before)
	return point
}
