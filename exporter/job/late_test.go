package job

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job/jobtest"
)

// calls are those of one function on a communicator: so many of each rank that has spent seconds in them (others have
// none).
func calls(function, comm string, each float64, seconds map[int]float64) Call {
	c := Call{Called: Called{Function: function, Object: comm}, Calls: each * float64(len(seconds)),
		ranks: map[who]float64{}}
	if comm != "" {
		c.Kind = "comm"
	}
	for rank, spent := range seconds {
		c.ranks[who{rank: rank}] = spent
		c.Seconds += spent
	}
	return c
}

// kernel is the rank with what the kernel says of it: seconds of 100 on a core and ready without one.
func (r Rank) kernel(core, queue float64) Rank {
	r.CPU = &api.CPU{Thread: &core, Queue: &queue}
	return r
}

// process is the rank whose process has been on a core for so many seconds, in all of its threads.
func (r Rank) process(seconds float64) Rank {
	cpu := *cmp.Or(r.CPU, &api.CPU{})
	cpu.Seconds, cpu.Process, r.CPU = &seconds, &seconds, &cpu
	return r
}

// collectives is a rank that has spent so many of 100 s in collectives.
func collectives(rank int, seconds float64) Rank { return of(rank, "a", 0, 0, seconds, 0) }

// Where time goes, and which rank is named for it. Wrong names cost more than none.
func TestWhereTimeGoes(t *testing.T) {
	polling := func(seconds float64) Rank {
		return Rank{Node: "a", State: "up", Time: api.StateSeconds{api.Outside: 100 - seconds, api.Poll: seconds}}
	}
	polls := polling(98).kernel(99, 0)
	dozes, tests := of(0, "a", 0, 0, 0, 0).kernel(15, 1), of(0, "a", 0, 0, 0, 0).kernel(98, 1)
	dozes.Time[api.Poll], tests.Time[api.Poll] = 0.2, 0.2
	youth := collectives(0, 0).kernel(2, 0)
	started := collectives(1, 0).kernel(3, 0)
	started.CPU.Queue = nil
	youth.young, youth.CPU.Seconds = true, new(25.0)
	reads, onGPU := collectives(1, 0).kernel(3, 0), collectives(1, 0).kernel(3, 0)
	reads.CPU.In, onGPU.CPU.GPU = "read of fd 3 (a pipe)", true
	// The root waits or sends for so many seconds, and the others in a collective, and perhaps elsewhere.
	ocean := func(wait, send, in float64, beside ...float64) (ranks []Rank) {
		for i := range 4 {
			if ranks = append(ranks, of(i, "a", 0, append(beside, 0)[0], in, 0).member("ocean", 4, 10)); i == 0 {
				ranks[0].Time = of(0, "a", send, wait, 0, 0).Time
			}
		}
		return ranks
	}
	onCores := func(ranks []Rank) []Rank {
		for i := range ranks {
			ranks[i] = ranks[i].kernel(99, 0)
		}
		return ranks
	}
	bcast := []Call{calls("MPI_Bcast", "ocean", 1000, map[int]float64{0: 0, 1: 60, 2: 60, 3: 60})}
	paused := func(seconds float64, r Rank) Rank {
		r.CPU.Paused = seconds
		return r
	}
	starts := func(r Rank) Rank {
		r.young = true
		return r
	}
	const (
		others  = "ranks wait for messages, and what their other threads do isn't known"
		nothing = "100 % of the time ranks neither compute nor communicate"
	)
	lately := dozes.process(15)
	lately.CPU.Seconds = new(30.0)
	threads := collectives(1, 0)
	threads.CPU = &api.CPU{Seconds: new(400.0)}
	barrier := func(seconds map[int]float64) Call { return calls("MPI_Barrier", "halo", 1000, seconds) }
	receives := func(rank, from int) Rank {
		c := message("MPI_Recv", 7, from)
		c.Seconds = 4
		return rankIn(rank, c).member("halo", 4, 10).member("world", 4, 0)
	}
	two := barrier(map[int]float64{0: 80, 1: 0})
	for name, c := range map[string]struct {
		ranks []Rank
		calls []Call
		state string
		text  string
	}{
		"on the CPU": {[]Rank{collectives(0, 80).kernel(99, 0), collectives(1, 0).kernel(99, 0)}, []Call{two}, LateRanks,
			"60 % useful; 40 % of the time ranks wait in MPI_Barrier on halo for rank 1 on a, which is on the CPU for 99 " +
				"% of the time"},
		"in a system call": {[]Rank{collectives(0, 80).kernel(99, 0), reads}, []Call{two}, LateRanks, "60 % useful; 40 " +
			"% of " +
			"the time ranks wait in MPI_Barrier on halo for rank 1 on a, which is in read of fd 3 (a pipe)"},
		"asleep": {[]Rank{collectives(0, 80).kernel(99, 0), collectives(1, 0).kernel(3, 0)}, []Call{two}, LateRanks,
			"60 % useful; " +
				"40 % of the time ranks wait in MPI_Barrier on halo for rank 1 on a, which is off the CPU: it sleeps, or waits " +
				"for a device"},
		"off the CPU, for who knows what yet": {[]Rank{collectives(0, 80).kernel(99, 0), started}, []Call{two}, LateRanks,
			"60 % useful; 40 % of the time ranks wait in MPI_Barrier on halo for rank 1 on a, which is off the CPU"},
		"late for little, proved": {[]Rank{collectives(0, 24).kernel(99, 0).member("halo", 2, 10),
			collectives(1, 0).kernel(3, 0).member("halo", 2, 10)}, []Call{barrier(map[int]float64{0: 24, 1: 0})}, Healthy,
			"healthy: 88 % useful; 12 % of the time ranks wait in MPI_Barrier on halo for rank 1 on a, which is off the " +
				"CPU: it sleeps, or waits for a device"},
		"late for little, perhaps without a core": {[]Rank{collectives(0, 24).kernel(99, 0).member("halo", 2, 10),
			started.member("halo", 2, 10)}, []Call{barrier(map[int]float64{0: 24, 1: 0})}, Healthy, "healthy: 88 % useful"},
		"perhaps on a GPU": {[]Rank{collectives(0, 80).kernel(99, 0), onGPU}, []Call{two}, LateRanks, "60 % useful; 40 " +
			"% of " +
			"the time ranks wait in MPI_Barrier on halo for rank 1 on a, which is off the CPU, perhaps on its GPU"},
		"one without a core": {[]Rank{collectives(0, 80).kernel(99, 0), collectives(1, 0).kernel(25, 75)},
			[]Call{two}, LateRanks,
			"60 % useful; 40 % of the time ranks wait in MPI_Barrier on halo for rank 1 on a, which got a core for 25 % of " +
				"the time in which it could run"},
		"all without a core": {[]Rank{collectives(0, 80).kernel(25, 75), collectives(1, 0).kernel(25, 75)},
			[]Call{two}, NoCore,
			"2 ranks got a core for 25 % of the time in which they could run"},
		"on the CPU while nothing was measured, too": {[]Rank{collectives(0, 80).kernel(99, 0), paused(10,
			collectives(1, 0).kernel(5, 0))}, []Call{two}, LateRanks, "60 % useful; 40 % of the time ranks wait in " +
			"MPI_Barrier on halo for rank 1 on a, which is outside MPI for 100 % of the time"},
		"without a core while nothing was measured, too": {[]Rank{paused(10, collectives(0, 0).kernel(50, 50)), paused(10,
			collectives(1, 0).kernel(50, 50))}, nil, Healthy, "healthy: 100 % useful"},
		"without a core, and for a moment nothing was measured": {[]Rank{paused(9, collectives(0, 0).kernel(50, 50)),
			paused(9, collectives(1, 0).kernel(50, 50))}, nil, NoCore,
			"2 ranks got a core for 50 % of the time in which they could run"},
		"without a core before MPI_Init": {[]Rank{collectives(0, 0).kernel(61, 50), collectives(1, 0).kernel(61, 50)}, nil,
			Healthy, "healthy: 100 % useful"},
		"all its threads on the CPU": {[]Rank{collectives(0, 80).kernel(99, 0), threads}, []Call{two}, LateRanks,
			"60 % useful; 40 % of the time ranks wait in MPI_Barrier on halo for rank 1 on a, which is on the CPU for 100 " +
				"% of the time"},
		"off the CPU, but for other threads": {[]Rank{collectives(0, 80).kernel(99, 0), collectives(1, 0).kernel(3,
			0).process(13)}, []Call{two}, LateRanks, "60 % useful; 40 % of the time ranks wait in MPI_Barrier on halo for " +
			"rank 1 on a, which is off the CPU, but not its other threads"},
		"four that spin on two cores": {[]Rank{collectives(0, 80).kernel(51, 49), collectives(1, 80).kernel(49, 51),
			collectives(2, 80).kernel(60, 40), collectives(3, 0).kernel(50, 50)}, []Call{barrier(map[int]float64{0: 80,
			1: 80, 2: 80, 3: 0})}, NoCore, "4 ranks got a core for 52 % of the time in which they could run"},
		"four that spin, and one has a core": {[]Rank{collectives(0, 80).kernel(51, 49), collectives(1, 80).kernel(49, 51),
			collectives(2, 80).kernel(60, 40), collectives(3, 0).kernel(61, 39)}, []Call{barrier(map[int]float64{0: 80,
			1: 80, 2: 80, 3: 0})}, LateRanks, "40 % useful; 60 % of the time ranks wait in MPI_Barrier on halo probably for " +
			"rank 3 on a, which got a core for 61 % of the time in which it could run"},
		"those that wait share a core": {[]Rank{collectives(0, 80).kernel(60, 40), collectives(1, 80).kernel(60, 40),
			collectives(2, 0).kernel(3, 1)}, []Call{calls("MPI_Barrier", "halo", 10, map[int]float64{0: 80, 1: 80, 2: 0})},
			LateRanks, "47 % useful; 53 % of the time ranks wait in MPI_Barrier on halo probably for rank 2 on a, which " +
				"is off the CPU: it sleeps, or waits for a device"},
		"a replica, and another one": {[]Rank{collectives(0, 60).member("a", 2, 10), collectives(1, 0).member("a", 2, 10),
			collectives(2, 0).member("b", 2, 10), collectives(3, 0).member("b", 2, 10)}, []Call{
			calls("MPI_Allreduce", "a", 10, map[int]float64{0: 60, 1: 0}),
			calls("MPI_Allreduce", "b", 10, map[int]float64{2: 0, 3: 0})}, LateRanks,
			"ranks 0,1: 70 % useful; 30 % of the time ranks wait in MPI_Allreduce on a for rank 1 on a, which is outside " +
				"MPI for 100 % of the time"},
		"the slowest of a communicator isn't the slowest of all": {[]Rank{
			collectives(0, 30).member("row", 2, 10).member("col", 3, 10), collectives(1, 90).member("row", 2, 10),
			collectives(2, 90).member("col", 3, 10), collectives(3, 88).member("col", 3, 10)}, []Call{
			calls("MPI_Barrier", "row", 10, map[int]float64{0: 20, 1: 90}),
			calls("MPI_Barrier", "col", 10, map[int]float64{0: 10, 2: 90, 3: 88})}, LateRanks,
			"26 % useful; 40 % of the time ranks wait in MPI_Barrier on col for rank 0 on a, which is outside MPI for 70 " +
				"% of the time"},
		"a communicator of which not all is seen": {[]Rank{collectives(0, 80).member("halo", 3, 10),
			collectives(1, 0).member("halo", 3, 10)}, []Call{two}, LateRanks, "60 % useful; 40 % of the time ranks wait in " +
			"MPI_Barrier on halo probably for rank 1 on a, which is outside MPI for 100 % of the time"},
		"all that is seen waits": {[]Rank{collectives(0, 80).kernel(99, 0).member("halo", 3, 10),
			collectives(1, 80).kernel(99, 0).member("halo", 3, 10)}, []Call{barrier(map[int]float64{0: 80, 1: 80})}, Communication, "20 % useful; 80 % of the time is spent in " +
			"MPI, mostly in MPI_Barrier on halo, and none of the 2 ranks that are observed, of 3, is late"},
		"ranks that have nothing to do with one another": {[]Rank{of(0, "a", 0, 0, 0, 1).member("world", 3, 1),
			of(1, "a", 0, 0, 0, 50).member("world", 3, 1), of(2, "a", 0, 0, 0, 60).member("world", 3, 1)}, []Call{calls("MPI_File_write", "zero", 10, map[int]float64{0: 1}),
			calls("MPI_File_write", "one", 10, map[int]float64{1: 50}),
			calls("MPI_File_write", "two", 10, map[int]float64{2: 60})}, Communication,
			"rank 1: 50 % useful; 50 % of the time is spent in MPI, mostly in MPI_File_write on one"},
		"a rank that has not come yet is a part of the same": {[]Rank{collectives(0, 100).member("world", 2, 5),
			collectives(1, 0).member("world", 2, 4)}, []Call{calls("MPI_Barrier", "world", 1, map[int]float64{0: 100})},
			LateRanks, "50 % useful; 50 % of the time ranks wait in MPI_Barrier on world for rank 1 on a, which is " +
				"outside MPI for 100 % of the time"},
		"the root waits for a coupler": {ocean(60, 0, 60), bcast, Communication, "40 % useful; 60 % of the time is spent in " +
			"MPI, mostly in MPI_Bcast on ocean; 45 % of the time ranks wait in MPI_Bcast on ocean probably for rank 0 on a, " +
			"which comes last, and waits in MPI itself for 60 % of the time"},
		"the root waits for a coupler, as a barrier shows": {onCores(ocean(60, 0, 60)), []Call{calls("MPI_Barrier", "ocean", 1000,
			map[int]float64{0: 0, 1: 60, 2: 60, 3: 60})}, Communication, "40 % useful; 60 % of the time is spent in MPI, mostly in MPI_Barrier on " +
			"ocean; 45 % of the time ranks wait in MPI_Barrier on ocean for rank 0 on a, which comes last, and waits in MPI " +
			"itself for 60 % of the time"},
		"the root waits for a coupler for half of the time": {ocean(25, 0, 50), []Call{calls("MPI_Bcast", "ocean", 1000,
			map[int]float64{0: 0, 1: 50, 2: 50, 3: 50})}, Communication, "56 % useful; 44 % of the time is spent in MPI, " +
			"mostly in MPI_Bcast on ocean; 38 % of the time ranks wait in MPI_Bcast on ocean probably for rank 0 on a, which " +
			"comes last, and waits in MPI itself for 25 % of the time"},
		"the root waits for a coupler for less": {ocean(29, 0, 60), bcast, LateRanks, "48 % useful; 45 % of the time ranks " +
			"wait in MPI_Bcast on ocean probably for rank 0 on a, which is outside MPI for 71 % of the time"},
		"the root sends to a coupler": {ocean(0, 60, 60), bcast, LateRanks, "40 % useful; 45 % of the time ranks wait in " +
			"MPI_Bcast on ocean probably for rank 0 on a, which is outside MPI for 40 % of the time"},
		"all wait for messages, and the root less for the others": {ocean(30, 0, 60, 30), bcast, LateRanks, "25 % useful; " +
			"45 % of the time ranks wait in MPI_Bcast on ocean probably for rank 0 on a, which is outside MPI for 70 % of " +
			"the time"},
		"in threads that others are": {ocean(0, 0, 0), bcast, LateRanks, "100 % useful; 45 % of the time ranks wait in " +
			"MPI_Bcast on ocean probably for rank 0 on a, which is outside MPI for 100 % of the time"},
		"half of them": {[]Rank{collectives(0, 80), collectives(1, 80), collectives(2, 1), collectives(3, 0)}, []Call{
			barrier(map[int]float64{0: 80, 1: 80, 2: 1, 3: 0})}, Communication, "60 % useful; 40 % of the time is spent in " +
			"MPI, mostly in MPI_Barrier on halo, and no single rank is late"},
		"two that wait for each other, too short to be told, beside two of which one is late": {[]Rank{receives(0, 1),
			receives(1, 0), collectives(2, 99).member("rest", 2, 9).member("world", 4, 0), collectives(3, 40).member("rest", 2,
				9).member("world", 4, 0)}, []Call{calls("MPI_Barrier", "rest", 1000, map[int]float64{2: 99, 3: 40})},
			Communication, "63 % useful; 37 % of the time is spent in MPI, mostly in MPI_Barrier on rest; rank 0 waits in " +
				"MPI_Recv on halo for rank 1 (tag 7), rank 1 in MPI_Recv on halo for rank 0 (tag 7)"},
		"a farm, whose master waits": {[]Rank{of(0, "a", 0, 98, 0, 0), of(1, "a", 0, 1, 0, 0), of(2, "a", 0, 2, 0, 0)},
			[]Call{calls("MPI_Recv", "world", 10, map[int]float64{0: 98, 1: 1, 2: 2})}, Healthy, "healthy: 66 % useful"},
		"a slow master": {[]Rank{of(0, "a", 0, 1, 0, 0), of(1, "a", 0, 80, 0, 0), of(2, "a", 0, 80, 0, 0)}, []Call{
			calls("MPI_Recv", "world", 10, map[int]float64{0: 1, 1: 80, 2: 80}),
			calls("MPI_Barrier", "workers", 10, map[int]float64{1: 90, 2: 90})}, LateRanks, "46 % useful; 53 % of the time " +
			"ranks wait in MPI_Recv on world probably for rank 0 on a, which is outside MPI for 99 % of the time"},
		"another one each time": {[]Rank{collectives(0, 40).kernel(99, 0).member("halo", 2, 10),
			collectives(1, 41).kernel(99, 0).member("halo", 2, 10)}, []Call{
			barrier(map[int]float64{0: 40, 1: 41})}, LateInTurn,
			"60 % useful; 40 % of the time is waiting in MPI_Barrier on halo, for a different rank each time"},
		"another one each time, while something was measured": {[]Rank{
			paused(10, collectives(0, 40).kernel(99, 0)).member("halo", 2, 10),
			paused(10, collectives(1, 41).kernel(99, 0)).member("halo", 2, 10)}, []Call{
			barrier(map[int]float64{0: 40, 1: 41})}, Communication, "60 % useful; 40 % of the time is spent in MPI, mostly in " +
			"MPI_Barrier on halo, and no rank is late"},
		"another one each time, of half of them": {[]Rank{
			collectives(0, 80).kernel(99, 0).member("halo", 2, 10).member("all", 4, 10),
			collectives(1, 81).kernel(99, 0).member("halo", 2, 10).member("all", 4, 10),
			collectives(2, 70).kernel(99, 0).member("all", 4, 10), collectives(3, 70).kernel(99, 0).member("all", 4, 10)},
			[]Call{barrier(map[int]float64{0: 79, 1: 80}), calls("MPI_Barrier", "all", 9, map[int]float64{0: 1, 1: 1, 2: 70,
				3: 70})}, Communication, "25 % useful; 75 % of the time is spent in MPI, mostly in MPI_Barrier on halo, and " +
				"no rank is late"},
		"ranks of another world may be the late ones": {[]Rank{collectives(0, 40).kernel(99, 0),
			collectives(1, 41).kernel(99, 0)}, []Call{barrier(map[int]float64{0: 40, 1: 41})}, Communication,
			"60 % useful; 40 % of the time is spent in MPI, mostly in MPI_Barrier on halo, and no rank is late"},
		"a world of one rank": {[]Rank{collectives(0, 40).kernel(99, 0).member("halo", 1, 10)}, []Call{barrier(map[int]float64{0: 40})},
			Communication, "60 % useful; 40 % of the time is spent in MPI, mostly in MPI_Barrier on halo"},
		"one shares its core, and the other waits a little": {[]Rank{
			collectives(0, 48).kernel(99, 0).member("halo", 2, 10), collectives(1, 0).kernel(50, 50).member("halo", 2, 10)},
			[]Call{barrier(map[int]float64{0: 48, 1: 0})}, NoCore, "rank 1 got a core for 50 % of the time in which it " +
				"could run; 24 % of the time ranks wait in MPI_Barrier on halo for rank 1 on a, which got a core for 50 % of " +
				"the time in which it could run"},
		"a little late, as a collective shows": {[]Rank{collectives(0, 24).member("halo", 2, 10),
			collectives(1, 0).member("halo", 2, 10)}, []Call{barrier(map[int]float64{0: 24, 1: 0})}, Healthy, "healthy: " +
			"88 % useful; 12 % of the time ranks wait in MPI_Barrier on halo for rank 1 on a, which is outside MPI for 100 " +
			"% of the time"},
		"sleeps between polls": {[]Rank{dozes, collectives(1, 0).kernel(99, 0)}, nil, LateRanks, "58 % useful; 42 % of " +
			"the time ranks wait for rank 1 on a, which is on the CPU for 99 % of the time"},
		"computes between polls": {[]Rank{tests, collectives(1, 0).kernel(99, 0)}, nil, Healthy, "healthy: 100 % useful"},
		"all sleep between polls": {[]Rank{dozes, dozes}, nil, Idle,
			"100 % of the time ranks neither compute nor communicate"},
		"large collectives": {[]Rank{collectives(0, 40).kernel(99, 0), collectives(1, 41).kernel(99, 0)}, []Call{
			{Called: Called{Function: "MPI_Alltoall", Kind: "comm", Object: "halo"}, Calls: 100, Seconds: 81,
				Bytes: map[string]float64{"sent": 1e9}, ranks: map[who]float64{{rank: 0}: 40, {rank: 1}: 41}}}, Communication,
			"60 % useful; 40 % of the time is spent in MPI, mostly in MPI_Alltoall on halo, and no rank is late"},
		"nobody has work": {[]Rank{collectives(0, 1).kernel(2, 0), collectives(1, 2).kernel(2, 0)}, nil, Idle,
			"98 % of the time ranks neither compute nor communicate"},
		"nobody has a core": {[]Rank{collectives(0, 0).kernel(20, 15), collectives(1, 0).kernel(20, 15)}, nil, Healthy,
			"healthy: 100 % useful"},
		"other threads have work": {[]Rank{collectives(0, 1).kernel(2, 0).process(12), collectives(1, 2).kernel(2, 0)}, nil,
			Healthy, "healthy: 98 % useful"},
		"other threads have hardly any work": {[]Rank{collectives(0, 1).kernel(2, 0).process(11), collectives(1,
			2).kernel(2, 0)}, nil, Idle, "98 % of the time ranks neither compute nor communicate"},
		"polls while others work":                         {[]Rank{polls, polls.process(109)}, nil, Unknown, others},
		"polls for a part of the time, while others work": {[]Rank{polling(70).kernel(99, 0).process(190), polls}, nil, Unknown, others},
		"polls for less": {[]Rank{polling(69).kernel(99, 0).process(190), polls}, nil, Communication,
			"16 % useful; 84 % of the time is spent in MPI, and no single rank is late"},
		"polls, and who works isn't known": {[]Rank{polls, starts(polls).process(110)}, nil, Unknown, others},
		"polls, and nothing else works":    {[]Rank{polls, polls.process(108)}, nil, Idle, nothing},
		"polls in an unknown thread":       {[]Rank{polls, polling(98).process(109)}, nil, Idle, nothing},
		"sleeps between polls while others work": {[]Rank{dozes.process(26), collectives(1, 0).kernel(99, 0)}, nil, Unknown,
			others},
		"sleeps between polls, and has worked since it was read": {[]Rank{lately, collectives(1, 0).kernel(99, 0)}, nil,
			LateRanks, "58 % useful; 42 % of the time ranks wait for rank 1 on a, which is on the CPU for 99 % of the time"},
		"nothing is known of cores yet": {[]Rank{youth, youth}, nil, Healthy, "healthy: 100 % useful"},
		"nothing comes":                 {[]Rank{polls, polls}, nil, Idle, "100 % of the time ranks neither compute nor communicate"},
		"perhaps on GPUs":               {[]Rank{onGPU, onGPU}, nil, Healthy, "healthy: 100 % useful"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Report{Ranks: c.ranks, Calls: c.calls, Job: Job{WorldSize: len(c.ranks)}}
			if strings.Contains(name, "seen") { // as part of a larger one
				r.Job.WorldSize++
			}
			r.sortCalls()
			v := r.verdict()
			assert.Equal(t, c.state, v.State)
			assert.Equal(t, c.text, v.Text)
			if strings.Contains(name, "coupler") {
				assert.Equal(t, v.State == LateRanks, v.Late != nil)
			}
		})
	}
}

