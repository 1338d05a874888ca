package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/verdict"
)

// endsWell is the reason of an orderly end.
const endsWell = "finalize"

// judge says what is to be said of the job.
func (r *Report) judge() verdict.Verdict {
	var ranks []verdict.Rank
	for i := range r.Ranks {
		of := &r.Ranks[i]
		rank := verdict.Rank{Rank: of.Rank, Dup: of.Dup, Node: table.Clean(of.Node), Observed: of.Observed,
			Inside: of.Inside, Send: of.Kind.Send, Wait: of.Kind.Wait, Collective: of.Kind.Collective, File: of.Kind.File,
			Ended: of.State == "ended" || of.State == stateGone, Silent: of.State == "late", Running: of.Running}
		if of.End != endsWell {
			rank.Broken = of.End
		}
		if of.Long != nil {
			rank.Function, rank.Object = table.Clean(of.Long.Function), table.Clean(of.Long.Object)
		}
		ranks = append(ranks, rank)
	}
	where := ""
	if len(r.Calls) > 0 {
		where = strings.TrimSpace(table.Clean(r.Calls[0].Function) + " on " + table.Clean(r.Calls[0].Object))
		where = strings.TrimSuffix(where, " on")
	}
	return verdict.Of(ranks, r.Job.WorldSize, where)
}

func (v *view) efficiency() section {
	e := v.report.Verdict.Efficiency
	if e == nil {
		return section{}
	}
	s := section{Title: "Efficiency", Heads: []string{"", "", ""}}
	for _, of := range []struct {
		name  string
		value float64
		is    string
	}{
		{"parallel", e.Parallel, "useful time of the mean rank: load balance x communication"},
		{"load balance", e.LoadBalance, "between nodes x within nodes"},
		{"  between nodes", e.BetweenNodes, "mean rank / mean rank of the node with most useful time"},
		{"  within nodes", e.WithinNodes, "that one / rank with most useful time"},
		{"communication", e.Communication, "useful time of the rank that has most"},
	} {
		s.Rows = append(s.Rows, row{Cells: []string{of.name, percent(of.value), of.is},
			Parts: []part{{"useful", of.value}}})
	}
	if size := v.report.Job.WorldSize; e.Ranks < size {
		s.Notes = append(s.Notes, fmt.Sprintf("Of %d of %d ranks: the others are not observed.", e.Ranks, size))
	}
	return s
}

// underWay is where ranks are that have been in a call for longer than a second.
func (v *view) underWay() section {
	type place struct{ function, object, from string }
	var places []place
	ranks, longest := map[place][]int{}, map[place]float64{}
	for i := range v.report.Ranks {
		r := &v.report.Ranks[i]
		if r.Long == nil {
			continue
		}
		p := place{r.Long.Function, r.Long.Object, r.Place}
		if p.from == "" && r.Long.Module != "" {
			p.from = fmt.Sprintf("%s+%#x", r.Long.Module, r.Long.Offset)
		}
		if ranks[p] == nil {
			places = append(places, p)
		}
		ranks[p] = append(ranks[p], r.Rank)
		longest[p] = max(longest[p], r.Running)
	}
	s := section{Title: "Calls under way", Heads: []string{"FOR", "CALL", "ON", "RANKS", "FROM"}}
	for _, p := range places {
		s.Rows = append(s.Rows, row{Cells: []string{
			time.Duration(longest[p] * float64(time.Second)).Truncate(time.Second).String(), p.function, p.object,
			table.Shorten(table.Numbers(ranks[p]), table.MaxCell), p.from}})
	}
	return s
}
