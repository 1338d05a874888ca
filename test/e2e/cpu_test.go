package e2e

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
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
	gpu := standIn(t)
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			run := suite.Run(t, harness.Job{MPI: mpi, Program: "cpu.c", Flags: []string{"-fopenmp"}, Ranks: 6,
				Args: append([]string{harness.HoldDir}, gpu...), Socket: exporter.Socket, Exec: []string{"--calls"}})
			run.AtHold(t, "asleep", 1, 2, 4)
			exporter.Await(t, "what they sleep in", func(*harness.Scrape) error {
				one, two, four := cpuOf(t, exporter, 1).In, cpuOf(t, exporter, 2).In, cpuOf(t, exporter, 4).In
				if one != "nanosleep" || !strings.HasPrefix(two, "read of fd ") || !strings.HasSuffix(two, " (a pipe)") ||
					four != "futex" {
					return fmt.Errorf("rank 1 is in %q, rank 2 in %q, rank 4 in %q", one, two, four)
				}
				return nil
			})
			for rank := range 6 {
				assert.Equal(t, rank == 4 && gpu != nil, cpuOf(t, exporter, rank).GPU, "rank %d", rank)
			}
			run.Release(t, "asleep")
			run.AtHold(t, "done", 0, 1, 2, 3, 4, 5)
			for rank := range 6 {
				exporter.Await(t, fmt.Sprintf("the figures of rank %d", rank), func(*harness.Scrape) error {
					return sameCPU(t, run, cpuOf(t, exporter, rank), rank)
				})
				c := cpuOf(t, exporter, rank)
				assert.Equal(t, 1, c.Cores)
				assert.Equal(t, []int{own, own, own, 15, own, own}[rank], c.Nice)
				assert.Greater(t, c.Resident, uint64(1<<20))
				assert.Less(t, c.Resident, uint64(1<<32))
				assert.NotNil(t, c.MajorFaults)
			}
			run.Release(t, "done")
			run.Finish(t)
		})
	}
}

// standIn makes a device with a GPU's name, as arguments; nil: it can't be made here.
func standIn(t *testing.T) []string {
	t.Helper()
	const null = 1<<8 | 3
	path := fmt.Sprintf("/dev/nvidia-mpit-test-%d", os.Getpid())
	if err := syscall.Mknod(path, syscall.S_IFCHR|0o666, null); err != nil {
		t.Logf("no GPU's device is tried: making one: %v", err)
		return nil
	}
	t.Cleanup(func() { assert.NoError(t, os.Remove(path)) })
	file, err := os.Open(path)
	if err != nil { // /dev may be mounted nodev
		t.Logf("no GPU's device is tried: %v", err)
		return nil
	}
	require.NoError(t, file.Close())
	return []string{path}
}

// For how long a rank was throttled is what its control group says, within 2 %.
func TestThrottledRanks(t *testing.T) {
	t.Parallel()
	group := suite.CPUGroup(t, 0.05) // less than a busy machine leaves it
	if group == "" {
		t.Skip("no control group can be made here")
	}
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			run := suite.Run(t, harness.Job{MPI: mpi, Program: "cpu.c", Flags: []string{"-fopenmp"}, Ranks: 1,
				Args: []string{harness.HoldDir}, Socket: exporter.Socket, Exec: []string{"--calls"},
				Before: []string{"sh", "-c", `echo $$ >"$0/cgroup.procs"; exec "$@"`, group}})
			run.AtHold(t, "done")
			exporter.Await(t, "the time throttled", func(*harness.Scrape) error {
				is, said := throttled(t, group), cpuOf(t, exporter, 0).Throttled
				if said == nil || is == 0 {
					return fmt.Errorf("%v s are true, none are said (%v)", is, said)
				}
				if math.Abs(*said-is) > is*0.02 {
					return fmt.Errorf("%v s are said, %v are true", *said, is)
				}
				return nil
			})
			run.Release(t, "done")
			run.Finish(t)
		})
	}
}

// throttled is for how long a group was, in seconds.
func throttled(t *testing.T, group string) float64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(group, "cpu.stat"))
	require.NoError(t, err)
	for name, unit := range map[string]float64{"throttled_usec ": 1e6, "throttled_time ": 1e9} { // of versions 2 and 1
		if _, after, found := strings.Cut(string(text), name); found {
			var n float64
			_, err := fmt.Sscan(after, &n)
			require.NoError(t, err)
			return n / unit
		}
	}
	require.Fail(t, "cpu.stat says nothing of it", string(text))
	return 0
}

// Under a filter of system calls that has come since MPI_Init the kernel isn't asked any more: what it said before is
// forgotten, and the exporter counts the rank.
func TestCPUUnderAFilter(t *testing.T) {
	t.Parallel()
	const unknown = "mpit_exporter_ranks_without_cpu_times"
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			run := suite.Run(t, harness.Job{MPI: mpi, Program: "guest.c", Args: []string{"denying_connections", harness.HoldDir},
				Env: []string{"UCX_TLS=self,sm"}, Alone: true, Socket: exporter.Socket, Exec: []string{"--calls"}})
			run.AtHold(t, "up")
			exporter.Await(t, "what the kernel says", all(up(run), expect(unknown, nil, 0)))
			run.Release(t, "up")
			run.AtHold(t, "done")
			var list api.RankList
			exporter.GetJSON(t, "/api/v1/ranks", &list)
			require.Len(t, list.Ranks, 1)
			if !strings.Contains(readProc(t, list.Ranks[0].PID, "status"), "\nSeccomp:\t2\n") {
				t.Skip("this system takes no filter of system calls: not tested")
			}
			exporter.Await(t, "a rank of which it isn't known", all(up(run), expect(unknown, nil, 1)))
			c := cpuOf(t, exporter, 0)
			assert.NotNil(t, c.Seconds, "the process's own clock goes on")
			c.Seconds = nil
			assert.Equal(t, api.CPU{}, c)
			run.Finish(t, "done")
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
