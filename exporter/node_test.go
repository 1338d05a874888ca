package exporter

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/body"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

func TestMain(m *testing.M) {
	// Each try of a property here is a node with connections. make soak tries more.
	if err := flag.Set("rapid.checks", cmp.Or(os.Getenv("MPIT_SOAK_CHECKS"), "30")); err != nil {
		panic(err)
	}
	// Tests that run side by side wait more than they compute, so the number of cores says nothing about how many
	// there can be.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// longest is how long anything may take on a busy machine. No test measures time: it only bounds failures.
const longest = 2 * time.Minute

// node is an Exporter that serves a socket.
type node struct {
	*Exporter
	t    *testing.T
	path string
	stop func()
}

// startNode serves a new socket until the test ends.
func startNode(t *testing.T, cfg Config, change ...func(*Exporter)) *node {
	return startNodeAt(t, socketPath(t), cfg, change...)
}

func socketPath(t *testing.T) string {
	return filepath.Join(mpittest.ShortDir(t), "s")
}

func startNodeAt(t *testing.T, path string, cfg Config, change ...func(*Exporter)) *node {
	return startNodeWith(t, path, nil, cfg, change...)
}

func startNodeWith(t *testing.T, path string, opts []mpit.ListenOption, cfg Config, change ...func(*Exporter)) *node {
	if cfg.Mapper == nil {
		cfg.Mapper = newMapper(t)
	}
	if cfg.UserName == nil {
		cfg.UserName = func(uid uint32) string {
			if uid == ownUID {
				return "alice"
			}
			return ""
		}
	}
	e, err := New(cfg)
	require.NoError(t, err)
	e.proc = fstest.MapFS{}     // not what these tests happen to run in
	e.started = time.Unix(0, 0) // before any rank
	e.welcome = longest         // on however slow a machine
	for _, f := range change {
		f(e)
	}
	l, err := mpit.Listen(path, opts...)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- e.Serve(ctx, l) }()
	n := &node{Exporter: e, t: t, path: path}
	n.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-served)
		require.NoError(t, l.Close())
	})
	t.Cleanup(n.stop)
	return n
}

// startedAt makes an Exporter one that has started then.
func startedAt(at time.Time) func(*Exporter) { return func(e *Exporter) { e.started = at } }

// absorbed takes a sample in that nobody has been asked for.
func (e *Exporter) absorbed(r *rank, s *mpit.Sample) bool {
	c := r.contents.Lock()
	defer r.contents.Unlock()
	return c.absorb(s) && e.publish(c)
}

// page is for a look at the page while nobody makes it.
func (n *node) page() *page {
	defer n.pages.page.Unlock()
	return n.pages.page.Lock()
}

// contentsOf is for a look at what is in a rank, or a change of it.
func (n *node) contentsOf(r *mpittest.Rank, do func(c *contents)) {
	g := n.lock()
	known := g.table.byID[r.Hello().ID]
	g.unlock()
	c := known.contents.Lock()
	defer known.contents.Unlock()
	do(c)
}

// shippedRules have been read once for all tests.
var shippedRules = sync.OnceValue(rules.Defaults)

func newMapper(t testing.TB) *variables.Mapper {
	m, err := variables.New(variables.Config{TimerInterval: time.Second, Rules: shippedRules()})
	require.NoError(t, err)
	return m
}

// connect connects a rank and waits until the exporter knows it.
func (n *node) connect(ranks ...*mpittest.Rank) {
	n.t.Helper()
	for _, r := range ranks {
		require.NoError(n.t, r.Connect(n.t.Context(), n.path))
		n.t.Cleanup(r.Kill)
		n.wait(r, func(r *rank) bool { return r.line != nil && r.gone.IsZero() })
	}
}

// finish lets a rank bring its last sample and waits until the exporter has it.
func (n *node) finish(r *mpittest.Rank, reason mpit.EndReason) {
	n.t.Helper()
	require.NoError(n.t, r.Finish(n.t.Context(), n.path, reason))
	n.wait(r, func(r *rank) bool { return r.end == reason && r.line == nil })
}

// kill kills a rank and waits until the exporter has seen it.
func (n *node) kill(r *mpittest.Rank) {
	n.t.Helper()
	r.Kill()
	n.wait(r, func(r *rank) bool { return r.line == nil })
}

// wait waits until the exporter's idea of a rank is such.
func (n *node) wait(r *mpittest.Rank, such func(*rank) bool) {
	n.t.Helper()
	id := r.Hello().ID
	require.Eventually(n.t, func() bool {
		g := n.lock()
		defer g.unlock()
		known := g.table.byID[id]
		return known != nil && such(known)
	}, longest, time.Millisecond)
}

