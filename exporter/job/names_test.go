package job

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job/jobtest"
)

// since is the call, after so many seconds.
func since(c *api.CallUnderWay, seconds float64) *api.CallUnderWay {
	c.Seconds = seconds
	return c
}

// verdictOf judges ranks that have spent their time in calls.
func verdictOf(ranks []Rank, calls ...Call) Verdict {
	r := &Report{Ranks: ranks, Calls: calls, Job: Job{WorldSize: len(ranks)}}
	for i := range ranks {
		if ranks[i].Dup == 0 {
			r.Job.WorldSize = max(r.Job.WorldSize, ranks[i].Rank+1)
		}
	}
	r.sortCalls()
	return r.verdict()
}

// Two of four ranks are in a cycle, which is not proved for a minute. The other two go on by themselves, one of them more
// slowly: it isn't who the cycle waits for.
func TestNoNameBesideACycle(t *testing.T) {
	for _, seconds := range []float64{2, 7, 12, 40} {
		for name, change := range map[string]func(ranks []Rank){
			"":                       func([]Rank) {},
			"one doesn't answer":     func(ranks []Rank) { ranks[1].State, ranks[1].Threads[0].Call.Seconds = "late", 0.5 },
			"the other ones wait":    func(ranks []Rank) { ranks[2].Threads[0].Call = since(collective("MPI_Barrier", "rest", 5), 11) },
			"one has no core":        func(ranks []Rank) { ranks[3] = ranks[3].kernel(60, 40) },
			"one doesn't answer now": func(ranks []Rank) { ranks[0].State = "late" },
		} {
			cycle := func(rank, of int) Rank {
				r := rankIn(rank, since(message("MPI_Recv", rank, of), seconds)).member("halo", 4, 5)
				r.Time = api.StateSeconds{api.Outside: 1, api.Wait: 99}
				return r
			}
			rest := func(rank int, waiting float64, number uint64) Rank {
				r := rankIn(rank, nil).member("halo", 4, 5).member("rest", 2, number)
				r.Time = api.StateSeconds{api.Outside: 100 - waiting, api.Collective: waiting}
				return r
			}
			ranks := []Rank{cycle(0, 1), cycle(1, 0), rest(2, 70, 5), rest(3, 5, 4)}
			change(ranks)
			v := verdictOf(ranks, calls("MPI_Recv", "halo", 1, map[int]float64{0: 99, 1: 99}),
				calls("MPI_Barrier", "rest", 10, map[int]float64{2: 70, 3: 5}))
			assert.Nil(t, v.Late, "%g s, %s: %s", seconds, name, v.Text)
			assert.NotRegexp(t, `\brank [23]\b`, v.Text, "%g s, %s", seconds, name)
			assert.NotContains(t, v.Text, "rank is late", "it isn't known yet")
		}
	}
}

