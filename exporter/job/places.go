package job

import (
	"cmp"
	"fmt"
	"slices"
)

// Place is where some ranks are.
type Place struct {
	Call    string  // function, or in brackets why there is none
	Object  string  // that it names; empty: none
	From    string  // the code that has called it, or module and offset; empty: not known
	Ranks   []int   // sorted
	Seconds float64 // how long the longest of them has been in the call
}

// Places are where the ranks are that have not ended, or have ended in a call: calls that have taken longest come
// first. nil: none is in a call that has taken longer than a second.
func (r *Report) Places() []*Place {
	var places []*Place
	stuck := false
	for i := range r.Ranks {
		of := &r.Ranks[i]
		at := Place{Call: "(in no long call)"}
		switch {
		case (of.State == "ended" || of.State == StateGone) && (of.Long == nil || of.End == ""):
			continue
		case of.silent():
			at.Call = "(does not answer)"
		case of.Long != nil:
			stuck = true
			at = Place{Call: of.Long.Function, Object: of.Long.Object, From: of.Place, Seconds: of.Running}
			if at.From == "" && of.Long.Module != "" {
				at.From = fmt.Sprintf("%s+%#x", of.Long.Module, of.Long.Offset)
			}
		}
		j := slices.IndexFunc(places, func(p *Place) bool {
			return p.Call == at.Call && p.Object == at.Object && p.From == at.From
		})
		if j < 0 {
			j, places = len(places), append(places, &at)
		}
		places[j].Ranks = append(places[j].Ranks, of.Rank)
		places[j].Seconds = max(places[j].Seconds, at.Seconds)
	}
	if !stuck {
		return nil
	}
	for _, p := range places {
		slices.Sort(p.Ranks)
	}
	slices.SortStableFunc(places, func(a, b *Place) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return places
}
