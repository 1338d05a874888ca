package exporter

import (
	"context"
	"strconv"
	"testing"

	promBridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// BenchmarkOTel is the way from values to metric data alone, 50,000 points of which all have changed: by a reader, by
// the SDK's own instruments (observed in a callback, with sets that are kept, and no limit on their number), and by
// OpenTelemetry's bridge from client_golang.
func BenchmarkOTel(b *testing.B) {
	const ranks, series = 500, 100
	run := func(b *testing.B, touch func(), read func() []metricdata.ScopeMetrics) {
		read() // what is kept is made
		b.ReportAllocs()
		var cpu cpuMeter
		for b.Loop() {
			touch()
			cpu.start()
			scopes := read()
			cpu.stop()
			if n := countPoints(scopes); n < ranks*series {
				b.Fatal(n, "points")
			}
		}
		cpu.report(b, ranks*series)
	}
	b.Run("by=mpit-exporter", func(b *testing.B) {
		e, touch := benchExporter(b, ranks, series)
		reader := e.OTelReader(OTelConfig{})
		defer reader.Close()
		run(b, touch, func() []metricdata.ScopeMetrics {
			scopes, delivered, err := reader.Read(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			delivered()
			return scopes
		})
	})
	b.Run("by=sdk", func(b *testing.B) {
		o, _ := newOrdinary(b, ranks, series)
		reader := sdk.NewManualReader()
		provider := sdk.NewMeterProvider(sdk.WithReader(reader), sdk.WithCardinalityLimit(0))
		defer func() { _ = provider.Shutdown(b.Context()) }()
		if err := o.observe(provider.Meter("bench")); err != nil {
			b.Fatal(err)
		}
		run(b, o.touch, collect(b, reader))
	})
	b.Run("by=bridge", func(b *testing.B) {
		o, registry := newOrdinary(b, ranks, series)
		reader := sdk.NewManualReader(sdk.WithProducer(promBridge.NewMetricProducer(promBridge.WithGatherer(registry))))
		provider := sdk.NewMeterProvider(sdk.WithReader(reader))
		defer func() { _ = provider.Shutdown(b.Context()) }()
		run(b, o.touch, collect(b, reader))
	})
}

func collect(b *testing.B, reader *sdk.ManualReader) func() []metricdata.ScopeMetrics {
	var data metricdata.ResourceMetrics
	return func() []metricdata.ScopeMetrics {
		if err := reader.Collect(b.Context(), &data); err != nil {
			b.Fatal(err)
		}
		return data.ScopeMetrics
	}
}

// observe makes an instrument for each family, as one would without a producer.
func (o *ordinary) observe(meter metric.Meter) error {
	instruments := map[string]metric.Float64ObservableCounter{}
	var all []metric.Observable
	for _, s := range o.ranks[0].Series() {
		instrument, err := meter.Float64ObservableCounter(s.Metric.OTelName, metric.WithDescription(s.Metric.Help),
			metric.WithUnit(s.Metric.Unit))
		if err != nil {
			return err
		}
		instruments[s.Metric.Name] = instrument
		all = append(all, instrument)
	}
	sets := make([]metric.MeasurementOption, len(o.ranks))
	for i := range sets {
		sets[i] = metric.WithAttributeSet(attribute.NewSet(
			attribute.String("jobid", "1"), attribute.String("world", "0"),
			attribute.String("rank", strconv.Itoa(i))))
	}
	_, err := meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		for i, r := range o.ranks {
			for _, s := range r.Series() {
				to.ObserveFloat64(instruments[s.Metric.Name], s.Value, sets[i])
			}
		}
		return nil
	}, all...)
	return err
}

func countPoints(scopes []metricdata.ScopeMetrics) (n int) {
	for _, scope := range scopes {
		for _, m := range scope.Metrics {
			if sum, is := m.Data.(metricdata.Sum[float64]); is {
				n += len(sum.DataPoints)
			}
		}
	}
	return n
}
