package exporter

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// said is what one series says, whichever way it came.
type said struct {
	kind, help string
	value      string // of no histogram; its bits, for a NaN is a value as well
	began      string // of counters and histograms; "": not known
	count      uint64
	sum        string
	buckets    string // explicit ones, cumulative
	native     string // by Prometheus' numbers; "": there are none
}

func bitsOf(x float64) string { return fmt.Sprintf("%v (%x)", x, math.Float64bits(x)) }

func timeOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func nameOf(labels []string) string {
	slices.Sort(labels)
	return "{" + strings.Join(labels, ",") + "}"
}

// saidOnPage is what families say.
func saidOnPage(families []*dto.MetricFamily) map[string]said {
	all := map[string]said{}
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				if l.GetValue() != "" {
					labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
				}
			}
			s := said{help: f.GetHelp()}
			switch {
			case m.Histogram != nil:
				h := m.Histogram
				s.kind, s.count, s.sum = "histogram", h.GetSampleCount(), bitsOf(h.GetSampleSum())
				for _, b := range h.Bucket {
					s.buckets += fmt.Sprintf("%v:%d ", b.GetUpperBound(), b.GetCumulativeCount())
				}
				if h.CreatedTimestamp != nil {
					s.began = timeOf(h.CreatedTimestamp.AsTime())
				}
				if h.Schema != nil {
					s.native = fmt.Sprintf("schema %d, up to %v:%d ", h.GetSchema(), h.GetZeroThreshold(),
						h.GetZeroCount())
					at, n, deltas := int32(0), int64(0), h.PositiveDelta
					for _, span := range h.PositiveSpan {
						at += span.GetOffset()
						for range span.GetLength() {
							n, deltas = n+deltas[0], deltas[1:]
							s.native += bucketOf(at, uint64(n))
							at++
						}
					}
				}
			case m.Counter != nil:
				s.kind, s.value = "counter", bitsOf(m.Counter.GetValue())
				if m.Counter.CreatedTimestamp != nil {
					s.began = timeOf(m.Counter.CreatedTimestamp.AsTime())
				}
			case m.Gauge != nil:
				s.kind, s.value = "gauge", bitsOf(m.Gauge.GetValue())
			default: // there is no such thing in OpenTelemetry
				s.kind, s.value = "gauge", bitsOf(m.Untyped.GetValue())
			}
			all[f.GetName()+nameOf(labels)] = s
		}
	}
	return all
}

func bucketOf(number int32, n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d:%d ", number, n)
}

// prometheusName is what a receiver of Prometheus' makes of a name.
func prometheusName(t require.TestingT, name, unit string, kind otlptranslator.MetricType) string {
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	out, err := namer.Build(otlptranslator.Metric{Name: name, Unit: unit, Type: kind})
	require.NoError(t, err)
	return out
}

// labelsOf are attributes as labels, which they are called as; all are text, and none is empty.
func labelsOf(t require.TestingT, family string, set attribute.Set) string {
	var labels []string
	for _, kv := range set.ToSlice() {
		require.Equal(t, attribute.STRING, kv.Value.Type(), "%s of %s", kv.Key, family)
		require.NotEmpty(t, kv.Value.String(), "%s of %s", kv.Key, family)
		labels = append(labels, fmt.Sprintf("%s=%q", kv.Key, kv.Value.String()))
	}
	return nameOf(labels)
}

