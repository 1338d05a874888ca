package job

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// communicator is what calls are counted on, as far as its identity is known: ranks that use objects of one name may
// have nothing to do with one another.
type communicator struct {
	kind, name string
	id         string // empty: not known
}

// on is the communicator, window or file of a rank's call.
func (r *Rank) on(c Called) communicator {
	of := communicator{c.Kind, c.Object, ""}
	for i := range r.Comms {
		if comm := &r.Comms[i]; c.Kind == "comm" && comm.Name == c.Object {
			if of.id != "" {
				return communicator{c.Kind, c.Object, ""} // there are several
			}
			of.id = comm.ID
		}
	}
	return of
}

// parts are the ranks that have worked together: those that have called on one object more than a few times or for
// long. All have called on MPI_COMM_WORLD once.
func (r *Report) parts(observed []*Rank) (parts [][]*Rank) {
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
	seen := map[communicator]int{} // one of the ranks that share it
	for c := range r.Calls {
		call := &r.Calls[c]
		if call.Object == "" || len(call.ranks) == 0 {
			continue
		}
		often := call.Calls > 3*float64(len(call.ranks))
		for i, of := range observed {
			if spent, is := call.ranks[of.who()]; is && (often || spent >= noted*of.Time.Sum()) {
				on := of.on(call.Called)
				if with, is := seen[on]; is {
					root[find(i)] = find(with)
				}
				seen[on] = i
			}
		}
	}
	if len(seen) == 0 {
		return [][]*Rank{observed}
	}
	by := map[int][]*Rank{}
	for i, of := range observed {
		by[find(i)] = append(by[find(i)], of)
	}
	for _, i := range slices.Sorted(maps.Keys(by)) {
		if len(by[i]) > 1 || len(observed) == 1 {
			parts = append(parts, by[i])
		}
	}
	return parts
}

// late is a rank that others wait for.
type late struct {
	LateRank

	where    string // in which call: " in MPI_Barrier on world"
	probably bool
}

