package otlp

import (
	"context"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Source is where the data come from: an exporter.OTelReader. Data are gauges, and cumulative sums and histograms with
// explicit buckets, all of float64 and without exemplars; anything else is not sent. Attributes are text or
// numbers. Each series stands once in what is read, and what is read belongs to the reader.
type Source interface {
	// Read returns all there is. delivered is called when all of it has been accepted.
	Read(ctx context.Context) (scopes []metricdata.ScopeMetrics, delivered func(), err error)
	// Ended gets a value when ranks have ended. It is never closed.
	Ended() <-chan struct{}
}
