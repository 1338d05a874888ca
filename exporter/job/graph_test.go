package job

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// rankIn is a rank whose threads are in calls, the first of which has initialised MPI; nil: that thread is outside MPI.
func rankIn(rank int, calls ...*api.CallUnderWay) Rank {
	r := Rank{Rank: rank, Node: "node1", State: "up", Time: api.StateSeconds{100}}
	for i, c := range calls {
		r.Threads = append(r.Threads, api.Thread{Main: i == 0, Call: c})
		if c != nil && c.Seconds > r.Running {
			r.Running, r.Time = c.Seconds, api.StateSeconds{api.Outside: 100 - c.Seconds, api.Wait: c.Seconds}
			r.Long = &api.LongCall{Function: c.Function, Kind: c.Kind, Object: c.Object}
		}
	}
	return r
}

// member is the rank, as a member of a communicator of so many ranks, on which it has begun so many collectives.
func (r Rank) member(comm string, size int, number uint64) Rank {
	r.Comms = append(slices.Clone(r.Comms), api.Comm{ID: comm, Name: comm, Size: size, Number: &number})
	return r
}

// collective is a call of 42 s, of the collective with a number on the communicator; 0: it isn't known.
func collective(function, comm string, number uint64) *api.CallUnderWay {
	return &api.CallUnderWay{Function: function, Seconds: 42, Kind: "comm", Object: comm, Comm: comm, Number: number}
}

// request is a wait for a collective's request.
func request(of, comm string, number uint64) *api.CallUnderWay {
	c := collective("MPI_Wait", comm, number)
	c.Of = of
	return c
}

// requests is a wait for some of several peers' requests.
func requests(peers ...int) *api.CallUnderWay {
	return &api.CallUnderWay{Function: "MPI_Waitall", Seconds: 70, Peers: peers}
}

// message is a call of 70 s that waits for peers, each of them; none: for any member of halo.
func message(function string, tag int, peers ...int) *api.CallUnderWay {
	return &api.CallUnderWay{Function: function, Seconds: 70, Kind: "comm", Object: "halo", Comm: "halo", Tag: &tag,
		Peers: peers, All: len(peers) > 1, AnySource: len(peers) == 0}
}

func ended(rank int) Rank { return Rank{Rank: rank, Node: "node1", State: "ended", End: endsWell} }

// deadlockedOf are the numbers of the ranks that can't go on.
func deadlockedOf(ranks []Rank) (deadlocked []int) {
	g := newGraph(pointers(ranks), nil, (*Rank).isBlocked)
	for i := range ranks {
		if !g.free[i] && !ranks[i].ended() {
			deadlocked = append(deadlocked, ranks[i].Rank)
		}
	}
	return deadlocked
}

func pointers(ranks []Rank) (list []*Rank) {
	for i := range ranks {
		list = append(list, &ranks[i])
	}
	return list
}

