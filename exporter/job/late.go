package job

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// communicator is what calls are counted on, as far as its identity is known: ranks that use objects of one name may
// have nothing to do with one another.
type communicator struct {
	kind, name string
	id         string // empty: not known
	size       int    // -1: the rank has several of that name
}

// on is the communicator, window or file of a rank's call.
func (r *Rank) on(c Called) communicator {
	of := communicator{kind: c.Kind, name: c.Object}
	for i := range r.Comms {
		if comm := &r.Comms[i]; c.Kind == "comm" && comm.Name == c.Object {
			if of.id != "" {
				return communicator{kind: c.Kind, name: c.Object, size: -1} // there are several
			}
			of.id, of.size = comm.ID, comm.Size
		}
	}
	return of
}

// placesOf finds ranks in a list.
func placesOf(ranks []*Rank) map[who]int {
	index := make(map[who]int, len(ranks))
	for i, of := range ranks {
		index[of.who()] = i
	}
	return index
}

// callers are those of the ranks in an index that have made the call, in the list's order. A job may have as many calls
// as ranks, each of one rank.
func (c *Call) callers(index map[who]int) (at []int) {
	for by := range c.ranks {
		if i, is := index[by]; is {
			at = append(at, i)
		}
	}
	slices.Sort(at)
	return at
}

// parts are the ranks that have worked together: those that are in a communicator, or have called on a window or file,
// on which one of them has called; in a whole run, more than a few times or for long, as all have called on
// MPI_COMM_WORLD once. Where it isn't known which communicators ranks are in, all are one part.
func (r *Report) parts(observed []*Rank) (parts [][]*Rank) {
	if slices.ContainsFunc(observed, func(of *Rank) bool { return len(of.Comms) == 0 }) {
		return [][]*Rank{observed}
	}
	root := make([]int, len(observed))
	for i := range root {
		root[i] = i
	}
	find := func(i int) int {
		for root[i] != i {
			root[i] = root[root[i]]
			i = root[i]
		}
		return i
	}
	index := placesOf(observed)
	used := map[communicator]int{} // and one of the ranks that share it
	for c := range r.Calls {
		call := &r.Calls[c]
		often := !r.Whole || call.Calls > 3*float64(len(call.ranks))
		for _, i := range call.callers(index) {
			of := observed[i]
			if call.Object != "" && (often || call.ranks[of.who()] >= noted*of.Time.Sum()) {
				on := of.on(call.Called)
				if with, is := used[on]; is {
					root[find(i)] = find(with)
				}
				used[on] = i
			}
		}
	}
	if len(used) == 0 { // by whom calls were made isn't known
		return [][]*Rank{observed}
	}
	for i, of := range observed {
		for _, c := range of.Comms {
			if with, is := used[communicator{"comm", c.Name, c.ID, c.Size}]; is {
				root[find(i)] = find(with)
			}
		}
	}
	by := map[int][]*Rank{}
	for i, of := range observed {
		by[find(i)] = append(by[find(i)], of)
	}
	for _, i := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, by[i])
	}
	return parts
}

// callsOf are the calls of each part, in their order.
func (r *Report) callsOf(parts [][]*Rank) [][]Call {
	calls := make([][]Call, len(parts))
	if len(parts) == 1 {
		calls[0] = r.Calls
		return calls
	}
	partOf := map[who]int{}
	for i, part := range parts {
		for _, of := range part {
			partOf[of.who()] = i
		}
	}
	for c := range r.Calls {
		in := map[int]bool{}
		for by := range r.Calls[c].ranks {
			if i, is := partOf[by]; is && !in[i] {
				in[i] = true
				calls[i] = append(calls[i], r.Calls[c])
			}
		}
	}
	return calls
}

// late is a rank that others wait for.
type late struct {
	LateRank

	in       *Call // in which they wait; nil: not known
	probably bool
	proved   bool // by a collective that no rank leaves before all have come
	waitsToo bool // in MPI itself meanwhile: it comes last, but isn't late
}

// isVerdict says that it is late enough for that.
func (l *late) isVerdict() bool { return !l.waitsToo && l.Share >= Late }

// beats says that it is to be named rather than another one.
func (l *late) beats(other *late) bool {
	switch {
	case other == nil:
		return true
	case l.isVerdict() != other.isVerdict():
		return l.isVerdict()
	}
	return cmp.Or(cmp.Compare(l.Share, other.Share), cmp.Compare(other.Rank, l.Rank)) > 0
}

