package movement

import (
	"fmt"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/terminal"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/verdict"
)

// endsWell is the reason of an orderly end.
const endsWell = "finalize"

// job is the ranks of one world on this node, as they were between the two looks.
type job struct {
	world rankKey // but its rank and dup
	ranks []verdict.Rank
	size  int // of its world
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
	}
	return list
}

// writeJobs writes a line for each job whose calls are measured: at most so many. There is nothing to write if there
// are none.
func (m *Movement) writeJobs(b *strings.Builder, room int) {
	if len(m.callsBefore) == 0 || m.elapsed == 0 {
		return
	}
	t := table.New(b)
	table.Line(t, "JOBID", "WORLD", "USER", "RANKS HERE", "PARALLEL", "BALANCE", "COMMUNICATION",
		"VERDICT, OF THIS NODE"+terminal.Heading)
	written := 0
	for _, j := range m.jobs() {
		v := verdict.Of(j.ranks, j.size, "")
		e := v.Efficiency
		if e == nil || written == room {
			continue
		}
		written++
		table.Row(t, j.world.jobID, j.world.world, j.world.user, fmt.Sprintf("%d of %d", e.Ranks, j.size),
			percent(e.Parallel), percent(e.LoadBalance), percent(e.Communication), v.Text)
	}
	if written == 0 {
		return
	}
	_ = t.Flush()
	b.WriteString("\n")
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
