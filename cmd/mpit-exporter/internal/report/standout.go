package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
)

// A rank stands out in something if it has at least times as much of it as each of the others, of which there are at
// least two, and enough to matter. Where two ranks have much, such as those at both ends, none does.
const (
	times          = 3
	enoughBytes    = 1 << 20
	enoughMessages = 1000
	enoughSeconds  = 1 // in calls for files
)

// standOut names the ranks that have far more bytes, messages or time in files than all others.
func (v *view) standOut() section {
	s := section{Title: "Ranks that stand out", Heads: []string{">RANK", "IN", ">HAS", ">THE NEXT"}}
	ranks := v.report.Ranks
	if len(ranks) < 3 || len(ranks) < v.report.Job.WorldSize { // one that isn't seen may have more
		return s
	}
	sent, received := map[int]float64{}, map[string]float64{}
	for _, m := range v.report.Messages {
		sent[m.From] += m.Messages
		received[m.To] += m.Messages
	}
	add := func(what string, enough float64, text func(x float64) string, of func(i int) float64) {
		at := make([]int, len(ranks))
		for i := range at {
			at[i] = i
		}
		slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(of(b), of(a)) })
		if most, next := of(at[0]), of(at[1]); most >= enough && most >= times*next {
			s.add(strconv.Itoa(ranks[at[0]].Rank), what, text(most), fmt.Sprintf("%d: %s", ranks[at[1]].Rank, text(next)))
		}
	}
	for _, direction := range []string{"sent", "received", "written", "read"} {
		add("bytes "+direction, enoughBytes, units.Bytes, func(i int) float64 { return ranks[i].Bytes[direction] })
	}
	add("messages sent", enoughMessages, units.Number, func(i int) float64 { return sent[ranks[i].Rank] })
	if received["other"] == 0 { // otherwise it isn't known who
		add("messages received", enoughMessages, units.Number, func(i int) float64 {
			return received[strconv.Itoa(ranks[i].Rank)]
		})
	}
	add("time in files", enoughSeconds, units.Duration, func(i int) float64 { return ranks[i].Time[api.File] })
	return s
}
