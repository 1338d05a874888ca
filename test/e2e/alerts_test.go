package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/fixture"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// Each alert fires once in a real Prometheus, for the job or the exporter that it is meant for and no other; a job
// that is well has none, nor has it when it ends. The rules are those of alerts/ but for their times: see
// harness.RulesInSeconds.
func TestAlerts(t *testing.T) {
	t.Parallel()
	limits, shares := filepath.Join(t.TempDir(), "limits.yaml"), filepath.Join(t.TempDir(), "shares.yaml")
	writeFile(t, limits, "limits: {series_per_variable: 5}\n")
	writeFile(t, shares, `rules: [{match: {name: pool}, unit: "%"}]`)
	node := []string{"--cvar.name=knob", "--cvar.interval=1s", "--config.file=" + shares}
	var (
		near    = suite.Exporter(t, node...)
		far     = suite.Exporter(t, node...) // another node of the same jobs
		killed  = suite.Exporter(t)
		limited = suite.Exporter(t, "--config.file="+limits)
	)
	prometheus := suite.PrometheusWith(t, harness.PrometheusConfig{
		Rules: suite.RulesInSeconds(t), Exporters: []*harness.Exporter{near, far, killed, limited},
	})

	// Jobs of real Open MPI.
	mpi := harness.OpenMPI(t)
	queue := suite.Run(t, harness.Job{
		MPI: mpi, Program: "unexpected.c", Args: []string{"12000", harness.HoldDir}, Socket: near.Socket, ID: "queue",
	})

	// Jobs whose ranks do what the test says.
	well := startAlertJob(t, "well", near, near, far, far)
	sick := startAlertJob(t, "sick", near, near, far, far)
	odd := startAlertJob(t, "odd", near, near, far)
	late := startAlertJob(t, "late", far, far)
	gone := startAlertJob(t, "gone", near, far)
	many := startAlertJob(t, "many", limited)
	well.set(t, "buffers", mpit.ClassPercentage, 0.5)
	odd.set(t, "unexpected_recvq_length", mpit.ClassLevel, 10)
	sick[3].Do(t, "add pvar calls counter - 5")
	queue.AtHold(t, "queued")

	// Ranks that get on do so whenever Prometheus is asked.
	move := func() {
		for _, p := range well {
			p.Do(t, "add pvar calls counter - 1")
			p.Do(t, "add pvar nic_sent_bytes_count counter - 1000000")
		}
		for i, p := range sick[:3] {
			p.Do(t, "add pvar calls counter - 1")
			p.Do(t, "add pvar nic_sent_bytes_count counter - %d", []int{100_000_000, 1_000_000, 1_000_000}[i])
		}
	}
	await := func(expression string, check func([]harness.Sample) error) {
		t.Helper()
		prometheus.Await(t, expression, func(samples []harness.Sample) error {
			move()
			return check(samples)
		})
	}
	fires := func(name string, labels harness.Labels, text string) {
		t.Helper()
		harness.Await(t, "the alert "+name, func(ctx context.Context) error {
			move()
			alerts, err := prometheus.Alerts(ctx)
			if err != nil {
				return err
			}
			return findAlert(alerts, name, labels, text)
		})
	}
	await(`count(up{job="mpit"} == 1)`, single(4))
	await(`count(mpit_rank_up == 1)`, single(18))
	await(`count(mpit_cvar_ranks)`, single(9))
	await(`sum(mpit_exporter_series_dropped_total{reason="variable_over_limit"})`, single(0))
	await(`min(mpit_rank:lowwatermark:min{jobid="sick"})`, single(64))
	await(`count(mpit_node:exporter:known)`, single(4)) // only of one that is known is it said that it is down

	gone[0].End(t, "kill", 128+9)
	killed.Kill(t)
	late[0].Signal(t, syscall.SIGSTOP)
	for i := range 12 {
		many[0].Do(t, "comm-dup world c%d", i)
		many[0].Do(t, "set-name c%d c%d", i, i)
	}
	writeFile(t, limits, "limits: {series_per_variable: few}\n")
	limited.Signal(t, syscall.SIGHUP)
	sick[1].Do(t, "set pvar buffers percentage - 0.95")
	sick[1].Do(t, "set pvar pool highwatermark - 97")
	sick[2].Do(t, "set pvar unexpected_messages highwatermark - 20000")
	cvar(t, far, 0, "set", "--jobid=sick", "--rank=3", "knob=7")

	// First, as these last no longer than 15 seconds.
	fires("MPITSeriesDropped", harness.Labels{"instance": limited.Address, "reason": "variable_over_limit"},
		"the reason is variable_over_limit")
	sick[1].Do(t, "set pvar credits lowwatermark - 0")
	fires("MPIResourceLowWatermark", harness.Labels{"jobid": "sick", "metric": "mpit_credits_lowwatermark"},
		"rank 1 on "+near.Address+" had nothing left of mpit_credits_lowwatermark")
	fires("MPIRankGone", harness.Labels{"jobid": "gone", "reason": "lost"}, "rank 0 on "+near.Address)
	fires("MPIUnexpectedQueueLong", harness.Labels{"jobid": "queue"},
		"rank 1 on "+near.Address+" (communicator backlog) has 12k messages")
	fires("MPIUnexpectedHighWatermark", harness.Labels{"jobid": "sick"},
		"rank 2 on "+far.Address+" has had 20k unexpected messages")
	fires("MPIResourceHighWatermark", harness.Labels{"jobid": "sick", "metric": "mpit_pool_highwatermark_ratio"},
		"rank 1 on "+near.Address+" had used 97% of mpit_pool_highwatermark_ratio")
	fires("MPIResourceNearlyFull", harness.Labels{"jobid": "sick", "metric": "mpit_buffers_ratio"},
		"rank 1 on "+near.Address+" has used 95%")
	fires("MPIControlVariablesDiffer", harness.Labels{"jobid": "sick", "name": "knob"}, "3 in 3, 7 in 1.")
	fires("MPIRanksLate", harness.Labels{"jobid": "late"}, "such as rank 0 on "+far.Address+".")
	fires("MPITExporterDown", harness.Labels{"instance": killed.Address}, "no page")
	fires("MPITReloadFailed", harness.Labels{"instance": limited.Address}, "found mistakes")
	fires("MPIRankStuck", harness.Labels{"jobid": "sick"}, ": 1, such as rank 3 on "+far.Address+".")
	// The norm is that of the time until ten seconds ago.
	await(`mpit_job:unexpected_messages:median{jobid="odd"} offset 10s`, single(10))
	odd[2].Do(t, "set pvar unexpected_recvq_length level - 700")
	fires("MPIRankImbalance", harness.Labels{"jobid": "sick"}, "rank 0 on "+near.Address+" sends")
	fires("MPIUnexpectedQueueAboveNorm", harness.Labels{"jobid": "odd"}, "rank 2 on "+far.Address+" has 700 messages")

	// The end of what is well brings no alert, nor does that of what was not.
	late[0].Signal(t, syscall.SIGCONT)
	queue.Finish(t, "queued", "drained")
	for _, p := range well {
		p.Finish(t)
	}
	prometheus.Await(t, `mpit_rank_end_info{jobid=~"well|queue", reason="finalize"}`, number(6))
	prometheus.Await(t, `mpit_job:ranks:live{jobid=~"well|queue"}`, number(0))
	expectAlerts(t, prometheus, "", map[string]string{
		"MPIUnexpectedQueueLong":      "queue",
		"MPIUnexpectedQueueAboveNorm": "odd",
		"MPIUnexpectedHighWatermark":  "sick",
		"MPIResourceNearlyFull":       "sick",
		"MPIResourceHighWatermark":    "sick",
		"MPIResourceLowWatermark":     "sick",
		"MPIRankImbalance":            "sick",
		"MPIRankStuck":                "sick",
		"MPIRankGone":                 "gone",
		"MPIControlVariablesDiffer":   "sick",
		"MPIRanksLate":                "late",
		"MPITExporterDown":            killed.Address,
		"MPITSeriesDropped":           limited.Address,
		"MPITReloadFailed":            limited.Address,
	})
}

