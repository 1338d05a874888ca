package movement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/terminal"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/verdict"
)

// endsWell is the reason of an orderly end.
const endsWell = "finalize"

// job is the ranks of one world on this node, as they were between the two looks.
type job struct {
	world    rankKey // but its rank and dup
	ranks    []verdict.Rank
	size     int  // of its world
	profiled bool // a rank has a call profile
}

// jobs are those of which a rank has a call profile, in the order of the ranks.
func (m *Movement) jobs() []*job {
	found := map[rankKey]*job{}
	var list []*job
	for i := range m.ranks {
		r := &m.ranks[i].Rank
		world := rankKey{jobID: r.JobID, world: r.World, user: r.User}
		of := verdict.Rank{Rank: r.Rank, Dup: r.Dup, Node: r.Host, Ended: r.State == "ended", Silent: r.State == "late"}
		if of.Ended && r.EndReason != endsWell {
			of.Broken = r.EndReason
		}
		now, before := m.calls[keyOf(r)], m.callsBefore[keyOf(r)]
		if now != nil && before != nil && answers(r) {
			of.Observed, of.Inside = now.Observed-before.Observed, now.Inside-before.Inside
			of.Send, of.Wait = now.Kind.Send-before.Kind.Send, now.Kind.Wait-before.Kind.Wait
			of.Collective, of.File = now.Kind.Collective-before.Kind.Collective, now.Kind.File-before.Kind.File
			of.Running = now.Running
			if now.Long != nil {
				of.Function, of.Object = now.Long.Function, now.Long.Object
			}
		}
		if found[world] == nil {
			found[world] = &job{world: world}
			list = append(list, found[world])
		}
		j := found[world]
		j.ranks, j.size = append(j.ranks, of), max(j.size, r.WorldSize)
		j.profiled = j.profiled || now != nil
	}
	return slices.DeleteFunc(list, func(j *job) bool { return !j.profiled })
}

// writeJobs writes a line for each job whose calls are measured, at most so many, and under them what is to be said of
// each: a sentence would find no room in a narrow terminal behind the figures. There is nothing to write if there are
// none.
func (m *Movement) writeJobs(b *strings.Builder, room int) {
	if len(m.callsBefore) == 0 || m.elapsed == 0 {
		return
	}
	var sentences strings.Builder
	t := table.New(b)
	table.Line(t, "JOBID", "WORLD", "USER", "RANKS HERE", "PARALLEL", "BALANCE", "COMMUNICATION"+terminal.Heading)
	said, left := 0, 0
	for _, j := range m.jobs() {
		v := verdict.Of(j.ranks, j.size, "")
		switch {
		case v.State == verdict.Unknown: // paused, or it has ended in order
			continue
		case said == room:
			left++
			continue
		}
		said++
		ranks, parallel, balance, communication := 0, "", "", "" // no rank has answered
		if e := v.Efficiency; e != nil {
			ranks, parallel, balance, communication = e.Ranks, verdict.Percent(e.Parallel), verdict.Percent(e.LoadBalance),
				verdict.Percent(e.Communication)
		}
		table.Row(t, j.world.jobID, j.world.world, j.world.user, fmt.Sprintf("%d of %d", ranks, j.size), parallel,
			balance, communication)
		fmt.Fprintf(&sentences, "%s: %s\n", table.Clean(j.world.jobID), table.Clean(v.Text))
	}
	if said == 0 {
		return
	}
	_ = t.Flush()
	b.WriteString(sentences.String())
	if left > 0 {
		fmt.Fprintf(b, "… and %d more\n", left)
	}
	b.WriteString("\n")
}