// Who is named where what is known points to several ranks, or to one that the others have nothing to do with.
func TestNames(t *testing.T) {
	barrier := func(comm string, number uint64) *api.CallUnderWay { return collective("MPI_Barrier", comm, number) }
	all := func(count int, in *api.CallUnderWay, others ...Rank) (ranks []Rank) {
		for rank := range count {
			ranks = append(ranks, rankIn(rank, in).member("all", count+len(others), 5))
		}
		for i, r := range others {
			r.Rank = count + i
			ranks = append(ranks, r.member("all", count+len(others), 4))
		}
		return ranks
	}
	silent, finalize := rankIn(0, nil), &api.CallUnderWay{Function: finalizes, Seconds: 42}
	silent.State = "late"
	world := message("MPI_Recv", 1)
	world.Comm = ""
	bcast := func(rank int) Rank { return rankIn(rank, collective("MPI_Bcast", "all", 0)).member("all", 4, 0) }
	called := calls("MPI_Bcast", "all", 1, map[int]float64{0: 42, 1: 42, 2: 42, 3: 1})
	rows := func(rank int, waits float64, ids ...string) Rank {
		r := collectives(rank, waits).member("world", 2, 1)
		for _, id := range ids {
			r = r.member(id, 2, 1)
			r.Comms[len(r.Comms)-1].Name = "row"
		}
		return r
	}
	crossed := all(3, barrier("all", 5), rankIn(0, barrier("other", 8)).member("pair", 2, 2).member("other", 2, 8),
		rankIn(0, barrier("pair", 3)).member("pair", 2, 3))
	crossed[0] = crossed[0].member("other", 2, 7)
	half, less := rankIn(0, nil), rankIn(0, nil)
	half.Time, less.Time = api.StateSeconds{api.Outside: 51, api.Wait: 49}, api.StateSeconds{api.Outside: 49, api.Wait: 51}
	split := all(20, barrier("all", 5), half, less)
	splitBcast, calledBy := all(20, collective("MPI_Bcast", "all", 0), half, less), calls("MPI_Bcast", "all", 1,
		map[int]float64{0: 1, 19: 1, 20: 1, 21: 1})
	for i := range splitBcast {
		splitBcast[i].Comms[0].Number = nil
	}
	left, waited := rankIn(0, nil), rankIn(0, since(requests(), 3))
	left.Threads[0].Moved = 41
	away, waits := all(20, barrier("all", 5), less, left), all(20, barrier("all", 5), half, waited)
	const none = -1
	for name, c := range map[string]struct {
		ranks []Rank
		call  Call
		want  int
	}{
		"two behind in a deadlock, of which one waits for the other": {crossed, Call{}, 3},
		"the same, and that one waits for a message: perhaps it was to be sent": {all(3, barrier("all", 5),
			rankIn(0, message("MPI_Recv", 1, 0)).member("pair", 2, 2),
			rankIn(0, barrier("pair", 3)).member("pair", 2, 3)), Call{}, none},
		"two behind, of which one has just begun to wait for the other": {all(20, barrier("all", 5),
			rankIn(0, nil).member("pair", 2, 2), rankIn(0, since(barrier("pair", 3), 4)).member("pair", 2, 3)), Call{}, 20},
		"two behind, of which one doesn't answer and may have come":           {all(20, barrier("all", 5), rankIn(0, nil), silent), Call{}, 20},
		"two not in MPI_Finalize, of which one doesn't answer":                {all(20, finalize, rankIn(0, nil), silent), Call{}, 20},
		"two that don't answer":                                               {all(20, barrier("all", 5), silent, silent), Call{}, none},
		"two behind, of which one is in MPI for half of its time":             {split, Call{}, none},
		"two not in a broadcast, of which one is in MPI for half of its time": {splitBcast, calledBy, none},
		"two behind, of which one is away":                                    {away, Call{}, 21},
		"two behind, of which one has just begun to wait for who knows whom":  {waits, Call{}, none},
		"a message of another world":                                          {all(1, world, rankIn(0, nil)), Call{}, none},
		"a broadcast that isn't numbered":                                     {[]Rank{bcast(0), bcast(1), bcast(2), rankIn(3, nil).member("all", 4, 0)}, called, 3},
		"the same, and two that may be in a cycle": {[]Rank{bcast(0), bcast(1), bcast(2), rankIn(3, nil).member("all", 4, 0),
			rankIn(4, since(message("MPI_Recv", 1, 5), 5)).member("halo", 2, 0),
			rankIn(5, since(message("MPI_Recv", 2, 4), 5)).member("halo", 2, 0)}, called, none},
		"the same that one has gone on from": {[]Rank{rankIn(0, collective("MPI_Bcast", "all", 5)).member("all", 2, 5),
			rankIn(1, nil).member("all", 2, 5)}, called, none},
		"communicators of one name": {[]Rank{rows(0, 80, "a", "b"), rows(1, 0, "c", "d")},
			calls("MPI_Barrier", "row", 10, map[int]float64{0: 80, 1: 0}), none},
	} {
		t.Run(name, func(t *testing.T) {
			v := verdictOf(c.ranks, c.call)
			late := none
			if v.Late != nil {
				late = v.Late.Rank
			}
			assert.Equal(t, c.want, late, v.Text)
		})
	}
}

