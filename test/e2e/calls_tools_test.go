package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// calledOn: each rank has called these functions on a communicator so many times, 0: never.
func calledOn(run *harness.Run, comm string, want map[string]func(rank int) float64) check {
	return func(s *harness.Scrape) error {
		var failed []error
		for rank := range run.Ranks {
			profile, err := profileOf(s, run, rank)
			if err != nil {
				return err
			}
			for function, calls := range want {
				got := profile.there(callers{function, "comm:" + comm})
				if want := calls(rank); float64(got.calls) != want {
					failed = append(failed, fmt.Errorf("rank %d: %d calls of %s on %s, not %v", rank, got.calls,
						function, comm, want))
				}
			}
		}
		return errors.Join(failed...)
	}
}

func atRank(rank int, value float64) func(int) float64 {
	return func(r int) float64 {
		if r == rank {
			return value
		}
		return 0
	}
}

// orders are the ways in which the agent, the call profile and another tool can be preloaded.
func orders(tool string) map[string]string {
	agent, calls := suite.Agent(), suite.Calls()
	return map[string]string{
		"calls, agent, tool": strings.Join([]string{calls, agent, tool}, ":"),
		"tool, calls, agent": strings.Join([]string{tool, calls, agent}, ":"),
		"agent, tool, calls": strings.Join([]string{agent, tool, calls}, ":"),
	}
}

// preloaded is a job under a preload that the test has put together.
func preloaded(job harness.Job, preload string) harness.Job {
	job.Bare, job.Wrap = true, []string{"env", "LD_PRELOAD=" + preload}
	return job
}

// Another tool that counts calls sees each of them once, and so does the call profile, whichever comes first.
func TestCallProfileBesideAnotherTool(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		exporter := suite.Exporter(t)
		tool := suite.Library(t, mpi, "libpmpitool.c")
		for order, preload := range orders(tool) {
			t.Run(mpi.Name+"/"+order, func(t *testing.T) {
				counts := filepath.Join(suite.Dir(t), "counts")
				run := suite.Run(t, preloaded(harness.Job{
					MPI: mpi, Program: "calls.c", Args: []string{harness.HoldDir}, Socket: exporter.Socket,
					Env: []string{"PMPITOOL_FILE=" + counts},
				}, preload))
				run.AtHold(t, "made")
				exporter.Await(t, "the calls", all(up(run),
					calledOn(run, "calls", map[string]func(int) float64{
						"MPI_Send": atRank(0, 7), "MPI_Recv": atRank(1, 7), "MPI_Comm_split": always(1),
						"MPI_Win_create": always(1), "MPI_Comm_dup": always(0),
					}),
					calledOn(run, "MPI_COMM_WORLD", map[string]func(int) float64{"MPI_Comm_dup": always(6),
						"MPI_Send": always(0)})))
				run.Finish(t, "made")
				exporter.Await(t, "the end", all(ended(run, "finalize"), healthy))
				for rank := range run.Ranks {
					want := "begun 1 sent 7 received 0 duplicated 6 split 1 freed 7 named 1 windows 1 levels 2 last " +
						"1\n"
					if rank == 1 {
						want = "begun 1 sent 0 received 7 duplicated 6 split 1 freed 7 named 1 windows 1 levels 2 " +
							"last 1\n"
					}
					assert.Equal(t, want, read(t, fmt.Sprintf("%s.%d", counts, rank)))
				}
			})
		}
	}
}

// A tool whose wrappers call MPI: behind the call profile it is inside of the program's call, which alone counts.
// Before it, its calls are those that there are. What it calls in its MPI_Finalize is not the program's.
func TestCallProfileBesideAToolThatCallsMPI(t *testing.T) {
	t.Parallel()
	const n = 5
	for _, mpi := range harness.Both(t) {
		exporter := suite.Exporter(t)
		tool := suite.Library(t, mpi, "libnesting.c")
		for order, preload := range orders(tool) {
			t.Run(mpi.Name+"/"+order, func(t *testing.T) {
				run := suite.Run(t, preloaded(harness.Job{
					MPI: mpi, Program: "traffic.c", Args: []string{fmt.Sprint(n), "100", harness.HoldDir},
					Socket: exporter.Socket,
				}, preload))
				run.AtHold(t, "ready")
				run.Release(t, "ready")
				run.AtHold(t, "half")
				ring := map[string]func(int) float64{"MPI_Bcast": always(n), "MPI_Barrier": always(0),
					"MPI_Reduce": always(n), "MPI_Allreduce": always(0)}
				sums := map[string]func(int) float64{"MPI_Bcast": always(0), "MPI_Barrier": always(0),
					"MPI_Reduce": always(0), "MPI_Allreduce": always(n)}
				if order != "calls, agent, tool" {
					ring["MPI_Barrier"] = always(n)
					sums = map[string]func(int) float64{"MPI_Bcast": always(n), "MPI_Barrier": always(n),
						"MPI_Reduce": always(n), "MPI_Allreduce": always(0)}
				}
				exporter.Await(t, "the calls", all(up(run), calledOn(run, "ring", ring), calledOn(run, "sums", sums)))
				run.Finish(t, "half", "done")
				// A tool that stands before both libraries has its barrier before they know of the end.
				inFinalize := map[string]func(int) float64{"MPI_Barrier": always(0)}
				if order == "tool, calls, agent" {
					inFinalize["MPI_Barrier"] = always(1)
				}
				exporter.Await(t, "the end", all(ended(run, "finalize"), healthy,
					calledOn(run, "MPI_COMM_WORLD", inFinalize)))
			})
		}
	}
}