// settle waits until no rank is being asked for more than a sample.
func (n *node) settle() {
	n.t.Helper()
	require.Eventually(n.t, func() bool {
		g := n.lock()
		defer g.unlock()
		return len(g.inquiries) == 0
	}, longest, time.Millisecond)
}

// known says whether the exporter still keeps a rank.
func (n *node) known(r *mpittest.Rank) bool {
	id := r.Hello().ID
	g := n.lock()
	defer g.unlock()
	return g.table.byID[id] != nil
}

// scrape gathers and returns all values by their names and labels, as the text format writes them. It waits for all
// ranks.
func (n *node) scrape() map[string]float64 {
	n.t.Helper()
	return n.scrapeWithin(longest)
}

// scrapeFor gathers with a deadline that comes when these ranks have answered: the others are late, however fast the
// machine is.
func (n *node) scrapeFor(ranks ...*mpittest.Rank) map[string]float64 {
	n.t.Helper()
	ctx, stop := n.deadlineAfter(ranks...)
	defer stop()
	return n.scrapeUntil(ctx)
}

// deadline is a context whose deadline comes when a channel is closed.
type deadline struct {
	context.Context
	come chan struct{}
}

func (d deadline) Deadline() (time.Time, bool) { return time.Now().Add(time.Hour), true }

func (d deadline) Done() <-chan struct{} { return d.come }

func (d deadline) Err() error {
	select {
	case <-d.come:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// deadlineAfter is for one scrape, which begins after it: its deadline comes when these ranks have answered.
func (n *node) deadlineAfter(ranks ...*mpittest.Rank) (ctx context.Context, stop func()) {
	s := n.rounds.shared.Lock()
	before, readers := s.round, s.readers()
	n.rounds.shared.Unlock()
	awaited := map[mpit.RankID]bool{}
	for _, r := range ranks {
		awaited[r.Hello().ID] = true
	}
	answered := func() bool {
		s := n.rounds.shared.Lock()
		defer n.rounds.shared.Unlock()
		if s.round == nil || s.round == before && s.readers() <= readers {
			return false // it has not begun, or is over
		}
		g := n.lock()
		defer g.unlock()
		for _, a := range s.questions {
			if slices.ContainsFunc(a.list, func(q *question) bool { return awaited[q.rank.Key] && !q.taken }) {
				return false
			}
		}
		return true
	}
	d, stopped, done := deadline{n.t.Context(), make(chan struct{})}, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer close(d.come)
		for given := time.Now().Add(longest); !answered() && time.Now().Before(given); {
			select {
			case <-time.After(time.Millisecond):
			case <-stopped:
				return
			}
		}
	}()
	return d, sync.OnceFunc(func() {
		close(stopped)
		<-done
	})
}

// Gather is the page with the exporter's figures of itself, read from what a scraper of protobuf gets.
func (e *Exporter) Gather(ctx context.Context) (families []*dto.MetricFamily, done func(), err error) {
	l, err := e.rounds.gather(ctx, asProtobuf)
	if err != nil {
		return nil, func() {}, err
	}
	return mergeFamilies(familiesOf(l.bodies[asProtobuf]), l.own), func() {
		l.release()
		e.delivered(l.ended)
	}, nil
}

// familiesOf reads a body of protobuf.
func familiesOf(b *body.Body) (list []*dto.MetricFamily) {
	var text bytes.Buffer
	if err := b.Response(nil).WriteTo(&text, false); err != nil {
		panic(err)
	}
	decoder := expfmt.NewDecoder(&text, expfmt.NewFormat(expfmt.TypeProtoDelim))
	for {
		f := &dto.MetricFamily{}
		switch err := decoder.Decode(f); {
		case errors.Is(err, io.EOF):
			return list
		case err != nil:
			panic(err)
		}
		list = append(list, f)
	}
}

func (n *node) scrapeUntil(ctx context.Context) map[string]float64 {
	n.t.Helper()
	families, done, err := n.Gather(ctx)
	require.NoError(n.t, err)
	defer done()
	return valuesOf(families)
}

// scrapeWithin gathers with a deadline, for scrapes that will see a rank that is late.
func (n *node) scrapeWithin(d time.Duration) map[string]float64 {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), d)
	defer cancel()
	return n.scrapeUntil(ctx)
}

