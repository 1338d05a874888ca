package exporter

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/board"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest/uptodate"
)

const (
	acceptOpenMetrics = "application/openmetrics-text;version=1.0.0;q=0.5"
	acceptProtobuf    = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
)

// everything starts a node with a rank that has every class, bind and datatype, and has been scraped once.
func everything(t *testing.T, cfg Config) *node {
	cfg.UserName = func(uint32) string { return "alice" }
	n := startNode(t, cfg)
	n.connect(mpittest.New(mpittest.Everything()))
	n.scrape()
	n.settle()
	return n
}

// What differs from run to run in a golden page.
var unstable = []struct {
	expression *regexp.Regexp
	instead    string
}{
	{regexp.MustCompile(`pid="\d+"`), `pid="PID"`},
	{regexp.MustCompile(`uid="\d+"`), `uid="UID"`},
	{regexp.MustCompile(`(?m)^(mpit_exporter_config_last_reload_success_timestamp_seconds) .*$`), "$1 N"},
	{regexp.MustCompile(`(?m)^(mpit_exporter_round_duration_seconds\w*(?:\{[^}]*\})?) .*$`), "$1 N"},
}

// golden compares with testdata/name, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	for _, u := range unstable {
		got = u.expression.ReplaceAllString(got, u.instead)
	}
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	uptodate.Check(t, path, string(want), got, updating)
}