// component is what ranks wait in barriers on a communicator of theirs, and elsewhere, in seconds of 100.
type component struct{ in, elsewhere []float64 }

// Of several components that work together, one rank is named.
func TestWhoIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		components []component
		state      string
		late       int // -1: none
	}{
		"the root of one waits for a coupler": {[]component{{[]float64{0, 100, 100, 100}, []float64{95}},
			{[]float64{0, 100, 100, 100}, nil}, {[]float64{0, 0}, nil}}, LateRanks, 4},
		"as late in each": {[]component{{[]float64{0, 80}, nil}, {[]float64{0, 80}, nil}, {[]float64{0, 80}, nil},
			{[]float64{0, 80}, nil}}, Communication, 0},
		"later in the second": {[]component{{[]float64{0, 80}, nil}, {[]float64{0, 90}, nil}}, Communication, 2},
		"a little late, as barriers show, beside one that works more": {[]component{{[]float64{0, 50}, []float64{25, 10}},
			{[]float64{0, 0}, []float64{25, 0}}}, Healthy, 0},
		"a little late, as barriers show, beside one that works far more": {[]component{{[]float64{0, 50},
			[]float64{50, 40}}, {[]float64{0, 0}, []float64{60, 0}}}, LateRanks, 3},
		"the root waits for a coupler, and another one works more": {[]component{{[]float64{0, 80, 40, 80}, []float64{80}}},
			Communication, -1},
		"late for hardly anything": {[]component{{[]float64{0, 16}, nil}}, Healthy, -1},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Report{}
			for i, component := range c.components {
				comm, spent := "component "+strconv.Itoa(i), map[int]float64{}
				for at, in := range component.in {
					rank := len(r.Ranks)
					spent[rank] = in
					r.Ranks = append(r.Ranks, of(rank, "a", 0, append(component.elsewhere, 0, 0, 0, 0)[at], in, 0).
						member(comm, len(component.in), 10).member("world", 9, 10))
				}
				r.Calls = append(r.Calls, calls("MPI_Barrier", comm, 1000, spent))
			}
			all := map[int]float64{}
			for i := range r.Ranks {
				all[i] = 0
			}
			r.Calls = append(r.Calls, calls("MPI_Barrier", "world", 1000, all))
			r.sortCalls()
			for range 5 { // components come in any order
				v := r.verdict()
				assert.Equal(t, c.state, v.State, v.Text)
				assert.Equal(t, c.late, cmp.Or(v.Late, &LateRank{Rank: -1}).Rank, v.Text)
			}
		})
	}
}

