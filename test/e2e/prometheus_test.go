package e2e

import (
	"fmt"
	"testing"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// A real Prometheus scrapes during a job and answers the questions that the exporter is there for.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	exporter := suite.Exporter(t)
	prometheus := suite.Prometheus(t, exporter)
	mpi := harness.OpenMPI(t)

	late := suite.Run(t, harness.Job{
		MPI: mpi, Program: "unexpected.c", Args: []string{"41", harness.HoldDir}, Socket: exporter.Socket, ID: "late",
	})
	late.AtHold(t, "queued")
	traffic := suite.Run(t, harness.Job{
		MPI: mpi, Program: "traffic.c", Args: []string{"50", "100", harness.HoldDir}, Socket: exporter.Socket,
		ID:   "traffic",
		Exec: []string{"--monitoring"},
	})
	traffic.AtHold(t, "ready")

	prometheus.Await(t, `up{job="mpit"}`, single(1))
	prometheus.Await(t, `count(mpit_rank_up{job="mpit", jobid=~"late|traffic"} == 1)`, single(4))
	prometheus.Await(t, fmt.Sprintf(`%s{jobid="late", comm="backlog"} > 40`, unexpectedQueue),
		func(samples []harness.Sample) error {
			if err := single(41)(samples); err != nil {
				return err
			}
			if rank := samples[0].Labels["rank"]; rank != "1" {
				return fmt.Errorf("the late receiver is rank 1, not %s", rank)
			}
			return nil
		})
	// The counter's first sample must be the one before the traffic.
	prometheus.Await(t, fmt.Sprintf(`%s{jobid="traffic", comm="sums", rank="0"}`, allToAllCalls), single(0))
	traffic.Release(t, "ready")
	traffic.AtHold(t, "half")
	prometheus.Await(t, fmt.Sprintf(`%s{jobid="traffic", comm="sums", rank="0"}`, allToAllCalls), single(50))
	prometheus.Await(t, fmt.Sprintf(`rate(%s{jobid="traffic", comm="sums"}[1m]) > 0`, allToAllCalls), number(2))
	// Joined with what describes the process.
	prometheus.Await(t,
		fmt.Sprintf(`%s{comm="sums"} * on (jobid, world, rank) group_left (executable) mpit_process_info`, allToAllCalls),
		number(2))

	traffic.Finish(t, "half", "done")
	late.Finish(t, "queued", "drained")
	prometheus.Await(t, `count(mpit_rank_end_info{reason="finalize"})`, single(4))
	prometheus.Await(t, fmt.Sprintf(`%s{jobid="traffic", comm="sums", rank="0"}`, allToAllCalls), single(100))
	prometheus.Await(t, fmt.Sprintf(`max_over_time(%s{jobid="late", comm="backlog", rank="1"}[5m])`,
		unexpectedQueue), single(41))
}

func number(want int) func([]harness.Sample) error {
	return func(samples []harness.Sample) error {
		if len(samples) != want {
			return fmt.Errorf("%d series, not %d: %v", len(samples), want, samples)
		}
		return nil
	}
}

func single(want float64) func([]harness.Sample) error {
	return func(samples []harness.Sample) error {
		if err := number(1)(samples); err != nil {
			return err
		}
		if samples[0].Value != want {
			return fmt.Errorf("%v, not %v", samples[0].Value, want)
		}
		return nil
	}
}