// saidInPoints is what metric data say, at that time, under the names that they have on /metrics.
func saidInPoints(t require.TestingT, list []metricdata.Metrics, at time.Time) map[string]said {
	all := map[string]said{}
	names := map[string]bool{}
	for _, m := range list {
		require.False(t, names[m.Name], "%s comes twice", m.Name)
		names[m.Name] = true
		before := len(all)
		add := func(kind otlptranslator.MetricType, set attribute.Set, moment time.Time, s said) {
			name := prometheusName(t, m.Name, m.Unit, kind)
			s.help = m.Description
			key := name + labelsOf(t, name, set)
			require.Zero(t, all[key], "%s comes twice", key)
			require.Equal(t, at, moment, key)
			all[key] = s
		}
		switch data := m.Data.(type) {
		case metricdata.Gauge[float64]:
			for _, p := range data.DataPoints {
				require.Zero(t, p.StartTime)
				add(otlptranslator.MetricTypeGauge, p.Attributes, p.Time, said{kind: "gauge", value: bitsOf(p.Value)})
			}
		case metricdata.Sum[float64]:
			require.Equal(t, metricdata.CumulativeTemporality, data.Temporality)
			for _, p := range data.DataPoints {
				s := said{kind: "gauge", value: bitsOf(p.Value)}
				kind := otlptranslator.MetricType(otlptranslator.MetricTypeNonMonotonicCounter)
				if data.IsMonotonic {
					s.kind, s.began = "counter", timeOf(p.StartTime)
					kind = otlptranslator.MetricTypeMonotonicCounter
				}
				add(kind, p.Attributes, p.Time, s)
			}
		case metricdata.Histogram[float64]:
			require.Equal(t, metricdata.CumulativeTemporality, data.Temporality)
			for _, p := range data.DataPoints {
				require.Len(t, p.BucketCounts, len(p.Bounds)+1)
				s := said{kind: "histogram", began: timeOf(p.StartTime), count: p.Count, sum: bitsOf(p.Sum)}
				total := uint64(0)
				for i, n := range p.BucketCounts {
					if total += n; i < len(p.Bounds) {
						s.buckets += fmt.Sprintf("%v:%d ", p.Bounds[i], total)
					}
				}
				require.Equal(t, p.Count, total)
				add(otlptranslator.MetricTypeHistogram, p.Attributes, p.Time, s)
			}
		default:
			require.Fail(t, "unknown data", "%T", data)
		}
		require.Greater(t, len(all), before, "%s has no points", m.Name)
	}
	return all
}

// startsAreKnown checks that all that is cumulative says since when.
func startsAreKnown(t require.TestingT, list []metricdata.Metrics) {
	for _, m := range list {
		switch data := m.Data.(type) {
		case metricdata.Sum[float64]:
			for _, p := range data.DataPoints {
				assert.Greater(t, p.StartTime.Unix(), int64(1e9), "%s %v", m.Name, p.Attributes.ToSlice())
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				assert.Greater(t, p.StartTime.Unix(), int64(1e9), "%s %v", m.Name, p.Attributes.ToSlice())
			}
		}
	}
}

// eachWay is the page in two ways at one moment.
func (n *node) eachWay() (families []*dto.MetricFamily, points []metricdata.Metrics) {
	n.t.Helper()
	n.scrape() // what there is
	want := readers{}
	want[asProtobuf], want[asPoints] = 1, 1
	r, err := n.pages.commit(&questions{}, want)
	require.NoError(n.t, err)
	metrics := <-r.data
	startsAreKnown(n.t, metrics)
	return mergeFamilies(familiesOf(r.bodies[asProtobuf]), r.own), metrics
}

// sameSaid compares the page in two ways, series by series.
func sameSaid(t require.TestingT, families []*dto.MetricFamily, points []metricdata.Metrics, at time.Time) {
	want := map[string]said{}
	for key, s := range saidOnPage(families) {
		s.native = ""
		want[key] = s
	}
	assert.Equal(t, want, saidInPoints(t, points, at))
}

// What is in metric data is what stands on /metrics at that moment, of each library whose variables are known.
func TestPointsOfLibraries(t *testing.T) {
	t.Parallel() // it computes while others wait
	for _, c := range catalogues(t) {
		t.Run(c.Name, func(t *testing.T) {
			n, _ := startLibrary(t, c)
			clock := newTestClock()
			g := n.lock()
			n.now = clock.Now
			g.unlock()
			families, points := n.eachWay()
			assert.Greater(t, len(points), 30)
			sameSaid(t, families, points, clock.Now())
		})
	}
}

