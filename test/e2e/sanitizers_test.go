package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// The sanitizers have nothing to say of the agent in a storm of two threads, on either library, while it is read a
// thousand times a second; that of threads has nothing to say of the call profile beside it. (Its wrappers take a
// minute to compile with the other one: what is behind them is tested with it by mpit/agent's own tests.) make test has
// those, under both, TestStorm, and TestChurnUnderSanitizers of test/fixture.
func TestStormUnderSanitizers(t *testing.T) {
	onlyInSoak(t)
	t.Parallel()
	for _, sanitizer := range harness.Sanitizers(suite.Root()) {
		calls := sanitizer.Name == "threads"
		agent := suite.SanitizedAgent(t, sanitizer, calls)
		for _, mpi := range harness.Both(t) {
			t.Run(sanitizer.Name+"/"+mpi.Name, func(t *testing.T) {
				skipHangs(t, mpi)
				job := stormJob(mpi, 0.1, 2, "multiple")
				job.Flags, job.Bare = sanitizer.Flags, true
				job.Env = append(job.Env, agent...)
				job.Env = append(job.Env, "PMIX_MCA_gds=hash") // its other store wants addresses that TSan has taken
				bare := suite.Run(t, job).Wait(t)
				require.Zero(t, bare.Status, "%+v", bare)

				sampler := startSampler(t, time.Millisecond)
				job = stormJob(mpi, 1, 2, "multiple")
				job.Flags, job.Socket = sanitizer.Flags, sampler.socket
				if calls {
					job.Exec = []string{"--calls=peers"}
				}
				job.Env = append(job.Env, agent...)
				job.Env = append(job.Env, "PMIX_MCA_gds=hash")
				observed := suite.Run(t, job).Wait(t)
				assert.Equal(t, bare, observed)
				sampler.stop(t, 2)

				if calls && mpi.Name == "mpich" { // Debian's Open MPI fails at that without the agent, too
					job = harness.Job{MPI: mpi, Alone: true, Program: "tooluser.c", Args: []string{"at_once", harness.HoldDir},
						Flags: sanitizer.Flags, Env: agent}
					result, _ := visit(t, suite.Exporter(t), job, "finalize", "up")
					assert.Zero(t, result.Status)
				}
			})
		}
	}
}

// Programs of other people's sanitizers: exec lets them run, and they are observed, by the libraries that everybody
// uses. The sanitizers have nothing to report that they don't report without the agent: a report changes the status.
// Of MPICH, UCX's hooks crash ThreadSanitizer without the agent as well.
func TestSanitizedPrograms(t *testing.T) {
	harness.LeftToCI(t)
	t.Parallel()
	for _, sanitizer := range []struct {
		flags []string
		env   []string
		only  string // this MPI
	}{
		{[]string{"-fsanitize=address"}, []string{"ASAN_OPTIONS=detect_leaks=0"}, ""},
		{[]string{"-fsanitize=address", "-static-libasan"}, []string{"ASAN_OPTIONS=detect_leaks=0"}, ""},
		{[]string{"-fsanitize=thread"}, nil, "openmpi"},
		{[]string{"-fsanitize=thread"}, []string{"UCX_MEM_EVENTS=n"}, "mpich"},
		{[]string{"-fsanitize=undefined"}, []string{"UBSAN_OPTIONS=halt_on_error=1"}, ""},
		{[]string{"-fsanitize=leak"}, []string{"LSAN_OPTIONS=detect_leaks=0"}, ""},
	} {
		for _, mpi := range harness.Both(t) {
			if sanitizer.only != "" && sanitizer.only != mpi.Name {
				continue
			}
			t.Run(strings.Join(sanitizer.flags, "")+"/"+mpi.Name, func(t *testing.T) {
				exporter := suite.Exporter(t)
				job := harness.Job{MPI: mpi, Program: "tour.c", Args: []string{harness.HoldDir},
					Flags: sanitizer.flags, Env: sanitizer.env, Exec: []string{"--calls=peers"}}
				result, end := visit(t, exporter, job, "finalize", "made", "freed")
				assert.Zero(t, result.Status)
				ends := []check{end, healthy}
				if sanitizer.only != "" { // the threads' own, for threads that meet at a pipe alone
					job.Program = "piped.c"
					result, end := visit(t, exporter, job, "finalize", "up")
					assert.Zero(t, result.Status)
					ends = append(ends, end)
				}
				exporter.Await(t, "the ends", all(ends...))
			})
		}
	}
}
