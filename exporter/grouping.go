package exporter

import (
	"runtime/debug"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/budget"
	"github.com/mpit-exporter/mpit-exporter/mapping/merge"
)

// updateGroups merges what the page has of ranks that are to be shown together, of all ranks that there are.
func (e *Exporter) updateGroups(p *board, ranks []view) {
	p.joined = p.joined[:0]
	for i := range ranks {
		r := ranks[i].rank
		g := p.worlds[r.world]
		if g == nil {
			g = &gathered{}
			p.worlds[r.world] = g
		}
		if g.refresh != e.pages.refreshes {
			g.refresh, g.grouped = e.pages.refreshes, false
			p.joined = append(p.joined, r.world)
		}
		m := merge.Member{Key: r.key, Number: r.id.Rank, Old: r.old}
		if is := p.ranks[r]; is != nil {
			m.Live = is.up
			if c := is.merged; c != nil {
				m.Figures, m.Structure, m.Rules, m.Series = c, c.structure, c.rules, c.list
				g.grouped = true
			}
		}
		g.members = append(g.members, m)
	}
	for w, g := range p.worlds {
		if g.refresh == e.pages.refreshes {
			continue
		}
		delete(p.worlds, w)
		if p.groups[w] != nil {
			e.dropGroup(p, w)
		}
	}
	for _, w := range p.joined {
		g := p.worlds[w]
		if p.groups[w] == nil && g.grouped {
			p.groups[w] = e.makeGroup(w)
		}
		if p.groups[w] != nil {
			e.updateGroup(p, w, g.members)
		}
		clear(g.members) // else a rank that has been removed is held until there are as many again
		g.members = g.members[:0]
	}
	clear(p.joined)
}

// makeGroup makes the group of a world, which is called as the world is.
func (e *Exporter) makeGroup(w *world) *group {
	g := newGroup(Identity{JobID: w.key.jobID, World: w.key.world, User: w.user, Rank: groupRank, Dup: w.dup})
	g.account = e.budgets.Open(budget.Job{ID: w.key.jobID, UID: w.key.uid})
	return g
}

// updateGroup brings a group and its sheet up to date. A panic costs it what ended ranks had counted, and nobody else
// anything.
func (e *Exporter) updateGroup(p *board, w *world, members []merge.Member) {
	g := p.groups[w]
	defer func() {
		if v := recover(); v != nil {
			e.self.panics.Inc()
			e.log.Error("panic while merging ranks; please report it",
				"jobid", g.id.JobID, "world", g.id.World, "panic", v, "stack", string(debug.Stack()))
			e.dropGroup(p, w)
		}
	}()
	g.figures.SetLimit(g.account.Offer())
	g.figures.Update(members, e.now())
	g.account.Settle(g.figures.Weight())
	for reason, n := range g.figures.Dropped() {
		if n > g.dropped[reason] {
			e.drop(string(reason), int(n-g.dropped[reason]))
			g.dropped[reason] = n
		}
	}
	p.updateGroup(g)
}

// dropGroup forgets the group of a world, and takes it from the page.
func (e *Exporter) dropGroup(p *board, w *world) {
	g := p.groups[w]
	p.clear(g.sheet)
	delete(p.groups, w)
	g.account.Settle(0)
}