// get makes an HTTP request of a handler; headers are alternately names and values.
func get(h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

func valuesOf(families []*dto.MetricFamily) map[string]float64 {
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			var b strings.Builder
			for i, l := range m.Label {
				if i > 0 {
					b.WriteByte(',')
				}
				fmt.Fprintf(&b, "%s=%q", l.GetName(), l.GetValue())
			}
			labels := ""
			if b.Len() > 0 {
				labels = "{" + b.String() + "}"
			}
			switch name := f.GetName(); {
			case m.Counter != nil:
				values[name+labels] = m.Counter.GetValue()
			case m.Gauge != nil:
				values[name+labels] = m.Gauge.GetValue()
			case m.Untyped != nil:
				values[name+labels] = m.Untyped.GetValue()
			case m.Histogram != nil:
				values[name+"_sum"+labels] = m.Histogram.GetSampleSum()
				values[name+"_count"+labels] = float64(m.Histogram.GetSampleCount())
			}
		}
	}
	return values
}

// testTime is when all that has a time in these tests began.
var testTime = time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)

// testClock is a clock that stands still unless it is moved.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func newTestClock() *testClock { return &testClock{now: testTime} }

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// small is a rank with a counter, a level, a watermark and a timer.
func small(job string, number int) mpittest.Config {
	variable := func(name string, class mpit.Class, datatype mpit.Datatype) mpit.Variable {
		return mpit.Variable{
			Name: name, Class: class, Datatype: datatype, DatatypeBytes: 8, Verbosity: mpit.VerbosityUserBasic,
			Description: "a " + strings.ToLower(class.String()), Continuous: true,
		}
	}
	return mpittest.Config{
		Hello: mpit.Hello{
			PID: 1000 + number, Rank: number, Size: 4, ThreadLevel: 3, InitTime: testTime, AgentVersion: "1.0",
			LibraryVersion: "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4", Host: "node7",
			Executable: "/usr/bin/app",
			Attributes: map[string]string{"SLURM_JOB_ID": job, "SLURM_STEP_ID": "0", "ppid": "99"},
		},
		Variables: []mpit.Variable{
			variable("calls", mpit.ClassCounter, mpit.DatatypeUnsignedLongLong),
			variable("depth", mpit.ClassLevel, mpit.DatatypeUnsignedLongLong),
			variable("peak", mpit.ClassHighWatermark, mpit.DatatypeUnsignedLongLong),
			variable("waiting", mpit.ClassTimer, mpit.DatatypeDouble),
		},
		Values: []mpittest.Value{
			{Name: "calls", Class: mpit.ClassCounter, Values: []any{10 + number}},
			{Name: "depth", Class: mpit.ClassLevel, Values: []any{5}},
			{Name: "peak", Class: mpit.ClassHighWatermark, Values: []any{7}},
			{Name: "waiting", Class: mpit.ClassTimer, Values: []any{1.5}},
		},
	}
}

// of returns the key of a series of one rank in job 1, as valuesOf writes it.
func of(name, job string, number int) string {
	return fmt.Sprintf("%s{jobid=%q,rank=\"%d\",user=\"alice\",world=\"0\"}", name, job, number)
}

// logs collects what an Exporter logs.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// ownUID is the user who runs the tests; otherUID is somebody else.
var ownUID = uint32(os.Getuid())

const otherUID = 12345

// needRoot skips what only root can try: to be somebody else.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not tested: only root can be another user")
	}
}

func text(s string) *string { return &s }

// openSocketPath is a path that other users reach.
func openSocketPath(t *testing.T) string {
	t.Helper()
	path := socketPath(t)
	require.NoError(t, os.Chmod(filepath.Dir(path), 0o755))
	return path
}

// message is a family as Gather returns it.
func (n *node) message(name string) *dto.MetricFamily {
	n.t.Helper()
	families, done, err := n.Gather(n.t.Context())
	require.NoError(n.t, err)
	defer done()
	at := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == name })
	require.GreaterOrEqual(n.t, at, 0, name)
	return families[at]
}

// Two Exporters stand in one process and know nothing of each other.
func TestTwoExporters(t *testing.T) {
	a, b := startNode(t, Config{}), startNode(t, Config{})
	a.connect(mpittest.New(small("1", 0)))
	b.connect(mpittest.New(small("2", 0)))
	page := a.scrape()
	assert.Equal(t, 10.0, page[of("mpit_calls_total", "1", 0)])
	assert.NotContains(t, page, of("mpit_calls_total", "2", 0))
	assert.Equal(t, 10.0, b.scrape()[of("mpit_calls_total", "2", 0)])
}
