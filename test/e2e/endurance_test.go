package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

const (
	enduranceScrapes   = 3 * time.Second
	enduranceRetention = time.Minute
	// Longer than it takes until Prometheus has scraped what was there when it could begin to.
	enduranceSlack = 5 * enduranceScrapes
)

// For SOAK_SECONDS, jobs of all kinds and lengths (endurance_jobs_test.go) run under one exporter and a Prometheus,
// while faults come at random times (endurance_faults_test.go). Every rank's last sample must be in Prometheus, or the
// exporter must say that it is lost, or the exporter was gone then; figures are those of the programs' books; nothing
// grows (endurance_growth_test.go). SOAK_SEED repeats a run's jobs and faults, as far as the machine's pace lets it.
func TestEndurance(t *testing.T) {
	seconds, err := strconv.Atoi(os.Getenv("SOAK_SECONDS"))
	if err != nil {
		t.Skip("only with SOAK_SECONDS: it takes as long as that says")
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SOAK_SEED"); text != "" {
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "SOAK_SEED")
	}
	t.Logf("SOAK_SECONDS=%d SOAK_SEED=%d", seconds, seed)
	e := newEndurance(t, seed, time.Duration(seconds)*time.Second)
	defer e.jobs.Wait() // their tests are parts of this one
	// An interrupt ends it early: nobody else would unmount the disks.
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithDeadline(ctx, e.ends)
	defer cancel()
	lasting := e.startLasting(t)
	for ctx.Err() == nil {
		e.stretch(ctx, t)
		e.measure(t, lasting)
	}
	e.endLasting(t, lasting)
	e.report(t)
}

// endurance is one run of TestEndurance.
type endurance struct {
	seed        uint64
	began, ends time.Time
	mpis        []*harness.MPI
	exporter    *harness.Exporter
	prometheus  *harness.Prometheus
	storage     disk // what Prometheus writes to
	reports     disk // what exporters of jobs write to
	clock       clock
	rules       string // the exporter's rule file
	targets     string // Prometheus' file of targets
	journal     journal
	full        journal // of the disk for reports
	tally       tally
	stretches   time.Duration // time between two moments at which growth is measured
	growth      []growth
	memory      string // control group with little memory; empty: none can be made here
	jobs        sync.WaitGroup
}

func newEndurance(t *testing.T, seed uint64, length time.Duration) *endurance {
	t.Helper()
	e := &endurance{seed: seed, mpis: harness.Both(t)}
	e.clock = newClock(t)
	e.storage = newDisk(t, "size=512m", make([]byte, 16<<20))
	e.reports = newDisk(t, "size=2m", make([]byte, 64<<10))
	if e.memory = suite.MemoryGroup(t, 512<<20); e.memory == "" {
		t.Log("no control group can be made: who would be out of memory gets SIGKILL")
	}
	dir := suite.Dir(t)
	e.rules, e.targets = filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "targets.json")
	require.NoError(t, os.WriteFile(e.rules, []byte(enduranceRules[0]), 0o600))
	e.exporter = suite.ExporterWith(t, harness.ExporterConfig{
		Binary: exporterOnClock(t), Socket: filepath.Join(suite.Dir(t), "agent.sock"),
		Env: []string{e.clock.variable()},
		Flags: []string{"--config.file=" + e.rules, "--retention=" + enduranceRetention.String(), "--web.enable-pprof",
			"--web.enable-lifecycle", "--log.level=warn"},
	})
	e.tellAddress(t)
	e.prometheus = suite.PrometheusWith(t, harness.PrometheusConfig{
		Discovery: e.targets, Interval: enduranceScrapes, Data: filepath.Join(e.storage.dir, "data"),
		// The others of each rank would be millions of series, of jobs that are over.
		Scrape: fmt.Sprintf("    metric_relabel_configs: [{source_labels: [__name__], regex: %q, action: keep}]\n",
			callTimes+"_count|"+callBytes+"|"+allToAllCalls+"|mpit_(rank|exporter)_.*"),
	})
	e.began = time.Now()
	e.ends = e.began.Add(length)
	e.stretches = max(time.Minute, min(length/6, 10*time.Minute))
	return e
}

