package exporter

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/self"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// testReader is a reader of a node's metric data.
type testReader struct {
	*OTelReader
	n *node
}

// reader makes a reader that is closed at the test's end.
func (n *node) reader(cfg OTelConfig) testReader {
	r := testReader{n.OTelReader(cfg), n}
	n.t.Cleanup(r.Close)
	return r
}

// pointsOf returns all values of metric data, by their names and labels on /metrics; of histograms their counts.
func pointsOf(t *testing.T, scopes []metricdata.ScopeMetrics) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for _, scope := range scopes {
		require.Equal(t, exposition.ScopeName, scope.Scope.Name)
		require.NotEmpty(t, scope.Metrics)
		for key, s := range saidInPoints(t, scope.Metrics, timeOfPoints(scope.Metrics)) {
			if s.kind == "histogram" {
				values[key] = float64(s.count)
				continue
			}
			var value float64
			_, err := fmt.Sscan(s.value, &value)
			require.NoError(t, err)
			values[key] = value
		}
	}
	return values
}

// timeOfPoints is the time of the first point.
func timeOfPoints(list []metricdata.Metrics) time.Time {
	switch data := list[0].Data.(type) {
	case metricdata.Gauge[float64]:
		return data.DataPoints[0].Time
	case metricdata.Sum[float64]:
		return data.DataPoints[0].Time
	case metricdata.Histogram[float64]:
		return data.DataPoints[0].Time
	}
	panic("no points")
}

// read reads all; deliver says that it has arrived.
func (r testReader) read() (values map[string]float64, deliver func()) {
	r.n.t.Helper()
	scopes, deliver, err := r.Read(r.n.t.Context())
	require.NoError(r.n.t, err)
	return pointsOf(r.n.t, scopes), deliver
}

// dropped is how many series have been counted as dropped for this reason.
func (n *node) dropped(reason string) float64 {
	n.t.Helper()
	families, err := n.self.Gather()
	require.NoError(n.t, err)
	return valuesOf(families)[fmt.Sprintf("mpit_exporter_series_dropped_total{reason=%q}", reason)]
}

func TestEndedRankStaysUntilAllReadersHaveIt(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{Retention: time.Minute}, withClock(clock))
	first, second := n.reader(OTelConfig{}), n.reader(OTelConfig{})
	r := mpittest.New(small("1", 0))
	n.connect(r)
	n.finish(r, mpit.EndFinalize)
	n.scrape()
	clock.advance(time.Hour)

	values, _ := first.read()
	assert.Contains(t, values, ended("finalize"))
	n.scrape()
	assert.True(t, n.known(r), "it has not been delivered")
	_, deliver := first.read()
	deliver()
	n.scrape()
	assert.True(t, n.known(r), "one reader has not got it")
	values, deliver = second.read()
	assert.Contains(t, values, ended("finalize"))
	deliver()
	n.scrape()
	assert.False(t, n.known(r))
	deliver() // of what there isn't any more
	assert.Zero(t, n.dropped(self.DroppedUndelivered))
}

func TestEndedRankStaysForItsTimeWhoeverHasIt(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{Retention: time.Minute}, withClock(clock))
	reader := n.reader(OTelConfig{})
	r := mpittest.New(small("1", 0))
	n.finish(r, mpit.EndFinalize)
	_, deliver := reader.read()
	deliver()
	clock.advance(time.Minute - 1)
	values, _ := reader.read()
	assert.Contains(t, values, ended("finalize"), "a scraper may come")
	clock.advance(1)
	values, _ = reader.read()
	assert.NotContains(t, values, ended("finalize"), "nobody has ever scraped, so nobody is waited for")
}

// A scraper that was there lately is waited for, although a reader has taken it.
func TestEndedRankWaitsForAScraperThatIsThere(t *testing.T) {
	for _, test := range []struct {
		away time.Duration
		kept bool
	}{{scraperAway - 1, true}, {scraperAway, false}} {
		clock := newTestClock()
		n := startNode(t, Config{Retention: time.Minute}, withClock(clock))
		reader := n.reader(OTelConfig{})
		n.scrape()
		r := mpittest.New(small("1", 0))
		n.finish(r, mpit.EndFinalize)
		_, deliver := reader.read()
		deliver()
		clock.advance(test.away)
		reader.read()
		assert.Equal(t, test.kept, n.known(r), test.away)
		if test.kept {
			n.scrape()
			n.scrape()
			assert.False(t, n.known(r))
		}
	}
}

