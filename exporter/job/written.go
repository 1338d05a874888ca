package job

import (
	"cmp"
	"slices"
	"strings"
)

// mostFunctions is of how many functions a rank's time is written, those with most.
const mostFunctions = 8

// Written is the report as files have it: each rank has its functions, and calls don't have their ranks.
func (r *Report) Written() *Report {
	of := r.WithRanks(0)
	of.Ranks, of.Phases = slices.Clone(r.Ranks), r.phases()
	by := map[who]map[string]float64{}
	for i := range r.Calls {
		c := &r.Calls[i]
		for rank, seconds := range c.ranks {
			if by[rank] == nil {
				by[rank] = map[string]float64{}
			}
			by[rank][c.Function] += seconds
		}
	}
	for i := range of.Ranks {
		to := &of.Ranks[i]
		var all []FunctionTime
		for function, seconds := range by[to.who()] {
			all = append(all, FunctionTime{function, seconds})
		}
		slices.SortFunc(all, func(a, b FunctionTime) int {
			return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), strings.Compare(a.Function, b.Function))
		})
		if len(all) > 0 { // otherwise the report was read, and has them
			to.Functions = all[:min(len(all), mostFunctions)]
		}
	}
	of.Locate()
	return of
}
