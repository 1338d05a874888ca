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

// membersOf is how many ranks of a world know which each of its communicators is, by the name that their program has
// given it before " #". Each has one identity, the number of collectives that stands behind "#", and, unless it is
// called "maybe", as many members that know it as it has.
func membersOf(t *testing.T, world []api.RankStatus) (members map[string]int) {
	t.Helper()
	names, sizes := map[string]string{}, map[string]int{}
	members = map[string]int{}
	for _, r := range world {
		require.NotNil(t, r.Calls)
		for _, c := range r.Calls.Comms {
			which, _, _ := strings.Cut(c.Name, " #")
			require.NotNil(t, c.Number, "%s in rank %d", c.Name, r.Rank)
			assert.Equal(t, fmt.Sprintf("%s #%d", which, *c.Number), c.Name, "rank %d", r.Rank)
			if name, known := names[c.ID]; known {
				assert.Equal(t, name, which, "two with identity %s", c.ID)
			}
			names[c.ID] = which
			members[which]++
			if !c.Inter && !strings.HasPrefix(which, "maybe") {
				sizes[which] = c.Size
			}
		}
	}
	assert.Len(t, members, len(names), "one with two identities")
	for which, size := range sizes {
		assert.Equal(t, size, members[which], "members that know %s", which)
	}
	return members
}

// made is how many of the communicators have been made in one way.
func made(members map[string]int, how string) (count int) {
	for which := range members {
		if strings.TrimRight(which, "0123456789.") == how {
			count++
		}
	}
	return count
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
			members := membersOf(t, ranksOf(t, exporter))
			for _, how := range []string{"world", "dup", "info", "split", "shared", "create", "cart", "row", "graph",
				"adjacent", "dist", "group", "inter", "interdup", "merge"} {
				assert.Positive(t, made(members, how), "no %s", how)
				t.Logf("%d of %s", made(members, how), how)
			}
			assert.Equal(t, ranks, members["world0.0"])
			var world api.Comm
			for _, r := range ranksOf(t, exporter) {
				for _, c := range r.Calls.Comms {
					if strings.HasPrefix(c.Name, "world") {
						world = c
					}
				}
			}

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

// So it is where threads make them at once, where thousands have come and gone, and beside other worlds and sessions.
func TestCommunicatorsOfCrews(t *testing.T) {
	t.Parallel()
	crews := func(t *testing.T, mpi *harness.MPI, ranks int, what ...string) (*harness.Exporter, *harness.Run) {
		exporter := suite.Exporter(t)
		return exporter, suite.Run(t, harness.Job{MPI: mpi, Program: "crews.c", Ranks: ranks, Socket: exporter.Socket,
			Args: append([]string{harness.HoldDir}, what...), Exec: []string{"--calls"}})
	}
	count := func(t *testing.T, members map[string]int, want map[string]int) {
		got := map[string]int{}
		for how := range want {
			got[how] = made(members, how)
		}
		assert.Equal(t, want, got)
	}
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name+" threads", func(t *testing.T) {
			exporter, run := crews(t, mpi, 3, "threads")
			run.AtHold(t, "apart")
			exporter.Await(t, "all ranks", up(run))
			count(t, membersOf(t, ranksOf(t, exporter)),
				map[string]int{"world": 1, "own": 3, "dup": 6, "split": 6, "group": 6, "even": 6})
			run.Release(t, "apart")
			run.AtHold(t, "made")
			exporter.Scrape(t)
			count(t, membersOf(t, ranksOf(t, exporter)),
				map[string]int{"world": 1, "own": 3, "dup": 6, "split": 6, "group": 6, "even": 6, "half": 3})
			run.Finish(t, "made")
		})
		t.Run(mpi.Name+" many", func(t *testing.T) {
			exporter, run := crews(t, mpi, 2, "many", "10000")
			run.AtHold(t, "made")
			scrape := exporter.Await(t, "all ranks", up(run))
			members := membersOf(t, ranksOf(t, exporter))
			count(t, members, map[string]int{"world": 1, "maybe": 0})
			for _, how := range []string{"dup", "split", "group", "child"} {
				assert.Positive(t, made(members, how), how)
			}
			objects := 0.0
			for _, s := range scrape.Select("mpit_objects", run.Labels(0).With("kind", "comm")) {
				objects += s.Value
			}
			assert.Equal(t, 26.0, objects, "24, MPI_COMM_WORLD and MPI_COMM_SELF")
			run.Finish(t, "made")
		})
	}
	t.Run("spawn", func(t *testing.T) {
		mpi := harness.OpenMPI(t) // Debian's MPICH can't spawn
		command := append(suite.ExecCommand("--calls"), suite.Program(t, mpi, "crews.c"), harness.HoldDir, "child")
		exporter, run := crews(t, mpi, 3, append([]string{"spawn"}, command...)...)
		run.AtHold(t, "made")
		run.AtHold(t, "child", 0, 1)
		exporter.Scrape(t)
		worlds, of := map[string][]api.RankStatus{}, map[string]string{}
		for _, r := range ranksOf(t, exporter) {
			worlds[r.World] = append(worlds[r.World], r)
			for _, c := range r.Calls.Comms {
				assert.Contains(t, []string{"", r.World}, of[c.ID], "an identity in two worlds")
				of[c.ID] = r.World
			}
		}
		require.Len(t, worlds, 2)
		for _, world := range worlds {
			assert.Equal(t, map[string]int{"world": len(world), "dup": len(world)}, membersOf(t, world))
		}
		run.Finish(t, "child", "made")
	})
	t.Run("sessions", func(t *testing.T) {
		exporter, run := crews(t, harness.MPICH(t), 3, "sessions")
		run.AtHold(t, "made")
		exporter.Await(t, "all ranks", up(run))
		assert.Empty(t, membersOf(t, ranksOf(t, exporter)))
		run.Finish(t, "made")
	})
	t.Run("a session and MPI_Init", func(t *testing.T) {
		exporter, run := crews(t, harness.MPICH(t), 3, "within")
		run.AtHold(t, "made")
		exporter.Await(t, "all ranks", up(run))
		count(t, membersOf(t, ranksOf(t, exporter)), map[string]int{"world": 1, "crew": 4, "even": 1, "copy": 1})
		run.Finish(t, "made")
	})
}
