package exporter

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/series"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// docs/internals/benchmarks.md has a table made from these (scripts/bench-table). Names are as benchstat reads them, so
// that benchstat -col /by shows client_golang's ordinary collector beside this exporter.

const benchRanks, benchSeries = 100, 100

// Limits that are in nobody's way.
var benchLimits = rules.Limits{Series: 1 << 30, SeriesPerJob: 1 << 30, SeriesPerUser: 1 << 30, SeriesPerRank: 1 << 30}

// benchSample is a sample of a rank with that many counters.
func benchSample(series int) *mpit.Sample {
	variables := &mpit.Variables{Generation: 1}
	layout := &mpit.Layout{Generation: 1, Values: series}
	for i := range uint32(series) {
		variables.ByID = append(variables.ByID, mpit.Variable{
			ID: i, Name: fmt.Sprintf("variable_%d", i), Class: mpit.ClassCounter, Datatype: mpit.DatatypeUint64,
			DatatypeBytes: 8,
		})
		layout.Handles = append(layout.Handles, mpit.Handle{ID: i + 1, Variable: i, Count: 1, Created: testTime,
			Offset: int(i)})
	}
	s := &mpit.Sample{Variables: variables, Layout: layout, Values: make([]uint64, series)}
	for i := range s.Values {
		s.Values[i] = 1_000_003 * uint64(i) // of up to nine digits
	}
	return s
}

// benchSamples is what a node's ranks send, with one catalogue for all; advance changes every value.
func benchSamples(ranks, series int) (samples []*mpit.Sample, advance func()) {
	return benchSamplesOf(ranks, benchSample(series), func(values []uint64) {
		for v := range values {
			values[v] += 7
		}
	})
}

// benchSamplesOf is that of ranks that send others.
func benchSamplesOf(ranks int, first *mpit.Sample, move func(values []uint64)) (samples []*mpit.Sample,
	advance func()) {
	for range ranks {
		s := *first
		s.Values = slices.Clone(first.Values)
		samples = append(samples, &s)
	}
	return samples, func() {
		for _, s := range samples {
			s.Monotonic++
			move(s.Values)
		}
	}
}

// benchExporter is an Exporter with ranks that have answered and are gone, so that only this side's work is measured.
// touch is their next answers.
func benchExporter(b testing.TB, ranks, series int, options ...func(*Exporter)) (e *Exporter, touch func()) {
	samples, advance := benchSamples(ranks, series)
	return benchExporterOf(b, samples, advance, options...)
}

// benchExporterOf is that of ranks that send others.
func benchExporterOf(b testing.TB, samples []*mpit.Sample, advance func(), options ...func(*Exporter)) (e *Exporter,
	touch func()) {
	ranks := len(samples)
	e, err := New(Config{Mapper: newMapper(b), Limits: benchLimits, MaxEnded: ranks})
	if err != nil {
		b.Fatal(err)
	}
	for _, o := range options {
		o(e)
	}
	g := e.lock()
	list := make([]*rank, ranks)
	for i := range list {
		list[i] = g.add(mpit.Hello{ID: mpit.RankID{byte(i), byte(i >> 8)}, Rank: i, InitTime: testTime}, mpit.Peer{},
			identity.Process{ID: Identity{User: "alice", Rank: i}})
		list[i].gone = e.now().AddDate(1, 0, 0) // not lost yet
	}
	g.unlock()
	touch = func() {
		advance()
		for i, r := range list {
			s := *samples[i]
			if !e.absorbed(r, &s) {
				b.Fatal("no figures")
			}
			r.state = stateUp
		}
	}
	touch()
	return e, touch
}

// ordinary is the same page made the ordinary way: a const metric for each series at each scrape.
type ordinary struct {
	ranks []*series.Rank
	descs map[*mapping.Metric]*prometheus.Desc
	touch func()
}

func newOrdinary(b *testing.B, ranks, perRank int) (*ordinary, *prometheus.Registry) {
	mapper := newMapper(b)
	o := &ordinary{descs: map[*mapping.Metric]*prometheus.Desc{}}
	samples, advance := benchSamples(ranks, perRank)
	for range samples {
		r := series.NewRank(mapper, variables.Process{})
		o.ranks = append(o.ranks, r)
	}
	o.touch = func() {
		advance()
		for i, r := range o.ranks {
			s := *samples[i]
			r.Update(&s)
		}
	}
	o.touch()
	registry := prometheus.NewRegistry()
	registry.MustRegister(o)
	return o, registry
}

