package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// visit runs a program with hold points as a rank without a launcher, looks at it on the page at each of them, and
// compares all that it left with a run without the agent.
func visit(t *testing.T, exporter *harness.Exporter, job harness.Job, reason string,
	holds ...string) (harness.Result, check) {
	t.Helper()
	job.Alone, job.Socket = true, exporter.Socket
	// The wait is for the exporter, however busy the machine.
	job.Env = append(slices.Clone(job.Env), "MPIT_AGENT_FINAL_WAIT=60000")
	run := suite.Run(t, job)
	for _, name := range holds {
		run.AtHold(t, name)
		exporter.Await(t, "the rank at "+name, up(run))
		run.Release(t, name)
	}
	observed := run.Wait(t)

	job.Bare = true
	bare := suite.Run(t, job)
	for _, name := range holds {
		bare.Release(t, name)
	}
	assert.Equal(t, bare.Wait(t), observed)
	return observed, ended(run, reason)
}

// whatGuestsDo are the names of guest.c with the end that the page shows.
var whatGuestsDo = []struct {
	what, reason string
	mpi          string // the only one; "": both
}{
	{"system", "finalize", ""},
	{"popen", "finalize", ""},
	{"spawn", "finalize", ""},
	{"vfork", "finalize", ""},
	{"daemon", "finalize", ""},
	{"threads", "finalize", ""},
	{"close", "finalize", ""},
	{"closefrom", "finalize", ""},
	{"close_everything", "exit", "mpich"}, // Open MPI hangs without its own, with and without the agent
	{"exhaustion", "exit", ""},
	{"exhaustion_to_the_end", "exit", ""}, // the last sample goes over the connection that stands
	{"hiding_proc", "finalize", ""},
	{"signals", "finalize", ""},
	{"locking", "finalize", ""},
	{"setuid", "finalize", ""},
}

// touchDescriptors are those of them that a descriptor of ours could be in the way of.
var touchDescriptors = []string{
	"spawn", "daemon", "threads", "close", "closefrom", "close_everything", "exhaustion", "exhaustion_to_the_end",
}

// What programs do to themselves comes out as without the agent; meanwhile the rank stays on the page, and its end is
// told.
func TestGuests(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		exporter := suite.Exporter(t)
		var ends []check
		for _, guest := range whatGuestsDo {
			if guest.mpi == "" || guest.mpi == mpi.Name {
				t.Run(mpi.Name+"/"+guest.what, func(t *testing.T) {
					job := harness.Job{MPI: mpi, Program: "guest.c", Args: []string{guest.what, harness.HoldDir}}
					result, end := visit(t, exporter, job, guest.reason, "up", "done")
					ends = append(ends, end)
					if guest.what == "hiding_proc" && strings.Contains(result.Stdout, "hiding_proc 26") {
						t.Skip("nothing can be mounted here: not tested")
					}
				})
			}
		}
		exporter.Await(t, "the ends", all(append(ends, healthy)...))
	}
}

// A program that takes from all its threads the right to connect, or to open anything, and would be ended if one of
// them tried: it ends as without the agent, and its last sample arrives over the connection that stands.
func TestGuestsWithFilters(t *testing.T) {
	t.Parallel()
	filters := []struct{ what, reason, mpi string }{
		{"denying_connections", "finalize", ""},
		{"denying_descriptors", "finalize", "mpich"}, // Open MPI opens its session's directory in MPI_Finalize
		{"denying_descriptors_to_exit", "exit", ""},
	}
	for _, mpi := range harness.Both(t) {
		exporter := suite.Exporter(t)
		var ends []check
		for _, filter := range filters {
			if filter.mpi != "" && filter.mpi != mpi.Name {
				continue
			}
			t.Run(mpi.Name+"/"+filter.what, func(t *testing.T) {
				job := harness.Job{
					MPI: mpi, Program: "guest.c", Args: []string{filter.what, harness.HoldDir},
					Env: []string{"UCX_TLS=self,sm"}, // with TCP UCX makes sockets in MPI_Finalize
				}
				result, end := visit(t, exporter, job, filter.reason, "up", "done")
				if strings.Contains(result.Stdout, filter.what+" 26") {
					t.Skip("this system takes no filter of system calls: not tested")
				}
				ends = append(ends, end)
			})
		}
		exporter.Await(t, "the ends", all(append(ends, healthy)...))
	}
}

