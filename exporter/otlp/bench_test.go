package otlp

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/mpit-exporter/mpit-exporter/exporter/otlp/otlptest"
)

// A node of 50,000 points, each of which changes from push to push.
const (
	benchMetrics = 50
	benchSets    = 1000
)

func benchSet() []attribute.Set {
	sets := make([]attribute.Set, benchSets)
	for i := range sets {
		sets[i] = attribute.NewSet(attribute.String("jobid", "4711"), attribute.String("world", "0"),
			attribute.Int("rank", i/10), attribute.Int("comm", i%10))
	}
	return sets
}

func benchName(i int) string {
	return "mpit.bench.counter" + string(rune('a'+i/26)) + string(rune('a'+i%26))
}

// BenchmarkPush is a push to a receiver in the same process, whose part is in the figures; beside it, the SDK's
// instruments and its periodic reader with the same exporter, which send it all in one message, if the receiver takes
// that.
func BenchmarkPush(b *testing.B) {
	for _, protocol := range protocols {
		b.Run("pusher/"+protocol, func(b *testing.B) { benchPusher(b, protocol) })
		b.Run("sdk/"+protocol, func(b *testing.B) { benchSDK(b, protocol) })
	}
}

func benchPusher(b *testing.B, protocol string) {
	r, sets, now := receiver(b, otlptest.Options{Protocol: protocol}), benchSet(), 0
	s := newSource(func() []metricdata.ScopeMetrics {
		now++
		list := make([]metricdata.Metrics, benchMetrics)
		for i := range list {
			points := make([]metricdata.DataPoint[float64], benchSets)
			for j := range points {
				points[j] = metricdata.DataPoint[float64]{Attributes: sets[j], StartTime: epoch, Time: at(now),
					Value: float64(now)}
			}
			list[i] = counter(benchName(i), points...)
		}
		return inScope(list...)
	})
	p := pusher(b, Config{Protocol: protocol, Endpoint: r.URL(), Environ: patiently}, s)
	b.ReportAllocs()
	for b.Loop() {
		n, err := p.Push(b.Context())
		require.NoError(b, err)
		require.Equal(b, benchMetrics*benchSets, n)
		r.Forget()
	}
}

func benchSDK(b *testing.B, protocol string) {
	r := receiver(b, otlptest.Options{Protocol: protocol, MaxBytes: 64 << 20})
	exporter := sdkExporter(b, r, protocol)
	reader := sdk.NewPeriodicReader(exporter, sdk.WithInterval(time.Hour), sdk.WithTimeout(time.Minute))
	provider := sdk.NewMeterProvider(sdk.WithReader(reader), sdk.WithCardinalityLimit(0))
	defer func() { require.NoError(b, provider.Shutdown(context.WithoutCancel(b.Context()))) }()
	options := make([]metric.MeasurementOption, benchSets)
	for i, set := range benchSet() {
		options[i] = metric.WithAttributeSet(set)
	}
	counters := make([]metric.Int64Counter, benchMetrics)
	for i := range counters {
		var err error
		counters[i], err = provider.Meter("mpit-exporter").Int64Counter(benchName(i), metric.WithUnit("{message}"))
		require.NoError(b, err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, c := range counters {
			for _, o := range options {
				c.Add(b.Context(), 1, o)
			}
		}
		require.NoError(b, provider.ForceFlush(b.Context()))
		require.Equal(b, benchMetrics*benchSets, r.Requests()[0].Points)
		r.Forget()
	}
}

func sdkExporter(b *testing.B, r *otlptest.Receiver, protocol string) sdk.Exporter {
	b.Helper()
	if protocol == ProtocolGRPC {
		e, err := otlpmetricgrpc.New(b.Context(), otlpmetricgrpc.WithEndpoint(r.Addr()),
			otlpmetricgrpc.WithInsecure(), otlpmetricgrpc.WithTimeout(time.Minute))
		require.NoError(b, err)
		return e
	}
	e, err := otlpmetrichttp.New(b.Context(), otlpmetrichttp.WithEndpoint(r.Addr()), otlpmetrichttp.WithInsecure(),
		otlpmetrichttp.WithTimeout(time.Minute))
	require.NoError(b, err)
	return e
}
