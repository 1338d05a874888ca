package e2e

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// lasting is a job that runs from the beginning to the end of the test.
type lasting struct {
	enduranceJob
	run   *harness.Run
	began time.Time
	pids  []int
}

// startLasting starts one job of each MPI library.
func (e *endurance) startLasting(t *testing.T) []lasting {
	t.Helper()
	var all []lasting
	for _, mpi := range e.mpis {
		l := lasting{began: time.Now(), enduranceJob: enduranceJob{
			end: "finalize", calls: true, waits: true,
			// Without --monitoring: Open MPI 4.1.4's component loses 200 bytes with each communicator, observed or not.
			Job: harness.Job{MPI: mpi, Program: "endure.c", Socket: e.exporter.Socket, Exec: []string{"--calls"},
				Args: []string{"1e9", "1", "finalize", harness.HoldDir},
				Env:  []string{e.clock.variable(), "LD_PRELOAD=" + e.clock.library, "MPIT_AGENT_FINAL_WAIT=60000"}}}}
		l.run = suite.Run(t, l.Job)
		for rank := range l.run.Ranks {
			l.pids = append(l.pids, e.pidOf(t, l.run, rank))
		}
		all = append(all, l)
	}
	return all
}

// endLasting waits for the end of the lasting jobs, and accounts for their ranks.
func (e *endurance) endLasting(t *testing.T, all []lasting) {
	t.Helper()
	for _, l := range all {
		l.run.Finish(t, "stop")
		e.tally.add(1, "jobs")
		e.account(t, l.enduranceJob, l.run, l.began, time.Now())
	}
}

// growth is what is measured when nothing runs but the lasting jobs.
type growth struct {
	at          time.Duration
	exporter    int // its process id: another one is another life
	goroutines  int
	descriptors int
	heap        int   // bytes in use after a garbage collection
	resident    int   // kB of the exporter
	ranks       []int // kB of each lasting rank that it shares with nobody
}

func (g growth) String() string {
	return fmt.Sprintf("after %v: exporter %d: %d goroutines, %d descriptors, heap %.1f MiB, resident %.1f MiB; "+
		"ranks %v kB", g.at.Round(time.Second), g.exporter, g.goroutines, g.descriptors, float64(g.heap)/(1<<20),
		float64(g.resident)/1024, g.ranks)
}

// measure waits until the exporter has forgotten the jobs that have ended, measures, and compares that with the first
// time, when all that is made once had been made.
func (e *endurance) measure(t *testing.T, all []lasting) {
	t.Helper()
	sleep(t.Context(), enduranceRetention)
	// Not what Prometheus remembers of those that went while it was away.
	const ended = "count(count_over_time(mpit_rank_end_info[10s])) or vector(0)"
	e.prometheus.Await(t, ended, func(samples []harness.Sample) error {
		if len(samples) != 1 || samples[0].Value != 0 {
			return fmt.Errorf("ended ranks on the page: %v", samples)
		}
		return nil
	})
	g := growth{at: time.Since(e.began), exporter: e.exporter.PID()}
	harness.Await(t, "connections of scrapers and others to end", func(context.Context) error {
		g.goroutines = numberIn(t, e.pprof(t, "goroutine?debug=1"), `^goroutine profile: total (\d+)`)
		if len(e.growth) > 0 && g.goroutines > e.growth[0].goroutines+2 {
			return fmt.Errorf("%d goroutines, %d at first", g.goroutines, e.growth[0].goroutines)
		}
		return nil
	})
	e.pprof(t, "heap?gc=1&debug=1") // finalizers
	g.heap = numberIn(t, e.pprof(t, "heap?gc=1&debug=1"), `(?m)^# HeapAlloc = (\d+)`)
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", g.exporter))
	require.NoError(t, err)
	g.descriptors = len(fds)
	g.resident = numberIn(t, readProc(t, g.exporter, "status"), `(?m)^VmRSS:\s+(\d+) kB`)
	for _, l := range all {
		for _, pid := range l.pids {
			g.ranks = append(g.ranks, numberIn(t, readProc(t, pid, "smaps_rollup"), `(?m)^Private_Dirty:\s+(\d+) kB`))
		}
	}
	e.growth = append(e.growth, g)
	t.Log(g)
	for _, line := range e.tally.lines() {
		t.Log(line)
	}
	first := e.growth[0]
	assert.LessOrEqual(t, g.descriptors, first.descriptors+2, "descriptors")
	// What the garbage collector, the pools and tables that jobs have made large once need.
	assert.LessOrEqual(t, g.heap, first.heap+first.heap/4+2<<20, "bytes of heap in use")
	assert.LessOrEqual(t, g.resident, first.resident+first.resident/4+16<<10, "kB that are resident")
	for i := range g.ranks {
		assert.LessOrEqual(t, g.ranks[i], first.ranks[i]+256, "kB of lasting rank %d", i)
	}
	e.expectCalmLog(t)
	e.expectHealth(t)
}

// expectHealth: nothing was refused, and nothing has failed that the exporter counts. A rank that is killed, or that
// waits no longer for its last sample to be taken, may leave half a frame.
func (e *endurance) expectHealth(t *testing.T) {
	t.Helper()
	for _, what := range []string{
		"protocol_errors", "connections_refused", "rank_panics", "label_clashes", "ranks_evicted",
	} {
		samples, err := e.prometheus.Query(t.Context(), fmt.Sprintf(
			`max_over_time(mpit_exporter_%s_total{reason!="truncated"}[%ds]) > 0`, what,
			int(time.Since(e.began).Seconds())))
		require.NoError(t, err)
		assert.Empty(t, samples, what)
	}
}

func (e *endurance) pprof(t *testing.T, profile string) string {
	t.Helper()
	body, _ := e.exporter.Get(t, "/debug/pprof/"+profile, "")
	return string(body)
}

func readProc(t testing.TB, pid int, file string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	require.NoError(t, err)
	return string(text)
}

// numberIn finds a number in a text.
func numberIn(t testing.TB, text, pattern string) int {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	require.NotNil(t, found, "no %s in %s", pattern, clip(text))
	n, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return n
}
