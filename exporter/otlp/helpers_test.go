package otlp

import (
	"bytes"
	"context"
	"flag"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"

	"github.com/mpit-exporter/mpit-exporter/exporter/otlp/otlptest"
)

func TestMain(m *testing.M) {
	// Tests that run side by side wait more than they compute.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// protocols are those that every test of what goes over the wire is about.
var protocols = []string{ProtocolGRPC, ProtocolHTTP}

// fakeSource is a Source whose data a test sets.
type fakeSource struct {
	ended chan struct{}

	mu        sync.Mutex
	read      func() []metricdata.ScopeMetrics
	err       error
	reads     int
	delivered int
}

func newSource(read func() []metricdata.ScopeMetrics) *fakeSource {
	return &fakeSource{ended: make(chan struct{}, 1), read: read}
}

func (s *fakeSource) Read(context.Context) ([]metricdata.ScopeMetrics, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.err != nil {
		return nil, func() {}, s.err
	}
	return s.read(), func() { s.count(&s.delivered) }, nil
}

func (s *fakeSource) Ended() <-chan struct{} { return s.ended }

func (s *fakeSource) count(n *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
}

func (s *fakeSource) counted(n *int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *n
}

// epoch is when the data of tests begin.
var epoch = time.Now().Add(time.Hour).Truncate(time.Second)

func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

func rank(n int) attribute.Set {
	return attribute.NewSet(attribute.String("jobid", "4711"), attribute.Int("rank", n))
}

func inScope(metrics ...metricdata.Metrics) []metricdata.ScopeMetrics {
	return []metricdata.ScopeMetrics{{Scope: instrumentation.Scope{Name: "mpit-exporter", Version: "1"},
		Metrics: metrics}}
}

func counter(name string, points ...metricdata.DataPoint[float64]) metricdata.Metrics {
	return metricdata.Metrics{Name: name, Unit: "{message}", Data: metricdata.Sum[float64]{DataPoints: points,
		Temporality: metricdata.CumulativeTemporality, IsMonotonic: true}}
}

func point(r int, start, now int, value int64) metricdata.DataPoint[float64] {
	return metricdata.DataPoint[float64]{Attributes: rank(r), StartTime: at(start), Time: at(now), Value: float64(value)}
}

// receiver starts one for the test.
func receiver(t testing.TB, opts otlptest.Options) *otlptest.Receiver {
	t.Helper()
	r, err := otlptest.Start(opts)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

// patiently are an environment's times for what must succeed on a busy machine.
var patiently = env("OTEL_EXPORTER_OTLP_TIMEOUT", "60000", "OTEL_METRIC_EXPORT_TIMEOUT", "60000")

// pusher makes one for the test, which takes nothing from the environment and does not wait long to try again.
func pusher(t testing.TB, cfg Config, source Source) *Pusher {
	t.Helper()
	if cfg.Environ == nil {
		cfg.Environ = env()
	}
	p, err := newPusher(context.Background(), cfg, source, nil, time.Millisecond)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// logged is a log that a test reads.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// patient is a context for what must come at some time.
func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// figure is one of the pusher's own figures.
func figure(t testing.TB, p *Pusher, name, result string) float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(p.metrics.pushes, p.metrics.points, p.metrics.duration, p.metrics.lastSuccess)
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (len(m.GetLabel()) == 0 || m.GetLabel()[0].GetValue() == result) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	t.Fatalf("no %s of %s", name, result)
	return 0
}

func histogramOf(name string, r, start, now int, counts ...uint64) metricdata.Metrics {
	p := metricdata.HistogramDataPoint[float64]{Attributes: rank(r), StartTime: at(start), Time: at(now),
		BucketCounts: counts, Min: metricdata.NewExtrema(1.0), Max: metricdata.NewExtrema(2.0)}
	for i, n := range counts {
		p.Count += n
		p.Sum += float64(n) * float64(i)
		if i > 0 {
			p.Bounds = append(p.Bounds, float64(i))
		}
	}
	return metricdata.Metrics{Name: name, Unit: "s",
		Data: metricdata.Histogram[float64]{DataPoints: []metricdata.HistogramDataPoint[float64]{p},
			Temporality: metricdata.CumulativeTemporality}}
}
