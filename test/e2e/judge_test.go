package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// A job over two nodes, of which no exporter has all ranks, has the judge's verdict, in an alert too. A report from
// Prometheus alone says the same and names no other rank. When one of the exporters is gone nothing is said. Those of
// Open MPI's job are private, and have a client for each.
func TestJudge(t *testing.T) {
	t.Parallel()
	suite.Crowd(t)
	for _, mpi := range oneLibrary(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			var config harness.ExporterConfig
			scrape, login := "", ""
			if mpi.Name == "openmpi" {
				config, login = privately(t), "judge:right@"
				scrape = "    basic_auth: {username: prometheus, password: right}\n"
			}
			near, far := suite.ExporterWith(t, config), suite.ExporterWith(t, config)
			prometheus := suite.Judged(t, harness.PrometheusConfig{Rules: suite.RulesInSeconds(t), Scrape: scrape,
				Exporters: []*harness.Exporter{near, far}}, login)
			start := func(how string) *harness.Run {
				return suite.Run(t, harness.Job{MPI: mpi, Ranks: 3, Program: "stuck.c", Args: []string{how, harness.HoldDir},
					Socket: near.Socket, ID: how, Exec: []string{"--calls"}, Before: mpi.Modest(),
					Wrap: []string{"sh", "-c", `test "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 || ` +
						"export MPIT_SOCKET='" + far.Socket + `'; exec "$@"`, "sh"}})
			}
			start("mismatch")
			start("asleep").AtHold(t, "away", 1)
			start("compute").AtHold(t, "away")
			node, err := os.Hostname()
			require.NoError(t, err)
			verdicts := func(of string) string { return "mpit_job_verdict_info{" + of + "}" }
			of := fmt.Sprintf(`jobid=%q, state=%q, rank="1", node=%q`, "mismatch", "deadlock", node)
			prometheus.Await(t, verdicts(of), number(1))
			prometheus.Await(t, verdicts(fmt.Sprintf(`jobid=%q, state=%q, rank="1", node=%q`, "asleep", "waiting", node)),
				number(1))
			prometheus.Await(t, verdicts(""), number(2)) // one a job, and none of those in which nothing stands out
			harness.Await(t, "an alert", func(ctx context.Context) error {
				alerts, err := prometheus.Alerts(ctx)
				if err != nil {
					return err
				}
				return findAlert(alerts, "MPIJobHung", harness.Labels{"jobid": "mismatch"},
					"cannot go on: deadlock; the others wait for rank 1 on "+node)
			})
			answer := suite.Start(t, []string{suite.Binary(), "report", "--jobid=asleep", "--line", "--prometheus=" +
				prometheus.URL()}, nil).Wait(t)
			assert.Contains(t, answer.Stdout, "state=waiting ", answer.Stderr)
			assert.NotRegexp(t, `rank [02]\b`, answer.Stdout)
			answer = suite.Start(t, []string{suite.Binary(), "top", "--count=1", "--prometheus=" + prometheus.URL()}, nil).Wait(t)
			assert.Regexp(t, `(?s)WAITING .*rank 1 on `+node, answer.Stdout, answer.Stderr)
			assert.Regexp(t, `(?s)DEADLOCK .*rank 1 on `+node, answer.Stdout)

			far.Kill(t)
			prometheus.Await(t, verdicts(""), number(0))
		})
	}
}