func (o *ordinary) Describe(chan<- *prometheus.Desc) {}

func (o *ordinary) Collect(ch chan<- prometheus.Metric) {
	for i, r := range o.ranks {
		for _, s := range r.Series() {
			desc := o.descs[s.Metric]
			if desc == nil {
				desc = prometheus.NewDesc(s.Metric.Name, s.Metric.Help, []string{"jobid", "world", "rank"}, nil)
				o.descs[s.Metric] = desc
			}
			ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, s.Value, "1", "0", strconv.Itoa(i))
		}
	}
}

// cpuMeter adds up this process' CPU time, the garbage collector's too, which on a busy machine says more than the
// clock.
type cpuMeter struct{ began, total time.Duration }

func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (m *cpuMeter) start() { m.began = cpuTime() }
func (m *cpuMeter) stop()  { m.total += cpuTime() - m.began }

func (m *cpuMeter) report(b *testing.B, series int) {
	b.ReportMetric(float64(m.total.Nanoseconds())/float64(b.N)/float64(series), "cpu-ns/series")
}

var benchFormats = []struct {
	name   string
	format expfmt.Format
	way    way
	accept string
}{
	{"text", expfmt.FmtText, asText, ""},
	{"openmetrics", expfmt.FmtOpenMetrics_1_0_0, asOpenMetrics, acceptOpenMetrics},
	{"protobuf", expfmt.FmtProtoDelim, asProtobuf, acceptProtobuf},
}

// BenchmarkExposition is the way from values to the compressed body alone, all of which have changed.
func BenchmarkExposition(b *testing.B) {
	for _, f := range benchFormats {
		b.Run("format="+f.name+"/by=mpit-exporter", func(b *testing.B) {
			e, touch := benchExporter(b, benchRanks, benchSeries)
			if _, done, err := e.Gather(b.Context()); err == nil {
				done() // the page knows the ranks
			}
			render := func() {
				body := e.pages.page.Lock().board.Write(exposition.Format(f.way), 1)
				e.pages.page.Unlock()
				body.Release()
			}
			render() // the pool has a body
			var cpu cpuMeter
			for b.Loop() {
				touch()
				cpu.start()
				render()
				cpu.stop()
			}
			cpu.report(b, benchRanks*benchSeries)
		})
		b.Run("format="+f.name+"/by=client_golang", func(b *testing.B) {
			o, registry := newOrdinary(b, benchRanks, benchSeries)
			var body bytes.Buffer
			compressed := gzip.NewWriter(&body) // as promhttp does
			var cpu cpuMeter
			for b.Loop() {
				o.touch()
				cpu.start()
				families, err := registry.Gather()
				if err != nil || len(families) != benchSeries {
					b.Fatal(err, len(families))
				}
				body.Reset()
				compressed.Reset(&body)
				encoder := expfmt.NewEncoder(compressed, f.format)
				for _, f := range families {
					if err := encoder.Encode(f); err != nil {
						b.Fatal(err)
					}
				}
				if err := compressed.Close(); err != nil {
					b.Fatal(err)
				}
				cpu.stop()
			}
			cpu.report(b, benchRanks*benchSeries)
		})
	}
}

// discard is a client that is infinitely fast.
type discard struct {
	header http.Header
	n      *int
}

func (d discard) Header() http.Header { return d.header }
func (d discard) Write(p []byte) (int, error) {
	*d.n += len(p)
	return len(p), nil
}
func (d discard) WriteHeader(int) {}

// asked is a scraper's request.
func asked(accept, coding string) *http.Request {
	req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	req.Header.Set("Accept", accept)
	req.Header.Set("Accept-Encoding", coding)
	return req
}

