package e2e

import (
	"context"
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// The alerts of the call profile fire for real jobs with both libraries, each for what it is meant for and no other,
// however Prometheus stores histograms. TestAlerts has jobs without a profile: they bring none of these.
func TestAlertsOfCalls(t *testing.T) {
	t.Parallel()
	suite.Crowd(t)
	exporter := suite.Exporter(t)
	kinds := harness.PrometheusServers(t)
	if soaks(t) == 0 {
		kinds = kinds[1:2] // what is in promtool's tests is classic
	}
	servers := map[string]*harness.Prometheus{}
	for _, server := range kinds {
		servers[server.Name] = suite.PrometheusWith(t, harness.PrometheusConfig{
			Server: server, Rules: suite.RulesInSeconds(t), Exporters: []*harness.Exporter{exporter},
		})
	}

	uneven := suite.Run(t, harness.Job{
		MPI: harness.OpenMPI(t), Program: "examples/calls/stencil.c", Socket: exporter.Socket, ID: "uneven",
		Exec: []string{"--calls"},
		Args: []string{"--seconds=0", "--cells=32", "--pause=20", "--slow=1", "--factor=10"},
	})
	mpich := harness.MPICH(t)
	chatty := suite.Run(t, harness.Job{
		MPI: mpich, Program: "chatter.c", Args: []string{harness.HoldDir}, Socket: exporter.Socket,
		ID: "chatty", Exec: []string{"--calls"}, Before: mpich.Modest(),
	})
	fires := func(name, job, text string) {
		t.Helper()
		for server, prometheus := range servers {
			harness.Await(t, "the alert "+name+", "+server, func(ctx context.Context) error {
				for _, run := range []*harness.Run{uneven, chatty} {
					if run.Ended() {
						t.Fatalf("the job %s has ended: %+v", run.ID, run.Wait(t))
					}
				}
				alerts, err := prometheus.Alerts(ctx)
				if err != nil {
					return err
				}
				return findAlert(alerts, name, harness.Labels{"jobid": job}, text)
			})
		}
	}
	fires("MPIMessagesTiny", "chatty", "of 8 bytes on average")
	fires("MPIRanksWaitForOne", "uneven", "by waiting for one of them, now rank 1 on ")
	for _, prometheus := range servers {
		// The norm is that of the time until ten seconds ago.
		prometheus.Await(t, `mpit_job:collective_duration:min{jobid="chatty"} offset 10s`, number(1))
	}
	chatty.Release(t, "grown")
	fires("MPICollectiveSlow", "chatty", "a collective takes")
	fires("MPIJobMostlyInMPI", "chatty", "of their time in MPI calls, more than 80% for 15 minutes. In the last "+
		"5 minutes ")

	for server, prometheus := range servers {
		t.Run(server, func(t *testing.T) {
			// Not those of exporters: where cores are scarce, a page doesn't come within the half second that there is.
			expectAlerts(t, prometheus, `, jobid!=""`, map[string]string{
				"MPIMessagesTiny": "chatty", "MPICollectiveSlow": "chatty", "MPIJobMostlyInMPI": "chatty",
				"MPIRanksWaitForOne": "uneven",
			})
		})
	}
}

// A job that hangs is told from one that waits for a rank, and that rank is named, while the job hangs; nothing is said
// of a job that computes, nor of one that is suspended as a whole. Without messages' peers it isn't known for whom the
// receives wait. TestCallsUnderWay and TestWhomCallsWaitFor have each library's calls.
func TestAlertsOfHungJobs(t *testing.T) {
	t.Parallel()
	suite.Crowd(t)
	for _, mpi := range oneLibrary(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			prometheus := suite.PrometheusWith(t, harness.PrometheusConfig{
				Rules: suite.RulesInSeconds(t), Exporters: []*harness.Exporter{exporter},
			})
			start := func(id, how string) *harness.Run {
				return suite.Run(t, harness.Job{MPI: mpi, Ranks: 3, Program: "stuck.c",
					Args: []string{how, harness.HoldDir}, Socket: exporter.Socket, ID: id, Exec: []string{"--calls"},
					Before: mpi.Modest()})
			}
			// stop sends SIGSTOP to ranks; they go on when the test ends, so that they can be ended.
			stop := func(run *harness.Run, ranks ...int) {
				page := exporter.Await(t, "the ranks of "+run.ID, up(run))
				for _, rank := range ranks {
					info, err := page.One("mpit_process_info", run.Labels(rank))
					require.NoError(t, err)
					pid, err := strconv.Atoi(info.Labels["pid"])
					require.NoError(t, err)
					require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
					t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
				}
			}
			start("deadlock", "deadlock")
			start("mismatch", "mismatch")
			start("asleep", "asleep").AtHold(t, "away", 1)
			start("computing", "compute").AtHold(t, "away")
			stop(start("stopped", "steps"), 1)
			stop(start("suspended", "steps"), 0, 1, 2)
			node, err := os.Hostname()
			require.NoError(t, err)
			fires := func(name, job, text string) {
				t.Helper()
				harness.Await(t, "the alert "+name+" of "+job, func(ctx context.Context) error {
					alerts, err := prometheus.Alerts(ctx)
					if err != nil {
						return err
					}
					return findAlert(alerts, name, harness.Labels{"jobid": job}, text)
				})
			}
			fires("MPIJobWaitsForRank", "deadlock", " Calls under way: 3 in MPI_Recv on communicator halo.")
			fires("MPIJobHung", "mismatch", "cannot go on: deadlock; the others wait for rank 1 on "+node+". Calls under way: "+
				"2 in MPI_Barrier on communicator halo, 1 in MPI_Barrier on communicator other.")
			fires("MPIJobWaitsForRank", "asleep", "ranks wait for rank 1 on "+node)
			fires("MPIJobWaitsForRank", "stopped", "ranks wait") // who doesn't answer isn't blamed
			hung := map[string]bool{}
			alerts, err := prometheus.Alerts(t.Context())
			require.NoError(t, err)
			for _, alert := range alerts {
				switch alert.Labels["alertname"] {
				case "MPIJobHung", "MPIJobWaitsForRank":
					hung[alert.Labels["jobid"]] = true
				}
			}
			require.Equal(t, map[string]bool{"deadlock": true, "mismatch": true, "asleep": true, "stopped": true}, hung)
		})
	}
}
