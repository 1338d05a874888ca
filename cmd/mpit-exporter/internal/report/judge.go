package report

import (
	"math"
	"slices"
	"strings"

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
			Ended: of.State == "ended" || of.State == StateGone, EndedAt: of.EndedAt, Silent: of.State == "late", Running: of.Running}
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

// Needs is smaller the sooner somebody has to look at the job.
func (r *Report) Needs() int {
	ended := r.Job.Ended != nil
	if ended && r.Verdict.State != verdict.Broken {
		return math.MaxInt // nobody can help it
	}
	order := []string{verdict.IsHung, verdict.Broken, verdict.Waits, verdict.WaitsForOne, verdict.Communication,
		endedBadly, verdict.Healthy, verdict.Unknown}
	if ended {
		return slices.Index(order, endedBadly)
	}
	return slices.Index(order, r.Verdict.State)
}

// endedBadly stands for jobs that have ended without MPI_Finalize a while ago.
const endedBadly = ""
