package e2e

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// Whom a call under way waits for, of a program that knows it: by ranks of MPI_COMM_WORLD, where peers are counted
// also on other communicators.
func TestWhomCallsWaitFor(t *testing.T) {
	t.Parallel()
	ints := func(of ...int) []int { return of }
	steps := []struct {
		calls []api.CallUnderWay // of rank 0's threads
		turn  bool               // on a communicator whose ranks only --calls=peers knows
		// It waits for requests, which only --calls=peers knows.
		requests bool
		polls    bool // call after call: mostly it is in none
	}{
		{calls: []api.CallUnderWay{{Function: "MPI_Recv", Object: "MPI_COMM_WORLD", Peers: ints(1), Tag: new(7)}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Recv", Object: "turned", Peers: ints(2)}}, turn: true},
		{calls: []api.CallUnderWay{{Function: "MPI_Recv", Object: "turned", AnySource: true, Tag: new(0)}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Probe", Object: "MPI_COMM_WORLD", Peers: ints(2), Tag: new(10)}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Ssend", Object: "MPI_COMM_WORLD", Peers: ints(1), Tag: new(11)}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Sendrecv", Object: "MPI_COMM_WORLD", Peers: ints(2), Tag: new(13)}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Bcast", Object: "turned", Root: new(1)}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Allreduce", Object: "turned"}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Recv", Object: "MPI_COMM_WORLD", Peers: ints(1), Tag: new(22)},
			{Function: "MPI_Recv", Object: "MPI_COMM_WORLD", Peers: ints(1), Tag: new(21)}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Wait", Peers: ints(1), Tag: new(31)}}, requests: true},
		{calls: []api.CallUnderWay{{Function: "MPI_Waitall", Peers: ints(1, 2)}}, requests: true},
		{calls: []api.CallUnderWay{{Function: "MPI_Waitany", Peers: ints(2), Tag: new(34)}}, requests: true},
		{calls: []api.CallUnderWay{{Function: "MPI_Wait", AnySource: true, Tag: new(35)}}, requests: true},
		{calls: []api.CallUnderWay{{Function: "MPI_Wait", Peers: ints(1), Tag: new(36)}}, requests: true},
		{calls: []api.CallUnderWay{{Function: "MPI_Waitall"}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Mprobe", Object: "MPI_COMM_WORLD", Peers: ints(2), Tag: new(41)}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Waitsome", Peers: ints(1, 2)}}, requests: true},
		{calls: []api.CallUnderWay{{Function: "MPI_Waitall", Peers: ints(1, 2)}}, requests: true},
		{calls: []api.CallUnderWay{{Function: "MPI_Wait", Peers: ints(1), Tag: new(46)}}, requests: true},
		{calls: []api.CallUnderWay{{Function: "MPI_Wait", Peers: ints(2), Tag: new(47)}}, requests: true},
		{calls: []api.CallUnderWay{{Function: "MPI_Test", Peers: ints(1), Tag: new(48)}}, requests: true, polls: true},
		{calls: []api.CallUnderWay{{Function: "MPI_Wait"},
			{Function: "MPI_Recv", Object: "MPI_COMM_WORLD", Peers: ints(1), Tag: new(53)}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Reduce", Object: "turned", Root: new(2)}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Gather", Object: "MPI_COMM_WORLD", Root: new(0)}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Barrier", Object: "turned"}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Comm_dup", Object: "MPI_COMM_WORLD"}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Allreduce", Object: "copy"}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Comm_split", Object: "copy"}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Wait", Of: "MPI_Ibarrier", Object: "copy", Number: 3}}, requests: true},
		{calls: []api.CallUnderWay{{Function: "MPI_Waitall"}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Barrier", Object: "copy"},
			{Function: "MPI_Recv", Object: "MPI_COMM_WORLD", Peers: ints(1), Tag: new(49)}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Win_fence", Object: "box"}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Win_wait", Object: "box"}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Win_lock", Object: "box", Peers: ints(2)}}, turn: true},
		{calls: []api.CallUnderWay{{Function: "MPI_Win_free"}}},
		{calls: []api.CallUnderWay{{Function: "MPI_File_open", Object: "MPI_COMM_WORLD"}}},
		{calls: []api.CallUnderWay{{Function: "MPI_File_write_all", Object: "whom.data"}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Recv", Object: "bridge", Peers: ints(2), Tag: new(51)}}, turn: true},
		{calls: []api.CallUnderWay{{Function: "MPI_Bcast", Object: "bridge", Root: new(1)}}},
		{calls: []api.CallUnderWay{{Function: "MPI_Waitall"}}},
	}
	for _, mpi := range harness.Both(t) {
		for _, calls := range []string{"--calls", "--calls=peers"} {
			t.Run(mpi.Name+" "+calls, func(t *testing.T) {
				exporter := suite.Exporter(t)
				run := suite.Run(t, harness.Job{MPI: mpi, Program: "whom.c", Args: []string{harness.HoldDir}, Ranks: 3,
					Socket: exporter.Socket, Exec: []string{calls}})
				for i, s := range steps {
					run.AtHold(t, strconv.Itoa(i), 1, 2)
					want := s.calls
					if s.turn && calls == "--calls" {
						want = []api.CallUnderWay{s.calls[0]}
						want[0].Peers = nil
					}
					if s.requests && calls == "--calls" {
						want = []api.CallUnderWay{{Function: want[0].Function}}
					}
					exporter.Await(t, "step "+strconv.Itoa(i), func(*harness.Scrape) error {
						if got := threadCallsOf(t, exporter, 0); !reflect.DeepEqual(want, got) && (!s.polls || len(got) > 0) {
							return fmt.Errorf("rank 0 is in %+v, not in %+v", got, want)
						}
						return nil
					})
					run.Release(t, strconv.Itoa(i))
				}
				run.Finish(t)
			})
		}
	}
}

// threadCallsOf are the calls of a rank's threads, without what no test knows; the initialising thread's first.
func threadCallsOf(t *testing.T, exporter *harness.Exporter, rank int) (calls []api.CallUnderWay) {
	t.Helper()
	var list api.RankList
	exporter.GetJSON(t, "/api/v1/ranks", &list)
	for _, r := range list.Ranks {
		if r.Rank != rank || r.Calls == nil {
			continue
		}
		for _, thread := range r.Calls.Threads {
			if c := thread.Call; c != nil {
				known := api.CallUnderWay{Function: c.Function, Of: c.Of, Object: filepath.Base(c.Object), Root: c.Root,
					Peers: c.Peers, All: c.All, AnySource: c.AnySource, Tag: c.Tag}
				if c.Object == "" {
					known.Object = ""
				}
				if c.Of != "" {
					known.Number = c.Number
				}
				calls = append(calls, known)
			}
		}
	}
	return calls
}