func TestGoldenText(t *testing.T) {
	n := everything(t, Config{})
	w := get(n.Handler(), "/metrics")
	require.Equal(t, http.StatusOK, w.Code)
	assert.Equal(t, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores", w.Header().Get("Content-Type"))
	golden(t, "everything.golden", w.Body.String())

	problems, err := promlint.New(bytes.NewReader(w.Body.Bytes())).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func TestGoldenOfAnEndedRank(t *testing.T) {
	n := startNode(t, Config{UserName: func(uint32) string { return "alice" }})
	r := mpittest.New(mpittest.Everything())
	n.connect(r)
	n.scrape()
	n.settle()
	n.finish(r, mpit.EndFinalize)
	var page strings.Builder
	for line := range strings.Lines(get(n.Handler(), "/metrics").Body.String()) {
		if !strings.Contains(line, board.Prefix) {
			page.WriteString(line)
		}
	}
	golden(t, "ended.golden", page.String())
}

func TestGoldenOpenMetrics(t *testing.T) {
	n := everything(t, Config{})
	w := get(n.Handler(), "/metrics", "Accept", acceptOpenMetrics)
	require.Equal(t, http.StatusOK, w.Code)
	assert.True(t, strings.HasPrefix(w.Header().Get("Content-Type"),
		"application/openmetrics-text; version=1.0.0; charset=utf-8"))
	var page strings.Builder
	for line := range strings.Lines(w.Body.String()) {
		if !strings.Contains(line, board.Prefix) {
			page.WriteString(line)
		}
	}
	assert.True(t, strings.HasSuffix(page.String(), "\n# EOF\n"))
	golden(t, "everything.openmetrics.golden", page.String())
}

// decoded scrapes in protobuf.
func decoded(t *testing.T, h http.Handler) (list []*dto.MetricFamily) {
	t.Helper()
	w := get(h, "/metrics", "Accept", acceptProtobuf)
	decoder := expfmt.NewDecoder(w.Body, expfmt.Format(w.Header().Get("Content-Type")))
	for {
		var f dto.MetricFamily
		err := decoder.Decode(&f)
		if errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(t, err)
		list = append(list, &f)
	}
}

// In OpenMetrics a counter's family has no _total, so that a gauge of the rest's name would be the same family twice.
func TestNamesOfFamiliesAreUniqueInOpenMetrics(t *testing.T) {
	goRuntime := prometheus.NewRegistry()
	goRuntime.MustRegister(collectors.NewGoCollector())
	n := everything(t, Config{})
	n.connect(mpittest.New(small("1", 0)))
	seen := map[string]string{}
	for _, f := range decoded(t, n.Handler(goRuntime)) {
		name := f.GetName()
		if strings.HasPrefix(name, "go_") {
			continue // client_golang's own
		}
		family := name
		if f.GetType() == dto.MetricType_COUNTER {
			family = strings.TrimSuffix(name, "_total")
		}
		assert.NotContains(t, seen, family, "%s and %s", name, seen[family])
		seen[family] = name
	}
	assert.NotEmpty(t, seen)
}

// Protobuf has a timer's histogram in both ways, classic and native.
func TestNativeHistogram(t *testing.T) {
	clock := newTestClock()
	cfg := small("1", 0)
	cfg.Clock = clock.Now
	n := startNode(t, Config{})
	r := mpittest.New(cfg)
	n.connect(r)
	scrape := func() *dto.Histogram {
		for _, f := range decoded(t, n.Handler()) {
			if f.GetName() == "mpit_waiting_time_seconds" {
				return f.Metric[0].Histogram
			}
		}
		require.Fail(t, "no histogram")
		return nil
	}
	scrape()
	// what the timer gains in each interval, beside the 1.5 that it began with
	for _, seconds := range []float64{1, 1, 1.1, 8, 1} {
		clock.advance(10 * time.Second)
		require.NoError(t, r.Add("waiting", mpit.ClassTimer, 0, seconds))
		scrape()
	}
	h := scrape()
	assert.NotEmpty(t, h.Bucket)
	assert.EqualValues(t, mapping.NativeSchema, h.GetSchema())
	assert.Equal(t, mapping.NativeZeroThreshold, h.GetZeroThreshold())
	counts := map[int32]uint64{} // by the bucket's number
	total := h.GetZeroCount()
	bucket, count, deltas := int32(0), int64(0), h.PositiveDelta
	for _, span := range h.PositiveSpan {
		bucket += span.GetOffset()
		for range span.GetLength() {
			count += deltas[0]
			deltas = deltas[1:]
			counts[bucket] = uint64(count)
			total += uint64(count)
			bucket++
		}
	}
	assert.Empty(t, deltas)
	assert.Equal(t, h.GetSampleCount(), total)
	// Bucket n ends at 2^(n/4): 1 is the end of bucket 0, 1.1 is in the next, 1.5 in the one of 1.68, 8 the end of
	// bucket 12.
	assert.Equal(t, uint64(3), counts[0])
	assert.Equal(t, uint64(1), counts[1])
	assert.Equal(t, uint64(1), counts[12])
}

// The same page in all three formats says the same.
func TestFormatsAgree(t *testing.T) {
	n := everything(t, Config{})
	h := n.Handler()

	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(get(h, "/metrics").Body)
	require.NoError(t, err)
	var list []*dto.MetricFamily
	for _, f := range families {
		list = append(list, f)
	}
	text := valuesOf(list)

	list = decoded(t, h)
	protobuf := valuesOf(list)
	for _, f := range list {
		for _, m := range f.Metric {
			if f.GetType() == dto.MetricType_COUNTER && !strings.HasPrefix(f.GetName(), board.Prefix) {
				assert.NotNil(t, m.Counter.CreatedTimestamp, "%s: protobuf always has created timestamps", f.GetName())
			}
		}
	}

	// No parser of OpenMetrics is at hand here: what differs from text is in comments, in the names of families and
	// in .0 behind whole numbers.
	openMetrics := map[string]string{}
	for line := range strings.Lines(get(h, "/metrics", "Accept", acceptOpenMetrics).Body.String()) {
		if !strings.HasPrefix(line, "#") {
			at := strings.LastIndexByte(line, ' ')
			openMetrics[line[:at]] = strings.TrimSpace(line[at:])
		}
	}

	stable := 0
	for key, value := range text {
		if strings.HasPrefix(key, board.Prefix) || strings.HasPrefix(key, "mpit_rank_agent_") {
			continue // these count the scrapes
		}
		stable++
		assert.Equal(t, value, protobuf[key], key)
		got, err := strconv.ParseFloat(openMetrics[key], 64)
		require.NoError(t, err, key)
		assert.Equal(t, value, got, key)
	}
	assert.Greater(t, stable, 100)
	assert.Len(t, protobuf, len(text))
}

func TestCompression(t *testing.T) {
	n := startNode(t, Config{})
	n.connect(mpittest.New(small("1", 0)))
	h := n.Handler()
	for _, accept := range []string{"", acceptOpenMetrics, acceptProtobuf} {
		for range 2 { // pooled readers and writers are reset
			w := get(h, "/metrics", "Accept", accept, "Accept-Encoding", "br, gzip")
			require.Equal(t, "gzip", w.Header().Get("Content-Encoding"))
			z, err := gzip.NewReader(w.Body)
			require.NoError(t, err)
			body, err := io.ReadAll(z)
			require.NoError(t, err)
			assert.Contains(t, string(body), "mpit_calls")
			if accept != acceptProtobuf {
				assert.Contains(t, string(body), of("mpit_calls_total", "1", 0)+" 10\n")
			}
		}
	}
}

func TestMethods(t *testing.T) {
	n := startNode(t, Config{})
	h := n.Handler()
	for method, code := range map[string]int{
		http.MethodGet: 200, http.MethodHead: 200, http.MethodPost: 405, http.MethodDelete: 405,
		http.MethodOptions: 405,
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "/metrics", nil))
		assert.Equal(t, code, w.Code, method)
		if method == http.MethodHead {
			assert.Zero(t, w.Body.Len())
			assert.NotEmpty(t, w.Header().Get("Content-Type"))
		}
	}
}

