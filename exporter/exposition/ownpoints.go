package exposition

import (
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// OwnPoints makes metric data of the exporter's figures of itself: few, so nothing is kept. Their histograms always
// have explicit buckets. described says what a family is; of one that isn't described, its name does. since is when
// those began to count that don't say it themselves. Summaries and what has no type are left out.
func OwnPoints(families []*dto.MetricFamily, described map[string]*Family, at, since time.Time) []metricdata.Metrics {
	list := make([]metricdata.Metrics, 0, len(families))
	for _, f := range families {
		if len(f.Metric) == 0 {
			continue
		}
		of := described[f.GetName()]
		if of == nil {
			of = &Family{Name: f.GetName()}
			if f.GetType() == dto.MetricType_COUNTER {
				of.Type = mapping.KindCounter
			}
		}
		m := metricdata.Metrics{Description: f.GetHelp()}
		m.Name, m.Unit = of.OTel()
		switch f.GetType() {
		case dto.MetricType_HISTOGRAM:
			points := make([]metricdata.HistogramDataPoint[float64], len(f.Metric))
			for i, metric := range f.Metric {
				points[i] = ownHistogram(metric.Histogram)
				points[i].Attributes, points[i].Time = attributesOf(metric), at
				points[i].StartTime = begun(metric.Histogram.CreatedTimestamp, since)
			}
			m.Data = metricdata.Histogram[float64]{DataPoints: points, Temporality: metricdata.CumulativeTemporality}
		case dto.MetricType_COUNTER, dto.MetricType_GAUGE:
			points := make([]metricdata.DataPoint[float64], len(f.Metric))
			for i, metric := range f.Metric {
				points[i] = metricdata.DataPoint[float64]{Attributes: attributesOf(metric), Time: at,
					Value: metric.GetGauge().GetValue()}
				if c := metric.Counter; c != nil {
					points[i].StartTime, points[i].Value = begun(c.CreatedTimestamp, since), c.GetValue()
				}
			}
			m.Data = metricdata.Gauge[float64]{DataPoints: points}
			if f.GetType() == dto.MetricType_COUNTER {
				m.Data = metricdata.Sum[float64]{DataPoints: points, Temporality: metricdata.CumulativeTemporality,
					IsMonotonic: true}
			}
		default:
			continue
		}
		list = append(list, m)
	}
	return list
}

// begun is when a series began to count.
func begun(created *timestamppb.Timestamp, since time.Time) time.Time {
	if created == nil {
		return since
	}
	return created.AsTime()
}

// attributesOf is the labels of a metric as attributes.
func attributesOf(m *dto.Metric) attribute.Set {
	list := make([]attribute.KeyValue, 0, len(m.Label))
	for _, l := range m.Label {
		if l.GetValue() != "" {
			list = append(list, attribute.String(l.GetName(), l.GetValue()))
		}
	}
	return attribute.NewSet(list...)
}

// ownHistogram undoes the adding up of buckets.
func ownHistogram(h *dto.Histogram) metricdata.HistogramDataPoint[float64] {
	point := metricdata.HistogramDataPoint[float64]{Count: h.GetSampleCount(), Sum: h.GetSampleSum()}
	before := uint64(0)
	for _, b := range h.Bucket {
		point.Bounds = append(point.Bounds, b.GetUpperBound())
		point.BucketCounts = append(point.BucketCounts, b.GetCumulativeCount()-before)
		before = b.GetCumulativeCount()
	}
	point.BucketCounts = append(point.BucketCounts, h.GetSampleCount()-before)
	return point
}