// tellAddress tells Prometheus where the exporter listens: elsewhere each time, but always as the same instance.
func (e *endurance) tellAddress(t *testing.T) {
	t.Helper()
	text := fmt.Sprintf(`[{"targets": [%q], "labels": {"instance": "node"}}]`, e.exporter.Address)
	beside := e.targets + ".new"
	require.NoError(t, os.WriteFile(beside, []byte(text), 0o600))
	require.NoError(t, os.Rename(beside, e.targets))
}

// stretch lets jobs and faults come, until growth is to be measured.
func (e *endurance) stretch(ctx context.Context, t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, e.stretches)
	defer cancel()
	number := uint64(len(e.growth))
	e.jobs.Go(func() { e.startJobs(ctx, t, rand.New(rand.NewPCG(e.seed, 2*number))) })
	e.makeFaults(ctx, t, rand.New(rand.NewPCG(e.seed, 2*number+1)))
	<-ctx.Done()
	e.jobs.Wait()
}

// sleep waits, and says whether it has done so for the whole time.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// between draws a time.
func between(draw *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(draw.Int64N(int64(to-from)))
}

// report says what there was.
func (e *endurance) report(t *testing.T) {
	t.Helper()
	var used syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used))
	took := time.Since(e.began)
	cpu := time.Duration(used.Utime.Nano() + used.Stime.Nano())
	t.Logf("%v, %.2f of a core in processes that have ended", took.Round(time.Second), cpu.Seconds()/took.Seconds())
	for _, line := range e.tally.lines() {
		t.Log(line)
	}
	for _, g := range e.growth {
		t.Log(g)
	}
}

// tally counts what has happened. It is safe for concurrent use.
type tally struct {
	mutex sync.Mutex
	of    map[string]int
}

func (c *tally) add(n int, format string, args ...any) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[fmt.Sprintf(format, args...)] += n
}

func (c *tally) lines() []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(c.of)) {
		lines = append(lines, fmt.Sprintf("%7d %s", c.of[what], what))
	}
	return lines
}

// outage is a time for which something was gone.
type outage struct {
	what     string
	from, to time.Time // to is zero as long as it lasts
}

func (o outage) end() time.Time {
	if o.to.IsZero() {
		return time.Now()
	}
	return o.to
}

// journal is what was gone, and when. It is safe for concurrent use.
type journal struct {
	mutex   sync.Mutex
	outages []outage
}

const prometheusGone = "no Prometheus"

// gone writes down that something is gone, until the returned function is called.
func (j *journal) gone(what string) (back func()) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	i := len(j.outages)
	j.outages = append(j.outages, outage{what: what, from: time.Now()})
	return func() {
		j.mutex.Lock()
		defer j.mutex.Unlock()
		j.outages[i].to = time.Now()
	}
}

// scraped is when Prometheus has scraped what was there at a time, unless the exporter went before.
func (j *journal) scraped(at time.Time) time.Time {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	until := at.Add(enduranceSlack)
	for _, o := range j.outages {
		if o.what == prometheusGone && o.from.Before(until) && o.end().Add(enduranceSlack).After(until) {
			until = o.end().Add(enduranceSlack)
		}
	}
	return until
}

// excuse says what was gone when a rank ended between two times, or before it had been scraped; "" if nothing was.
func (j *journal) excuse(first, last time.Time) string {
	until := j.scraped(last)
	j.mutex.Lock()
	defer j.mutex.Unlock()
	for _, o := range j.outages {
		if o.what != prometheusGone && o.from.Before(until) && o.end().After(first) {
			return o.what
		}
	}
	return ""
}

// clip shortens what launchers say.
func clip(text string) string {
	const most = 1500
	text = strings.TrimSpace(text)
	if len(text) > most {
		return text[:most] + " …"
	}
	return text
}
