package e2e

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// A program of MPI-4 sessions is observed from its first session to its last, with or without MPI_Init beside them,
// and notices nothing of it. Open MPI 4 has none.
func TestSessions(t *testing.T) {
	t.Parallel()
	world := []string{`comm "MPI_COMM_SELF" predefined 0/1`, `comm "MPI_COMM_WORLD" predefined 1/2`}
	crew, session := `comm "crew" 1/2`, `session ""`
	none := []string{} // with the last session goes the library: it is closed before the last sample
	cases := []struct {
		what string
		only bool                // no MPI_Init before the hold point "made"
		made []string            // at "made"
		then map[string][]string // at later hold points
		last []string
		end  mpit.EndReason
	}{
		{what: "one", only: true, made: []string{crew, session}, last: none, end: mpit.EndFinalize},
		{
			what: "several", only: true, made: []string{crew, session, session, session}, last: none,
			end:  mpit.EndFinalize,
			then: map[string][]string{"left": {session}},
		},
		{what: "threads", only: true, made: []string{crew, session}, last: none, end: mpit.EndFinalize},
		{what: "exit", only: true, made: []string{crew, session}, last: []string{crew, session}, end: mpit.EndExit},
		{
			what: "before", only: true, made: []string{crew, session}, last: world, end: mpit.EndFinalize,
			then: map[string][]string{"joined": append(slices.Clone(world), crew, session), "left": world},
		},
		{what: "within", made: append(slices.Clone(world), crew, session), last: world, end: mpit.EndFinalize},
		// MPICH's MPI_Finalize does nothing while a session lives.
		{what: "outlives", made: append(slices.Clone(world), crew, session), last: world, end: mpit.EndFinalize},
	}
	mpi := harness.MPICH(t)
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			var bare harness.Result
			if c.end == mpit.EndFinalize {
				bare = suite.Run(t, harness.Job{MPI: mpi, Program: "sessions.c", Args: []string{"-", c.what},
					Bare: true}).Wait(t)
				if bare.Status != 0 {
					t.Skipf("MPICH %s ends this program without the agent, too", mpi.Version)
				}
			}
			ranks := listen(t)
			run := suite.Run(t, harness.Job{MPI: mpi, Program: "sessions.c", Args: []string{harness.HoldDir, c.what},
				Socket: ranks.socket})
			run.AtHold(t, "made")
			hello, _ := ranks.await(t, 1, "what the program has made", alive(sorted(c.made)))
			assert.Equal(t, c.only, hello.SessionsOnly)
			assert.Equal(t, c.only, hello.ThreadLevel == -1, "only MPI_Init has one")
			assert.Equal(t, []int{1, 2}, []int{hello.Rank, hello.Size})
			run.Release(t, "made")
			for _, hold := range []string{"joined", "left"} {
				want, ok := c.then[hold]
				if !ok {
					continue
				}
				run.AtHold(t, hold)
				ranks.await(t, 1, "what there is at "+hold, alive(sorted(want)))
				run.Release(t, hold)
			}

			result := run.Wait(t)
			if c.end == mpit.EndFinalize { // what a launcher says of a rank that is gone depends on who is first
				assert.Equal(t, bare, result)
				assert.Equal(t, "sessions: sum 2\n", result.Stdout)
			}
			hello, last := ranks.last(t, 1)
			assert.Equal(t, c.end, last.End)
			assert.ElementsMatch(t, c.last, inventory(last))
			// MPI_Init has been called since: a connection of the last sample's own says so, the one that stood said
			// HELLO before.
			assert.Equal(t, c.only && (c.what != "before" || !hello.Final), hello.SessionsOnly)
		})
	}
}

// On the page such a rank looks like any other.
func TestSessionsOnThePage(t *testing.T) {
	t.Parallel()
	exporter := suite.Exporter(t)
	run := suite.Run(t, harness.Job{
		MPI: harness.MPICH(t), Program: "sessions.c", Args: []string{harness.HoldDir, "one"}, Socket: exporter.Socket,
		Exec: []string{"--calls=peers"}, // there is no MPI_COMM_WORLD by whose ranks it could count
	})
	run.AtHold(t, "made")
	exporter.Await(t, "the ranks and their communicator", all(up(run), objects(run, "comm", "crew", 1),
		expect(callUncounted, run.Labels(0), 0), absent(peerMessages, nil)))
	run.Finish(t, "made")
	exporter.Await(t, "a regular end", all(ended(run, "finalize"), healthy))
}

func sorted(list []string) []string {
	return slices.Sorted(slices.Values(list))
}
