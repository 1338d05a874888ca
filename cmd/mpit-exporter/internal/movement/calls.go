package movement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/terminal"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// rankKey names a rank.
type rankKey struct {
	jobID, world, user string
	rank, dup          int
}

func keyOf(r *api.RankStatus) rankKey { return rankKey{r.JobID, r.World, r.User, r.Rank, r.Dup} }

// answers says whether what a rank has said is of this look.
func answers(r *api.RankStatus) bool {
	return r.State != "late" && r.State != "ended" && r.State != "new"
}

// takeCalls keeps what the ranks' call profiles say, for the shares of the next look.
func (m *Movement) takeCalls(ranks []api.RankValues) {
	m.callsBefore, m.calls = m.calls, map[rankKey]*api.Calls{}
	for i := range ranks {
		if r := &ranks[i].Rank; r.Calls != nil {
			m.calls[keyOf(r)] = r.Calls
		}
	}
}

// insideCell is the share of its time that a rank has spent inside MPI since the last look.
func (m *Movement) insideCell(r *api.RankStatus) string {
	now, before := m.calls[keyOf(r)], m.callsBefore[keyOf(r)]
	if now == nil || before == nil || !answers(r) || now.Observed <= before.Observed {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*(now.Inside-before.Inside)/(now.Observed-before.Observed))
}

// meeting is a place in which ranks of a world are: a line of the table.
type meeting struct {
	world    rankKey // but its rank and dup
	call, on string
	from     string
	ranks    []int
	longest  float64 // seconds; 0: it is no call
}

// meetings are the places of all ranks of the worlds in which a rank is in a long call: those that are elsewhere are
// whom the others may wait for.
func (m *Movement) meetings() []*meeting {
	world := func(r *api.RankStatus) rankKey { return rankKey{jobID: r.JobID, world: r.World, user: r.User} }
	waiting := map[rankKey]bool{}
	for i := range m.ranks {
		if r := &m.ranks[i].Rank; answers(r) && r.Calls != nil && r.Calls.Long != nil {
			waiting[world(r)] = true
		}
	}
	type key struct {
		world          rankKey
		call, on, from string
	}
	found := map[key]*meeting{}
	var list []*meeting
	for i := range m.ranks {
		r := &m.ranks[i].Rank
		if !waiting[world(r)] || r.State == "ended" || r.Calls == nil {
			continue
		}
		at := meeting{world: world(r)}
		switch long := r.Calls.Long; {
		case !answers(r):
			at.call = "(doesn't answer)"
		case long == nil:
			at.call = "(in no long call)"
		default:
			at.call, at.on, at.from, at.longest = long.Function, long.Object, m.placeOf(r), r.Calls.Running
		}
		k := key{at.world, at.call, at.on, at.from}
		if found[k] == nil {
			found[k] = &at
			list = append(list, &at)
		}
		found[k].ranks = append(found[k].ranks, r.Rank)
		found[k].longest = max(found[k].longest, at.longest)
	}
	slices.SortStableFunc(list, func(a, b *meeting) int {
		return cmp.Or(strings.Compare(a.world.jobID, b.world.jobID), strings.Compare(a.world.world, b.world.world),
			strings.Compare(a.world.user, b.world.user), cmp.Compare(b.longest, a.longest))
	})
	return list
}

// placeOf is where a rank's long call was made.
func (m *Movement) placeOf(r *api.RankStatus) string {
	if m.Place != nil {
		if place := m.Place(r); place != "" {
			return place
		}
	}
	if long := r.Calls.Long; long.Module != "" {
		return fmt.Sprintf("%s+%#x", long.Module, long.Offset)
	}
	return ""
}

// writeCalls writes where ranks are that have been in a call for longer than a second, and the others of their
// worlds: at most so many lines. There is nothing to write if there are none.
func (m *Movement) writeCalls(b *strings.Builder, room int) {
	list := m.meetings()
	if len(list) == 0 {
		return
	}
	b.WriteString("\n")
	t := table.New(b)
	table.Line(t, "FOR", "CALL", "ON", "RANKS", "JOBID", "WORLD", "USER", "FROM"+terminal.Heading)
	for _, at := range list[:min(len(list), room)] {
		took := ""
		if at.longest > 0 {
			took = time.Duration(at.longest * float64(time.Second)).Truncate(time.Second).String()
		}
		table.Row(t, took, at.call, at.on, table.Shorten(table.Numbers(at.ranks), table.MaxCell), at.world.jobID, at.world.world, at.world.user, at.from)
	}
	_ = t.Flush()
	if left := len(list) - room; left > 0 {
		fmt.Fprintf(b, "… and %d more\n", left)
	}
}
