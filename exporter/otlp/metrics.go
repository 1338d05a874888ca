package otlp

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Results of mpit_exporter_otlp_pushes_total.
const (
	pushSuccess = "success"
	pushFailure = "failure"
)

// Results of mpit_exporter_otlp_points_total.
const (
	pointsSent     = "sent"      // and accepted
	pointsRejected = "rejected"  // by the receiver, of a message that it accepted otherwise
	pointsFailed   = "failed"    // in messages that were not accepted; totals are sent again with the next push
	pointsTooLarge = "too_large" // for any message
)

// metrics are a pusher's figures of itself.
type metrics struct {
	pushes, points *prometheus.CounterVec
	duration       prometheus.Histogram
	lastSuccess    prometheus.Gauge
}

func newMetrics(registry prometheus.Registerer) *metrics {
	with := promauto.With(registry)
	m := &metrics{
		pushes: with.NewCounterVec(prometheus.CounterOpts{
			Name: "mpit_exporter_otlp_pushes_total", Help: "Pushes over OTLP that had something to send, by result.",
		}, []string{"result"}),
		points: with.NewCounterVec(prometheus.CounterOpts{
			Name: "mpit_exporter_otlp_points_total", Help: "Data points of OTLP pushes, by result.",
		}, []string{"result"}),
		duration: with.NewHistogram(prometheus.HistogramOpts{
			Name:    "mpit_exporter_otlp_push_duration_seconds",
			Help:    "Duration of a push: reading the ranks, and sending all messages, retries included.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}),
		lastSuccess: with.NewGauge(prometheus.GaugeOpts{
			Name: "mpit_exporter_otlp_last_success_timestamp_seconds",
			Help: "When a push was last accepted, in seconds since the epoch; 0: never.",
		}),
	}
	// A counter that appears with its first event has no rate for it.
	for _, result := range []string{pushSuccess, pushFailure} {
		m.pushes.WithLabelValues(result)
	}
	for _, result := range []string{pointsSent, pointsRejected, pointsFailed, pointsTooLarge} {
		m.points.WithLabelValues(result)
	}
	return m
}

// done notes how a push has ended.
func (m *metrics) done(begun time.Time, result string) {
	m.pushes.WithLabelValues(result).Inc()
	m.duration.Observe(time.Since(begun).Seconds())
	if result == pushSuccess {
		m.lastSuccess.SetToCurrentTime()
	}
}
