package cluster

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// OneJob serves the pages of nodes with so many ranks each, all of one job with the call profile, whose rank 0 is late,
// until the test ends. It returns a file with their addresses, for harness.PrometheusConfig.Discovery. Histograms have
// no buckets, which are most of a page.
func OneJob(tb testing.TB, s *harness.Suite, nodes, ranks int) (discovery string) {
	tb.Helper()
	t := record(tb, s, []string{"--calls"}, 0, 3*time.Second)
	t.removeBuckets()
	m := &machine{arrival: math.MaxInt64} // no other job comes
	for i := range nodes {
		m.nodes = append(m.nodes, node{running: &place{job: &job{end: math.MaxInt64}, index: i}})
	}
	started := time.Now()
	return exporters{machine: m, template: t, ranks: ranks,
		clock: func() time.Duration { return time.Since(started) }}.serve(tb)
}

// record runs a job of four ranks, of which rank 0 is late, and makes a template of its page: as it is after a while,
// and of what is counted from then on.
func record(tb testing.TB, s *harness.Suite, flags []string, after, between time.Duration) *template {
	tb.Helper()
	exporter := s.Exporter(tb)
	job := s.Run(tb, harness.Job{MPI: harness.OpenMPI(tb), Ranks: 4, Program: "examples/calls/stencil.c", Exec: flags,
		Socket: exporter.Socket, Args: []string{"--seconds=0", "--pause=20", "--slow=0"}})
	const up = "mpit_rank_up"
	exporter.Await(tb, "four ranks", func(s *harness.Scrape) error {
		if n := len(s.Select(up, nil)); n != 4 {
			return fmt.Errorf("%d ranks", n)
		}
		return nil
	})
	time.Sleep(after)
	first, at := exporter.Scrape(tb).Body, time.Now()
	time.Sleep(between)
	between = time.Since(at)
	t, err := newTemplate(first, exporter.Scrape(tb).Body, between)
	if err != nil {
		tb.Fatalf("making a template of a page: %v", err)
	}
	job.Signal(tb, syscall.SIGTERM) // its ranks would take our time
	job.Wait(tb)
	exporter.Kill(tb)
	return t
}

// serve lets the exporter of each node answer until the test ends, and returns a file with their addresses.
func (e exporters) serve(tb testing.TB) (discovery string) {
	tb.Helper()
	var targets []string
	for i := range e.machine.nodes {
		server := httptest.NewServer(e.exporter(i))
		tb.Cleanup(server.Close)
		targets = append(targets, server.Listener.Addr().String())
	}
	text, err := json.Marshal([]any{map[string]any{"targets": targets}})
	if err != nil {
		tb.Fatalf("encoding the nodes' addresses: %v", err)
	}
	discovery = filepath.Join(tb.TempDir(), "targets.json")
	if err := os.WriteFile(discovery, text, 0o600); err != nil {
		tb.Fatalf("writing the nodes' addresses: %v", err)
	}
	return discovery
}