// text says how long ranks wait for it.
func (l *late) text() string {
	where := ""
	if l.in != nil {
		where = " in " + l.in.where()
	}
	if l.probably {
		where += " probably"
	}
	return fmt.Sprintf("; %s of the time ranks wait%s for rank %d on %s, which %s", units.Percent(l.Share), where, l.Rank,
		l.Node, l.Why)
}

// lateRank makes one of a rank that others wait for.
func lateRank(by *Rank, why string, share float64) LateRank {
	return LateRank{Rank: by.Rank, Dup: by.Dup, Node: mapping.OneLine(by.Node), Why: why, Share: share}
}

// late finds the rank that others wait for: of the members of a communicator in its collectives, or else of all by what
// it doesn't wait. nil: none stands out.
func (r *Report) late(part []*Rank) (worst *late) {
	for _, found := range []*late{r.lateOnOne(part), r.lateBy(part, (*Rank).Useful, true),
		r.lateBy(part, (*Rank).Busy, false)} {
		if found == nil || worst != nil && (worst.isVerdict() || worst.proved && !found.isVerdict()) {
			continue
		}
		if worst != nil && worst.waitsToo && found.in != nil &&
			found.in.Kind == worst.in.Kind && found.in.Object == worst.in.Object {
			continue // it doesn't come last there
		}
		if found.beats(worst) {
			worst = found
		}
	}
	return worst
}

// standsOut is which of some ranks has lost clearly less time than all others, and how much the mean one has lost
// through it; -1: none, or only one rank has lost any, which may wait by design.
func standsOut(lost []float64) (at int, share float64) {
	if len(lost) < 2 {
		return -1, 0
	}
	sorted := slices.Sorted(slices.Values(lost))
	least, losing := sorted[0], 0
	for _, of := range lost {
		share += (of - least) / float64(len(lost))
		if of-least >= noted {
			losing++
		}
	}
	if losing < min(2, len(lost)-1) || sorted[1]-least < (sorted[len(sorted)-1]-least)/3 {
		return -1, 0
	}
	return slices.Index(lost, least), grown(share, 0)
}

// lateBy finds the rank of which a share is largest.
func (r *Report) lateBy(part []*Rank, of func(r *Rank) float64, useful bool) *late {
	lost := make([]float64, len(part))
	for i := range part {
		lost[i] = 1 - of(part[i])
	}
	at, share := standsOut(lost)
	if at < 0 {
		return nil
	}
	by := part[at]
	call, _, elsewhere := r.most(part, by)
	if share -= elsewhere; share < noted {
		return nil
	}
	found := &late{LateRank: lateRank(by, by.busyWith(), share), in: call,
		probably: len(part) > 2 || len(r.Ranks) < r.Job.WorldSize}
	if found.Useful = useful; !useful {
		found.Why = "waits least for others"
		switch {
		case by.Share(api.File) >= max(by.Share(api.Send), noted):
			found.Why = "works on files"
		case by.Share(api.Send) >= noted:
			found.Why = "takes long to send: its network is slow or that of whom it sends to, or it sends more"
		}
	}
	return found
}

// lateOnOne finds the rank that the members of one communicator wait for in its collectives: who comes last spends
// least in them. All members have to be seen.
func (r *Report) lateOnOne(part []*Rank) (worst *late) {
	type spent struct {
		in   map[int]float64 // share of the time of each that has called, by its index
		most *Call           // calls are sorted
	}
	index, on := placesOf(part), map[communicator]*spent{}
	for c := range r.Calls {
		call := &r.Calls[c]
		if !isCollective(call.Function) || call.Object == mapping.Unnamed || call.Calls < 2*float64(len(call.ranks)) {
			continue
		}
		for _, i := range call.callers(index) {
			of := part[i]
			to := of.on(call.Called)
			if to.size < 0 {
				continue
			}
			if on[to] == nil {
				on[to] = &spent{map[int]float64{}, call}
			}
			on[to].in[i] += call.ranks[of.who()] / of.Time.Sum()
		}
	}
	for to, spent := range on {
		var lost []float64
		members, elsewhere := slices.Sorted(maps.Keys(spent.in)), 0.0
		for _, i := range members {
			lost = append(lost, spent.in[i])
			elsewhere += part[i].waitsBeside(spent.in[i]) / float64(len(members))
		}
		at, share := standsOut(lost)
		if at < 0 || to.id != "" && to.size != len(members) {
			continue
		}
		by, proved := part[members[at]], to.id != "" && spent.most.synchronises()
		found := &late{in: spent.most, probably: !proved && len(members) > 2, proved: proved,
			waitsToo: by.waitsBeside(lost[at])-elsewhere >= share/2}
		share *= float64(len(members)) / float64(len(part))
		if found.LateRank = lateRank(by, by.busyWith(), share); found.waitsToo {
			found.Why = fmt.Sprintf("comes last, and waits in MPI itself for %s of the time", units.Percent(1-by.Busy()))
		}
		found.Useful = true
		if share >= noted && found.beats(worst) {
			worst = found
		}
	}
	return worst
}

