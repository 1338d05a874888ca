package otlptest

import (
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
)

// eachMetric calls do for all metrics of a message.
func eachMetric(message *collector.ExportMetricsServiceRequest, do func(*metrics.Metric)) {
	for _, r := range message.GetResourceMetrics() {
		for _, s := range r.GetScopeMetrics() {
			for _, m := range s.GetMetrics() {
				do(m)
			}
		}
	}
}

// points counts the data points of a message.
func points(message *collector.ExportMetricsServiceRequest) int {
	n := 0
	eachMetric(message, func(m *metrics.Metric) {
		n += len(m.GetGauge().GetDataPoints()) + len(m.GetSum().GetDataPoints()) + len(m.GetHistogram().GetDataPoints()) +
			len(m.GetExponentialHistogram().GetDataPoints()) + len(m.GetSummary().GetDataPoints())
	})
	return n
}
