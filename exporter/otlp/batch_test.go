package otlp

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/exporter/otlp/otlptest"
)

// No message is larger than it may be, as the receiver measures it, whatever stands in it; every point arrives once,
// and messages are not much smaller than they may be.
func TestMessagesAreBounded(t *testing.T) {
	r := receiver(t, otlptest.Options{Protocol: ProtocolHTTP})
	rapid.Check(t, func(t *rapid.T) {
		r.Forget()
		read := anyData(t)
		points := 0
		for _, s := range read {
			for _, m := range s.Metrics {
				points += reflect.ValueOf(m.Data).FieldByName("DataPoints").Len()
			}
		}
		s := newSource(func() []metricdata.ScopeMetrics { return read })
		p, err := newPusher(t.Context(), Config{Endpoint: r.URL(), Environ: env()}, s, nil, time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = p.Close() }()
		p.limit = rapid.IntRange(600, 60_000).Draw(t, "limit")
		_, tooLarge := pack(p.set.resource, read, p.limit)
		n, err := p.Push(t.Context())
		if err != nil || n+tooLarge != points {
			t.Fatalf("%d points and %d that are too large, of %d: %v", n, tooLarge, points, err)
		}
		arrived, sizes := 0, 0
		for _, request := range r.Requests() {
			if request.Bytes > p.limit {
				t.Fatalf("a message of %d bytes, %d are allowed", request.Bytes, p.limit)
			}
			arrived += request.Points
			sizes += request.Bytes
		}
		if arrived != n {
			t.Fatalf("%d points have arrived, %d were sent", arrived, n)
		}
	})
}

// Figures of a large node: what receivers take by default is used well, and not exceeded.
func TestMessagesOfALargeNode(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			r := receiver(t, otlptest.Options{Protocol: protocol})
			read := inScope(manyCounters(60_000, strings.Repeat("a long name of a communicator ", 8)),
				manyHistograms(10_000))
			read[0].Metrics[0].Description = strings.Repeat("a long text ", 20_000)
			p := pusher(t, Config{Protocol: protocol, Endpoint: r.URL(), Environ: patiently}, newSource(func() []metricdata.ScopeMetrics { return read }))
			n, err := p.Push(patient(t))
			require.NoError(t, err)
			assert.Equal(t, 70_000, n)
			requests := r.Requests()
			require.Greater(t, len(requests), 5)
			arrived := 0
			for i, request := range requests {
				arrived += request.Points
				assert.Less(t, request.Bytes, receiversLimit)
				if i < len(requests)-1 {
					assert.Greater(t, request.Bytes, receiversLimit*8/10)
				}
			}
			assert.Equal(t, 70_000, arrived)
		})
	}
}

// A point that no message can hold is left out, and the others go.
func TestPointTooLarge(t *testing.T) {
	r := receiver(t, otlptest.Options{})
	log := &logged{}
	large := point(1, 0, 1, 2)
	large.Attributes = attribute.NewSet(attribute.String("comm", strings.Repeat("x", receiversLimit)))
	s := newSource(func() []metricdata.ScopeMetrics {
		return inScope(counter("calls", point(0, 0, 1, 1), large, point(2, 0, 1, 3)))
	})
	p := pusher(t, Config{Protocol: ProtocolGRPC, Endpoint: r.URL(), Logger: log.logger()}, s)
	n, err := p.Push(patient(t))
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	assert.InDelta(t, 1, figure(t, p, "mpit_exporter_otlp_points_total", pointsTooLarge), 0)
	assert.InDelta(t, 2, figure(t, p, "mpit_exporter_otlp_points_total", pointsSent), 0)
	assert.Contains(t, log.String(), "too_large=1")
	assert.Len(t, r.Totals(), 2)
	assert.Equal(t, 1, s.counted(&s.delivered), "it would never get smaller")
}

func manyCounters(n int, label string) metricdata.Metrics {
	points := make([]metricdata.DataPoint[float64], n)
	for i := range points {
		points[i] = metricdata.DataPoint[float64]{Attributes: attribute.NewSet(attribute.Int("rank", i),
			attribute.String("comm", label)), StartTime: at(0), Time: at(1), Value: float64(i)}
	}
	return counter("mpit.sent", points...)
}

func manyHistograms(n int) metricdata.Metrics {
	data := metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality,
		DataPoints: make([]metricdata.HistogramDataPoint[float64], n)}
	bounds := make([]float64, 20)
	for i := range data.DataPoints {
		data.DataPoints[i] = metricdata.HistogramDataPoint[float64]{Attributes: rank(i), StartTime: at(0),
			Time: at(1), Bounds: bounds, BucketCounts: make([]uint64, 21), Count: uint64(i)}
	}
	return metricdata.Metrics{Name: "mpit.time", Description: "A time.", Unit: "s", Data: data}
}

// anyData draws data of every kind.
func anyData(t *rapid.T) []metricdata.ScopeMetrics {
	text := func(name string, n int) string { return rapid.StringN(0, n, 4*n).Draw(t, name) }
	set := func() attribute.Set {
		attrs := []attribute.KeyValue{
			attribute.String("s", text("label", 300)), attribute.Int64("i", rapid.Int64().Draw(t, "int")),
			attribute.Bool("b", true), attribute.Float64("f", 1), attribute.String("t", text("another", 20)),
		}
		return attribute.NewSet(attrs[:rapid.IntRange(0, len(attrs)).Draw(t, "attributes")]...)
	}
	count := func() uint64 { return rapid.Uint64().Draw(t, "count") }
	many := rapid.IntRange(0, 40)
	var read []metricdata.ScopeMetrics
	for range rapid.IntRange(0, 3).Draw(t, "scopes") {
		s := metricdata.ScopeMetrics{Scope: instrumentation.Scope{Name: text("scope", 200),
			Version: text("version", 20), SchemaURL: text("schema", 20), Attributes: set()}}
		for i := range rapid.IntRange(0, 6).Draw(t, "metrics") {
			m := metricdata.Metrics{Name: fmt.Sprint("m", i), Description: text("description", 1000),
				Unit: text("unit", 10)}
			n := many.Draw(t, "points")
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				data := metricdata.Gauge[float64]{}
				for range n {
					data.DataPoints = append(data.DataPoints,
						metricdata.DataPoint[float64]{Attributes: set(), Time: at(1), Value: 1e300})
				}
				m.Data = data
			case 1:
				data := metricdata.Sum[float64]{Temporality: metricdata.CumulativeTemporality}
				for range n {
					data.DataPoints = append(data.DataPoints,
						metricdata.DataPoint[float64]{Attributes: set(), StartTime: at(0), Time: at(1), Value: -1})
				}
				m.Data = data
			default:
				data := metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality}
				for range n {
					b := make([]float64, rapid.IntRange(0, 100).Draw(t, "bounds"))
					data.DataPoints = append(data.DataPoints,
						metricdata.HistogramDataPoint[float64]{Attributes: set(), StartTime: at(0), Time: at(1),
							Bounds:       b,
							BucketCounts: make([]uint64, len(b)+1), Count: count(), Sum: -1,
							Min: metricdata.NewExtrema(1.0), Max: metricdata.NewExtrema(1.0)})
				}
				m.Data = data
			}
			s.Metrics = append(s.Metrics, m)
		}
		read = append(read, s)
	}
	return read
}