// Beside a component whose root waits for a coupler, one of others that wait for messages is late.
func TestLateBesideAComponentThatWaits(t *testing.T) {
	in := map[int]float64{0: 0, 1: 80, 2: 80, 3: 80}
	ranks := []Rank{of(0, "a", 0, 80, 0, 0), collectives(1, 80), collectives(2, 80), collectives(3, 80),
		of(4, "a", 0, 90, 0, 0), of(5, "a", 0, 90, 0, 0), of(6, "a", 0, 0, 0, 0)}
	for i := range ranks {
		if ranks[i] = ranks[i].member("world", 7, 1); i < 4 {
			ranks[i] = ranks[i].member("ocean", 4, 10)
		}
	}
	v := verdictOf(ranks, calls("MPI_Barrier", "ocean", 1000, in),
		calls("MPI_Recv", "world", 1000, map[int]float64{0: 80, 4: 90, 5: 90, 6: 0}))
	assert.Equal(t, LateRanks, v.State, v.Text)
	assert.Equal(t, 6, v.Late.Rank, v.Text)
}

// A master that polls beside another thread hides nothing of 32 workers.
func TestAFewThatHide(t *testing.T) {
	in, ranks := map[int]float64{}, []Rank(nil)
	for i := range 32 {
		in[i] = float64(min(31-i, 1) * 80)
		ranks = append(ranks, collectives(i, in[i]).kernel(99, 0).process(99).member("workers", 32, 10))
	}
	master := Rank{Rank: 32, Time: api.StateSeconds{api.Outside: 5, api.Poll: 95}}.kernel(99, 0).process(112)
	v := verdictOf(append(ranks, master.member("world", 33, 1)), calls("MPI_Barrier", "workers", 1000, in))
	assert.Equal(t, LateRanks, v.State, v.Text)
	assert.Equal(t, 31, v.Late.Rank)
}

