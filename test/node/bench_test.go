package node

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// interval is that of scrapes for which cores are reported. The benchmark itself doesn't wait.
const interval = 15 * time.Second

// formats are what scrapers ask for.
var formats = []struct{ name, accept, coding string }{
	{"text", "text/plain;version=0.0.4", "identity"},
	{"text+gzip", "text/plain;version=0.0.4", "gzip"},
	{"openmetrics+gzip", "application/openmetrics-text;version=1.0.0", "gzip"},
	{"protobuf+gzip", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited",
		"gzip"},
}

// BenchmarkNode scrapes $BENCH_RANKS (1,024) ranks, all of whose values change before each scrape: as each format; with
// a tenth of the ranks stopped; with a tenth of them new in each scrape; and by three scrapers at once. Beside it is
// client_golang's ordinary way, a const metric for each series, and where $BENCH_BESIDE is a path, another build of the
// exporter.
func BenchmarkNode(b *testing.B) {
	n := ranksWanted(b)
	for _, f := range formats {
		bench(b, fmt.Sprintf("ranks=%d/format=%s", n, f.name), setting{ranks: n, accept: f.accept, coding: f.coding})
	}
	gzip := formats[1]
	for what, s := range map[string]setting{
		"stopped": {stop: n / 10}, "new": {renew: n / 10}, "scrapers": {scrapers: 3},
	} {
		s.ranks, s.accept, s.coding = n, gzip.accept, gzip.coding
		bench(b, fmt.Sprintf("ranks=%d/format=%s/with=%s", n, gzip.name, what), s)
	}
}

func ranksWanted(tb testing.TB) int {
	n, err := strconv.Atoi(os.Getenv("BENCH_RANKS"))
	if os.Getenv("BENCH_RANKS") == "" {
		return 1024
	}
	require.NoError(tb, err, "BENCH_RANKS")
	return n
}

// setting is what happens in a benchmark.
type setting struct {
	accept, coding string
	ranks          int
	stop           int // ranks that don't answer
	renew          int // ranks that are replaced before each scrape
	scrapers       int // 0: one
}

func bench(b *testing.B, name string, s setting) {
	binaries := map[string]string{"mpit-exporter": suite.Binary()}
	if beside := os.Getenv("BENCH_BESIDE"); beside != "" {
		binaries["beside"] = beside
	}
	for by, binary := range binaries {
		b.Run(name+"/by="+by, func(b *testing.B) { s.run(b, startNode(b, binary, s.ranks)) })
	}
	if s.stop+s.renew == 0 { // it has no ranks that could be stopped or new
		b.Run(name+"/by=client_golang", func(b *testing.B) {
			n := startNode(b, suite.Binary(), s.ranks)
			s.run(b, startOrdinary(b, n.page(b)))
		})
	}
}

// node is a process that is scraped.
type node struct {
	url     string
	process *harness.Process
	ranks   *harness.Player // nil: it has none
}

// startNode starts an exporter with ranks and waits until all are up.
func startNode(tb testing.TB, binary string, size int) *node {
	dir := suite.Dir(tb)
	socket, address := filepath.Join(dir, "s"), filepath.Join(dir, "address")
	n := &node{process: suite.Start(tb, []string{binary, "--agent.socket=" + socket,
		"--web.listen-address=127.0.0.1:0", "--web.address-file=" + address}, nil)}
	n.await(tb, address)
	n.ranks = suite.StartPlayer(tb, part+"=ranks", socket, strconv.Itoa(size))
	n.ranks.Await(tb, "connected")
	harness.Await(tb, "all ranks to be up", func(ctx context.Context) error {
		if up := bytes.Count(n.page(tb), []byte("\nmpit_rank_up{")); up != size {
			return fmt.Errorf("%d are", up)
		}
		return nil
	})
	return n
}

// startOrdinary starts client_golang with the series of a page.
func startOrdinary(tb testing.TB, page []byte) *node {
	dir := suite.Dir(tb)
	file, address := filepath.Join(dir, "page"), filepath.Join(dir, "address")
	require.NoError(tb, os.WriteFile(file, page, 0o600))
	self, err := os.Executable()
	require.NoError(tb, err)
	// Memory as it is set for the exporter.
	n := &node{process: suite.Start(tb, []string{self, file, address}, []string{part + "=ordinary", "GOGC=40"})}
	n.await(tb, address)
	return n
}

// await waits until it answers where the file says.
func (n *node) await(tb testing.TB, file string) {
	harness.Await(tb, "an address", func(ctx context.Context) error {
		address, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		n.url = "http://" + strings.TrimSpace(string(address)) + "/metrics"
		return n.scrape(ctx, "", "identity", io.Discard)
	})
}

