package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// ranksOf are an exporter's ranks.
func ranksOf(t *testing.T, exporter *harness.Exporter) []api.RankStatus {
	t.Helper()
	var list api.RankList
	exporter.GetJSON(t, "/api/v1/ranks", &list)
	return list.Ranks
}

// A communicator has one identity in all its members and no other's, and the number of collectives that the program
// has counted, however it has been made.
func TestCommunicators(t *testing.T) {
	t.Parallel()
	const ranks = 6
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			run := suite.Run(t, harness.Job{MPI: mpi, Program: "comms.c", Args: []string{harness.HoldDir, "7"}, Ranks: ranks,
				Socket: exporter.Socket, Exec: []string{"--calls"}})
			run.AtHold(t, "made", 0, 1, 2, 3, 4, 5)
			exporter.Await(t, "all ranks", up(run))
			names, members, sizes := map[string]string{}, map[string]int{}, map[string]int{}
			var world api.Comm
			for _, r := range ranksOf(t, exporter) {
				require.NotNil(t, r.Calls)
				for _, c := range r.Calls.Comms {
					which, _, _ := strings.Cut(c.Name, " #")
					require.NotNil(t, c.Number, "%s in rank %d", c.Name, r.Rank)
					assert.Equal(t, c.Name, fmt.Sprintf("%s #%d", which, *c.Number), "rank %d", r.Rank)
					if name, known := names[c.ID]; known {
						assert.Equal(t, name, which, "two with identity %s", c.ID)
					}
					names[c.ID] = which
					members[which]++
					if !c.Inter {
						sizes[which] = c.Size
					}
					if strings.HasPrefix(which, "world") {
						world = c
					}
				}
			}
			assert.Len(t, members, len(names), "one with two identities")
			for _, how := range []string{"world", "dup", "info", "split", "shared", "create", "cart", "row", "graph",
				"adjacent", "dist", "group", "inter", "interdup", "merge"} {
				found := 0
				for which := range members {
					if strings.TrimRight(which, "0123456789.") == how {
						found++
					}
				}
				assert.Positive(t, found, "no %s", how)
				t.Logf("%d of %s", found, how)
			}
			for which, size := range sizes {
				assert.Equal(t, size, members[which], "members that know %s", which)
			}
			assert.Equal(t, ranks, members["world0.0"])

			run.Release(t, "made")
			run.AtHold(t, "late", 1, 2, 3, 4, 5)
			exporter.Await(t, "the number of the barrier that rank 0 is in", func(*harness.Scrape) error {
				for _, r := range ranksOf(t, exporter) {
					if r.Rank != 0 || len(r.Calls.Threads) == 0 || r.Calls.Threads[0].Call == nil {
						continue
					}
					c := r.Calls.Threads[0].Call
					if c.Function == "MPI_Barrier" && c.Comm == world.ID && c.Number == *world.Number+1 {
						return nil
					}
					return fmt.Errorf("rank 0 is in %+v, the world is %+v", *c, world)
				}
				return fmt.Errorf("rank 0 is in no call")
			})
			run.Release(t, "late")
			run.Finish(t)
		})
	}
}