// A server of files beside them doesn't make ranks less late in turn.
func TestLateInTurnBesideAServer(t *testing.T) {
	in, ranks := map[int]float64{}, []Rank(nil)
	for i := range 8 {
		in[i] = 40 + float64(i%2)
		ranks = append(ranks, collectives(i, in[i]).kernel(99, 0).member("compute", 8, 100).member("world", 9, 1))
	}
	ranks = append(ranks, of(8, "a", 0, 98, 0, 0).kernel(99, 0).member("world", 9, 1))
	v := verdictOf(ranks, calls("MPI_Barrier", "compute", 10, in), calls("MPI_Recv", "world", 10, map[int]float64{0: 1, 8: 98}))
	assert.Equal(t, LateInTurn, v.State, v.Text)
}

// No core ends later than it begins, for all ranks, too.
func TestNoCoreOfAllEndsLater(t *testing.T) {
	for was, want := range map[string]string{"": LateRanks, NoCore: NoCore} {
		ranks := []Rank{collectives(0, 80).kernel(61, 39), collectives(1, 0).kernel(61, 39)}
		r := &Report{Ranks: ranks, Calls: []Call{calls("MPI_Barrier", "halo", 1000, map[int]float64{0: 80, 1: 0})},
			Job: Job{WorldSize: 2}, was: was}
		v := r.verdict()
		assert.Equal(t, want, v.State, v.Text)
	}
}