func TestScrapeTimeout(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"":        defaultTimeout,
		"10":      9500 * time.Millisecond,
		"1":       750 * time.Millisecond,
		"0.1":     75 * time.Millisecond,
		"0":       defaultTimeout,
		"-3":      defaultTimeout,
		"NaN":     defaultTimeout,
		"1e300":   maxTimeout - timeoutMargin,
		"+Inf":    maxTimeout - timeoutMargin,
		"ten":     defaultTimeout,
		"180":     99500 * time.Millisecond, // a server gives up on an answer that takes two minutes
		"1000000": maxTimeout - timeoutMargin,
	} {
		timeout, said := timeoutOf(http.Header{timeoutHeader: {header}})
		assert.Equal(t, want, scrapeTimeout(timeout, said, 0), "%q", header)
	}
	assert.Equal(t, 7500*time.Millisecond, scrapeTimeout(10*time.Second, true, 16<<20), "a large page takes time")
	assert.Equal(t, 5*time.Second, scrapeTimeout(10*time.Second, true, 1<<30), "but ranks have half of it")
}

func TestScrapersDeadlineIsKept(t *testing.T) {
	n := startNode(t, Config{})
	r := mpittest.New(small("1", 0))
	n.connect(r)
	n.scrape()
	r.Stall(true)
	defer r.Stall(false)
	// Without the header this would take 10 s.
	body := get(n.Handler(), "/metrics", timeoutHeader, "0.05").Body.String()
	assert.Contains(t, body, of("mpit_rank_up", "1", 0)+" 0\n")
}

// stuckWriter is a client that does not read.
type stuckWriter struct {
	http.ResponseWriter
	reached, release chan struct{}
	once             *sync.Once
}

func (w stuckWriter) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.reached) })
	<-w.release
	return len(p), nil
}