// text says how long ranks wait for it.
func (l *late) text() string {
	hint := ""
	if l.probably {
		hint = "probably "
	}
	return fmt.Sprintf("; %s of the time ranks wait%s %sfor rank %d on %s, which %s", units.Percent(l.Share), l.where, hint,
		l.Rank, l.Node, l.Why)
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
		if found != nil && (worst == nil || worst.Share < Late && found.Share > worst.Share) {
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
	return slices.Index(lost, least), less(share, 0)
}

// lateBy finds the rank of which a share is largest.
func (r *Report) lateBy(part []*Rank, of func(r *Rank) float64, useful bool) *late {
	lost := make([]float64, len(part))
	for i := range part {
		lost[i] = 1 - of(part[i])
	}
	at, share := standsOut(lost)
	if at < 0 || share < noted {
		return nil
	}
	by := part[at]
	found := &late{lateRank(by, by.busyWith(), share), r.most(part, by), len(part) > 2 || len(r.Ranks) < r.Job.WorldSize}
	found.Useful = useful
	if !useful {
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
// least in them. All members have to be seen, and to have come equally far.
func (r *Report) lateOnOne(part []*Rank) (worst *late) {
	type spent struct {
		in    map[int]float64 // share of the time of each that has called, by its index
		most  *Call
		often bool
	}
	on := map[communicator]*spent{}
	for c := range r.Calls {
		call := &r.Calls[c]
		if !isCollective(call.Function) || call.Object == mapping.Unnamed {
			continue
		}
		for i, of := range part {
			seconds, is := call.ranks[of.who()]
			if !is {
				continue
			}
			to := of.on(call.Called)
			if on[to] == nil {
				on[to] = &spent{map[int]float64{}, call, false}
			}
			on[to].in[i] += seconds / of.Time.Sum()
			on[to].often = on[to].often || call.Calls >= 2*float64(len(call.ranks))
		}
	}
	for to, spent := range on {
		var lost []float64
		members := slices.Sorted(maps.Keys(spent.in))
		for _, i := range members {
			lost = append(lost, spent.in[i])
		}
		at, share := standsOut(lost)
		share *= float64(len(members)) / float64(len(part))
		if at < 0 || share < noted || !spent.often || to.id != "" && !allCame(part, members, to.id) {
			continue
		}
		if by := part[members[at]]; worst == nil || share > worst.Share || share == worst.Share && by.Rank < worst.Rank {
			worst = &late{lateRank(by, by.busyWith(), share), " in " + spent.most.where(), to.id == "" && len(members) > 2}
			worst.Useful = true
		}
	}
	return worst
}

// allCame says whether ranks are all members of a communicator, and have begun as many collectives on it, but for one
// that is under way.
func allCame(part []*Rank, members []int, id string) bool {
	least, most := uint64(math.MaxUint64), uint64(0)
	for _, i := range members {
		at := slices.IndexFunc(part[i].Comms, func(c api.Comm) bool { return c.ID == id })
		comm := &part[i].Comms[at]
		if comm.Size != len(members) {
			return false
		}
		if comm.Number != nil {
			least, most = min(least, *comm.Number), max(most, *comm.Number)
		}
	}
	return most <= least || most-least <= 1
}

// isCollective says whether a function may have to wait for all members of a communicator.
func isCollective(function string) bool {
	name, _ := strings.CutPrefix(function, "MPI_")
	return slices.ContainsFunc([]string{"All", "Barrier", "Bcast", "Cart_create", "Comm_", "Exscan", "Gather", "Graph_",
		"Neighbor_", "Reduce", "Scan", "Scatter", "Win_allocate", "Win_create", "Win_fence"},
		func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// most names the call in which ranks have spent most time, but for one of them that they wait for (nil: none), on an
// object that it has called on, too.
func (r *Report) most(part []*Rank, late *Rank) string {
	shared := map[communicator]bool{{}: true}
	for c := range r.Calls {
		if call := &r.Calls[c]; late != nil && call.ranks != nil {
			if _, is := call.ranks[late.who()]; is {
				shared[communicator{call.Kind, call.Object, ""}] = true
			}
		}
	}
	best, most := "", 0.0
	for c := range r.Calls {
		call, spent := &r.Calls[c], 0.0
		if call.ranks == nil {
			spent = call.Seconds
		}
		for _, of := range part {
			if of != late && (late == nil || shared[communicator{call.Kind, call.Object, ""}] &&
				of.on(call.Called) == late.on(call.Called)) {
				spent += call.ranks[of.who()]
			}
		}
		if spent > most {
			best, most = " in "+call.where(), spent
		}
	}
	finalize := 0.0
	for _, of := range part {
		finalize += of.Time[api.Finalize]
	}
	if finalize > most {
		return " in " + finalizes
	}
	return best
}

// busyWith is what a rank does when others wait for it.
func (r *Rank) busyWith() string {
	if why := r.outside(); why != "" {
		return why
	}
	if on, known := r.onCore(); known {
		return fmt.Sprintf("is on the CPU for %s of the time", units.Percent(on))
	}
	return fmt.Sprintf("is outside MPI for %s of the time", units.Percent(r.Useful()))
}

// onCore is the share of the rank's time in which its thread, or if that isn't known any, was on a core.
func (r *Rank) onCore() (share float64, known bool) {
	if r.CPU == nil || r.Time.Sum() <= 0 {
		return 0, false
	}
	on := cmp.Or(r.CPU.Thread, r.CPU.Seconds)
	if on == nil {
		return 0, false
	}
	return *on / r.Time.Sum(), true
}

// isShortOfCores says that the rank was ready to run without a core for much of its time.
func (r *Rank) isShortOfCores() bool {
	return r.CPU != nil && r.CPU.Thread != nil && r.CPU.Queue != nil && *r.CPU.Queue >= queued*r.Time.Sum()
}

// got is the share of the time in which it could run that such a rank had a core.
func (r *Rank) got() float64 { return *r.CPU.Thread / (*r.CPU.Thread + *r.CPU.Queue) }

// shortOfCores is how many ranks are, and which part of their time they got a core.
func shortOfCores(part []*Rank) (short int, got float64) {
	for _, of := range part {
		if of.isShortOfCores() {
			short++
			got += of.got()
		}
	}
	return short, got / float64(max(short, 1))
}

// idle is the share of their time in which ranks neither compute nor communicate; 0: one of them does, or it isn't
// known.
func idle(part []*Rank) (share float64) {
	for _, of := range part {
		on, known := of.onCore()
		away := of.Share(api.Outside, api.Poll)
		if !known || of.CPU.GPU || away < Efficient || on > 1-Efficient && of.Share(api.Poll) < Efficient {
			return 0
		}
		share += away / float64(len(part))
	}
	return share
}

// losing is how many ranks lose time in MPI.
func losing(part []*Rank) (ranks int) {
	for _, of := range part {
		if 1-of.Useful() >= noted {
			ranks++
		}
	}
	return ranks
}

// inTurn finds a collective of few bytes that takes far longer than those take, where no rank lacks a core: which one
// the others wait for differs from time to time.
func (r *Report) inTurn(part []*Rank) (share float64, where string) {
	total := 0.0
	for _, of := range part {
		if of.CPU == nil || of.CPU.Queue == nil || of.isShortOfCores() {
			return 0, ""
		}
		total += of.Time.Sum()
	}
	for c := range r.Calls {
		call, bytes, spent := &r.Calls[c], 0.0, 0.0
		for _, moved := range call.Bytes {
			bytes += moved
		}
		for _, of := range part {
			spent += call.ranks[of.who()]
		}
		if isCollective(call.Function) && call.Calls > 0 && bytes <= small*call.Calls && call.Seconds >= 0.01*call.Calls &&
			spent/total > share {
			share, where = spent/total, " in "+call.where()
		}
	}
	if share < Late {
		return 0, ""
	}
	return share, where
}