// Where other threads may do anything, the rank's efficiency isn't known.
func TestEfficiencyOfWhoPolls(t *testing.T) {
	polls := Rank{Rank: 1, Time: api.StateSeconds{api.Poll: 100}}.process(110)
	assert.Equal(t, 1, (&Report{Ranks: []Rank{collectives(0, 0), polls}}).verdict().Efficiency.Ranks)
}

// A state that goes on, below what makes it begin, says the share that there is.
func TestNoCoreGoesOn(t *testing.T) {
	for was, want := range map[string]string{"": "healthy: 100 % useful",
		NoCore: "2 ranks got a core for 85 % of the time in which they could run"} {
		r := &Report{Ranks: []Rank{collectives(0, 0).kernel(85, 15), collectives(1, 0).kernel(85, 15)}, was: was}
		assert.Equal(t, want, r.verdict().Text)
	}
}

// Of a young job whose ranks lose time it isn't known yet whether they only wait for a core.
func TestYoungRanksMayWaitForACore(t *testing.T) {
	ended := time.Unix(2000, 0)
	for _, c := range []struct {
		young bool
		ended *time.Time
		want  string
	}{{true, nil, Unknown}, {false, nil, Communication}, {true, &ended, Communication}} {
		ranks := []Rank{collectives(0, 50).kernel(50, 0), collectives(1, 50).kernel(50, 0)}
		ranks[0].young = c.young
		r := &Report{Ranks: ranks, Job: Job{Ended: c.ended}}
		assert.Equal(t, c.want, r.verdict().State, "%+v", c)
	}
}