// Where Open MPI's own monitoring counts the same, it has the same figures. In 4.1.4 that is collective operations
// and one-sided transfers: of messages it offers no variable.
func TestCallProfileAndMonitoring(t *testing.T) {
	t.Parallel()
	const (
		ranks  = 4
		rounds = 25
	)
	exporter := suite.Exporter(t)
	mpi := harness.OpenMPI(t)
	run := suite.Run(t, harness.Job{
		MPI: mpi, Ranks: ranks, Program: "traffic.c", Args: []string{"25", "1000", harness.HoldDir},
		Exec: []string{"--monitoring", "--calls"}, Socket: exporter.Socket,
	})
	run.AtHold(t, "ready")
	run.Release(t, "ready")
	run.AtHold(t, "half")
	scrape := exporter.Await(t, "the calls of the first half", all(up(run),
		calledOn(run, "ring", map[string]func(int) float64{"MPI_Sendrecv": always(rounds),
			"MPI_Bcast": always(rounds), "MPI_Reduce": always(rounds)}),
		calledOn(run, "sums", map[string]func(int) float64{"MPI_Allreduce": always(rounds)}),
		calledOn(run, "brief", map[string]func(int) float64{"MPI_Barrier": always(2 * rounds)}),
		counted(run, allToAllCalls, "sums", always(rounds))))
	for rank := range run.Ranks {
		profile, err := profileOf(scrape, run, rank)
		require.NoError(t, err)
		// monitored is the value of one of monitoring's counters.
		monitored := func(name, comm string) float64 {
			series, err := scrape.One(name, run.Labels(rank).With("comm", comm))
			require.NoError(t, err)
			return series.Value
		}
		calls := func(function, object string) float64 {
			return float64(profile.there(callers{function,
				object}).calls)
		}
		sent := func(function, object string) float64 { return profile.there(callers{function, object}).bytes["sent"] }

		// Monitoring counts one-to-all and all-to-one operations at their root, and a message to each of the others.
		if rank == 0 {
			assert.Equal(t, monitored(oneToAllCalls, "ring"), calls("MPI_Bcast", "comm:ring"))
			assert.Equal(t, monitored(oneToAllBytes, "ring"), sent("MPI_Bcast", "comm:ring")*(ranks-1))
			assert.Equal(t, monitored(allToOneCalls, "ring"), calls("MPI_Reduce", "comm:ring"))
			assert.Equal(t, monitored(allToOneBytes, "ring"), sent("MPI_Reduce", "comm:ring")*(ranks-1))
		}
		assert.Equal(t, monitored(allToAllCalls, "sums"), calls("MPI_Allreduce", "comm:sums"))
		assert.Equal(t, monitored(allToAllBytes, "sums"), sent("MPI_Allreduce", "comm:sums")*(ranks-1))
		assert.Equal(t, monitored(allToAllCalls, "brief"), calls("MPI_Barrier", "comm:brief"))
		// One-sided transfers stand under the communicator that the window is made of.
		if mpi.Major < 6 { // see countedForPeers
			assert.Equal(t, monitored(putMessages, "MPI_COMM_WORLD"), calls("MPI_Put", "win:box"))
			assert.Equal(t, monitored(putBytes, "MPI_COMM_WORLD"), sent("MPI_Put", "win:box"))
		}
	}
	run.Finish(t, "half", "done")
}

// Programs run the same with the call profile's library and without an exporter, without the agent, and with the
// agent switched off.
func TestCallProfileAlone(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			job := harness.Job{MPI: mpi, Program: "profile_messages.c", Args: []string{"-"}}
			nobody := filepath.Join(suite.Dir(t), "nobody.sock")
			require.NoError(t, os.WriteFile(nobody, nil, 0o600)) // of an exporter that has gone: exec says nothing
			bare, observed, disabled := job, job, job
			bare.Bare = true
			observed.Exec, observed.Socket = []string{"--calls"}, nobody
			disabled.Exec, disabled.Socket, disabled.Env = []string{"--calls"}, nobody,
				[]string{"MPIT_AGENT_DISABLE=1"}
			want := suite.Run(t, bare).Finish(t)
			assert.Equal(t, want, suite.Run(t, observed).Finish(t), "no exporter")
			assert.Equal(t, want, suite.Run(t, disabled).Finish(t), "the agent switched off")
			assert.Equal(t, want, suite.Run(t, preloaded(job, suite.Calls())).Finish(t), "no agent")
		})
	}
}