func TestDeadlocked(t *testing.T) {
	barrier := func(comm string, number uint64) *api.CallUnderWay { return collective("MPI_Barrier", comm, number) }
	short := message("MPI_Recv", 7, 1)
	short.Seconds = 2
	computes := rankIn(0, barrier("a", 5)).member("a", 2, 5).member("b", 2, 7)
	computes.cores = 7.5
	silent := rankIn(0, barrier("a", 5)).member("a", 2, 5).member("b", 2, 7)
	silent.State = "late"
	crossed := rankIn(1, barrier("b", 8)).member("a", 2, 4).member("b", 2, 8)
	for name, c := range map[string]struct {
		ranks []Rank
		want  []int
	}{
		"a cycle of receives": {[]Rank{rankIn(0, message("MPI_Recv", 7, 1)),
			rankIn(1, message("MPI_Recv", 9, 0))}, []int{0, 1}},
		"a send that its receive matches": {[]Rank{rankIn(0, message("MPI_Recv", 7, 1)),
			rankIn(1, message("MPI_Send", 7, 0))}, nil},
		"a send with another tag": {[]Rank{rankIn(0, message("MPI_Recv", 7, 1)),
			rankIn(1, message("MPI_Send", 9, 0))}, []int{0, 1}},
		"two sends": {[]Rank{rankIn(0, message("MPI_Send", 7, 1)),
			rankIn(1, message("MPI_Send", 7, 0))}, []int{0, 1}},
		"a halo of large messages": {[]Rank{rankIn(0, message("MPI_Waitall", -1, 1)),
			rankIn(1, message("MPI_Waitall", -1, 0))}, nil},
		"one has just begun":                 {[]Rank{rankIn(0, short), rankIn(1, message("MPI_Recv", 9, 0))}, nil},
		"a receive from one that has ended":  {[]Rank{rankIn(0, message("MPI_Recv", 7, 1)), ended(1)}, []int{0}},
		"a receive from one that computes":   {[]Rank{rankIn(0, message("MPI_Recv", 7, 1)), rankIn(1, nil)}, nil},
		"a receive from one that isn't seen": {[]Rank{rankIn(0, message("MPI_Recv", 7, 1))}, nil},
		"any source, and all wait": {[]Rank{rankIn(0, message("MPI_Recv", 7)).member("halo", 2, 0),
			rankIn(1, message("MPI_Recv", 7)).member("halo", 2, 0)}, []int{0, 1}},
		"any source, and one computes": {[]Rank{rankIn(0, message("MPI_Recv", 7)).member("halo", 2, 0),
			rankIn(1, nil).member("halo", 2, 0)}, nil},
		"any source, and one isn't seen": {[]Rank{rankIn(0, message("MPI_Recv", 7)).member("halo", 2, 0)}, nil},
		"communicators in opposite order": {[]Rank{rankIn(0, barrier("a", 5)).member("a", 2, 5).member("b", 2, 7), crossed},
			[]int{0, 1}},
		"the same, and a rank is silent":          {[]Rank{silent, crossed}, nil},
		"the same, and a thread outside computes": {[]Rank{computes, crossed}, nil},
		"the same, and another thread moves": {[]Rank{rankIn(0, barrier("a", 5), nil).member("a", 2, 5).member("b", 2, 7),
			crossed}, nil},
		"the same in reductions that don't wait for all": {[]Rank{
			rankIn(0, collective("MPI_Reduce", "a", 5)).member("a", 2, 5).member("b", 2, 7), crossed}, []int{0, 1}},
		"a reduction, and who is behind may be another": {[]Rank{
			rankIn(0, collective("MPI_Reduce", "a", 5)).member("a", 3, 5).member("b", 2, 7),
			rankIn(1, barrier("b", 8)).member("a", 3, 4).member("b", 2, 8)}, nil},
		"a barrier that all are in": {[]Rank{rankIn(0, barrier("a", 5)).member("a", 2, 5),
			rankIn(1, barrier("a", 5)).member("a", 2, 5)}, nil},
		"requests of collectives in opposite order": {[]Rank{
			rankIn(0, request("MPI_Iallreduce", "a", 5)).member("a", 2, 5).member("b", 2, 7),
			rankIn(1, request("MPI_Comm_idup", "b", 8)).member("a", 2, 4).member("b", 2, 8)}, []int{0, 1}},
		"a collective's request, and all have begun it": {[]Rank{rankIn(0, request("MPI_Ibarrier", "a", 5)).member("a", 2, 6),
			rankIn(1, message("MPI_Recv", 1, 0)).member("a", 2, 5)}, nil},
		"a request that others than those behind may hold up": {[]Rank{
			rankIn(0, request("MPI_Ibcast", "a", 5)).member("a", 2, 5),
			rankIn(1, message("MPI_Recv", 1, 0)).member("a", 2, 4)}, nil},
		"a number that isn't known": {[]Rank{rankIn(0, barrier("a", 0)).member("a", 2, 5),
			rankIn(1, message("MPI_Recv", 1, 0)).member("a", 2, 4)}, nil},
		"calls of which it isn't known whom they wait for": {[]Rank{rankIn(0, &api.CallUnderWay{Function: "MPI_Wait",
			Seconds: 99}), rankIn(1, message("MPI_Recv", 1, 0))}, nil},
		"requests of two, and both wait for it": {[]Rank{rankIn(0, requests(1, 2)), rankIn(1, message("MPI_Recv", 7, 2)),
			rankIn(2, message("MPI_Recv", 8, 1))}, []int{0, 1, 2}},
		"requests of two, of which one may have completed": {[]Rank{rankIn(0, requests(1, 2)).member("a", 2, 4),
			rankIn(1, barrier("a", 5)).member("a", 2, 5), rankIn(2, nil)}, nil},
		"requests of two, of which one isn't seen": {[]Rank{rankIn(0, requests(1, 5)), rankIn(1, message("MPI_Recv", 7, 2)),
			rankIn(2, message("MPI_Recv", 8, 1))}, []int{1, 2}},
		"requests of one, and it waits for another tag": {[]Rank{rankIn(0, message("MPI_Wait", 3, 1)),
			rankIn(1, message("MPI_Recv", 9, 0))}, []int{0, 1}},
		"a barrier behind a cycle": {[]Rank{rankIn(0, barrier("a", 5)).member("a", 3, 5),
			rankIn(1, message("MPI_Recv", 1, 2)).member("a", 3, 4), rankIn(2, message("MPI_Recv", 2, 1)).member("a", 3, 4)},
			[]int{0, 1, 2}},
		"a receive from one in MPI_Finalize": {[]Rank{rankIn(0, message("MPI_Recv", 7, 1)),
			rankIn(1, &api.CallUnderWay{Function: "MPI_Finalize", Seconds: 50})}, []int{0, 1}},
		"locks of windows in opposite order": {[]Rank{
			rankIn(0, &api.CallUnderWay{Function: "MPI_Win_lock", Seconds: 80, Comm: "a"}).member("a", 2, 1),
			rankIn(1, &api.CallUnderWay{Function: "MPI_Win_lock", Seconds: 80, Comm: "a"}).member("a", 2, 1)}, []int{0, 1}},
		"a collective on files": {[]Rank{rankIn(0, collective("MPI_File_write_all", "a", 0)).member("a", 2, 5),
			rankIn(1, message("MPI_Recv", 1, 0)).member("a", 2, 5)}, nil},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, deadlockedOf(c.ranks)) })
	}
}