// What the kernel says of an interval is its part of totals; what was not known before it isn't.
func TestSinceOfCores(t *testing.T) {
	at := func(after, core, read float64, queue *float64) *Report {
		r := jobtest.RankOf(0, "node1", 30)
		r.Rank.Ended, r.Rank.State, r.Rank.EndReason = nil, "up", ""
		r.Rank.Calls.State[api.Outside] += after
		r.Rank.Calls.CPU = &api.CPU{Seconds: &core, Thread: &core, Process: &core, Queue: queue, At: read, Nice: 5}
		return Of([]api.ValueList{{Time: jobtest.Began.Add(time.Duration(100+after) * time.Second),
			Ranks: []api.RankValues{r}}}, nil)[0]
	}
	queue := 3.0
	now := at(10, 65, 8, &queue)
	of := now.Since(at(0, 50, 4, nil).Totals()).Ranks[0]
	assert.InDelta(t, 15, *of.CPU.Seconds, 1e-9)
	assert.InDelta(t, 37.5, *of.CPU.Thread, 1e-9, "read 4 s apart, in 10 s")
	assert.Nil(t, of.CPU.Queue)
	assert.InDelta(t, 3*10./110, *now.Since(at(0, 50, 8, &queue).Totals()).Ranks[0].CPU.Queue, 1e-9, "not read since")
	assert.Equal(t, 5, of.CPU.Nice)
	assert.InDelta(t, 1.5, of.cores, 1e-9)
	assert.InDelta(t, 37.5, *of.CPU.Process, 1e-9, "read with the thread's")
	assert.InDelta(t, 65*10./110, *now.Since(at(0, 50, 8, &queue).Totals()).Ranks[0].CPU.Process, 1e-9, "not read since")
	assert.InDelta(t, 65, *now.Ranks[0].CPU.Seconds, 0, "the later report is not changed")
}

