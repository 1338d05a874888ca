package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/otlptranslator"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/otlp/otlptest"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// receive starts a receiver, which ends with the test.
func receive(t *testing.T, options otlptest.Options) *otlptest.Receiver {
	t.Helper()
	r, err := otlptest.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// pushed is one data point, under the name that Prometheus gives it.
type pushed struct {
	start, time uint64
	histogram   bool
	value       float64  // a histogram's sum
	buckets     []uint64 // of a histogram, without what is below
}

// attributes are a point's by name.
func attributes(list []*common.KeyValue) harness.Labels {
	labels := harness.Labels{}
	for _, a := range list {
		labels[a.Key] = a.Value.GetStringValue()
	}
	return labels
}

// seriesKey is the same for a series on the page and for the same series pushed, as Prometheus calls its labels: an
// empty one is none, and is not pushed.
func seriesKey(family string, labels harness.Labels) string {
	namer := otlptranslator.LabelNamer{}
	var pairs []string
	for label, value := range labels {
		if value == "" {
			continue
		}
		name, err := namer.Build(label)
		if err != nil {
			return fmt.Sprintf("%s: %s: %v", family, label, err)
		}
		pairs = append(pairs, name+"="+strconv.Quote(value))
	}
	slices.Sort(pairs)
	return family + "{" + strings.Join(pairs, ",") + "}"
}

// pushes are all points that a receiver has accepted, by series and in their order.
func pushes(t *testing.T, r *otlptest.Receiver) map[string][]pushed {
	t.Helper()
	all := map[string][]pushed{}
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	for _, request := range r.Requests() {
		for _, resource := range request.Message.ResourceMetrics {
			for _, scope := range resource.ScopeMetrics {
				for _, m := range scope.Metrics {
					kind := otlptranslator.MetricType(otlptranslator.MetricTypeGauge)
					if sum := m.GetSum(); sum != nil {
						kind = otlptranslator.MetricTypeNonMonotonicCounter
						if sum.IsMonotonic {
							kind = otlptranslator.MetricTypeMonotonicCounter
						}
					} else if m.GetGauge() == nil {
						kind = otlptranslator.MetricTypeHistogram
					}
					name, err := namer.Build(otlptranslator.Metric{Name: m.Name, Unit: m.Unit, Type: kind})
					if err != nil {
						t.Fatal(err)
					}
					for key, p := range points(t, name, m) {
						all[key] = append(all[key], p)
					}
				}
			}
		}
	}
	return all
}

// points are those of one metric.
func points(t *testing.T, name string, m *metrics.Metric) map[string]pushed {
	t.Helper()
	found := map[string]pushed{}
	add := func(list []*common.KeyValue, p pushed) {
		key := seriesKey(name, attributes(list))
		if _, twice := found[key]; twice {
			t.Fatalf("two points of %s in one message", key)
		}
		found[key] = p
	}
	number := func(p *metrics.NumberDataPoint) float64 {
		if v, ok := p.Value.(*metrics.NumberDataPoint_AsInt); ok {
			return float64(v.AsInt)
		}
		return p.GetAsDouble()
	}
	switch data := m.Data.(type) {
	case *metrics.Metric_Gauge:
		for _, p := range data.Gauge.DataPoints {
			add(p.Attributes, pushed{start: p.StartTimeUnixNano, time: p.TimeUnixNano, value: number(p)})
		}
	case *metrics.Metric_Sum:
		for _, p := range data.Sum.DataPoints {
			add(p.Attributes, pushed{start: p.StartTimeUnixNano, time: p.TimeUnixNano, value: number(p)})
		}
	case *metrics.Metric_Histogram:
		for _, p := range data.Histogram.DataPoints {
			add(p.Attributes, pushed{
				start: p.StartTimeUnixNano, time: p.TimeUnixNano, value: p.GetSum(),
				buckets: slices.Clone(p.BucketCounts), histogram: true,
			})
		}
	default:
		t.Fatalf("%s: unexpected data %T", name, m.Data)
	}
	return found
}

// moving are families that change by being read, or with time alone.
func moving(name string) bool {
	return strings.HasPrefix(name, "mpit_exporter_") || strings.HasPrefix(name, "mpit_rank_agent_") ||
		name == "mpit_rank_seconds_total" || name == api.VerdictName // compared by TestOTLPLabels
}

// sameAsPage: whatever of a job stands on the page has been pushed, with the same value, and nothing else has; but
// for what moves.
func sameAsPage(t *testing.T, r *otlptest.Receiver, page *harness.Scrape, whose func(harness.Series) bool) error {
	t.Helper()
	all := pushes(t, r)
	var failed []error
	compared := 0
	for _, name := range page.Names("mpit_") {
		if moving(name) {
			continue
		}
		for _, series := range page.Select(name, nil) {
			if !whose(series) {
				continue
			}
			key := seriesKey(name, series.Labels)
			list := all[key]
			if len(list) == 0 {
				failed = append(failed, fmt.Errorf("%v was not pushed (%s)", series, key))
				continue
			}
			compared++
			failed = append(failed, compare(series, list[len(list)-1]))
		}
	}
	if compared == 0 {
		failed = append(failed, errors.New("nothing to compare"))
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	t.Logf("%d series as on the page", compared)
	return nil
}

// compare one series with what was pushed of it.
func compare(series harness.Series, got pushed) error {
	h := series.Metric.GetHistogram()
	if got.histogram != (h != nil) {
		return fmt.Errorf("%v: pushed as another kind", series)
	}
	const tiny = 1e-9 // sums of doubles
	if diff := got.value - series.Value; diff > tiny*max(1, series.Value) || diff < -tiny*max(1, series.Value) {
		return fmt.Errorf("%v: %v was pushed", series, got.value)
	}
	if h == nil {
		return nil
	}
	below := uint64(0)
	for i, b := range h.Bucket {
		if i < len(got.buckets) {
			below += got.buckets[i]
		}
		if below != b.GetCumulativeCount() {
			return fmt.Errorf("%v: up to %v %d events were pushed, not %d", series, b.GetUpperBound(), below,
				b.GetCumulativeCount())
		}
	}
	return nil
}

// ofJobs are series of these jobs.
func ofJobs(ids ...string) func(harness.Series) bool {
	return func(s harness.Series) bool { return slices.Contains(ids, s.Labels["jobid"]) }
}

// one is what a series' points add up to; the series has these attributes, whatever else it has.
func one(t *testing.T, r *otlptest.Receiver, family string, values ...string) (pushed, []pushed, error) {
	t.Helper()
	var found []string
	all := pushes(t, r)
	for key := range all {
		matches := strings.HasPrefix(key, family+"{")
		for _, value := range values {
			matches = matches && strings.Contains(key, strconv.Quote(value))
		}
		if matches {
			found = append(found, key)
		}
	}
	if len(found) != 1 {
		return pushed{}, nil, fmt.Errorf("%d series, not one, of %s with %v were pushed: %v", len(found), family,
			values, found)
	}
	list := all[found[0]]
	return list[len(list)-1], list, nil
}
