package exporter

import (
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/budget"
	"github.com/mpit-exporter/mpit-exporter/mapping/merge"
)

// updateGroups merges what the page has of ranks that are to be shown together, of all ranks that there are.
func (p *page) updateGroups() {
	b := p.board
	b.joined = b.joined[:0]
	for i := range p.views {
		r := p.views[i].rank
		g := b.worlds[r.world]
		if g == nil {
			g = &gathered{}
			b.worlds[r.world] = g
		}
		if g.refresh != p.refreshes {
			g.refresh, g.grouped = p.refreshes, false
			b.joined = append(b.joined, r.world)
		}
		m := merge.Member{Key: r.key, Number: r.id.Rank, Old: r.old}
		if is := b.ranks[r]; is != nil {
			m.Live = is.up
			if c := is.merged; c != nil {
				m.Figures, m.Structure, m.Rules, m.Series = c, c.structure, c.rules, c.list
				g.grouped = true
			}
		}
		g.members = append(g.members, m)
	}
	for w, g := range b.worlds {
		if g.refresh == p.refreshes {
			continue
		}
		delete(b.worlds, w)
		if b.groups[w] != nil {
			b.dropGroup(w)
		}
	}
	for _, w := range b.joined {
		g := b.worlds[w]
		if b.groups[w] == nil && g.grouped {
			b.groups[w] = p.makeGroup(w)
		}
		if b.groups[w] != nil {
			p.updateGroup(w, g.members)
		}
		clear(g.members) // else a rank that has been removed is held until there are as many again
		g.members = g.members[:0]
	}
	clear(b.joined)
}

// makeGroup makes the group of a world, which is called as the world is.
func (p *page) makeGroup(w *world) *group {
	g := newGroup(Identity{JobID: w.key.jobID, World: w.key.world, User: w.user, Rank: groupRank, Dup: w.dup})
	g.account = p.budgets.Open(budget.Job{ID: w.key.jobID, UID: w.key.uid})
	return g
}

// updateGroup brings a group and its sheet up to date. A panic costs it what ended ranks had counted, and nobody else
// anything.
func (p *page) updateGroup(w *world, members []merge.Member) {
	g := p.board.groups[w]
	defer func() {
		if v := recover(); v != nil {
			p.panicked("panic while merging ranks", v, "jobid", g.id.JobID, "world", g.id.World)
			p.board.dropGroup(w)
		}
	}()
	g.figures.SetLimit(g.account.Offer())
	g.figures.Update(members, p.now())
	g.account.Settle(g.figures.Weight())
	for reason, n := range g.figures.Dropped() {
		if n > g.dropped[reason] {
			p.drop(string(reason), int(n-g.dropped[reason]))
			g.dropped[reason] = n
		}
	}
	p.board.updateGroup(g)
}

// dropGroup forgets the group of a world, and takes it from the page.
func (b *board) dropGroup(w *world) {
	g := b.groups[w]
	b.clear(g.sheet)
	delete(b.groups, w)
	g.account.Settle(0)
}
