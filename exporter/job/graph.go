package job

import (
	"cmp"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// graph says who waits for whom. Its nodes are ranks and what they are blocked in, never pairs of ranks: of 100,000
// that wait for a message of any rank there would be 10^10.
type graph struct {
	ranks  []*Rank
	calls  map[Called]*Call // that they have made
	number map[int]int      // index by number in MPI_COMM_WORLD; -1: there are several
	groups map[string]*group
	waits  []*wait
	of     [][]*wait // of each rank, one for each of its threads; none: it isn't blocked
	// free are ranks that can go on, once others have: all but the deadlocked.
	free  []bool
	edges int // targets of all waits
	// short is the graph of calls that have just begun to last, and of what silent ranks were in. nil: there are none.
	short    *graph
	suspects suspects
}

// group is a communicator, as far as its members are seen.
type group struct {
	*api.Comm

	members []member // by number, the smallest first; -1: not known
	out     *int     // as outOfExchange says; nil: it hasn't been asked
}

type member struct {
	at     int // index of the rank
	number int64
}

// wait is a call that threads are blocked in: all of one collective, or one.
type wait struct {
	call *api.CallUnderWay
	// shortest is how long it has lasted for all of its ranks, in seconds.
	shortest float64
	ranks    []int
	// targets are the ranks that it waits for: for each of them if all, otherwise one is enough. None: they aren't known,
	// or there are none, as what it does goes on.
	targets []int
	unseen  bool // it may wait for ranks that aren't seen
	all     bool
	certain bool // MPI says so; otherwise libraries do, mostly
	left    int  // how many of the targets have to become free until it is over
}

// isMessage says that it waits for a message, or for the rank that takes one.
func (w *wait) isMessage() bool {
	return w.call.Number == 0 && (len(w.call.Peers) > 0 || w.call.AnySource) && !isOfWindow(w.call.Function)
}

// newGraph makes the graph of all that is known of a job's ranks at one moment, of the calls that they have made, and
// of which are blocked. The ranks have been asked within less than Waiting: calls that have lasted for so long were all
// under way when the first of them was.
func newGraph(ranks []*Rank, calls []Call, blocked func(*Rank) bool) *graph {
	g := &graph{ranks: ranks, calls: map[Called]*Call{}, number: map[int]int{}, groups: map[string]*group{},
		of: make([][]*wait, len(ranks)), free: make([]bool, len(ranks)), suspects: suspects{}}
	for i, r := range ranks {
		if _, twice := g.number[r.Rank]; twice {
			i = -1
		}
		g.number[r.Rank] = i
	}
	for c := range calls {
		g.calls[calls[c].Called] = &calls[c]
	}
	g.addGroups()
	same := map[operation]*wait{}
	for i, r := range ranks {
		if blocked(r) {
			for t := range r.Threads {
				g.addWait(i, r.Threads[t].Call, same)
			}
		}
	}
	for _, w := range g.waits {
		g.aim(w)
	}
	g.release()
	return g
}

func (g *graph) addGroups() {
	for i, r := range g.ranks {
		for c := range r.Comms {
			comm := &r.Comms[c]
			if g.groups[comm.ID] == nil {
				g.groups[comm.ID] = &group{Comm: comm}
			}
			to := g.groups[comm.ID]
			if n := len(to.members); n > 0 && to.members[n-1].at == i {
				continue
			}
			m := member{i, -1}
			if comm.Number != nil {
				m.number = bounded(*comm.Number)
			}
			for t := range r.Threads { // what is read a moment later may know of one more
				if c := r.Threads[t].Call; c != nil && c.Comm == comm.ID && c.Number > 0 {
					m.number = max(m.number, bounded(c.Number))
				}
			}
			to.members = append(to.members, m)
		}
	}
	for _, of := range g.groups {
		slices.SortStableFunc(of.members, func(a, b member) int { return cmp.Compare(a.number, b.number) })
	}
}

func bounded(number uint64) int64 { return int64(min(number, 1<<62)) }

// addWait notes what a rank's thread is blocked in. Ranks that wait for the same ones share it.
func (g *graph) addWait(rank int, c *api.CallUnderWay, same map[operation]*wait) {
	key := operationOf(c)
	of := g.groups[c.Comm]
	isOfTwo := of != nil && of.Size <= 2
	shares := c.Number > 0 || c.AnySource || (isOfWindow(c.Function) || isExchange(c.Function)) && !isOfTwo ||
		c.Function == finalizes
	w := same[key]
	if w == nil || !shares {
		w = &wait{call: c, shortest: c.Seconds}
		g.waits = append(g.waits, w)
		same[key] = w
	}
	w.ranks, w.shortest = append(w.ranks, rank), min(w.shortest, c.Seconds)
	g.of[rank] = append(g.of[rank], w)
}

// mostEdges is of how many targets a graph may have: ranks in as many operations would have the square of them. What
// other calls wait for isn't known.
const mostEdges = 1 << 20

// aim finds out whom a call waits for.
func (g *graph) aim(w *wait) {
	if g.edges >= mostEdges {
		return
	}
	defer func() { g.edges += len(w.targets) }()
	c := w.call
	of := g.groups[c.Comm]
	known := of != nil && !of.Inter
	w.unseen = of != nil && len(c.Peers) == 0 && !of.complete(false) || isOfOthers(g.ranks[w.ranks[0]], c)
	switch {
	case c.Function == finalizes: // libraries let no rank go before all are there
		w.all = true
		for i, r := range g.ranks {
			if !r.ended() && !r.isIn(c) {
				w.targets = append(w.targets, i)
			}
		}
		w.targets = g.answering(w, w.targets)
	case c.Number > 0 && known && api.Holds(blocking(c)):
		w.all, w.targets = true, g.answering(w, g.behindOn(of, c.Number))
		call := Call{Called: Called{c.Function, c.Kind, c.Object}}
		if made := g.calls[call.Called]; made != nil {
			call = *made
		}
		w.certain = c.Of == "" && call.synchronises()
	case c.Number > 0 && known && c.Of == "" && of.complete(true): // it waits for some of them, or not at all
		w.targets = g.behindOn(of, c.Number)
	case c.Number > 0:
	case isExchange(c.Function) && (of == nil || of.Size != 2):
		if left := g.outOfExchange(of); left >= 0 {
			w.targets = []int{left}
		}
		w.unseen = len(w.targets) == 0
	case len(c.Peers) > 0 && !isOfWindow(c.Function):
		w.all = c.All || len(c.Peers) == 1
		w.targets = g.peers(w)
	case known && of.complete(false) && (c.AnySource || isOfWindow(c.Function)):
		// Who holds the lock of a window, or hasn't posted or completed it, isn't known: any of them.
		for _, m := range of.members {
			isOther := m.at != w.ranks[0] || of.Size > 2 // of two, none waits for itself
			if c.AnySource || isOther && (c.Function != "MPI_Win_fence" || !g.ranks[m.at].isIn(c)) {
				w.targets = append(w.targets, m.at)
			}
		}
	}
	if w.left = len(w.targets); !w.all {
		w.left = min(w.left, 1)
	}
}

// complete says that all members are seen, and that all their numbers are known, if that matters.
func (of *group) complete(numbers bool) bool {
	return len(of.members) >= of.Size && (!numbers || of.members[0].number >= 0)
}

// behindOn are the members of a communicator that have begun fewer collectives. One that doesn't answer may have come
// since; that it hasn't is known if no other one can be missing.
func (g *graph) behindOn(of *group, number uint64) (ranks []int) {
	complete := of.complete(false)
	for _, m := range of.members {
		if m.number >= 0 && uint64(m.number) < number && (complete || !g.ranks[m.at].silent()) {
			ranks = append(ranks, m.at)
		}
	}
	return ranks
}

// answering are those that a call waits for which answer, or the only one there is. Of several that don't, some may
// have come since.
func (g *graph) answering(w *wait, ranks []int) []int {
	if len(ranks) < 2 {
		return ranks
	}
	ranks = slices.DeleteFunc(ranks, func(i int) bool { return g.ranks[i].silent() })
	w.unseen = w.unseen || len(ranks) == 0
	return ranks
}

// peers are those of a message call, but for the ones that take part in it: what is on its way isn't waited for.
func (g *graph) peers(w *wait) (ranks []int) {
	for _, peer := range w.call.Peers {
		at, seen := g.number[peer]
		w.unseen = w.unseen || !seen
		switch {
		case !seen || at < 0 || at == w.ranks[0] || g.transfers(w, at):
			if !w.all {
				return nil // it may be over at any time
			}
		default:
			ranks = append(ranks, at)
		}
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}

// outOfExchange is the one member of a communicator that isn't in an exchange, where all others are and one receives
// from it; -1: that isn't so, or isn't known. They may all wait for it: of whom they send to agents don't tell. If none
// receives from it, they may exchange among themselves.
func (g *graph) outOfExchange(of *group) int {
	switch {
	case of == nil || !of.complete(false):
		return -1
	case of.out != nil:
		return *of.out
	}
	out, sources := -1, map[int]bool{}
	of.out = &out // what it will be when this returns
	for _, m := range of.members {
		isIn := false
		for _, t := range g.ranks[m.at].Threads {
			if c := t.Call; c != nil && c.Comm == of.ID && isExchange(c.Function) && !g.ranks[m.at].silent() &&
				c.Seconds >= api.LongCallTime.Seconds() {
				isIn = true
				for _, from := range c.Peers {
					sources[from] = true
				}
			}
		}
		switch {
		case isIn:
		case out >= 0:
			out = -1
			return out
		default:
			out = m.at
		}
	}
	if out >= 0 && !sources[g.ranks[out].Rank] {
		out = -1
	}
	return out
}

// isOfOthers says that a rank's call may wait for processes of other worlds.
func isOfOthers(r *Rank, c *api.CallUnderWay) bool {
	return isOfOtherWorlds(c.Function) || c.Kind == "comm" && c.Comm == "" && len(r.Comms) > 0
}

// transfers says whether a rank is in a call that a message call may match.
func (g *graph) transfers(w *wait, with int) bool {
	me := g.ranks[w.ranks[0]].Rank
	sends, receives := directions(w.call.Function)
	return slices.ContainsFunc(g.ranks[with].Threads, func(t api.Thread) bool {
		c := t.Call
		if c == nil || c.Number > 0 {
			return false
		}
		sameComm := c.Comm == "" || w.call.Comm == "" || c.Comm == w.call.Comm
		switch {
		case isExchange(c.Function) && receives && sameComm && !g.ranks[with].silent(): // perhaps it sends to this one
			w.unseen = true
			return true
		case !c.AnySource && !slices.Contains(c.Peers, me):
			return false
		}
		itSends, itReceives := directions(c.Function)
		sameTag := c.Tag == nil || w.call.Tag == nil || *c.Tag == *w.call.Tag
		return sameTag && sameComm && (sends && itReceives || receives && itSends)
	})
}

// release finds the ranks that can go on: those that aren't blocked, and then those that wait for them. The ended
// never do anything.
func (g *graph) release() {
	watched := make([][]*wait, len(g.ranks))
	for _, w := range g.waits {
		for _, target := range w.targets {
			watched[target] = append(watched[target], w)
		}
	}
	var next []int
	release := func(ranks ...int) {
		for _, i := range ranks {
			if !g.free[i] {
				g.free[i] = true
				next = append(next, i)
			}
		}
	}
	for i, r := range g.ranks {
		if len(g.of[i]) == 0 && !r.ended() {
			release(i)
		}
	}
	for _, w := range g.waits {
		if w.left == 0 {
			release(w.ranks...)
		}
	}
	for len(next) > 0 {
		rank := next[len(next)-1]
		next = next[:len(next)-1]
		for _, w := range watched[rank] {
			if w.left--; w.left == 0 {
				release(w.ranks...)
			}
		}
	}
}
