package job

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
)

// phases are the program's, those with most time first.
func (r *Report) phases() (phases []Phase) {
	in := map[string][]*Rank{}
	for i := range r.Ranks {
		for _, p := range r.Ranks[i].Phases {
			if p.State.Sum() > 0 {
				of := &r.Ranks[i]
				in[p.Name] = append(in[p.Name], &Rank{Rank: of.Rank, Dup: of.Dup, Node: of.Node, Time: p.State})
			}
		}
	}
	for name, ranks := range in {
		p := Phase{Phase: api.Phase{Name: name}, Efficiency: efficiency(ranks)}
		for _, of := range ranks {
			p.State = p.State.Plus(of.Time)
		}
		alone := Report{Job: r.Job}
		if l := alone.lateBy(ranks, (*Rank).Useful, true); l != nil && l.Share >= Late {
			p.Late = &l.LateRank
		}
		phases = append(phases, p)
	}
	slices.SortFunc(phases, func(a, b Phase) int {
		return cmp.Or(cmp.Compare(b.State.Sum(), a.State.Sum()), cmp.Compare(a.Name, b.Name))
	})
	return phases
}

// HiddenBy says that ranks which are late in one phase are early in another, so that all time together doesn't show it;
// "": that isn't so.
func (r *Report) HiddenBy(phases []Phase) string {
	whole := r.Verdict.Efficiency
	for _, p := range phases {
		if whole != nil && p.Late != nil && p.Efficiency.LoadBalance < Efficient && whole.LoadBalance >= Efficient {
			return fmt.Sprintf("Load balance is %s over all time, and %s in phase %s: ranks with less to do in one phase "+
				"have more in another.", units.Percent(whole.LoadBalance), units.Percent(p.Efficiency.LoadBalance), p.Name)
		}
	}
	return ""
}