func TestClosedReaderHoldsNothing(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{Retention: time.Minute}, withClock(clock))
	reader, other := n.reader(OTelConfig{}), n.reader(OTelConfig{})
	r := mpittest.New(small("1", 0))
	n.finish(r, mpit.EndFinalize)
	n.scrape()
	_, deliver := other.read()
	deliver()
	_, late := reader.read()
	clock.advance(time.Hour)
	n.scrape()
	require.True(t, n.known(r))
	other.read()

	reader.Close()
	reader.Close()
	late()
	assert.Equal(t, 4.0, n.dropped(self.DroppedUndelivered), "what it has not got")
	other.Close()
	assert.Equal(t, 4.0, n.dropped(self.DroppedUndelivered))
	n.scrape()
	assert.False(t, n.known(r))

	_, deliver, err := reader.Read(t.Context())
	require.ErrorIs(t, err, errReaderClosed)
	deliver()
}

// A reader that is closed while it reads leaves nothing behind.
func TestReaderClosedWhileItReads(t *testing.T) {
	n := startNode(t, Config{})
	r := mpittest.New(small("1", 0))
	n.connect(r)
	n.scrape()
	reader := n.reader(OTelConfig{})
	r.Stall(true)
	read := make(chan error, 1)
	go func() {
		_, _, err := reader.Read(t.Context())
		read <- err
	}()
	require.Eventually(t, func() bool { return n.waiting() == 1 }, longest, time.Millisecond)
	reader.Close()
	r.Stall(false)
	require.NoError(t, <-read)
}

// A rank that comes back was not at its end; what is delivered of that does not stand for the next.
func TestRankThatEndsTwice(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{}, withClock(clock))
	reader := n.reader(OTelConfig{})
	r := mpittest.New(small("1", 0))
	n.connect(r)
	reader.read()
	n.kill(r)
	clock.advance(usual().grace)
	values, first := reader.read()
	require.Contains(t, values, ended("lost"))
	_, deliver := reader.read()
	deliver()
	n.connect(r)
	n.scrape()
	first()
	n.finish(r, mpit.EndFinalize)
	n.scrape()
	values, second := reader.read()
	assert.Contains(t, values, ended("finalize"))
	clock.advance(DefaultRetention)
	first()
	values, _ = reader.read()
	assert.Contains(t, values, ended("finalize"))
	second()
	values, _ = reader.read()
	assert.NotContains(t, values, ended("finalize"))
}

func TestReadersAreToldOfEnds(t *testing.T) {
	n := startNode(t, Config{})
	reader, closed := n.reader(OTelConfig{}), n.reader(OTelConfig{})
	closed.Close()
	told := func(r testReader) bool {
		select {
		case <-r.Ended():
			return true
		default:
			return false
		}
	}
	a, b := mpittest.New(small("1", 0)), mpittest.New(small("1", 1))
	n.connect(a, b)
	n.scrape()
	assert.False(t, told(reader))
	n.finish(a, mpit.EndFinalize)
	n.finish(b, mpit.EndExit)
	assert.True(t, told(reader))
	assert.False(t, told(reader), "one for all")
	assert.False(t, told(closed))
}

// Nobody holds memory without bound: the oldest goes, and is counted by whether anybody has it.
func TestEndedRanksOfAReaderThatDoesNotDeliver(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{MaxEnded: 2}, withClock(clock))
	reader := n.reader(OTelConfig{})
	end := func(number int) {
		n.finish(mpittest.New(small(strconv.Itoa(number), 0)), mpit.EndFinalize)
		clock.advance(time.Second)
	}
	end(0)
	n.scrape()
	end(1)
	end(2)
	assert.Equal(t, 4.0, n.dropped(self.DroppedUndelivered), "a scraper has the first one")
	assert.Zero(t, n.dropped(self.DroppedEvicted))
	end(3)
	assert.Equal(t, 4.0, n.dropped(self.DroppedEvicted), "nobody has the second one")
	_, deliver := reader.read()
	deliver()
	end(4)
	assert.Equal(t, 8.0, n.dropped(self.DroppedUndelivered), "a scraper was there, and has not got the third one")
	n.scrape()
	end(5)
	assert.Equal(t, 8.0, n.dropped(self.DroppedUndelivered), "all have the fourth one")
	assert.Equal(t, 4.0, n.dropped(self.DroppedEvicted))
}

// A new rank takes the labels of an ended one only if no reader waits for that.
func TestEndedRankMakesWayWhenReadersHaveIt(t *testing.T) {
	for _, delivered := range []bool{false, true} {
		n := startNode(t, Config{})
		reader := n.reader(OTelConfig{})
		n.finish(mpittest.New(small("1", 0)), mpit.EndFinalize)
		n.scrape()
		_, deliver := reader.read()
		if delivered {
			deliver()
		}
		n.connect(mpittest.New(small("1", 0)))
		values, _ := reader.read()
		assert.Equal(t, !delivered, values[`mpit_rank_up{dup="1",jobid="1",rank="0",user="alice",world="0"}`] == 1)
	}
}