// alertJob are the ranks of a job, each a program of the fixture.
type alertJob []*fixture.Program

// startAlertJob starts a rank at each of the exporters. All have the same world: it is that of the process that
// starts them.
func startAlertJob(t *testing.T, id string, exporters ...*harness.Exporter) alertJob {
	t.Helper()
	build := fixture.Plain(suite)
	var job alertJob
	for rank, exporter := range exporters {
		job = append(job, fixture.Start(t, build, alertLibrary(rank, len(exporters)), fixture.Options{
			Socket: exporter.Socket, ID: id, Exec: []string{"--allow-write"},
		}))
	}
	for _, p := range job {
		p.Init(t)
	}
	return job
}

// alertLibrary has what alerts look at, by the names that MPICH has for it where it has any.
func alertLibrary(rank, size int) *fixture.Library {
	plain := func(name string, class mpit.Class, initial float64) fixture.Variable {
		v := fixture.Variable{Name: name, Class: class, ProcessWide: true, Initial: []float64{initial}}
		if class == mpit.ClassPercentage {
			v.Type = fixture.Double
		}
		return v
	}
	perComm := plain("messages", mpit.ClassCounter, 0)
	perComm.Bind = mpit.BindComm
	return &fixture.Library{
		WorldSize: size, WorldRank: rank, Version: "MPICH Version: 4.1.2",
		Variables: []fixture.Variable{
			plain("unexpected_recvq_length", mpit.ClassLevel, 0),
			plain("unexpected_messages", mpit.ClassHighWatermark, 0),
			plain("buffers", mpit.ClassPercentage, 0),
			plain("pool", mpit.ClassHighWatermark, 10),
			plain("credits", mpit.ClassLowWatermark, 64),
			plain("nic_sent_bytes_count", mpit.ClassCounter, 0),
			plain("calls", mpit.ClassCounter, 0),
			perComm,
		},
		ControlVariables: []fixture.ControlVariable{{Name: "knob", Scope: mpit.ScopeLocal, Initial: []float64{3}}},
	}
}