// Under such a filter a connection that is lost isn't made anew, and none at the end.
func TestFilterAndAnExporterThatGoes(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			job := harness.Job{
				MPI: mpi, Alone: true, Program: "guest.c", Args: []string{"denying_connections", harness.HoldDir},
				Socket: exporter.Socket,
				Env:    []string{"UCX_TLS=self,sm"},
			}
			run := suite.Run(t, job)
			run.AtHold(t, "up")
			exporter.Await(t, "the rank", up(run))
			run.Release(t, "up")
			run.AtHold(t, "done")
			require.NotEmpty(t, agentsThreads(t, run.PID()))
			exporter.Kill(t)
			exporter.Restart(t)
			harness.Await(t, "the end of the agent's threads", func(context.Context) error {
				if threads := agentsThreads(t, run.PID()); len(threads) > 0 && !run.Ended() {
					return fmt.Errorf("there are %v", threads)
				}
				return nil
			})
			run.Release(t, "done")
			observed := run.Wait(t)

			job.Bare = true
			bare := suite.Run(t, job)
			bare.Release(t, "up")
			bare.Release(t, "done")
			assert.Equal(t, bare.Wait(t), observed)
		})
	}
}

// agentsThreads are the names of the agent's threads in a process.
func agentsThreads(t *testing.T, pid int) (names []string) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", pid))
	require.NoError(t, err)
	for _, task := range tasks {
		if name, err := os.ReadFile(task); err == nil && strings.HasPrefix(string(name), "mpit-agent") {
			names = append(names, string(name))
		}
	}
	return names
}

// A container that refuses unshare, and one that refuses close_range as well: the agent's descriptor is one of the
// program's then, and still in nobody's way. A program that closes it is seen to be back, or to have ended, as soon
// as may be.
func TestGuestsInContainers(t *testing.T) {
	t.Parallel()
	refuse := suite.PlainProgram(t, "refuse.c", "any")
	if result := suite.Start(t, []string{refuse, "unshare", "/bin/true"}, nil).Wait(t); result.Status != 0 {
		t.Skipf("this system takes no filter of system calls: %+v", result)
	}
	for _, mpi := range harness.Both(t) {
		exporter := suite.Exporter(t)
		var ends []check
		for _, calls := range []string{"unshare", "unshare,close_range,getrandom", "close_range"} {
			for _, guest := range whatGuestsDo {
				switch {
				case guest.mpi != "" && guest.mpi != mpi.Name, !slices.Contains(touchDescriptors, guest.what):
					continue
				case calls != "unshare" && guest.what != "spawn" && guest.what != "closefrom":
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", mpi.Name, calls, guest.what), func(t *testing.T) {
					job := harness.Job{
						MPI: mpi, Program: "guest.c", Args: []string{guest.what, harness.HoldDir},
						Wrap: []string{refuse, calls},
					}
					_, end := visit(t, exporter, job, guest.reason, "up", "done")
					ends = append(ends, end)
				})
			}
		}
		exporter.Await(t, "the ends", all(append(ends, healthy)...))
	}
}

// That the filter does what the tests above suppose: the agent itself says which descriptor it has.
func TestRefusedUnshare(t *testing.T) {
	t.Parallel()
	refuse := suite.PlainProgram(t, "refuse.c", "any")
	for _, mpi := range harness.Both(t) {
		exporter := suite.Exporter(t)
		for calls, want := range map[string]string{"none": "private", "unshare": "shared", "close_range": "private"} {
			t.Run(mpi.Name+"/"+calls, func(t *testing.T) {
				run := suite.Run(t, harness.Job{
					MPI: mpi, Alone: true, Program: "guest.c", Args: []string{"nothing", harness.HoldDir},
					Wrap:   []string{refuse, calls},
					Socket: exporter.Socket, Exec: []string{"--log"},
				})
				run.AtHold(t, "up")
				exporter.Await(t, "the rank", up(run))
				result := run.Finish(t, "up", "done")
				assert.Contains(t, result.Stderr, "connected, "+want+" descriptor")
			})
		}
	}
}

// Whether a control variable's value can be touched is found out without a descriptor, which in a container is one of
// the program's: the values are told when it has none left, too, and where the system call for it is refused.
func TestControlVariablesWithoutDescriptors(t *testing.T) {
	t.Parallel()
	refuse := suite.PlainProgram(t, "refuse.c", "any")
	readable := map[string]int{}
	for _, calls := range []string{"none", "unshare", "unshare,process_vm_readv"} {
		ranks := listen(t)
		run := suite.Run(t, harness.Job{
			MPI: harness.OpenMPI(t), Alone: true, Program: "guest.c",
			Args: []string{"exhaustion_to_the_end", harness.HoldDir}, Wrap: []string{refuse, calls},
			Socket: ranks.socket,
		})
		run.AtHold(t, "up")
		ranks.await(t, 0, "a sample", func(mpit.Sample) error { return nil })
		run.Release(t, "up")
		run.AtHold(t, "done")
		harness.Await(t, "the control variables", func(ctx context.Context) error {
			s, err := ranks.session(ranks.living, 0)
			if err != nil {
				return err
			}
			variables, err := s.ControlVariables(ctx)
			if err != nil {
				return err
			}
			readable[calls] = 0
			for _, v := range variables {
				if v.HasValue {
					readable[calls]++
				}
			}
			return nil
		})
		run.Release(t, "done")
		assert.Equal(t, 9, run.Wait(t).Status) // as it ends by itself
	}
	// What is left of unloaded components lies now here, now there: a few more or less.
	assert.Greater(t, readable["none"], 500)
	for calls, n := range readable {
		assert.InDelta(t, readable["none"], n, 20, calls)
	}
}