func TestReadersAndScrapersShareARound(t *testing.T) {
	n := startNode(t, Config{}, oneRound)
	a, b := n.reader(OTelConfig{}), n.reader(OTelConfig{})
	x := n.reader(OTelConfig{Version: "1.2"})
	r := mpittest.New(small("1", 0))
	n.connect(r)
	r.Stall(true)
	type answer struct {
		scopes []metricdata.ScopeMetrics
		err    error
	}
	answers := make(chan answer, 3)
	for _, reader := range []testReader{a, b, x} {
		go func() {
			scopes, _, err := reader.Read(t.Context())
			answers <- answer{scopes, err}
		}()
	}
	pages := make(chan map[string]float64, 1)
	go func() { pages <- n.scrapeWithin(time.Hour) }()
	require.Eventually(t, func() bool { return n.waiting() == 4 }, longest, time.Millisecond)
	r.Stall(false)
	page := <-pages
	var all []answer
	for range 3 {
		got := <-answers
		require.NoError(t, got.err)
		values := pointsOf(t, got.scopes)
		assert.Equal(t, 1.0, values["mpit_exporter_rounds_total{}"])
		assert.Equal(t, page[of("mpit_calls_total", "1", 0)], values[of("mpit_calls_total", "1", 0)])
		all = append(all, got)
	}
	// What one reader does with his data is nobody else's matter.
	kept := pointsOf(t, all[1].scopes)
	for _, m := range all[0].scopes[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[float64]:
			clear(data.DataPoints)
		case metricdata.Gauge[float64]:
			clear(data.DataPoints)
		}
	}
	assert.Equal(t, kept, pointsOf(t, all[1].scopes))
	require.NoError(t, r.Set("calls", mpit.ClassCounter, 0, 1000))
	n.scrape()
	a.read()
	assert.Equal(t, kept, pointsOf(t, all[1].scopes))
}

func TestReadOfACanceledContext(t *testing.T) {
	n := startNode(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	scopes, deliver, err := n.reader(OTelConfig{}).Read(ctx)
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, scopes)
	deliver()
}

// A rank that is late is not waited for after ctx's deadline.
func TestReadWithALateRank(t *testing.T) {
	n := startNode(t, Config{})
	reader := n.reader(OTelConfig{})
	r := mpittest.New(small("1", 0))
	n.connect(r)
	reader.read()
	r.Stall(true)
	ctx, stop := n.deadlineAfter()
	defer stop()
	scopes, _, err := reader.Read(ctx)
	require.NoError(t, err)
	values := pointsOf(t, scopes)
	assert.Equal(t, 0.0, values[of("mpit_rank_up", "1", 0)])
	assert.Equal(t, 10.0, values[of("mpit_calls_total", "1", 0)])
	assert.NotContains(t, values, of("mpit_depth_level", "1", 0))
}

// What else a reader wants is read with the page, under names that are translated back; what doesn't say since when it
// counts began with the exporter.
func TestExtraPoints(t *testing.T) {
	n := startNode(t, Config{}, startedAt(time.Now()))
	extra := prometheus.NewRegistry()
	extra.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "lines_lost_total"}, func() float64 { return 3 }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "mpit_exporter_seen_seconds", ConstLabels: prometheus.Labels{"rank": "1"},
		}, func() float64 { return 7 }),
		prometheus.NewSummary(prometheus.SummaryOpts{Name: "pauses"}),
		failing{prometheus.NewDesc("bad", "", nil, nil)},
	)
	scopes, _, err := n.reader(OTelConfig{Extra: extra}).Read(t.Context())
	require.NoError(t, err)
	startsAreKnown(t, scopes[0].Metrics)
	values := pointsOf(t, scopes)
	assert.Equal(t, 3.0, values["lines_lost_total{}"])
	assert.Equal(t, 7.0, values[`mpit_exporter_seen_seconds{rank="1"}`])
	for key := range values {
		assert.NotContains(t, key, "pauses")
	}
	assert.Contains(t, values, "mpit_exporter_rounds_total{}")
}

// failing is a collector that fails.
type failing struct{ desc *prometheus.Desc }

func (f failing) Describe(to chan<- *prometheus.Desc) { to <- f.desc }
func (f failing) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.NewInvalidMetric(f.desc, errors.New("it fails"))
}
