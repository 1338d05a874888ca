package top

import (
	"cmp"
	"slices"
	"time"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
)

// callsOf are the functions of MPI, by object, in the order of their time.
func callsOf(r *job.Report) grid {
	g := grid{heads: []string{">SHARE", ">CALLS/s", ">MEAN", "FUNCTION", "ON", "MOST IN RANKS"}}
	list := slices.Clone(r.Calls)
	slices.SortStableFunc(list, func(a, b job.Call) int { return cmp.Compare(b.Seconds, a.Seconds) })
	for i := range list {
		c := &list[i]
		rate, took := "", ""
		if r.Seconds > 0 {
			rate = units.Number(c.Calls / r.Seconds)
		}
		if c.Calls > 0 {
			took = units.Duration(c.Seconds / c.Calls)
		}
		g.rows = append(g.rows, cells(Usual, units.Percent(c.Share), rate, took, c.Function, c.Object,
			mostIn(r, c)))
	}
	return g
}

// mostIn says which ranks have spent most of their time in a call, and how much.
func mostIn(r *job.Report, c *job.Call) string {
	shares := make([]float64, len(c.ByRank))
	most := 0.0
	for i, seconds := range c.ByRank {
		if observed := r.Ranks[i].Time.Sum(); observed > 0 {
			shares[i] = seconds / observed
		}
		most = max(most, shares[i])
	}
	switch {
	case most < 0.005:
		return "" // not told apart, or nothing to speak of
	case len(shares) > 1 && slices.Min(shares) >= most/2:
		return "all alike"
	}
	var who, others []int
	for i, share := range shares {
		if share >= most/2 {
			who = append(who, r.Ranks[i].Rank)
		} else {
			others = append(others, r.Ranks[i].Rank)
		}
	}
	text := numbers(who)
	if len(others) <= 2 && len(who) > 4 {
		text = "all but " + numbers(others)
	}
	return text + ": " + units.Percent(min(most, 1))
}

// numbers are those of ranks, in little room.
func numbers(ranks []int) string {
	return table.Shorten(units.Ranks(slices.Compact(slices.Sorted(slices.Values(ranks)))), 16)
}

// underWay is where ranks are if one of them has been in a call for more than a second.
func underWay(r *job.Report) grid {
	g := grid{heads: []string{">FOR", "CALL UNDER WAY", "ON", "RANKS", "FROM"}}
	for _, p := range r.Places() {
		took := ""
		if p.Seconds > 0 {
			took = time.Duration(p.Seconds * float64(time.Second)).Truncate(time.Second).String()
		}
		g.rows = append(g.rows, cells(Usual, took, p.Call, p.Object, numbers(p.Ranks), p.From))
	}
	return g
}

// sites are the places in the program where ranks have waited most since the job began.
func sites(r *job.Report) grid {
	g := grid{heads: []string{">WAITED IN ALL", ">CALLS", "FUNCTION", "ON", "FROM"}}
	for _, at := range r.Sites {
		g.rows = append(g.rows, cells(Usual, units.Duration(at.Waited), units.Number(at.Calls), at.Function, at.Object,
			at.From))
	}
	return g
}