// Limits and surroundings that are tight or strange: at worst the program runs on unobserved.
func TestGuestsWithLimits(t *testing.T) {
	t.Parallel()
	prlimit := harness.Tool(t, "prlimit")
	large := suite.PlainProgram(t, "libtls.c", "large", "-shared", "-fPIC", "-DBYTES=16000000")
	surroundings := []struct {
		name   string
		wrap   []string
		env    []string
		unseen bool
		mpi    string
	}{
		{name: "stacks of 256 KiB", wrap: []string{prlimit, "--stack=262144"}},
		// Open MPI can't start its own thread
		{name: "stacks of 64 KiB", wrap: []string{prlimit, "--stack=65536"}, mpi: "mpich"},
		{name: "stacks without a limit", wrap: []string{prlimit, "--stack=unlimited"}},
		{name: "16 MB of thread-local memory", env: []string{"LD_PRELOAD=" + large}, mpi: "mpich"}, // as above
		{name: "48 descriptors", wrap: []string{prlimit, "--nofile=48"}},
	}
	for _, mpi := range harness.Both(t) {
		exporter := suite.Exporter(t)
		var ends []check
		for _, s := range surroundings {
			if s.mpi != "" && s.mpi != mpi.Name {
				continue
			}
			t.Run(mpi.Name+"/"+s.name, func(t *testing.T) {
				job := harness.Job{
					MPI: mpi, Program: "guest.c", Args: []string{"threads", harness.HoldDir}, Wrap: s.wrap, Env: s.env,
				}
				if s.env != nil {
					bare := job
					bare.Bare, bare.Args = true, []string{"threads", "-"}
					if result := suite.Run(t, bare).Wait(t); result.Status != 0 {
						t.Skipf("%s %s ends this program without the agent, too", mpi.Name, mpi.Version)
					}
				}
				_, end := visit(t, exporter, job, "finalize", "up", "done")
				ends = append(ends, end)
			})
		}
		exporter.Await(t, "the ends", all(append(ends, healthy)...))
	}
}

// Libraries with static thread-local memory that are opened late find as much room as without the agent.
func TestStaticTLS(t *testing.T) {
	t.Parallel()
	library := suite.PlainProgram(t, "libtls.c", "small", "-shared", "-fPIC", "-DBYTES=64")
	text, err := os.ReadFile(library)
	require.NoError(t, err)
	dir := suite.Dir(t)
	for i := range 200 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.so", i)), text, 0o755))
	}
	for _, mpi := range harness.Both(t) {
		exporter := suite.Exporter(t)
		t.Run(mpi.Name, func(t *testing.T) {
			job := harness.Job{
				MPI: mpi, Program: "guest.c", Args: []string{"tls", harness.HoldDir},
				Env: []string{"GUEST_TLS=" + dir + "/%d.so"},
			}
			visit(t, exporter, job, "finalize", "up", "done")
		})
	}
}

// Whatever the agent is refused, its thread or any of its allocations, the program runs on.
func TestRefusedResources(t *testing.T) {
	t.Parallel()
	library := suite.PlainProgram(t, "librefuse.c", "library", "-shared", "-fPIC", "-pthread")
	refusals := []string{"REFUSE_THREAD=1"}
	for _, n := range []int{0, 1, 3, 8, 21, 55, 144} {
		refusals = append(refusals, fmt.Sprintf("REFUSE_MEMORY=%d", n))
	}
	for _, n := range []int{2, 3, 7} {
		refusals = append(refusals, fmt.Sprintf("REFUSE_EVERY=%d", n))
	}
	for _, mpi := range harness.Both(t) {
		exporter := suite.Exporter(t)
		job := stormJob(mpi, 0, 1, "single")
		job.Alone, job.Bare, job.Socket = true, true, exporter.Socket
		bare := suite.Run(t, job).Wait(t)
		require.Zero(t, bare.Status, bare.Stderr)
		job.Bare = false
		refused := 0
		for _, refusal := range refusals {
			t.Run(mpi.Name+"/"+refusal, func(t *testing.T) {
				job.Env = append(stormJob(mpi, 0, 1, "single").Env, "LD_PRELOAD="+library, refusal, "REFUSE_REPORT=1")
				observed := suite.Run(t, job).Wait(t)
				var n int
				said, report, ok := strings.Cut(observed.Stderr, "refuse: ")
				if assert.True(t, ok, observed.Stderr) {
					_, err := fmt.Sscanf(report, "%d", &n)
					require.NoError(t, err)
					refused += n
				}
				observed.Stderr = said
				assert.Equal(t, bare, observed)
			})
		}
		assert.Positive(t, refused, "nothing has been refused at all")
	}
}
