package job

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// What is said of ranks that are held up, and whom it names: nobody but who is proved to be waited for, or probably.
func TestWhoHoldsUpWhom(t *testing.T) {
	barrier := func(comm string, number uint64) *api.CallUnderWay { return collective("MPI_Barrier", comm, number) }
	rooted := func(function string, number uint64, root int) *api.CallUnderWay {
		c := collective(function, "solver", number)
		c.Root = &root
		return c
	}
	after := func(c *api.CallUnderWay, seconds float64) *api.CallUnderWay {
		c.Seconds = seconds
		return c
	}
	reads := rankIn(3, nil).member("solver", 4, 6)
	reads.CPU, reads.Threads[0].Moved = &api.CPU{In: "read of fd 3 (a pipe)"}, 40
	onGPU := rankIn(3, nil).member("solver", 4, 6).kernel(3, 0)
	onGPU.CPU.GPU, onGPU.CPU.In = true, "poll"
	away := rankIn(3, nil).member("solver", 4, 6)
	away.Threads[0].Moved = 41
	silent := rankIn(3, nil).member("solver", 4, 6)
	silent.State, silent.Time = "late", api.StateSeconds{api.Poll: 100}
	served := rankIn(3, nil, after(message("MPI_Recv", 3), 90)).member("solver", 4, 6)
	served.Threads[0].Moved = 41
	three := func(other Rank) []Rank {
		all := []Rank{other}
		for i := range 3 {
			all = append(all, rankIn(i, collective("MPI_Allreduce", "solver", 7)).member("solver", 4, 7))
		}
		return all
	}
	// Allreduces on empty have moved nothing before, those on solver have.
	moved := []Call{{Called: Called{"MPI_Allreduce", "comm", "solver"}, Calls: 6, Bytes: map[string]float64{"sent": 48}},
		{Called: Called{"MPI_Allreduce", "comm", "empty"}, Calls: 6}}
	threaded := rankIn(0, barrier("halo", 42)).member("halo", 2, 42).member("other", 2, 8)
	threaded.ThreadLevel = "multiple"
	unseen := three(silent)
	for i := range unseen {
		unseen[i].Comms = slices.Clone(unseen[i].Comms)
		unseen[i].Comms[0].Size = 5
	}
	unknown := func(seconds float64) Rank {
		return rankIn(3, &api.CallUnderWay{Function: "MPI_Wait", Seconds: seconds}).member("solver", 4, 6)
	}
	stopped := three(unknown(42))
	stopped[3] = silent
	stopped[3].Rank = 2
	polls, moves, unmeasured := rankIn(3, nil), rankIn(3, nil), rankIn(3, nil)
	polls.Time, moves.Time = api.StateSeconds{api.Outside: 2, api.Poll: 98}, api.StateSeconds{api.Outside: 40, api.Wait: 60}
	unmeasured.Time = api.StateSeconds{}
	paused := unmeasured
	paused.Threads, paused.CPU = []api.Thread{{Main: true, Moved: 41}}, &api.CPU{Paused: 40}
	onFile := func(function string) Rank {
		return rankIn(3, &api.CallUnderWay{Function: function, Kind: "file", Object: "plate", Seconds: 42}).member("solver", 4, 6)
	}
	writes, wasPaused := onFile("MPI_File_write_at"), moves.member("solver", 4, 6)
	writes.Time = moves.Time
	wasPaused.Threads, wasPaused.CPU = []api.Thread{{Main: true, Moved: 41}}, &api.CPU{Paused: 1}
	beside := polls.member("solver", 4, 6)
	beside.Threads = []api.Thread{{Main: true, Moved: 0.1}, {Moved: 500}}
	serves := moves.member("solver", 4, 6)
	serves.Threads = []api.Thread{{Main: true, Moved: 500}, {Call: after(message("MPI_Recv", 3), 0.1)}}
	connects := rankIn(3, collective("MPI_Comm_accept", "self", 0)).member("solver", 4, 6)
	merges := rankIn(3, message("MPI_Recv", 3, 0)).member("solver", 4, 6)
	merges.Threads[0].Call.Comm, merges.Threads[0].Call.Peers = "", nil
	shift := func(rank, from, of int) Rank {
		return rankIn(rank, message("MPI_Sendrecv", 7, from)).member("halo", of, 3)
	}
	shiftOn := func(comm string, rank int) Rank {
		r := rankIn(rank, message("MPI_Sendrecv", 7, 3)).member("halo", 4, 3).member(comm, 4, 1)
		r.Threads[0].Call.Comm, r.Threads[0].Call.Object = comm, comm
		return r
	}
	receives := rankIn(0, message("MPI_Recv", 9, 1)).member("halo", 3, 3)
	receives.Threads[0].Call.Comm = "pair"
	four := func(r Rank) Rank { return r.member("halo", 4, 3) }
	ring := []Rank{shift(0, 3, 4), shift(1, 0, 4), shift(2, 1, 4), shift(3, 2, 4)}
	workers := []Rank{shift(0, 2, 4), shift(1, 0, 4), shift(2, 1, 4)}
	within, within2, just := shift(3, 2, 4), shift(2, 1, 3), shift(2, 1, 4)
	within.State, within2.State = "late", "late"
	just.Threads[0].Call.Seconds = 0.5
	circle := func(rank int, in string, number uint64, other string, begun uint64) Rank {
		r := rankIn(rank, barrier(in, number)).member(in, 3, number)
		if other != "" {
			r = r.member(other, 3, begun)
		}
		return r
	}
	for name, c := range map[string]struct {
		ranks []Rank
		state string
		text  string
		named []int
	}{
		"one that waits for who knows whom, and another doesn't answer": {stopped, "", "", nil},
		"one that has just begun to wait for who knows whom, and all others wait for it": {three(unknown(3)), Waits,
			"ranks 0-2 have waited 42s in MPI_Allreduce on solver, probably for rank 3 on node1, which is in MPI_Wait", []int{3}},
		"one that waits for who knows whom, and another one isn't in what the others are in": {append(three(unknown(42)),
			rankIn(4, nil)), "", "", nil},
		"one that has just begun to wait for another one": {append(three(rankIn(3, after(message("MPI_Recv", 7, 4),
			3)).member("solver", 4, 6)), rankIn(4, nil)), "", "", nil},
		"one that polls":                       {three(polls.member("solver", 4, 6)), "", "", nil},
		"one that makes calls all the time":    {three(moves.member("solver", 4, 6)), "", "", nil},
		"one that isn't measured":              {three(unmeasured.member("solver", 4, 6)), "", "", nil},
		"one that has switched measuring off":  {three(paused.member("solver", 4, 6)), "", "", nil},
		"one that writes with others":          {three(onFile("MPI_File_write_at_all")), "", "", nil},
		"one that polls beside an idle thread": {three(beside), "", "", nil},
		"one that had switched measuring off for a second": {three(wasPaused), Waits, "ranks 0-2 have waited 42s in " +
			"MPI_Allreduce on solver, for rank 3 on node1, which has made no MPI call for 41s", []int{3}},
		"one that writes, and often waits": {three(writes), Waits, "ranks 0-2 have waited 42s in MPI_Allreduce on solver, " +
			"for rank 3 on node1, which is in MPI_File_write_at on plate", []int{3}},
		"one that serves others beside an idle thread": {three(serves), "", "", nil},
		"one in a connection":                          {three(connects), "", "", nil},
		"one in a message of another world":            {three(merges), "", "", nil},
		"one that writes": {three(onFile("MPI_File_write_at")), Waits, "ranks 0-2 have waited 42s in MPI_Allreduce on " +
			"solver, for rank 3 on node1, which is in MPI_File_write_at on plate", []int{3}},
		"a shift of large messages": {ring, "", "", nil},
		"a receive of what a shift may send": {[]Rank{rankIn(0, message("MPI_Recv", 9, 1)).member("halo", 3, 3),
			shift(1, 2, 3), shift(2, 1, 3)}, "", "", nil},
		"a shift that one isn't in": {append(slices.Clone(ring[:3]), four(rankIn(3, nil))), Waits, "ranks 0-2 have waited " +
			"1m10s in MPI_Sendrecv on halo, probably for rank 3 on node1, which is not blocked in MPI", []int{3}},
		"a shift that one was stopped in": {append(slices.Clone(ring[:3]), within), Waits, "ranks 0-2 have waited 1m10s in " +
			"MPI_Sendrecv on halo, probably for rank 3 on node1, which does not answer, as if it were stopped", []int{3}},
		"a shift of workers, and a master that computes": {append(workers, four(rankIn(3, nil))), "", "", nil},
		"a shift of workers, and a master in a call for who knows whom": {append(workers, four(rankIn(3, requests()))), "",
			"", nil},
		"a shift that others have just begun": {append(slices.Clone(ring[:2]), just, four(rankIn(3, nil))), "", "", nil},
		"a receive from one stopped in a shift": {[]Rank{rankIn(0, message("MPI_Recv", 9, 2)).member("halo", 3, 3),
			rankIn(1, message("MPI_Recv", 9, 2)).member("halo", 3, 3), within2}, Waits, "rank 0 has waited 1m10s in MPI_Recv " +
			"on halo, for rank 2 on node1, which does not answer, as if it were stopped; rank 1 waits behind it", []int{2}},
		"a shift that two aren't in": {append(slices.Clone(ring[:2]), four(rankIn(2, nil)), four(rankIn(3, nil))), "", "",
			nil},
		"a shift of ranks some of which aren't seen": {append(slices.Clone(ring[:2]), four(rankIn(3, nil))), "", "", nil},
		"an exchange of two": {[]Rank{shift(0, 1, 2), rankIn(1, nil).member("halo", 2, 3)}, Waits, "rank 0 has waited " +
			"1m10s in MPI_Sendrecv on halo, probably for rank 1 on node1, which is not blocked in MPI", []int{1}},
		"a message that was never sent, or is waited for too early": {three(rankIn(3, message("MPI_Recv", 7, 0)).member(
			"solver", 4, 6)), Deadlock, "probably: rank 3 waits in MPI_Recv on halo for rank 0 (tag 7), ranks 0-2 in " +
			"MPI_Allreduce on solver for rank 3, for 42s", nil},
		"an exchange on who knows what communicator": {[]Rank{rankIn(0, message("MPI_Sendrecv", 7, 1)), rankIn(1, nil)}, "",
			"", nil},
		"others wait for one in an exchange": {three(rankIn(3, message("MPI_Sendrecv_replace", 7, 0)).member("solver", 4,
			6).member("halo", 4, 3)), "", "", nil},
		"exchanges on two communicators": {[]Rank{ring[0], ring[1].member("rows", 4, 1), shiftOn("rows", 2), four(rankIn(3,
			nil))}, "", "", nil},
		"a send to one in an exchange with another one": {[]Rank{rankIn(0, message("MPI_Send", 9, 1)).member("halo", 3, 3),
			shift(1, 0, 3), shift(2, 1, 3)}, Deadlock, "probably: rank 0 waits in MPI_Send on halo for rank 1 (tag 9), ranks " +
			"1,2 in MPI_Sendrecv on halo for rank 0 (tag 7), for 1m10s", nil},
		"a receive from one in an exchange on another communicator": {[]Rank{receives, shift(1, 0, 3), shift(2, 1, 3)},
			Deadlock, "probably: rank 0 waits in MPI_Recv on halo for rank 1 (tag 9), ranks 1,2 in MPI_Sendrecv on halo for " +
				"rank 0 (tag 7), for 1m10s", nil},
		"a circle of barriers": {[]Rank{circle(0, "a", 5, "c", 8), circle(1, "a", 5, "", 0), circle(2, "b", 7, "a", 4),
			circle(3, "b", 7, "", 0), circle(4, "c", 9, "b", 6), circle(5, "c", 9, "", 0)}, Deadlock,
			"ranks 0,1 wait in MPI_Barrier on a for rank 2, ranks 2,3 in MPI_Barrier on b for rank 4, ranks 4,5 in " +
				"MPI_Barrier on c for rank 0, for 42s", nil},
		"one that doesn't answer, of some that aren't seen: it may have come": {unseen, "", "", nil},
		"collectives without data let ranks go": {[]Rank{rankIn(0, collective("MPI_Allreduce", "empty", 7)).member("empty",
			2, 7), rankIn(1, nil).member("empty", 2, 6)}, Waits, "rank 0 has waited 42s in MPI_Allreduce on empty, probably " +
			"for rank 1 on node1, which is not blocked in MPI", []int{1}},
		"another thread may come yet": {[]Rank{threaded, rankIn(1, barrier("other", 9)).member("halo", 2, 41).member(
			"other", 2, 9)}, Deadlock, "probably: rank 0 waits in MPI_Barrier on halo for rank 1, rank 1 in MPI_Barrier on " +
			"other for rank 0, for 42s", nil},
		"another function": {three(rankIn(3, rooted("MPI_Bcast", 7, 0)).member("solver", 4, 7)), WrongProgram,
			"rank 3 is in MPI_Bcast with root 0, ranks 0-2 in MPI_Allreduce, as collective 7 on solver", []int{3}},
		"another root": {[]Rank{rankIn(0, rooted("MPI_Bcast", 7, 0)).member("solver", 2, 7),
			rankIn(1, rooted("MPI_Bcast", 7, 1)).member("solver", 2, 7)}, WrongProgram,
			"rank 0 is in MPI_Bcast with root 0, rank 1 in MPI_Bcast with root 1, as collective 7 on solver", nil},
		"another function, a moment ago": {three(rankIn(3, after(rooted("MPI_Bcast", 7, 0), 0.1)).member("solver", 4, 7)),
			"", "", nil},
		"another function's request": {three(rankIn(3, request("MPI_Iallreduce", "solver", 7)).member("solver", 4, 7)),
			WrongProgram, "rank 3 is in MPI_Iallreduce, ranks 0-2 in MPI_Allreduce, as collective 7 on solver", []int{3}},
		"the same request, in another way": {[]Rank{rankIn(0, request("MPI_Ibcast", "solver", 7)).member("solver", 2, 7),
			rankIn(1, after(&api.CallUnderWay{Function: "MPI_Waitall", Of: "MPI_Ibcast", Kind: "comm", Object: "solver",
				Comm: "solver", Number: 7}, 42)).member("solver", 2, 7)}, "", "", nil},
		"the same request, which one is still making": {[]Rank{rankIn(0, request("MPI_Ibcast", "solver", 7)).member("solver", 2, 7),
			rankIn(1, rooted("MPI_Ibcast", 7, 0)).member("solver", 2, 7)}, "", "", nil},
		"a request of one that computes": {[]Rank{rankIn(0, request("MPI_Ibarrier", "halo", 5)).member("halo", 2, 5),
			rankIn(1, nil).member("halo", 2, 4)}, Waits, "rank 0 has waited 42s in MPI_Wait of MPI_Ibarrier on halo, " +
			"probably for rank 1 on node1, which is not blocked in MPI", []int{1}},
		"a barrier skipped": {[]Rank{rankIn(0, barrier("halo", 42)).member("halo", 3, 42).member("other", 3, 8),
			rankIn(1, barrier("other", 9)).member("halo", 3, 41).member("other", 3, 9),
			rankIn(2, barrier("halo", 42)).member("halo", 3, 42).member("other", 3, 8)}, Deadlock,
			"rank 1 is one collective behind on halo (41 of 42): it is in MPI_Barrier on other; ranks 0,2 wait for it in " +
				"MPI_Barrier on halo, for 42s", []int{1}},
		"a barrier skipped, and most aren't seen: either may be to blame": {[]Rank{
			rankIn(1, barrier("other", 9)).member("halo", 6, 41).member("other", 6, 9),
			rankIn(2, barrier("halo", 42)).member("halo", 6, 42).member("other", 6, 8),
			rankIn(3, barrier("halo", 42)).member("halo", 6, 42).member("other", 6, 8)}, Deadlock,
			"rank 1 waits in MPI_Barrier on other for ranks 2,3, ranks 2,3 in MPI_Barrier on halo for rank 1, for 42s", nil},
		"one that waits for one that isn't seen": {three(rankIn(3, message("MPI_Recv", 7, 4)).member("solver", 4, 6)), "",
			"", nil},
		"one in a collective of which others aren't seen": {three(rankIn(3, barrier("rows", 5)).member("solver", 4, 6).
			member("rows", 2, 5)), "", "", nil},
		"a cycle of receives": {[]Rank{rankIn(1, message("MPI_Recv", 7, 2)), rankIn(2, message("MPI_Recv", 9, 1)),
			rankIn(0, nil)}, Deadlock, "probably: rank 1 waits in MPI_Recv on halo for rank 2 (tag 7), rank 2 in MPI_Recv " +
			"on halo for rank 1 (tag 9), for 1m10s", nil},
		"a cycle of receives, and others wait for it": {[]Rank{rankIn(0, barrier("all", 5)).member("all", 3, 5),
			rankIn(1, message("MPI_Recv", 7, 2)).member("all", 3, 4),
			rankIn(2, message("MPI_Recv", 9, 1)).member("all", 3, 4)}, Deadlock, "probably: rank 1 waits in MPI_Recv on " +
			"halo for rank 2 (tag 7), rank 2 in MPI_Recv on halo for rank 1 (tag 9), for 1m10s", nil},
		"a cycle of receives, not for a minute": {[]Rank{rankIn(1, after(message("MPI_Recv", 7, 2), 40)),
			rankIn(2, message("MPI_Recv", 9, 1))}, "", "", nil},
		"a receive from one that has ended": {[]Rank{rankIn(0, message("MPI_Recv", 7, 1)), ended(1)}, Deadlock,
			"probably: rank 0 waits in MPI_Recv on halo for rank 1 (tag 7), which has ended, for 1m10s", nil},
		"a barrier without one that has ended": {[]Rank{rankIn(0, barrier("halo", 5)).member("halo", 2, 5),
			ended(1).member("halo", 2, 4)}, Deadlock, "rank 1 is one collective behind on halo (4 of 5): it has ended; " +
			"rank 0 waits for it in MPI_Barrier on halo, for 42s", []int{1}},
		"a service that receives from anybody, and a barrier that isn't": {[]Rank{
			rankIn(0, barrier("a", 5), message("MPI_Recv", 3)).member("a", 2, 5).member("b", 2, 7).member("halo", 2, 1),
			rankIn(1, barrier("b", 8), message("MPI_Recv", 3)).member("a", 2, 4).member("b", 2, 8).member("halo", 2, 1)},
			Deadlock, "probably: rank 0 waits in MPI_Barrier on a for rank 1, ranks 0,1 in MPI_Recv on halo for any rank " +
				"(tag 3), rank 1 in MPI_Barrier on b for rank 0, for 42s", nil},
		"one that computes": {three(rankIn(3, nil).member("solver", 4, 6)), Waits, "ranks 0-2 have waited 42s in " +
			"MPI_Allreduce on solver, for rank 3 on node1, which is not blocked in MPI", []int{3}},
		"one that has been away": {three(away), Waits, "ranks 0-2 have waited 42s in MPI_Allreduce on solver, for rank 3 " +
			"on node1, which has made no MPI call for 41s", []int{3}},
		"one that reads": {three(reads), Waits, "ranks 0-2 have waited 42s in MPI_Allreduce on solver, for rank 3 on " +
			"node1, which is in read of fd 3 (a pipe)", []int{3}},
		"one that has a GPU": {three(onGPU), Waits, "ranks 0-2 have waited 42s in MPI_Allreduce on solver, for rank 3 on " +
			"node1, which is off the CPU, perhaps on its GPU", []int{3}},
		"one that doesn't answer": {three(silent), Waits, "ranks 0-2 have waited 42s in MPI_Allreduce on solver, for " +
			"rank 3 on node1, which does not answer, as if it were stopped", []int{3}},
		"one that waits for who knows whom": {three(rankIn(3, &api.CallUnderWay{Function: "MPI_Wait", Seconds: 42}).member(
			"solver", 4, 6)), Waits, "ranks 0-2 have waited 42s in MPI_Allreduce on solver, probably for rank 3 on node1, " +
			"which is in MPI_Wait", []int{3}},
		"one that waits for another one": {append(three(rankIn(3, message("MPI_Recv", 7, 4)).member("solver", 4, 6)),
			rankIn(4, nil)), Waits, "rank 3 has waited 1m10s in MPI_Recv on halo, for rank 4 on node1, which is not blocked " +
			"in MPI; ranks 0-2 wait behind it", []int{4}},
		"one that isn't in the communicator": {append(three(rankIn(3, collective("MPI_Allreduce", "solver", 7)).member(
			"solver", 4, 7)), rankIn(4, nil)), "", "", nil},
		"one of six in a message": {[]Rank{rankIn(0, message("MPI_Recv", 7, 1)), rankIn(1, nil), rankIn(2, nil)}, "", "",
			nil},
		"half of them": {[]Rank{rankIn(0, barrier("a", 5)).member("a", 4, 5), rankIn(1, barrier("a", 5)).member("a", 4, 5),
			rankIn(2, nil).member("a", 4, 4), rankIn(3, nil).member("a", 4, 4)}, "", "", nil},
		"one in MPI_Finalize": {[]Rank{rankIn(0, after(&api.CallUnderWay{Function: "MPI_Finalize"}, 30)), rankIn(1, nil)},
			Waits, "rank 0 has waited 30s in MPI_Finalize, probably for rank 1 on node1, which is not blocked in MPI",
			[]int{1}},
		"another binding of a function": {[]Rank{rankIn(0, rooted("MPI_Bcast", 7, 0)).member("solver", 2, 7),
			rankIn(1, rooted("MPI_Bcast_c", 7, 0)).member("solver", 2, 7)}, "", "", nil},
		"a root that isn't known": {[]Rank{rankIn(0, rooted("MPI_Bcast", 7, 0)).member("solver", 2, 7),
			rankIn(1, collective("MPI_Bcast", "solver", 7)).member("solver", 2, 7)}, "", "", nil},
		"a farm's last task: the master waits for anybody": {[]Rank{
			rankIn(0, message("MPI_Recv", 1)).member("halo", 4, 0), rankIn(1, message("MPI_Recv", 2, 0)).member("halo", 4, 0),
			rankIn(2, message("MPI_Recv", 2, 0)).member("halo", 4, 0), rankIn(3, nil).member("halo", 4, 0)}, "", "", nil},
		"one that computes beside a service": {three(served), Waits, "ranks 0-2 have waited 42s in MPI_Allreduce on " +
			"solver, for rank 3 on node1, which has made no MPI call for 41s", []int{3}},
		"numbers that aren't known": {[]Rank{rankIn(0, barrier("a", 0)), rankIn(1, nil)}, "", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph(pointers(c.ranks), moved, (*Rank).isBlocked)
			f, _ := g.find()
			var named []int
			for _, i := range f.ranks {
				named = append(named, c.ranks[i].Rank)
			}
			assert.Equal(t, c.state, f.state)
			assert.Equal(t, c.text, f.text)
			assert.Equal(t, c.named, named)
		})
	}
}
