package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// Two mpiruns in one batch script have the same job and the same ranks, at the same time: they differ in their world.
func TestTwoLaunchesOfOneJob(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			job := harness.Job{MPI: mpi, Program: "tour.c", Args: []string{harness.HoldDir}, Socket: exporter.Socket,
				ID: "batch"}
			one, two := suite.Run(t, job), suite.Run(t, job)
			one.AtHold(t, "made")
			two.AtHold(t, "made")
			scrape := exporter.Await(t, "four ranks in two worlds", func(s *harness.Scrape) error {
				found := s.Select("mpit_rank_up", harness.Labels{"jobid": "batch"})
				worlds := s.Values("mpit_rank_up", harness.Labels{"jobid": "batch"}, "world")
				if len(found) != 4 || len(worlds) != 2 {
					return fmt.Errorf("%d ranks in the worlds %q", len(found), worlds)
				}
				return nil
			})
			for _, series := range scrape.Select("mpit_rank_up", nil) {
				assert.NotContains(t, series.Labels, "dup")
			}
			one.Finish(t, "made", "freed")
			two.Finish(t, "made", "freed")
		})
	}
}

// Without MPIT_JOB_ID and without a scheduler the launcher names the job: two are two. Where it has no name but its
// process, the start of that is in the job's: the number is another launcher's one day.
func TestLaunchesWithoutJobID(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			job := harness.Job{MPI: mpi, Program: "tour.c", Args: []string{harness.HoldDir}, Socket: exporter.Socket,
				NoID: true}
			one, two := suite.Run(t, job), suite.Run(t, job)
			one.AtHold(t, "made")
			two.AtHold(t, "made")
			exporter.Await(t, "two jobs of two ranks", func(s *harness.Scrape) error {
				jobs := s.Values("mpit_rank_up", nil, "jobid")
				if len(jobs) != 2 || len(s.Select("mpit_rank_up", nil)) != 4 {
					return fmt.Errorf("the ranks are %v", s.Select("mpit_rank_up", nil))
				}
				for _, id := range jobs {
					if mpi.Name == "mpich" {
						assert.Regexp(t, launcherStarted(t, id), id)
					}
					if ranks := s.Values("mpit_rank_up", harness.Labels{"jobid": id}, "rank"); len(ranks) != 2 {
						return fmt.Errorf("job %s has the ranks %q", id, ranks)
					}
				}
				return nil
			})
			one.Finish(t, "made", "freed")
			two.Finish(t, "made", "freed")
		})
	}
}

// launcherStarted is what the name of a job ends in whose launcher still runs.
func launcherStarted(t *testing.T, id string) (end string) {
	t.Helper()
	parts := strings.Split(id, "-")
	require.Greater(t, len(parts), 2, id)
	text, err := os.ReadFile("/proc/" + parts[len(parts)-2] + "/stat")
	require.NoError(t, err, id)
	name, rest, found := strings.Cut(string(text), ") ")
	require.True(t, found, name)
	return "-" + strings.Fields(rest)[19] + "$"
}

// A spawned world has ranks of the same numbers in the same job, which are no peers of the first one's. (Debian's MPICH
// can't spawn.)
func TestSpawnedWorld(t *testing.T) {
	t.Parallel()
	exporter := suite.Exporter(t)
	mpi := harness.OpenMPI(t)
	command := append(suite.ExecCommand(), suite.Program(t, mpi, "spawn.c"), harness.HoldDir)
	run := suite.Run(t, harness.Job{
		MPI: mpi, Program: "spawn.c", Args: append([]string{harness.HoldDir}, command...), Socket: exporter.Socket,
		Exec: []string{"--calls=peers"},
	})
	run.AtHold(t, "up")
	run.AtHold(t, "child")
	scrape := exporter.Await(t, "two worlds of one job", func(s *harness.Scrape) error {
		worlds := s.Values("mpit_rank_up", harness.Labels{"jobid": run.ID}, "world")
		if len(worlds) != 2 {
			return fmt.Errorf("the ranks are %v", s.Select("mpit_rank_up", nil))
		}
		for _, world := range worlds {
			for rank := range 2 {
				if err := s.Expect("mpit_rank_up", run.Labels(rank).With("world", world), 1); err != nil {
					return err
				}
			}
		}
		return nil
	})
	for _, info := range scrape.Select("mpit_process_info", nil) {
		assert.Equal(t, "2", info.Labels["world_size"])
	}
	// What goes to another world's rank 0 doesn't go to rank 0.
	exporter.Await(t, "the messages to the spawned world", all(expect(peerMessages, run.Labels(0).With("peer", "other"),
		1),
		expect(peerBytes, run.Labels(1).With("peer", "other"), 4), absent(peerMessages, run.Labels(0).With("peer", "0"))))
	run.Release(t, "child")
	result := run.Finish(t, "up")
	require.Equal(t, "spawn: the children's sum is 2\n", result.Stdout)
}

// Jobs that are shorter than a scrape interval are all there at the next scrape, with all that they have counted.
func TestShortJobs(t *testing.T) {
	t.Parallel()
	const jobs = 8
	exporter := suite.Exporter(t)
	mpi := harness.OpenMPI(t)
	exporter.Scrape(t)

	var checks []check
	for i := range jobs {
		run := suite.Run(t, harness.Job{
			MPI: mpi, Program: "traffic.c", Args: []string{strconv.Itoa(i + 1), "64", "-"},
			Exec: []string{"--monitoring"}, Socket: exporter.Socket,
		})
		run.Finish(t)
		checks = append(checks,
			ended(run, "finalize"),
			counted(run, allToAllCalls, "sums", always(2*float64(i+1))),
			counted(run, allToAllCalls, "brief", always(2*float64(i+1))),
			counted(run, oneToAllBytes, "ring", atRoot(2*float64(i+1)*64)),
			countedForPeers(mpi, counted(run, putBytes, "MPI_COMM_WORLD", always(2*float64(i+1)*64))),
		)
	}
	exporter.Await(t, "all jobs' last values in one scrape", all(append(checks, healthy)...))
}