// A rank that was stopped within an exchange holds up all others, two of which wait for a third one that waits for who
// knows whom.
func TestStoppedWithinAnExchange(t *testing.T) {
	reduce := collective("MPI_Allreduce", "solver", 7)
	ranks := []Rank{rankIn(0, reduce).member("solver", 4, 7), rankIn(1, reduce).member("solver", 4, 7),
		rankIn(2, nil).member("solver", 4, 6), rankIn(3, requests()).member("solver", 4, 6)}
	ranks[2].State = "late"
	v := verdictOf(ranks)
	assert.Nil(t, v.Late)
	assert.Equal(t, "3 of 4 ranks have been in 2 different calls for 42s, 1 is not; rank 2 does not answer, as if it were "+
		"stopped", v.Text)
}

// A transfer that takes minutes is no deadlock: each rank has sent without waiting, and receives.
func TestLongTransfer(t *testing.T) {
	for seconds, want := range map[float64]string{59: Waits, 61: Waits, 299: Waits, 301: Deadlock} {
		list := api.ValueList{Time: jobtest.Began}
		for rank := range 2 {
			of := jobtest.RankOf(rank, "node1", 300)
			of.Rank.Ended, of.Rank.State, of.Rank.EndReason, of.Rank.WorldSize = nil, "up", "", 2
			of.Rank.Calls.State = api.StateSeconds{api.Wait: seconds}
			of.Rank.Calls.Threads = []api.Thread{{Main: true, Call: since(message("MPI_Recv", 1, 1-rank), seconds)}}
			of.Rank.Calls.Running = seconds
			of.Rank.Calls.Long = &api.LongCall{Function: "MPI_Recv", Kind: "comm", Object: "halo"}
			of.Variables = append(of.Variables, api.VariableValues{Metric: "mpit_call_time_seconds", Series: []api.SeriesValue{{
				Labels: map[string]string{"function": "MPI_Isend", "comm": "halo"}, Count: "3", Sum: "0.1"}}})
			list.Ranks = append(list.Ranks, of)
		}
		reports := Of([]api.ValueList{list}, nil)
		assert.Equal(t, want, reports[0].Verdict.State, "%g s: %s", seconds, reports[0].Verdict.Text)
		text, err := json.Marshal(reports[0])
		require.NoError(t, err)
		read, err := Read(text)
		require.NoError(t, err)
		assert.Equal(t, want, Merge([]*Report{read})[0].Verdict.State, "as the judge has it")
	}
}

// Ranks start one after the other: that is no trouble yet, but in a run that is over it was.
func TestNothingIsSaidAtTheStart(t *testing.T) {
	for observed, want := range map[float64]string{1: Unknown, 2.9: Unknown, 3: LateRanks} {
		ranks := []Rank{collectives(0, 0).member("world", 2, 1), collectives(1, 0).member("world", 2, 1)}
		ranks[0].Time, ranks[1].Time = api.StateSeconds{api.Outside: observed}, api.StateSeconds{api.Collective: observed}
		call := calls("MPI_Comm_split", "world", 2, map[int]float64{0: 0, 1: observed})
		began := time.Unix(1000, 0)
		r := &Report{Ranks: slices.Clone(ranks), Calls: []Call{call}, Job: Job{WorldSize: 2, Started: &began},
			Time: began.Add(time.Duration(observed) * time.Second)}
		v := r.verdict()
		assert.Equal(t, want, v.State, "%g s: %s", observed, v.Text)
		assert.Equal(t, want == LateRanks, v.Late != nil, v.Text)
		behind := *r
		behind.Ranks, behind.Time = slices.Clone(ranks), began.Add(-time.Hour)
		assert.Equal(t, LateRanks, behind.verdict().State, "by another clock")
		gone := *r
		gone.Ranks = slices.Clone(ranks)
		gone.Ranks[1].State, gone.Ranks[1].End = "ended", "lost"
		assert.Equal(t, Crashed, gone.verdict().State, "that is said at once")
		over := &Report{Ranks: ranks, Calls: []Call{call}, Job: Job{WorldSize: 2, Ended: new(time.Time)}}
		assert.Equal(t, LateRanks, over.verdict().State)
	}
}

// facts are those of up to seven ranks, of which some aren't seen, don't answer, or have ended.
type facts struct {
	ranks []Rank
	calls []Call
	in    map[string]map[int]float64 // seconds of ranks in collectives on a communicator, by its identity
}