// waitsBeside is the share of its time that the rank waits for others beside that in some calls.
func (r *Rank) waitsBeside(in float64) float64 { return max(1-r.Busy()-in, 0) }

// most is the call in which ranks have spent most time, but for one that they wait for (nil: none), on an object that
// it has called on, too; nil: none. elsewhere is the share of their time in calls on communicators that it isn't in.
func (r *Report) most(part []*Rank, late *Rank) (most *Call, seconds, elsewhere float64) {
	index, shared := placesOf(part), map[[2]string]bool{{}: true} // by kind and name
	for c := range r.Calls {
		call := &r.Calls[c]
		if late == nil {
			break
		}
		if _, is := call.ranks[late.who()]; is || late.on(call.Called).id != "" {
			shared[[2]string{call.Kind, call.Object}] = true
		}
	}
	finalize, total := 0.0, 0.0
	for _, of := range part {
		finalize += of.Time[api.Finalize]
		total += of.Time.Sum()
	}
	if finalize > 0 {
		most, seconds = &Call{Called: Called{Function: finalizes}}, finalize
	}
	for c := range r.Calls {
		call, spent := &r.Calls[c], 0.0
		if call.ranks == nil {
			spent = call.Seconds
		}
		for _, i := range call.callers(index) {
			switch of := part[i]; {
			case late != nil && of.callsWithout(late, call.Called):
				elsewhere += call.ranks[of.who()] / total
			case of != late && (late == nil || shared[[2]string{call.Kind, call.Object}] &&
				of.on(call.Called) == late.on(call.Called)):
				spent += call.ranks[of.who()]
			}
		}
		if spent > seconds {
			most, seconds = call, spent
		}
	}
	return most, seconds, elsewhere
}

// usage is how ranks use their cores and MPI.
type usage struct {
	short  []*Rank // that work and have no core, as far as they are known; all, if each lacks one for long
	got    float64 // what part of their time these got one, in the mean
	away   float64 // share of time in which all neither compute nor communicate; 0: one does, or it isn't known
	losing int     // ranks that lose time in MPI
	known  bool    // how long all were without a core
	young  bool    // of one that isn't known yet
}

// usageOf takes the shares from which on ranks have no core, all of them have none, and they are idle.
func usageOf(part []*Rank, shortFrom, allFrom, idleFrom float64) usage {
	u := usage{known: true}
	idle, starving, got := true, true, 0.0
	for _, of := range part {
		// Ranks that wait in MPI without a core may lose nothing: a rank that sleeps may be whom they wait for.
		if of.queued()-max(1-of.Useful(), 0) >= shortFrom {
			u.short = append(u.short, of)
			u.got += of.got()
		}
		starving = starving && of.queued() >= allFrom
		got += of.got()
		on, known := of.ready()
		away := of.Share(api.Outside, api.Poll)
		u.away += away / float64(len(part))
		polls := of.Share(api.Poll) >= idleFrom
		idle = idle && away >= idleFrom && of.others() < noted && (polls || known && !of.CPU.GPU && on <= 1-idleFrom)
		if 1-of.Useful() >= noted {
			u.losing++
		}
		queues := of.CPU != nil && of.CPU.Queue != nil
		u.known, u.young = u.known && queues && of.cpu() != nil, u.young || queues && of.young
	}
	if starving {
		u.short, u.got = part, got
	}
	u.got /= float64(max(len(u.short), 1))
	if !idle {
		u.away = 0
	}
	return u
}