func TestPointsOfEverything(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{
		UserName: func(uint32) string { return "alice" }, ControlVariables: []string{"*"},
	}, withClock(clock))
	n.connect(mpittest.New(mpittest.Everything()), mpittest.New(small("1", 0)))
	n.scrape()
	n.settle()
	families, points := n.eachWay()
	names := map[string]bool{}
	for _, f := range families {
		names[f.GetName()] = true
	}
	for _, f := range Families() {
		switch f.Name {
		case "mpit_rank_end_info": // see below
		case api.VerdictName: // of package judge
		default:
			assert.True(t, names[f.Name] || strings.HasPrefix(f.Name, "mpit_pcontrol_"), "%s is not on the page",
				f.Name)
		}
	}
	sameSaid(t, families, points, clock.Now())
}

// Ranks that are late, have ended, share labels, and counters that have been reset.
func TestPointsOfRanksInTrouble(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{}, withClock(clock))
	check := func() map[string]said {
		t.Helper()
		families, points := n.eachWay()
		sameSaid(t, families, points, clock.Now())
		return saidInPoints(t, points, clock.Now())
	}
	var ranks []*mpittest.Rank
	for i := range 4 {
		cfg := small("1", i)
		cfg.Clock = clock.Now
		cfg.Objects = []mpit.Object{{Kind: mpit.BindComm, Name: "halo", Size: 2, Created: testTime}}
		ranks = append(ranks, mpittest.New(cfg))
	}
	n.connect(ranks...)
	twin := small("1", 0)
	twin.Clock = clock.Now
	n.connect(mpittest.New(twin))
	n.settle()
	calls := of("mpit_calls_total", "1", 2)
	before := check()
	assert.Contains(t, before, `mpit_calls_total{dup="1",jobid="1",rank="0",user="alice",world="0"}`)

	clock.advance(10 * time.Second)
	require.NoError(t, ranks[2].Set("calls", mpit.ClassCounter, 0, 3))
	require.NoError(t, ranks[1].Set("calls", mpit.ClassCounter, 0, 99))
	require.NoError(t, ranks[1].Add("waiting", mpit.ClassTimer, 0, 0.25))
	n.finish(ranks[1], mpit.EndFinalize)
	n.kill(ranks[3])
	after := check()
	assert.Equal(t, before[calls], after[calls], "it has been reset: the total stays")
	assert.Contains(t, after, ended("finalize")[:len("mpit_rank_end_info")]+`{jobid="1",rank="1",reason="finalize",user="alice",world="0"}`)
	assert.Contains(t, after, of("mpit_peak_highwatermark", "1", 3))
	assert.NotContains(t, after, of("mpit_depth_level", "1", 3), "late")
	assert.Contains(t, after, of("mpit_calls_total", "1", 3))
	assert.Contains(t, before, `mpit_objects{jobid="1",kind="comm",name="halo",rank="3",user="alice",world="0"}`)
	clock.advance(usual().grace)
	assert.Contains(t, check(), `mpit_rank_end_info{jobid="1",rank="3",reason="lost",user="alice",world="0"}`)
}

// Each class has the kind that docs/otlp.md says.
func TestKindsInOpenTelemetry(t *testing.T) {
	n := everything(t, Config{})
	n.connect(mpittest.New(small("1", 0)))
	_, points := n.eachWay()
	kinds := func(list []metricdata.Metrics) map[string]string {
		kinds := map[string]string{}
		for _, m := range list {
			kinds[m.Name] = strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", m.Data), "metricdata."),
				"[float64]")
			if sum, is := m.Data.(metricdata.Sum[float64]); is {
				kinds[m.Name] += fmt.Sprint(" ", sum.IsMonotonic)
			}
			kinds[m.Name] += " " + m.Unit
		}
		return kinds
	}
	want := map[string]string{
		"mpit.calls.total":             "Sum true ",
		"mpit.depth.level":             "Sum false ",
		"mpit.peak.highwatermark":      "Gauge ",
		"mpit.waiting.time":            "Histogram s",
		"mpit.process.info":            "Gauge ",
		"mpit.objects":                 "Gauge {object}",
		"mpit.rank.start_time":         "Gauge s",
		"mpit.rank.agent.cpu":          "Sum true s",
		"mpit.exporter.rounds":         "Sum true {round}",
		"mpit.exporter.ranks":          "Gauge {rank}",
		"mpit.exporter.round_duration": "Histogram s",
		"mpit.exporter.config_reloads": "Sum true {attempt}",
	}
	assert.Subset(t, kinds(points), want)
}