// Random situations: the deadlocked are the largest set of ranks of which none can go on as long as the others of it
// can't, found by trying all sets.
func TestDeadlockedIsTheLargestSet(t *testing.T) {
	found := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		ranks := randomRanks(r)
		want := uint(0)
		for set := range uint(1) << len(ranks) {
			if closed(ranks, set) {
				want |= set // the union of two such sets is one
			}
		}
		got := uint(0)
		g := newGraph(pointers(ranks), nil, (*Rank).isBlocked)
		for i := range ranks {
			if !g.free[i] {
				got |= 1 << i
			}
		}
		if !assert.Equal(t, fmt.Sprintf("%b", want), fmt.Sprintf("%b", got), "seed %d:%s", seed, text(ranks)) {
			return
		}
		for i := range ranks {
			if got>>i&1 == 1 && !ranks[i].ended() {
				found++
			}
		}
	}
	assert.Greater(t, found, 1000, "deadlocks are among them")
}

func text(ranks []Rank) string {
	var b strings.Builder
	for i := range ranks {
		fmt.Fprintf(&b, "\nrank %d %s:", i, ranks[i].State)
		for _, t := range ranks[i].Threads {
			if c := t.Call; c != nil {
				fmt.Fprintf(&b, " %s %s number %d peers %v all %v any %v;", c.Function, c.Comm, c.Number,
					c.Peers, c.All, c.AnySource)
			}
		}
		for _, c := range ranks[i].Comms {
			fmt.Fprintf(&b, " %s %d of %d;", c.ID, *c.Number, c.Size)
		}
	}
	return b.String()
}

