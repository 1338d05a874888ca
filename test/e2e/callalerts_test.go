package e2e

import (
	"context"
	"testing"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// The alerts of the call profile fire for real jobs with both libraries, each for what it is meant for and no other,
// however Prometheus stores histograms. TestAlerts has jobs without a profile: they bring none of these.
func TestAlertsOfCalls(t *testing.T) {
	t.Parallel()
	exporter := suite.Exporter(t)
	servers := map[string]*harness.Prometheus{}
	for _, server := range harness.PrometheusServers(t) {
		servers[server.Name] = suite.PrometheusWith(t, harness.PrometheusConfig{
			Server: server, Rules: alertRules(t), Exporters: []*harness.Exporter{exporter},
		})
	}

	uneven := suite.Run(t, harness.Job{
		MPI: harness.OpenMPI(t), Program: "examples/calls/stencil.c", Socket: exporter.Socket, ID: "uneven",
		Exec: []string{"--calls"},
		Args: []string{"--seconds=0", "--cells=32", "--pause=20", "--slow=1", "--factor=10"},
	})
	chatty := suite.Run(t, harness.Job{
		MPI: harness.MPICH(t), Program: "chatter.c", Args: []string{harness.HoldDir}, Socket: exporter.Socket,
		ID: "chatty", Exec: []string{"--calls"},
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
	fires("MPIRanksWaitForOne", "uneven", "on communicator residual, where rank 1 on "+exporter.Address+" comes last.")
	for _, prometheus := range servers {
		// The norm is that of the time until ten seconds ago.
		prometheus.Await(t, `mpit_job:collective_duration:min{jobid="chatty"} offset 10s`, number(1))
	}
	chatty.Release(t, "grown")
	fires("MPICollectiveSlow", "chatty", "MPI_Allreduce on communicator sums takes")
	fires("MPIJobMostlyInMPI", "chatty", "of their time in MPI calls, more than 80% for 15 minutes. Most of it is MPI_")

	for server, prometheus := range servers {
		t.Run(server, func(t *testing.T) {
			expectAlerts(t, prometheus, map[string]string{
				"MPIMessagesTiny": "chatty", "MPICollectiveSlow": "chatty", "MPIJobMostlyInMPI": "chatty",
				"MPIRanksWaitForOne": "uneven",
			})
		})
	}
}