// A rank's times on a core are of the time of it that is known, whatever of the interval that is.
func TestSinceOfCoresOfAPart(t *testing.T) {
	for _, c := range []struct {
		name                             string
		observed, core, read, paused     float64 // since then
		time, thread, seconds, of, cores float64
	}{
		{"all of it", 10, 8, 4, 0, 10, 10, 8, 0, 0.8},
		{"it does not answer", 2, 2, 2, 0, 2, 2, 2, 0, 0.2},
		{"it answers again", 40, 36, 40, 4, 10, 9, 9, 1, 0.9},
		{"measured for a part", 2, 9, 10, 8, 2, 1.8, 9, 8, 0.9},
	} {
		r := Rank{PID: 1, Time: api.StateSeconds{100}, CPU: &api.CPU{Seconds: new(50.0), Thread: new(50.0), At: 4, Paused: 7}}
		before := &Report{Time: after(0), Ranks: []Rank{r}}
		r.Time[api.Outside] += c.observed
		r.CPU = &api.CPU{Seconds: new(50 + c.core), Thread: new(50 + min(c.core, c.read)), At: 4 + c.read, Paused: 7 + c.paused}
		now := (&Report{Time: after(10), Ranks: []Rank{r}}).Since(before.Totals())
		of := now.Ranks[0]
		assert.InDelta(t, c.time, of.Time.Sum(), 1e-9, c.name)
		assert.InDelta(t, c.thread, *of.CPU.Thread, 1e-9, c.name)
		assert.InDelta(t, c.seconds, *of.CPU.Seconds, 1e-9, c.name)
		assert.InDelta(t, c.of, of.CPU.Paused, 1e-9, c.name)
		assert.InDelta(t, c.cores, of.cores, 1e-9, c.name)
	}
}

