package exporter

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

const benchRanks, benchSeries = 100, 100

// benchSample is a sample of a rank with benchSeries counters.
func benchSample() *mpit.Sample {
	variables := &mpit.Variables{Generation: 1}
	layout := &mpit.Layout{Generation: 1, Values: benchSeries}
	for i := range uint32(benchSeries) {
		variables.ByID = append(variables.ByID, mpit.Variable{
			ID: i, Name: fmt.Sprintf("variable_%d", i), Class: mpit.ClassCounter, Datatype: mpit.DatatypeUint64, DatatypeBytes: 8,
		})
		layout.Handles = append(layout.Handles, mpit.Handle{ID: i + 1, Variable: i, Count: 1, Created: testTime, Offset: int(i)})
	}
	return &mpit.Sample{Variables: variables, Layout: layout, Values: make([]uint64, benchSeries)}
}

// benchExporter is an Exporter with ranks that have answered and are gone, so that only this side's work is measured.
func benchExporter(b *testing.B) (e *Exporter, touch func()) {
	e, err := New(Config{Mapper: newMapper(b)})
	if err != nil {
		b.Fatal(err)
	}
	samples := make([]*mpit.Sample, benchRanks)
	ranks := make([]*rank, benchRanks)
	for i := range ranks {
		samples[i] = benchSample()
		ranks[i] = e.add(mpit.Hello{ID: mpit.RankID{byte(i)}, Rank: i, InitTime: testTime}, mpit.Peer{}, who{claim: claim{id: Identity{Rank: i}}})
		ranks[i].gone = e.now().AddDate(1, 0, 0) // not lost yet
	}
	return e, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for i, r := range ranks {
			s := *samples[i]
			samples[i] = &s
			s.Monotonic++
			for v := range s.Values {
				s.Values[v]++
			}
			if !e.absorb(r, &s) {
				b.Fatal("no figures")
			}
			r.state = stateUp
		}
	}
}

// BenchmarkGather is a round over 100 ranks with 100 series each, all of which change, and its page, with no ranks at the other
// end: samples to metric families.
func BenchmarkGather(b *testing.B) {
	e, touch := benchExporter(b)
	b.ReportAllocs()
	for b.Loop() {
		touch()
		families, done, err := e.Gather(context.Background())
		if err != nil || len(families) < benchSeries {
			b.Fatal(err, len(families))
		}
		done()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(benchRanks*benchSeries), "ns/series")
}

// ordinary is the same page made the ordinary way: a const metric for each series at each scrape.
type ordinary struct {
	ranks []*mapping.Rank
	step  func()
}

func newOrdinary(b *testing.B) *ordinary {
	mapper := newMapper(b)
	o := &ordinary{}
	samples := make([]*mpit.Sample, benchRanks)
	for i := range samples {
		samples[i] = benchSample()
		r, err := mapper.NewRank(mapping.Library{}, nil)
		if err != nil {
			b.Fatal(err)
		}
		o.ranks = append(o.ranks, r)
	}
	o.step = func() {
		for i, r := range o.ranks {
			s := *samples[i]
			samples[i] = &s
			s.Monotonic++
			for v := range s.Values {
				s.Values[v]++
			}
			r.Update(&s)
		}
	}
	return o
}

func (o *ordinary) Describe(chan<- *prometheus.Desc) {}

func (o *ordinary) Collect(ch chan<- prometheus.Metric) {
	for i, r := range o.ranks {
		for _, s := range r.Series() {
			ch <- prometheus.MustNewConstMetric(
				prometheus.NewDesc(s.Metric.Name, s.Metric.Help, []string{"jobid", "world", "rank"}, nil),
				prometheus.CounterValue, s.Value, "1", "0", fmt.Sprint(i))
		}
	}
}

// BenchmarkGatherOrdinary is what BenchmarkGather is to be compared with.
func BenchmarkGatherOrdinary(b *testing.B) {
	o := newOrdinary(b)
	registry := prometheus.NewRegistry()
	registry.MustRegister(o)
	b.ReportAllocs()
	for b.Loop() {
		o.step()
		families, err := registry.Gather()
		if err != nil || len(families) != benchSeries {
			b.Fatal(err, len(families))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(benchRanks*benchSeries), "ns/series")
}

// discard is a client that is infinitely fast.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

func benchHTTP(b *testing.B, h http.Handler, touch func(), headers ...string) {
	req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	b.ReportAllocs()
	for b.Loop() {
		touch()
		h.ServeHTTP(discard{http.Header{}}, req)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(benchRanks*benchSeries), "ns/series")
}

// BenchmarkScrape is BenchmarkGather as a whole HTTP request, beside promhttp with the ordinary collector.
func BenchmarkScrape(b *testing.B) {
	for _, test := range []struct{ name, accept, encoding string }{
		{"text", "", ""},
		{"text-gzip", "", "gzip"},
		{"openmetrics-gzip", acceptOpenMetrics, "gzip"},
		{"protobuf-gzip", acceptProtobuf, "gzip"},
	} {
		headers := []string{"Accept", test.accept, "Accept-Encoding", test.encoding}
		b.Run(test.name, func(b *testing.B) {
			e, touch := benchExporter(b)
			benchHTTP(b, e.Handler(), touch, headers...)
		})
		b.Run(test.name+"-ordinary", func(b *testing.B) {
			o := newOrdinary(b)
			registry := prometheus.NewRegistry()
			registry.MustRegister(o)
			benchHTTP(b, promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}), o.step, headers...)
		})
	}
}

// BenchmarkRound is a whole round over 100 ranks behind Unix sockets, all in this process.
func BenchmarkRound(b *testing.B) {
	dir, err := os.MkdirTemp("", "mpit")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l, err := mpit.Listen(filepath.Join(dir, "s"))
	if err != nil {
		b.Fatal(err)
	}
	e, err := New(Config{Mapper: newMapper(b)})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- e.Serve(ctx, l) }()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			b.Error(err)
		}
		_ = l.Close()
	}()
	for i := range benchRanks {
		cfg := small("1", i)
		cfg.Hello.Size = benchRanks
		r := mpittest.New(cfg)
		if err := r.Connect(ctx, l.Path()); err != nil {
			b.Fatal(err)
		}
		defer r.Kill()
	}
	for attempt, up := 0, 0; up < benchRanks; attempt++ { // until all are known
		families, done, err := e.Gather(ctx)
		if err != nil || attempt > 10_000 {
			b.Fatal(up, err)
		}
		up = upRanks(families)
		done()
	}
	b.ReportAllocs()
	for b.Loop() {
		families, done, err := e.Gather(ctx)
		if err != nil || upRanks(families) != benchRanks {
			b.Fatal(err, upRanks(families))
		}
		done()
	}
}

func upRanks(families []*dto.MetricFamily) (n int) {
	for _, f := range families {
		if f.GetName() == familyRankUp.Name {
			for _, m := range f.Metric {
				n += int(m.Gauge.GetValue())
			}
		}
	}
	return n
}