// BenchmarkScrape is all that a scrape costs: the ranks' answers taken in, every value changed, the page, and the
// whole HTTP request. Nobody is at the other end of the ranks' sockets; BenchmarkRound has that.
func BenchmarkScrape(b *testing.B) {
	for _, size := range []struct {
		ranks, series int
		formats       string
	}{
		{100, 100, "text openmetrics protobuf"}, {256, 100, "openmetrics"}, {1024, 977, "openmetrics"},
	} {
		for _, f := range benchFormats {
			for _, coding := range []string{"identity", "gzip"} {
				if size.ranks > 100 && f.name != "openmetrics" {
					continue
				}
				name := fmt.Sprintf("series=%d/format=%s/coding=%s/by=", size.ranks*size.series, f.name, coding)
				roomFor := func(b *testing.B) {
					if testing.Short() && size.ranks > 256 {
						b.Skip("a gigabyte")
					}
					if need := uint64(size.ranks*size.series) * 5000; need > availableMemory() {
						b.Skip("the machine has not so much memory now: ", need>>20, " MiB")
					}
				}
				run := func(b *testing.B, h http.Handler, touch func()) {
					req := asked(f.accept, coding)
					scrape := func() (length int) {
						touch()
						h.ServeHTTP(discard{http.Header{}, &length}, req)
						return length
					}
					length := scrape()
					b.ReportAllocs()
					var cpu cpuMeter
					cpu.start()
					for b.Loop() {
						scrape()
					}
					cpu.stop()
					cpu.report(b, size.ranks*size.series)
					b.ReportMetric(float64(length)/float64(size.ranks*size.series), "body-B/series")
				}
				b.Run(name+"mpit-exporter", func(b *testing.B) {
					roomFor(b)
					e, touch := benchExporter(b, size.ranks, size.series)
					run(b, e.Handler(), touch)
				})
				if size.ranks > 256 {
					continue // a gigabyte
				}
				b.Run(name+"client_golang", func(b *testing.B) {
					o, registry := newOrdinary(b, size.ranks, size.series)
					run(b, promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}), o.touch)
				})
			}
		}
	}
}

// availableMemory is what the kernel could give without swapping, in bytes.
func availableMemory() uint64 {
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(info)) {
		var kilobytes uint64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kilobytes); n == 1 {
			return kilobytes << 10
		}
	}
	return 0
}

// BenchmarkRound is a whole scrape of ranks behind Unix sockets, all in this process: it counts what ranks do as well.
func BenchmarkRound(b *testing.B) {
	for _, ranks := range []int{64, 256, 1024} {
		b.Run(fmt.Sprintf("ranks=%d", ranks), func(b *testing.B) {
			benchRound(b, ranks, func(rank int) mpittest.Config { return small("1", rank) }, nil)
		})
	}
}

// benchRound scrapes ranks with such a configuration; move, if there is one, changes a rank's values before each
// scrape, which is not counted.
func benchRound(b *testing.B, ranks int, of func(rank int) mpittest.Config, move func(r *mpittest.Rank) error) {
	dir, err := os.MkdirTemp("", "mpit")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l, err := mpit.Listen(filepath.Join(dir, "s"))
	if err != nil {
		b.Fatal(err)
	}
	e, err := New(Config{Mapper: newMapper(b), Limits: benchLimits})
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
	list := make([]*mpittest.Rank, ranks)
	for i := range list {
		cfg := of(i)
		cfg.Hello.Size = ranks
		r := mpittest.New(cfg)
		list[i] = r
		if err := r.Connect(ctx, l.Path()); err != nil {
			b.Fatal(err)
		}
		defer r.Kill()
	}
	up := func() int {
		families, done, err := e.Gather(ctx)
		defer done()
		if err != nil {
			b.Fatal(err)
		}
		return upRanks(families)
	}
	for attempt := 0; up() < ranks; attempt++ { // until all are known
		if attempt > 10_000 {
			b.Fatal("not all ranks are up")
		}
	}
	h, req := e.Handler(), asked("", "gzip")
	var took []float64
	var cpu cpuMeter
	for b.Loop() {
		for i := 0; move != nil && i < ranks; i++ {
			if err := move(list[i]); err != nil {
				b.Fatal(err)
			}
		}
		cpu.start()
		began := time.Now()
		h.ServeHTTP(discard{http.Header{}, new(int)}, req)
		took = append(took, float64(time.Since(began).Microseconds())/1e3)
		cpu.stop()
	}
	if n := up(); n != ranks {
		b.Fatal(n, "ranks up")
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "p50-ms")
	b.ReportMetric(took[len(took)*99/100], "p99-ms")
	b.ReportMetric(float64(cpu.total.Microseconds())/1e3/float64(b.N), "cpu-ms/op")
}