// set gives a variable of all ranks a value.
func (job alertJob) set(t *testing.T, name string, class mpit.Class, value float64) {
	t.Helper()
	for _, p := range job {
		p.Do(t, "set pvar %s %s - %v", name, map[mpit.Class]string{mpit.ClassLevel: "level",
			mpit.ClassPercentage: "percentage"}[class], value)
	}
}

// findAlert looks for one that fires, has these labels, and a text in its description.
func findAlert(alerts []harness.Alert, name string, labels harness.Labels, text string) error {
	err := errors.New("it does not fire")
next:
	for _, alert := range alerts {
		if alert.Labels["alertname"] != name || alert.State != "firing" {
			continue
		}
		for label, value := range labels {
			if alert.Labels[label] != value {
				err = fmt.Errorf("it fires for %v", alert.Labels)
				continue next
			}
		}
		if strings.Contains(alert.Annotations["description"], text) {
			return nil
		}
		err = fmt.Errorf("it says %q, without %q", alert.Annotations["description"], text)
	}
	return err
}

// expectAlerts compares what has fired at any time, of alerts with these labels: by alert the job, or the exporter
// where it concerns one.
func expectAlerts(t *testing.T, prometheus *harness.Prometheus, matchers string, want map[string]string) {
	t.Helper()
	// An alert is known a moment before its series is.
	query := `group by (alertname, jobid, instance) (max_over_time(ALERTS{alertstate="firing"` + matchers + `}[10m]))`
	prometheus.Await(t, query, func(samples []harness.Sample) error {
		got := map[string]string{}
		for _, s := range samples {
			whose := s.Labels["jobid"]
			if whose == "" {
				whose = s.Labels["instance"]
			}
			got[s.Labels["alertname"]] = strings.TrimPrefix(got[s.Labels["alertname"]]+" "+whose, " ")
		}
		if !maps.Equal(want, got) {
			return fmt.Errorf("alerts are %v, not %v", got, want)
		}
		return nil
	})
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}