// randomFacts are of three communicators, two of which may have the same name. What is known of each rank is so by
// itself: numbers of collectives are those that it has begun.
func randomFacts(r *rand.Rand) facts {
	size := 2 + r.IntN(6)
	names := map[string]string{"a": "a", "b": "b", "c": []string{"c", "b"}[r.IntN(2)]}
	f := facts{in: map[string]map[int]float64{}}
	members := map[string][]int{}
	for id := range names {
		for rank := range size {
			if r.IntN(3) > 0 {
				members[id] = append(members[id], rank)
			}
		}
	}
	durations := []float64{0.4, 3, 15, 50, 90}
	spent := map[string]*Call{}
	for rank := range size {
		x := rankIn(rank, nil)
		x.Time = api.StateSeconds{}
		var threads []api.Thread
		var ids []string
		for _, id := range []string{"a", "b", "c"} {
			if slices.Contains(members[id], rank) {
				ids = append(ids, id)
			}
		}
		numbers := map[string]uint64{}
		for _, id := range ids {
			numbers[id] = 3 + uint64(r.IntN(2))
		}
		for range 1 + r.IntN(5)/4 {
			var c *api.CallUnderWay
			switch pick := r.IntN(12); {
			case pick < 5 && len(ids) > 0:
				id := ids[r.IntN(len(ids))]
				c = collective([]string{"MPI_Barrier", "MPI_Barrier", "MPI_Allreduce", "MPI_Bcast"}[r.IntN(4)], id, numbers[id])
				c.Object = names[id]
			case pick < 8 && len(ids) > 0:
				id := ids[r.IntN(len(ids))]
				c = message("MPI_Recv", r.IntN(2), members[id][r.IntN(len(members[id]))])
				c.Comm, c.Object = id, names[id]
			case pick == 8 && len(ids) > 0:
				c = message("MPI_Recv", 1)
				c.Comm = ids[r.IntN(len(ids))]
				c.Object = names[c.Comm]
			case pick == 9:
				c = &api.CallUnderWay{Function: finalizes}
			case pick == 10:
				c = &api.CallUnderWay{Function: "MPI_Wait"} // whose request, isn't known
			}
			if c != nil {
				c.Seconds = durations[r.IntN(len(durations))]
			}
			threads = append(threads, api.Thread{Main: len(threads) == 0, Call: c})
		}
		x.Threads = threads
		x = x.member("world", size, 1)
		for _, id := range ids {
			of := numbers[id]
			on := api.Comm{ID: id, Name: names[id], Size: len(members[id]), Number: &of}
			if r.IntN(12) == 0 {
				on.Number = nil
			}
			x.Comms = append(x.Comms, on)
		}
		for _, id := range ids { // a part of 100 s in collectives on each
			seconds := float64(r.IntN(100 / len(ids)))
			x.Time[api.Collective] += seconds
			if f.in[id] == nil {
				f.in[id] = map[int]float64{}
			}
			f.in[id][rank] = seconds
			if spent[names[id]] == nil {
				spent[names[id]] = &Call{Called: Called{"MPI_Allreduce", "comm", names[id]},
					Bytes: map[string]float64{"sent": 1e6}, ranks: map[who]float64{}}
			}
			spent[names[id]].Calls += 10
			spent[names[id]].Seconds += seconds
			spent[names[id]].ranks[who{rank: rank}] += seconds
		}
		x.Time[api.Outside] = 100 - x.Time[api.Collective]
		if c := threads[0].Call; c != nil && c.Seconds >= 1 {
			x.Running, x.Long = c.Seconds, &api.LongCall{Function: c.Function, Kind: c.Kind, Object: c.Object}
		}
		switch r.IntN(16) {
		case 0:
			x.State = "late"
		case 1:
			x.State, x.End, x.Threads, x.Running, x.Long = "ended", endsWell, nil, 0, nil
		}
		if r.IntN(20) > 0 { // otherwise it isn't seen
			f.ranks = append(f.ranks, x)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(spent)) {
		f.calls = append(f.calls, *spent[name])
	}
	return f
}

// hasPart says whether a rank is a member of the communicator, which it may be if that isn't known.
func hasPart(r *Rank, id string) bool {
	return id == "" || len(r.Comms) == 0 || slices.ContainsFunc(r.Comms, func(c api.Comm) bool { return c.ID == id })
}

// hasPartByName says whether another rank is a member of one of the rank's communicators of the same name: times are told
// apart by name only.
func hasPartByName(r, other *Rank, id string) bool {
	name := r.Comms[slices.IndexFunc(r.Comms, func(c api.Comm) bool { return c.ID == id })].Name
	return slices.ContainsFunc(r.Comms, func(c api.Comm) bool { return c.Name == name && hasPart(other, c.ID) })
}

// begun is how many collectives a rank has begun on a communicator of which it is a member; false: that isn't known.
func begun(r *Rank, id string) (number uint64, known bool) {
	for _, c := range r.Comms {
		if c.ID == id && c.Number != nil {
			return *c.Number, true
		}
	}
	return 0, false
}

// waitsForRank says that by the facts a rank can't go on in one of its calls before another one has done something.
func waitsForRank(r, other *Rank) bool {
	return slices.ContainsFunc(r.Threads, func(t api.Thread) bool {
		c := t.Call
		if c == nil || c.Seconds < 1 && !r.silent() || other.Rank == r.Rank {
			return false
		}
		number, known := begun(other, c.Comm)
		switch {
		case c.Number > 0:
			return c.Function != "MPI_Bcast" && known && number < c.Number && !other.silent()
		case len(c.Peers) == 1:
			return c.Peers[0] == other.Rank
		}
		return false
	})
}

// mayWaitForRank says that a rank is in a call that may have to do with another one.
func mayWaitForRank(r, other *Rank) bool {
	return slices.ContainsFunc(r.Threads, func(t api.Thread) bool {
		c := t.Call
		number, known := uint64(0), false
		if c != nil {
			number, known = begun(other, c.Comm)
		}
		return c != nil && c.Seconds >= Waiting.Seconds() && hasPart(other, c.Comm) &&
			(len(c.Peers) == 0 || slices.Contains(c.Peers, other.Rank)) && (c.Number == 0 || !known || number < c.Number)
	})
}

// cycleOf are the ranks none of which goes on as long as the others of them don't, found by trying all sets; a rank that
// isn't known to wait goes on.
func cycleOf(ranks []Rank) (in map[int]bool) {
	in = map[int]bool{}
	for set := range uint(1) << len(ranks) {
		holds := func(i int) bool { return set>>i&1 == 1 }
		if !slices.ContainsFunc(indices(ranks, holds), func(i int) bool {
			r := &ranks[i]
			return r.ended() || slices.ContainsFunc(r.Threads, func(t api.Thread) bool {
				one := *r
				one.Threads = []api.Thread{t}
				return isOfFinalize(t) || !slices.ContainsFunc(indices(ranks, holds), func(j int) bool {
					return i != j && waitsForRank(&one, &ranks[j])
				})
			})
		}) {
			for _, i := range indices(ranks, holds) {
				in[ranks[i].Rank] = true
			}
		}
	}
	return in
}

func isOfFinalize(t api.Thread) bool { return t.Call != nil && t.Call.Function == finalizes }

func indices(ranks []Rank, holds func(i int) bool) (of []int) {
	for i := range ranks {
		if holds(i) {
			of = append(of, i)
		}
	}
	return of
}

var ofPart = regexp.MustCompile(`^ranks? ([0-9,-]+): `)

// partOf is how many ranks a sentence is about, of so many.
func partOf(text string, all int) (count int) {
	m := ofPart.FindStringSubmatch(text)
	if m == nil {
		return all
	}
	for _, of := range strings.Split(m[1], ",") {
		from, to, isRange := strings.Cut(of, "-")
		first, _ := strconv.Atoi(from)
		last, _ := strconv.Atoi(to)
		if count++; isRange {
			count += last - first
		}
	}
	return count
}

var numbersIn = regexp.MustCompile(`\d+`)

// Whatever is known of ranks: a rank that is named isn't one that waits for another one that is named, nor outside of
// what the others are in, nor beside a cycle, and what is lost through it isn't lost elsewhere.
func TestNamesByTheFacts(t *testing.T) {
	named := map[string]int{}
	seeds := uint64(5000)
	if testing.Short() {
		seeds /= 8
	}
	for seed := range seeds {
		f := randomFacts(rand.New(rand.NewPCG(seed, 7)))
		if len(f.ranks) == 0 {
			continue
		}
		g := newGraph(pointers(f.ranks), f.calls, (*Rank).isBlocked)
		found, _ := g.find()
		byNumber := map[int]*Rank{}
		for i := range f.ranks {
			byNumber[f.ranks[i].Rank] = &f.ranks[i]
		}
		cycle := cycleOf(f.ranks)
		v := verdictOf(slices.Clone(f.ranks), slices.Clone(f.calls)...)
		problem := ""
		check := func(of []*Rank) {
			waiting := 0
			for _, r := range of {
				if slices.ContainsFunc(of, func(other *Rank) bool { return waitsForRank(r, other) }) {
					waiting++
				}
				if r.silent() && len(of) > 1 {
					problem = fmt.Sprintf("rank %d doesn't answer: it may not be the one of %d", r.Rank, len(of))
				}
				goesOn := slices.ContainsFunc(r.Threads, func(t api.Thread) bool {
					return t.Call == nil || t.Call.Seconds < 1 && !r.silent()
				})
				if goesOn && len(cycle) > 0 && v.State != WrongProgram {
					problem = fmt.Sprintf("rank %d is beside %v", r.Rank, cycle)
				}
			}
			if waiting > 0 && waiting < len(of) {
				problem = "a named one waits for another"
			}
		}
		var blamed []*Rank
		for _, i := range found.ranks {
			blamed = append(blamed, &f.ranks[i])
		}
		check(blamed)
		if v.Late != nil {
			named[v.State]++
			late := byNumber[v.Late.Rank]
			check([]*Rank{late})
			switch v.State {
			case Waits:
				if !slices.ContainsFunc(f.ranks, func(r Rank) bool { return r.Rank != late.Rank && mayWaitForRank(&r, late) }) {
					problem = "no rank waits for it"
				}
			case LateRanks, Communication, Healthy, NoCore:
				lost := 0.0
				for id, in := range f.in {
					for rank, seconds := range in {
						if r := byNumber[rank]; r != nil && rank != late.Rank && hasPartByName(r, late, id) {
							lost += seconds
						}
					}
				}
				if total := 100 * float64(partOf(v.Text, len(f.ranks))); lost/total < v.Late.Share*0.999 && v.Late.Share > 0 {
					problem = fmt.Sprintf("%g of the time is lost, at most %g where it is", v.Late.Share, lost/total)
				}
			}
			if !slices.Contains(numbersIn.FindAllString(v.Text, -1), strconv.Itoa(late.Rank)) {
				problem = "it isn't in the sentence"
			}
		}
		if !assert.Empty(t, problem, "seed %d: %s: %s; %s%s", seed, v.State, v.Text, found.text, facets(&f)) {
			return
		}
	}
	t.Log(named)
	for _, state := range []string{WrongProgram, Deadlock, Waits, LateRanks} {
		assert.Positive(t, named[state], state)
	}
}

// facets shows what is known.
func facets(f *facts) (text string) {
	for i := range f.ranks {
		r := &f.ranks[i]
		text += fmt.Sprintf("\nrank %d %s outside %g:", r.Rank, r.State, r.Time[api.Outside])
		for _, t := range r.Threads {
			if c := t.Call; c != nil {
				text += fmt.Sprintf(" %s for %g on %s number %d peers %v any %v;", c.Function, c.Seconds, c.Comm, c.Number, c.Peers,
					c.AnySource)
			} else {
				text += " outside;"
			}
		}
		for _, c := range r.Comms {
			number, known := begun(r, c.ID)
			text += fmt.Sprintf(" %s %q %d (%v) of %d, %g s;", c.ID, c.Name, number, known, c.Size, f.in[c.ID][r.Rank])
		}
	}
	return text
}