func TestSlowClientHoldsNobodyUp(t *testing.T) {
	for _, accept := range []string{"", acceptOpenMetrics, acceptProtobuf} {
		t.Run(accept, func(t *testing.T) {
			n := startNode(t, Config{})
			r := mpittest.New(small("1", 0))
			n.connect(r)
			slow := stuckWriter{httptest.NewRecorder(), make(chan struct{}), make(chan struct{}), new(sync.Once)}
			served := make(chan struct{})
			go func() {
				defer close(served)
				req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
				req.Header.Set("Accept", accept)
				n.Handler().ServeHTTP(slow, req)
			}()
			<-slow.reached
			require.NoError(t, r.Set("calls", mpit.ClassCounter, 0, 20))
			first := n.message("mpit_calls_total")
			assert.Equal(t, 20.0, first.Metric[0].Counter.GetValue())
			close(slow.release)
			<-served
		})
	}
}

func TestExtraGatherers(t *testing.T) {
	goRuntime := prometheus.NewRegistry()
	goRuntime.MustRegister(collectors.NewGoCollector())
	impostor := prometheus.NewRegistry()
	impostor.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "mpit_rank_up", Help: "not mine"}))
	broken := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return nil, errors.New("broken") })

	n := startNode(t, Config{})
	n.connect(mpittest.New(small("1", 0)))
	w := get(n.Handler(goRuntime, broken, impostor), "/metrics")
	require.Equal(t, http.StatusOK, w.Code)
	body := w.Body.String()
	assert.Contains(t, body, "\ngo_goroutines ")
	assert.Contains(t, body, of("mpit_rank_up", "1", 0)+" 1\n")
	assert.NotContains(t, body, "not mine")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	_, err := parser.TextToMetricFamilies(strings.NewReader(body))
	assert.NoError(t, err)
}

func TestErrorsAreClear(t *testing.T) {
	bad := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		name, kind := "bad", dto.MetricType_COUNTER
		return []*dto.MetricFamily{{Name: &name, Type: &kind, Metric: []*dto.Metric{{}}}}, nil
	})
	n := startNode(t, Config{})
	w := get(n.Handler(bad), "/metrics")
	assert.Equal(t, http.StatusInternalServerError, w.Code)
	assert.Contains(t, w.Body.String(), "gathering metrics failed: rendering bad: expected counter")
	assert.Equal(t, 1.0, n.scrape()[`mpit_exporter_scrapes_total{result="failed"}`])
}

// unread is a client that reads nothing, until its deadline is over.
type unread struct {
	http.ResponseWriter
	asked, over chan struct{}
}

func (u unread) Write([]byte) (int, error) {
	close(u.asked)
	<-u.over
	return 0, os.ErrDeadlineExceeded
}

func (u unread) SetWriteDeadline(time.Time) error {
	close(u.over)
	return nil
}

// Pages that nobody reads are bounded in bytes: who has been reading longest is let go.
func TestUnreadPagesAreBoundedInBytes(t *testing.T) {
	n := startNode(t, Config{}, func(e *Exporter) { e.lent, e.shareable = 1, 0 })
	n.connect(mpittest.New(small("1", 0)))
	n.scrape()
	ask := func() (u unread, served chan struct{}) {
		u = unread{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
		served = make(chan struct{})
		go func() {
			defer close(served)
			n.Handler().ServeHTTP(u, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		}()
		<-u.asked
		return u, served
	}
	_, first := ask()
	second, served := ask()
	<-first
	assert.Equal(t, http.StatusOK, get(n.Handler(), "/metrics").Code, "it gets its page")
	<-served
	<-second.over
	assert.Equal(t, 2.0, n.scrape()[`mpit_exporter_scrapes_total{result="aborted"}`])
}

func TestMergeFamilies(t *testing.T) {
	named := func(names ...string) (list []*dto.MetricFamily) {
		for _, n := range names {
			list = append(list, &dto.MetricFamily{Name: &n})
		}
		return list
	}
	mine, other := named("a", "c", "d"), named("b", "c", "e")
	merged := mergeFamilies(mine, other)
	var names []string
	for _, f := range merged {
		names = append(names, f.GetName())
	}
	assert.Equal(t, []string{"a", "b", "c", "d", "e"}, names)
	assert.Same(t, mine[1], merged[2], "the first list's stays")
}
