package job

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// blocked says that most ranks are blocked where the graph doesn't show why, and writes it down. It names a rank only
// as a hint, if it can be no other one.
func (r *Report) blocked(all []*Rank, v *Verdict) bool {
	var in, elsewhere []*Rank
	shortest := 0.0
	for _, of := range all {
		switch {
		case of.ended() || of.isUnknown():
		case of.inOneCall():
			since := of.Running
			if len(of.Threads) > 0 {
				since = of.Threads[0].Call.Seconds
			}
			if in = append(in, of); len(in) == 1 || since < shortest {
				shortest = since
			}
		default:
			elsewhere = append(elsewhere, of)
		}
	}
	live := len(in) + len(elsewhere)
	mostly := len(elsewhere) == 0 || float64(len(elsewhere)) <= max(1, few*float64(live))
	switch {
	case len(in) == 0 || r.Job.WorldSize <= 1: // it waits for another world
		return false
	case !mostly && (len(in) < 2 || 2*len(in) < live):
		return false
	}
	who := fmt.Sprintf("%d of %d ranks", len(in), live)
	switch {
	case len(elsewhere) > 0:
	case len(all) < r.Job.WorldSize:
		who = plural(len(in), "the rank that is", fmt.Sprintf("all %d ranks that are", len(in))) +
			fmt.Sprintf(" observed, of %d,", r.Job.WorldSize)
	case live == 1:
		who = ranksOf(in)
	default:
		who = fmt.Sprintf("all %d ranks", len(in))
	}
	place, one := placeOf(in)
	v.State = Waits
	v.Text = fmt.Sprintf("%s %s been in %s for %s", who, plural(len(in), "has", "have"), place, seconds(shortest))
	by := r.missing(in, elsewhere)
	switch {
	case by != nil && one && r.suspects.allow(by):
		v.Late = new(lateRank(by, by.does(), 0))
		v.Text += fmt.Sprintf(", probably waiting for rank %d on %s, which %s", by.Rank, v.Late.Node, v.Late.Why)
	case len(elsewhere) > 0:
		v.Text += fmt.Sprintf(", %d %s not", len(elsewhere), plural(len(elsewhere), "is", "are"))
		if silent := slices.DeleteFunc(elsewhere, func(r *Rank) bool { return !r.silent() }); len(silent) > 0 {
			v.Text += fmt.Sprintf("; %s %s", ranksOf(silent), plural(len(silent), doesNotAnswer,
				"do not answer, as if they were stopped"))
		}
	}
	return true
}

// missing is the one rank that has part in what all others are blocked in, and isn't there; nil: there isn't one.
func (r *Report) missing(in, elsewhere []*Rank) (by *Rank) {
	long := in[0].Long
	if long == nil || isOfOtherWorlds(long.Function) {
		return nil
	}
	isNamed := long.Object != "" && long.Object != mapping.Unnamed && isCollective(long.Function)
	onIt := slices.DeleteFunc(slices.Clone(r.Calls), func(c Call) bool {
		return !isNamed || c.Kind != long.Kind || c.Object != long.Object
	})
	for _, of := range elsewhere {
		isOneOfTwo := len(in) == 1 && r.Job.WorldSize == 2 && len(elsewhere) == 1
		calls := isOneOfTwo || slices.ContainsFunc(onIt, func(c Call) bool { _, has := c.ranks[of.who()]; return has })
		if !calls || slices.ContainsFunc(in, func(r *Rank) bool { return !r.mayWaitFor(of) }) {
			continue
		}
		if by != nil {
			return nil
		}
		by = of
	}
	if by == nil || !by.keepsOthers() {
		return nil
	}
	return by
}

// mayWaitFor says that a rank, in what its threads are in, may wait for another one, as far as that is known.
func (r *Rank) mayWaitFor(by *Rank) bool {
	return len(r.Threads) == 0 || slices.ContainsFunc(r.Threads, func(t api.Thread) bool {
		c := t.Call
		switch {
		case c == nil || isOfOthers(r, c):
			return false
		case len(c.Peers) > 0 && !isOfWindow(c.Function):
			return slices.Contains(c.Peers, by.Rank)
		case c.Comm == "" || len(by.Comms) == 0:
			return true
		}
		return slices.ContainsFunc(by.Comms, func(on api.Comm) bool {
			return on.ID == c.Comm && (c.Number == 0 || on.Number == nil || *on.Number < c.Number)
		})
	})
}

// keepsOthers says that a rank that isn't blocked may be whom others wait for: it doesn't answer, or is at work outside
// MPI. One that makes calls for most of its time, polls, or is in a collective call on a file may wait for another one
// itself; of one that isn't measured nothing is known.
func (r *Rank) keepsOthers() bool {
	if r.silent() {
		return true
	}
	return !slices.ContainsFunc(r.Threads, func(t api.Thread) bool {
		return t.Call != nil && isOfAllOfFile(t.Call.Function)
	}) && (r.away() || r.Busy() >= busy)
}

// away says that no thread of the rank has begun or ended a call for long, as far as calls were seen, and that one is
// outside MPI, or in a call on a file.
func (r *Rank) away() bool {
	works, paused := false, cmp.Or(r.CPU, &api.CPU{}).Paused // when calls aren't seen
	for _, t := range r.Threads {
		since := t.Moved - paused
		if t.Call != nil {
			since = t.Call.Seconds
		}
		if since < Waiting.Seconds() {
			return false
		}
		works = works || t.Call == nil || isOfFile(t.Call.Function)
	}
	return works
}

// placeOf is the call that ranks are in, or how many there are.
func placeOf(ranks []*Rank) (place string, one bool) {
	places := map[string]bool{}
	for _, r := range ranks {
		place = r.place()
		places[place] = true
	}
	if len(places) > 1 {
		return fmt.Sprintf("%d different calls", len(places)), false
	}
	return place, true
}
