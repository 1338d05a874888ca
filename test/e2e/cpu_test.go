package e2e

import (
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// What the kernel says of ranks is what they know of themselves, within 2 %.
func TestCPUOfRanks(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/thread-self/schedstat"); err != nil {
		t.Skip("this kernel doesn't tell of time in run queues")
	}
	raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	require.NoError(t, err)
	own := 20 - raw // as the kernel says it
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			run := suite.Run(t, harness.Job{MPI: mpi, Program: "cpu.c", Args: []string{harness.HoldDir}, Ranks: 4,
				Socket: exporter.Socket, Exec: []string{"--calls"}})
			run.AtHold(t, "asleep", 1, 2)
			exporter.Await(t, "the read", func(*harness.Scrape) error {
				one, two := cpuOf(t, exporter, 1).In, cpuOf(t, exporter, 2).In
				if one != "nanosleep" || !strings.HasPrefix(two, "read of fd ") || !strings.HasSuffix(two, " (a pipe)") {
					return fmt.Errorf("rank 1 is in %q, rank 2 in %q", one, two)
				}
				return nil
			})
			run.Release(t, "asleep")
			run.AtHold(t, "done", 0, 1, 2, 3)
			for rank := range 4 {
				exporter.Await(t, fmt.Sprintf("the figures of rank %d", rank), func(*harness.Scrape) error {
					return sameCPU(t, run, cpuOf(t, exporter, rank), rank)
				})
				c := cpuOf(t, exporter, rank)
				assert.Equal(t, 1, c.Cores)
				assert.Equal(t, []int{own, own, own, 15}[rank], c.Nice)
				assert.Greater(t, c.Resident, uint64(1<<20))
				assert.Less(t, c.Resident, uint64(1<<32))
				assert.NotNil(t, c.MajorFaults)
			}
			run.Release(t, "done")
			run.Finish(t)
		})
	}
}

// sameCPU says where a rank's figures are not those that it has written. At the hold point they stand still, but for
// what holding costs the process.
func sameCPU(t *testing.T, run *harness.Run, c api.CPU, rank int) error {
	t.Helper()
	text, err := os.ReadFile(run.File(fmt.Sprintf("cpu.%d", rank)))
	require.NoError(t, err)
	var process, core, queue float64
	_, err = fmt.Sscan(string(text), &process, &core, &queue)
	require.NoError(t, err)
	for what, is := range map[string]struct {
		said *float64
		true float64
	}{"the process's time": {c.Seconds, process}, "the thread's": {c.Thread, core}, "its time in the queue": {c.Queue, queue}} {
		if is.said == nil {
			return fmt.Errorf("%s isn't known", what)
		}
		if math.Abs(*is.said-is.true) > max(is.true*0.02, 0.05) {
			return fmt.Errorf("%s is %v, not %v", what, *is.said, is.true)
		}
	}
	return nil
}

// cpuOf is what the exporter says of a rank's CPU; zero: nothing.
func cpuOf(t *testing.T, exporter *harness.Exporter, rank int) api.CPU {
	t.Helper()
	var list api.RankList
	exporter.GetJSON(t, "/api/v1/ranks", &list)
	for _, r := range list.Ranks {
		if r.Rank == rank && r.Calls != nil && r.Calls.CPU != nil {
			return *r.Calls.CPU
		}
	}
	return api.CPU{}
}
