package e2e

import (
	"testing"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// A rank that the launcher starts without the agent is missed.
func TestRankWithoutTheAgent(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			run := suite.Run(t, harness.Job{MPI: mpi, Program: "tour.c", Args: []string{harness.HoldDir}, Socket: exporter.Socket,
				Wrap: []string{"sh", "-c",
					`test "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 1 && export MPIT_AGENT_DISABLE=1; exec "$@"`, "sh"}})
			run.AtHold(t, "made", 0, 1)
			exporter.Await(t, "the rank that is missing", func(s *harness.Scrape) error {
				if err := s.Expect("mpit_exporter_ranks", harness.Labels{"state": "unseen"}, 1); err != nil {
					return err
				}
				return s.Expect("mpit_exporter_ranks", harness.Labels{"state": "up"}, 1)
			})
		})
	}
}
