package e2e

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// Whatever way a rank ends: the job's status and output are what they are without the agent, and the page says how it
// ended. What launchers don't tell apart is in TestEndsAlone only.
func TestEnds(t *testing.T) {
	t.Parallel()
	ends := []struct {
		how    string
		reason string
	}{
		{"finalize", "finalize"},
		{"pthread_exit", "finalize"},
		{"exit", "exit"},
		{"abort", "abort"},
		{"kill", "lost"},
	}
	for _, mpi := range harness.Both(t) {
		exporter := suite.Exporter(t)
		for _, end := range ends {
			t.Run(mpi.Name+"/"+end.how, func(t *testing.T) {
				t.Parallel()
				job := harness.Job{MPI: mpi, Program: "ends.c", Args: []string{end.how, harness.HoldDir},
					Socket: exporter.Socket}
				run := suite.Run(t, job)
				run.AtHold(t, "up")
				exporter.Await(t, "the ranks", up(run))
				run.Release(t, "up")
				observed := run.Wait(t)
				// Rank 0 alone ends by itself; launchers end the other one as they like.
				exporter.Await(t, "the end", all(ended(run, end.reason, 0), healthy))

				job.Bare = true
				run = suite.Run(t, job)
				run.AtHold(t, "up")
				run.Release(t, "up")
				bare := run.Wait(t)
				sameEnd(t, mpi, end.how, bare, observed)
			})
		}
	}
}

// The same of a rank that no launcher stands in front of: its own status, to the signal that ended it, and all it
// wrote.
func TestEndsAlone(t *testing.T) {
	t.Parallel()
	ends := []struct{ how, reason string }{
		{"exit", "exit"},
		{"handler", "exit"},
		{"_exit", "lost"},
		{"quick_exit", "lost"},
		{"exec", "lost"},
		{"kill", "lost"},
		{"term", "lost"},
		{"alarm", "lost"},
		{"sigabrt", "lost"},
		{"segv", "lost"},
		{"segv_thread", "lost"},
		{"segv_handler", "lost"},
		{"overflow", "lost"},
		{"core", "lost"},
		{"recover", "finalize"},
	}
	for _, mpi := range harness.Both(t) {
		exporter := suite.Exporter(t)
		var reported []check
		statuses := map[string]string{}
		for _, end := range ends {
			// Open MPI 5's own exit handler waits for ever for a lock of malloc's, with the agent and without.
			if end.how == "handler" && mpi.Name == "openmpi" {
				continue
			}
			t.Run(mpi.Name+"/"+end.how, func(t *testing.T) {
				if end.how == "core" {
					requireCores(t)
				}
				job := harness.Job{
					MPI: mpi, Alone: true, Program: "ends.c", Args: []string{end.how, harness.HoldDir},
					Socket: exporter.Socket,
				}
				run := suite.Run(t, job)
				run.AtHold(t, "up")
				exporter.Await(t, "the rank", up(run))
				run.Release(t, "up")
				observed := run.Wait(t)
				reported = append(reported, ended(run, end.reason))
				statuses[run.ID] = exitStatus(observed)

				job.Bare = true
				bare := suite.Run(t, job)
				bare.AtHold(t, "up")
				bare.Release(t, "up")
				assert.Equal(t, withoutItsNumbers(bare.Wait(t)), withoutItsNumbers(observed))
				left := cores(t, run)
				assert.Equal(t, end.how == "core", left == 1)
				assert.Equal(t, cores(t, bare), left)
			})
		}
		// at once: the exporter waits for last samples
		exporter.Await(t, "all ends", all(append(reported, healthy)...))
		var list api.RankList
		exporter.GetJSON(t, "/api/v1/ranks", &list)
		for _, r := range list.Ranks {
			if want, ours := statuses[r.JobID]; ours && kernelTells() {
				assert.Equal(t, want, r.ExitStatus, r.JobID)
			}
		}
	}
}

// exitStatus is what the exporter calls it.
func exitStatus(r harness.Result) string {
	if r.Status > 128 {
		return unix.SignalName(syscall.Signal(r.Status - 128))
	}
	return fmt.Sprintf("exit %d", r.Status)
}

// kernelTells says whether the exit status of another's child is to be had: from Linux 6.15 on.
func kernelTells() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var major, minor int
	_, _ = fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor)
	return major > 6 || major == 6 && minor >= 15
}

// requireCores skips the test where the system doesn't put core files into the working directory.
func requireCores(t *testing.T) {
	t.Helper()
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	require.NoError(t, err)
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_CORE, &limit))
	if strings.ContainsAny(string(pattern), "|/") || !strings.HasPrefix(string(pattern), "core") || limit.Max == 0 {
		t.Skipf("no core file can be seen here: core_pattern is %q, the limit %d",
			strings.TrimSpace(string(pattern)), limit.Max)
	}
}

// cores is the number of core files that a job has left in its directory.
func cores(t *testing.T, run *harness.Run) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(run.HoldDir(), "core*"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.Open(file)
		require.NoError(t, err)
		head, err := elf.NewFile(text)
		require.NoError(t, err, "a core that isn't whole")
		assert.Equal(t, elf.ET_CORE, head.Type)
		require.NoError(t, text.Close())
		require.NoError(t, os.Remove(file)) // large
	}
	return len(files)
}

// withoutItsNumbers makes results comparable where a library's report of a crash names process ids and addresses.
func withoutItsNumbers(r harness.Result) harness.Result {
	r.Stderr = withoutNumbers(r.Stderr)
	return r
}

// A number, and the blanks that a column of numbers is filled up with.
var digits = regexp.MustCompile(` *(0x[0-9a-f]+|[0-9]+) *`)

// withoutNumbers makes launchers' reports comparable, which name process ids and addresses. Open MPI 5's may write a NUL
// of its own in front.
func withoutNumbers(s string) string {
	return strings.Trim(digits.ReplaceAllString(s, "#"), " \t\n\x00")
}

// sameEnd compares what launchers say of two ends. Where one rank ends by itself, MPICH's tells of the rank that it
// hears of first, which may be the other one, that it has killed; from 4.2 on it says at times that all is well. Of
// these TestEndsAlone compares the statuses, without it.
func sameEnd(t *testing.T, mpi *harness.MPI, how string, bare, observed harness.Result) {
	t.Helper()
	if mpi.Name == "mpich" && slices.Contains([]string{"exit", "kill", "segv"}, how) &&
		bare.Status != observed.Status {
		return
	}
	assert.Equal(t, bare.Status, observed.Status)
	assert.Equal(t, withoutNumbers(bare.Stdout), withoutNumbers(observed.Stdout))
}
