package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// Faults of the node, with real jobs. docs/internals/faults.md has a line for each of these tests; others are in
// cmd/mpit-exporter.

// A rank is stopped for a while and goes on: meanwhile it is late, keeps its counters and holds nobody up; then it is
// as if nothing had been, for the program as well.
func TestFaultRankStopped(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			job, run := halfway(t, mpi, exporter)
			page := exporter.Await(t, "the first half", all(up(run), halves(run, mpi, 1)))
			before := counters(page, run)
			info, err := page.One("mpit_process_info", run.Labels(1))
			require.NoError(t, err)
			pid, err := strconv.Atoi(info.Labels["pid"])
			require.NoError(t, err)

			require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
			t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
			awaitStopped(t, pid)
			for range 10 {
				harness.Await(t, "a page with the other rank", func(context.Context) error {
					page := scrapeWithin(t, exporter, "1")
					require.NoError(t, all(
						expect("mpit_rank_up", run.Labels(1), 0),
						absent("mpit_rank_end_info", nil),
						noneFell(before, run),
					)(page))
					return expect("mpit_rank_up", run.Labels(0), 1)(page)
				})
			}
			require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
			exporter.Await(t, "the rank to go on", all(up(run), noneFell(before, run), healthy))

			run.Release(t, "half")
			run.AtHold(t, "done")
			exporter.Await(t, "the second half", all(up(run), noneFell(before, run), halves(run, mpi, 2), healthy))
			observed := run.Finish(t, "done")
			job.Bare, job.Args = true, []string{"30", "500", "-"}
			assert.Equal(t, suite.Run(t, job).Wait(t), observed)
		})
	}
}

// awaitStopped waits until each thread of a process has seen that it is to stop: one that runs on another core does
// so a little later.
func awaitStopped(t *testing.T, pid int) {
	t.Helper()
	harness.Await(t, "the process to stop", func(context.Context) error {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
		for _, task := range tasks {
			status, _ := os.ReadFile(task)
			if !strings.Contains(string(status), "State:\tT") {
				return fmt.Errorf("%s: %s", task, status)
			}
		}
		if err == nil && len(tasks) == 0 {
			err = errors.New("it has no thread")
		}
		return err
	})
}

// scrapeWithin scrapes as a Prometheus with this timeout does, in seconds.
func scrapeWithin(t *testing.T, exporter *harness.Exporter, timeout string) *harness.Scrape {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, exporter.URL("/metrics"), http.NoBody)
	require.NoError(t, err)
	request.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", timeout)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	scrape, err := harness.ParseText(body)
	require.NoError(t, err)
	return scrape
}