// randomRanks are up to six, of two communicators, in calls that wait for anybody.
func randomRanks(r *rand.Rand) (ranks []Rank) {
	size := 2 + r.IntN(5)
	call := func() *api.CallUnderWay {
		comm := string("ab"[r.IntN(2)])
		var c *api.CallUnderWay
		switch r.IntN(9) {
		case 0, 1, 2:
			c = collective("MPI_Barrier", comm, 1+uint64(r.IntN(3)))
		case 3:
			c = collective("MPI_Bcast", comm, 1+uint64(r.IntN(3)))
		case 4, 5:
			c = message("MPI_Recv", 1, r.IntN(size))
		case 6:
			c = message("MPI_Waitall", 1, r.IntN(size), r.IntN(size))
			c.All = r.IntN(2) == 0
		case 7:
			c = message("MPI_Recv", 1)
			c.Comm = comm
		case 8:
			c = message("MPI_Send", 1, r.IntN(size))
		}
		return c
	}
	members := map[string]int{}
	for i := range size {
		x := rankIn(i, call())
		switch {
		case r.IntN(8) == 0:
			x = ended(i)
		case r.IntN(8) == 0:
			x.Threads[0].Call = nil
		case r.IntN(8) == 0:
			x = rankIn(i, call(), call())
		}
		for _, comm := range []string{"a", "b"} {
			number := uint64(r.IntN(3))
			in := r.IntN(3) > 0
			for _, t := range x.Threads {
				if t.Call != nil && t.Call.Comm == comm {
					in, number = true, max(number, t.Call.Number)
				}
			}
			if in {
				x = x.member(comm, 0, number)
				members[comm]++
			}
		}
		ranks = append(ranks, x)
	}
	unseen := r.IntN(5) / 4
	for i := range ranks {
		for c := range ranks[i].Comms {
			ranks[i].Comms[c].Size = members[ranks[i].Comms[c].ID] + unseen
		}
	}
	return ranks
}

// closed says whether no rank of a set can go on as long as no other one of it does.
func closed(ranks []Rank, set uint) bool {
	in := func(rank int) bool { return set>>rank&1 == 1 }
	for i := range ranks {
		if !in(i) || ranks[i].ended() {
			continue
		}
		for _, t := range ranks[i].Threads {
			if t.Call == nil || !waitsWithin(ranks, i, t.Call, in) {
				return false
			}
		}
	}
	return true
}

// waitsWithin says whether a call can't return as long as no rank in the set goes on.
func waitsWithin(ranks []Rank, rank int, c *api.CallUnderWay, in func(rank int) bool) bool {
	all, seen, targets := true, 0, []int{}
	size := 0
	for i := range ranks {
		for _, m := range ranks[i].Comms {
			if m.ID == c.Comm {
				seen, size = seen+1, m.Size
				if c.Number > 0 && *m.Number < c.Number || c.AnySource {
					targets = append(targets, i)
				}
			}
		}
	}
	switch {
	case len(c.Peers) > 0:
		all = c.All || len(c.Peers) == 1
		for _, p := range c.Peers {
			matched := slices.ContainsFunc(ranks[p].Threads, func(t api.Thread) bool {
				return t.Call != nil && t.Call.Number == 0 && (t.Call.AnySource || slices.Contains(t.Call.Peers, rank)) &&
					t.Call.Comm == c.Comm && (c.Function != t.Call.Function || strings.Contains(c.Function, "all"))
			})
			switch {
			case p != rank && !matched:
				targets = append(targets, p)
			case !all:
				return false
			}
		}
	case c.Function != "MPI_Barrier":
		all = false
		if seen < size {
			return false
		}
	}
	if all {
		return slices.ContainsFunc(targets, in)
	}
	return len(targets) > 0 && !slices.ContainsFunc(targets, func(t int) bool { return !in(t) })
}