func (n *node) page(tb testing.TB) []byte {
	var page bytes.Buffer
	// Compressed, by itself, so that the exporter never has it as a whole because of this.
	require.NoError(tb, n.scrape(tb.Context(), "text/plain;version=0.0.4", "", &page))
	return page.Bytes()
}

func (n *node) scrape(ctx context.Context, accept, coding string, to io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", accept)
	if coding != "" {
		request.Header.Set("Accept-Encoding", coding)
	}
	request.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", "10")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", response.Status)
	}
	_, err = io.Copy(to, response.Body)
	return err
}

// run scrapes a node and reports what it took of it.
func (s setting) run(b *testing.B, n *node) {
	s.prepare(b, n)
	var took []float64
	var rss, peak, length int
	s.all(b, n) // what is kept is made
	if s.stop > 0 {
		s.all(b, n) // and what doesn't answer is known
	}
	before := n.cpu(b)
	for b.Loop() {
		s.move(b, n)
		times, bytes := s.all(b, n)
		took, length = append(took, times...), bytes
		rss = n.memory(b, "VmRSS")
	}
	cpu := n.cpu(b) - before
	peak = n.memory(b, "VmHWM")
	slices.Sort(took)
	perScrape := cpu.Seconds() / float64(b.N)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took[len(took)/2], "p50-ms")
	b.ReportMetric(took[len(took)*99/100], "p99-ms")
	b.ReportMetric(1000*perScrape, "cpu-ms/op")
	b.ReportMetric(perScrape/interval.Seconds(), "cores")
	b.ReportMetric(float64(rss)/1024, "rss-MiB")
	b.ReportMetric(float64(peak)/1024, "peak-MiB")
	b.ReportMetric(float64(length)/(1<<20), "body-MiB")
}

func (s setting) prepare(tb testing.TB, n *node) {
	if n.ranks != nil && s.stop > 0 {
		n.ranks.Do(tb, "done", "stop", s.stop)
	}
}

func (s setting) move(tb testing.TB, n *node) {
	if n.ranks == nil {
		return
	}
	if s.renew > 0 {
		n.ranks.Do(tb, "done", "renew", s.renew)
	}
	n.ranks.Do(tb, "done", "move", s.ranks)
}

// all lets all scrapers read at once, and returns how long each took, in milliseconds, and the length of what it got.
func (s setting) all(tb testing.TB, n *node) (took []float64, length int) {
	took = make([]float64, max(1, s.scrapers))
	lengths, errs := make([]counter, len(took)), make([]error, len(took))
	var scrapers sync.WaitGroup
	for i := range took {
		scrapers.Go(func() {
			began := time.Now()
			errs[i] = n.scrape(tb.Context(), s.accept, s.coding, &lengths[i])
			took[i] = float64(time.Since(began).Microseconds()) / 1000
		})
	}
	scrapers.Wait()
	for _, err := range errs {
		require.NoError(tb, err)
	}
	return took, int(lengths[0])
}

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// cpu is the CPU time that the process has taken.
func (n *node) cpu(tb testing.TB) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.process.PID()))
	require.NoError(tb, err)
	_, after, _ := strings.Cut(string(text), ") ") // the name
	fields := strings.Fields(after)
	var ticks int
	for _, field := range fields[11:13] { // of the user and of the system
		t, err := strconv.Atoi(field)
		require.NoError(tb, err)
		ticks += t
	}
	return time.Duration(ticks) * time.Second / 100 // what Linux has told programs for decades
}

// memory is a line of the process' status, in KiB.
func (n *node) memory(tb testing.TB, what string) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.process.PID()))
	require.NoError(tb, err)
	_, after, _ := strings.Cut(string(text), what+":")
	kilobytes, err := strconv.Atoi(strings.Fields(after)[0])
	require.NoError(tb, err)
	return kilobytes
}

// Ranks of another process come, move, stop and are renewed, and client_golang serves the same series: what is measured
// above is what it seems.
func TestNode(t *testing.T) {
	const size = 20
	n := startNode(t, suite.Binary(), size)
	first := n.page(t)
	s := setting{ranks: size, stop: 2, renew: 3, scrapers: 3, accept: formats[1].accept, coding: "gzip"}
	s.move(t, n)
	s.prepare(t, n)
	took, length := s.all(t, n)
	require.Len(t, took, 3)
	require.Positive(t, length)
	page, err := harness.ParseText(n.page(t))
	require.NoError(t, err)
	require.Len(t, page.Select("mpit_rank_end_info", nil), 3)
	require.Len(t, page.Select("mpit_call_time_seconds", harness.Labels{"jobid": "job1"}), 3*len(functions))
	require.GreaterOrEqual(t, n.cpu(t), time.Duration(0))
	require.Positive(t, n.memory(t, "VmRSS"))

	require.Equal(t, bytes.Count(first, []byte("\nmpit_")),
		bytes.Count(startOrdinary(t, first).page(t), []byte("\nmpit_")))
}