// Reports on the nodes of a job that have gone over HTTP say together what one on all of its ranks does.
func TestMergeOfNodes(t *testing.T) {
	parts := []*Report{
		{Job: Job{ID: "7", WorldSize: 3, Observed: 1}, Ranks: []Rank{collectives(0, 80)},
			Calls: []Call{calls("MPI_Barrier", "halo", 1000, map[int]float64{0: 80})}},
		{Job: Job{ID: "7", WorldSize: 3, Observed: 2}, Ranks: []Rank{collectives(1, 0).kernel(99, 0), collectives(2, 80)},
			Calls: []Call{calls("MPI_Barrier", "halo", 1000, map[int]float64{1: 0.1, 2: 80})}},
	}
	for i, r := range parts {
		r.Format, r.Seconds, r.Step = Format, 50, 30
		if i == 1 {
			r.Ranks[0].CPU.Seconds = new(250.0)
		}
		text, err := json.Marshal(r.WithRanks(1))
		require.NoError(t, err)
		parts[i], err = Read(text)
		require.NoError(t, err)
	}
	all := Merge(parts)
	require.Len(t, all, 1)
	assert.Equal(t, "47 % useful; 53 % of the time ranks wait in MPI_Barrier on halo probably for rank 1 on a, which is on "+
		"the CPU for 99 % of the time", all[0].Verdict.Text)
	late := &all[0].Ranks[0]
	assert.Equal(t, 1, late.Rank)
	assert.InDelta(t, 2.5, late.cores, 1e-9)
	assert.InDelta(t, 30, late.step, 0)
	assert.InDelta(t, 30, late.long(), 0)
	assert.InDelta(t, 160.1, all[0].Calls[0].Seconds, 1e-9)
}