func upRanks(families []*dto.MetricFamily) (n int) {
	for _, f := range families {
		if f.GetName() == "mpit_rank_up" {
			for _, m := range f.Metric {
				n += int(m.Gauge.GetValue())
			}
		}
	}
	return n
}

// What a connection costs does not depend on how many ranks there are: whoever floods the node with them takes no more
// time of it the longer it lasts.
func BenchmarkConnection(b *testing.B) {
	for _, ranks := range []int{100, 8000} {
		b.Run(fmt.Sprintf("ranks=%d", ranks), func(b *testing.B) {
			e, err := New(Config{Mapper: newMapper(b), MaxEnded: ranks})
			if err != nil {
				b.Fatal(err)
			}
			g := e.lock()
			defer g.unlock()
			come := func(i int) {
				h := mpit.Hello{ID: mpit.RankID{1, byte(i), byte(i >> 8), byte(i >> 16)}, Rank: i % 4096,
					InitTime: testTime}
				r := g.add(h, mpit.Peer{}, identity.Process{ID: Identity{Rank: h.Rank}})
				g.finish(r, mpit.EndLost, testTime.Add(time.Duration(i)))
				if g.table.alive(0) != 0 {
					b.Fatal("it has ended")
				}
			}
			for i := range ranks {
				come(i)
			}
			for i := ranks; b.Loop(); i++ {
				come(i)
			}
		})
	}
}

// BenchmarkMemory scrapes 1,000 ranks with 100 series each, and reports the most memory that the process has had from
// the kernel meanwhile, what it has when all have come, and what is left when they have ended; before is what it had
// without them.
func BenchmarkMemory(b *testing.B) {
	for _, f := range benchFormats {
		b.Run("series=100000/format="+f.name+"/by=mpit-exporter", func(b *testing.B) {
			before := settledMiB()
			e, touch := benchExporter(b, 1000, 100)
			benchMemory(b, e.Handler(), touch, f.accept, before)
			g := e.lock()
			for _, r := range g.table.ordered {
				g.finish(r, mpit.EndExit, e.now().Add(-time.Hour))
				r.scraped = true
			}
			g.unlock()
			for range 2 {
				e.Handler().ServeHTTP(discard{http.Header{}, new(int)},
					httptest.NewRequest(http.MethodGet, "/metrics", nil))
			}
			if n := len(e.Ranks()); n > 0 {
				b.Fatal(n, "ranks left")
			}
			b.ReportMetric(settledMiB(), "after-MiB")
			runtime.KeepAlive(e)
		})
		b.Run("series=100000/format="+f.name+"/by=client_golang", func(b *testing.B) {
			before := settledMiB()
			o, registry := newOrdinary(b, 1000, 100)
			benchMemory(b, promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}), o.touch,
				f.accept, before)
			runtime.KeepAlive(o)
		})
	}
}

func benchMemory(b *testing.B, h http.Handler, touch func(), accept string, before float64) {
	var peak atomic.Uint64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			peak.Store(max(peak.Load(), fromKernel()))
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	req := asked(accept, "gzip")
	for b.Loop() {
		touch()
		h.ServeHTTP(discard{http.Header{}, new(int)}, req)
	}
	close(stop)
	<-stopped
	b.ReportMetric(before, "before-MiB")
	b.ReportMetric(float64(peak.Load())/(1<<20), "peak-MiB")
	b.ReportMetric(settledMiB(), "live-MiB")
}

// fromKernel is the memory that this process' runtime holds, in bytes.
func fromKernel() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}

// settledMiB is the same when nothing is left to be given back.
func settledMiB() float64 {
	for range 3 { // pools hold things for two collections
		debug.FreeOSMemory()
	}
	return float64(fromKernel()) / (1 << 20)
}
