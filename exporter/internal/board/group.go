package board

import (
	"fmt"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/budget"
	"github.com/mpit-exporter/mpit-exporter/mapping/merge"
)

// groupRank stands for a rank's number in the Identity of a group: it comes before the ranks of its world.
const groupRank = -1

// group is the ranks of one world that are shown together: an owner of series, whose ranks have ended or not. It
// belongs to the page.
type group struct {
	exposition.Owner
	id      identity.Identity
	figures *merge.Group
	account *budget.Account // of its series
	left    map[string]int  // off the page, as counted in mpit_exporter_series_dropped_total
	sheet   *sheet
}

func newGroup(id identity.Identity) *group {
	return &group{Owner: exposition.Owner{Place: placeOf(id), Labels: Labels(id)}, id: id, figures: merge.NewGroup(),
		left: map[string]int{}}
}

// updateSheet brings the sheet of a group up to date.
func (b *Board) updateSheet(g *group) {
	key := sheetKey{generation: g.figures.Structure()}
	if s := g.sheet; s != nil && s.key == key && !b.Roomier(s.Sheet) {
		s.CopyNumbers()
	} else {
		b.clear(s)
		g.sheet = &sheet{exposition.NewSheet(&g.Owner), key}
		b.Fill(g.sheet.Sheet, g.figures.Series(), Reserved)
	}
	for reason, n := range g.sheet.Dropped() {
		exposition.CountMore(b.cfg.Drop, g.left, reason, n)
	}
}

// placeOf is where an owner stands on the page, in the order of identities.
func placeOf(id identity.Identity) string {
	return fmt.Sprintf("%s\x00%s\x00%s\x00%010d\x00%010d", id.JobID, id.World, id.User, id.Rank-groupRank, id.Dup)
}

// updateGroups merges what the page has of ranks that are to be shown together, of all ranks that there are.
func (b *Board) updateGroups() {
	for _, r := range b.order {
		m := merge.Member{Key: r.Key, Old: r.Old}
		if is := b.ranks[r]; is != nil {
			m.Live = is.up
			if c := is.merged; c != nil {
				m.Figures, m.Structure, m.Rules, m.Series = c, c.structure, c.rules, c.list
				if b.groups[r.World] == nil {
					b.groups[r.World] = b.makeGroup(r.World)
				}
			}
		}
		b.worlds[r.World] = append(b.worlds[r.World], m)
	}
	for w, members := range b.worlds {
		if len(members) == 0 {
			delete(b.worlds, w)
			if b.groups[w] != nil {
				b.dropGroup(w)
			}
		}
	}
	for _, r := range b.order { // in their order: groups share what may be had
		members := b.worlds[r.World]
		if len(members) > 0 && b.groups[r.World] != nil {
			b.updateGroup(r.World, members)
		}
		clear(members) // else a rank that has been removed is held until there are as many again
		b.worlds[r.World] = members[:0]
	}
}

// makeGroup makes the group of a world, which is called as the world is.
func (b *Board) makeGroup(w *World) *group {
	g := newGroup(identity.Identity{JobID: w.JobID, World: w.Name, User: w.User, Rank: groupRank, Dup: w.Dup})
	g.account = b.cfg.Budgets.Open(budget.Job{ID: w.JobID, UID: w.UID})
	return g
}

// updateGroup brings a group and its sheet up to date. A panic costs it what ended ranks had counted, and nobody else
// anything.
func (b *Board) updateGroup(w *World, members []merge.Member) {
	g := b.groups[w]
	defer func() {
		if v := recover(); v != nil {
			b.cfg.Panicked("panic while merging ranks", v, "jobid", g.id.JobID, "world", g.id.World)
			b.dropGroup(w)
		}
	}()
	g.figures.SetLimit(g.account.Offer())
	g.figures.Update(members, b.cfg.Now())
	g.account.Settle(g.figures.Weight())
	for reason, n := range g.figures.Dropped() {
		exposition.CountMore(b.cfg.Drop, g.left, reason, n)
	}
	b.updateSheet(g)
}

// dropGroup forgets the group of a world, and takes it from the page.
func (b *Board) dropGroup(w *World) {
	g := b.groups[w]
	b.clear(g.sheet)
	delete(b.groups, w)
	g.account.Settle(0)
}
