package exporter

import (
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// groupRank stands for a rank's number in the Identity of a group: it comes before the ranks of its world.
const groupRank = -1

// group is the ranks of one world that are shown together: an owner of series, whose ranks have ended or not. It belongs to
// Exporter.mu.
type group struct {
	id      Identity
	labels  []*dto.LabelPair // of id, but its rank
	figures *mapping.Group
	weight  int                       // of its series, as the budgets know it
	dropped map[mapping.Reason]uint64 // by the figures, as counted in mpit_exporter_series_dropped_total
	left    map[string]int            // left off the page, as counted there
}

func newGroup(id Identity) *group {
	g := &group{id: id, figures: mapping.NewGroup(), dropped: map[mapping.Reason]uint64{}, left: map[string]int{}}
	labels := []mapping.Label{{Name: "jobid", Value: id.JobID}, {Name: "user", Value: id.User}, {Name: "world", Value: id.World}}
	if id.Dup > 0 {
		labels = append([]mapping.Label{{Name: "dup", Value: strconv.Itoa(id.Dup)}}, labels...)
	}
	g.labels = labelPairs(nil, labels)
	return g
}

func (g *group) place() Identity                { return g.id }
func (g *group) sharedLabels() []*dto.LabelPair { return g.labels }
func (g *group) begun() time.Time               { return time.Time{} }
func (g *group) counted() map[string]int        { return g.left }

// live is always true: which of its ranks' values count is in its figures.
func (g *group) live() bool { return true }

// updateGroups merges the series of ranks that are to be shown together. The sheets of all ranks are up to date. The caller
// holds mu.
func (e *Exporter) updateGroups(p *page) {
	e.rounds++
	e.joined = e.joined[:0]
	for _, r := range e.table.ordered {
		w := r.world
		if w.round != e.rounds {
			w.round, w.members, w.grouped = e.rounds, w.members[:0], false
			e.joined = append(e.joined, w)
		}
		m := mapping.Member{Key: r.key, Number: r.id.Rank, Rules: r.epoch, Live: r.live(), Old: r.old}
		if r.figures != nil {
			m.Figures, m.Structure, m.Series = r.figures, r.figures.Structure(), r.figures.Series()
			s := p.sheets[r]
			w.grouped = w.grouped || s != nil && s.series.grouped
		}
		w.members = append(w.members, m)
	}
	for _, w := range e.joined {
		if w.group == nil && w.grouped {
			e.makeGroup(w)
		}
		if w.group != nil {
			e.updateGroup(w, p)
		}
		clear(w.members) // else a rank that has been removed is held until there are as many again
	}
	clear(e.joined)
}

// makeGroup makes the group of a world, which is called as the world is.
func (e *Exporter) makeGroup(w *world) {
	w.group = newGroup(Identity{JobID: w.key.jobID, World: w.key.world, User: w.user, Rank: groupRank, Dup: w.dup})
}

// updateGroup brings a group and its sheet up to date. A panic costs it what ended ranks had counted, and nobody else anything.
func (e *Exporter) updateGroup(w *world, p *page) {
	g := w.group
	defer func() {
		if p := recover(); p != nil {
			e.self.panics.Inc()
			e.log.Error("panic while merging ranks; please report it",
				"jobid", g.id.JobID, "world", g.id.World, "panic", p, "stack", string(debug.Stack()))
			e.dropGroup(w)
		}
	}()
	job := jobKey{w.key.jobID, w.key.uid}
	g.figures.SetLimit(e.budgets.offerMerged(job, g.weight))
	g.figures.Update(w.members, e.now())
	had := g.weight
	g.weight = g.figures.Weight()
	e.budgets.takeMerged(job, had, g.weight)
	for reason, n := range g.figures.Dropped() {
		if n > g.dropped[reason] {
			e.drop(string(reason), int(n-g.dropped[reason]))
			g.dropped[reason] = n
		}
	}
	p.updateGroup(g)
}

// dropGroup forgets the group of a world, and takes it from the page. The caller holds mu.
func (e *Exporter) dropGroup(w *world) {
	if w.group == nil {
		return
	}
	e.page.removeGroup(w.group)
	e.budgets.takeMerged(jobKey{w.key.jobID, w.key.uid}, w.group.weight, 0)
	w.group = nil
}

// updateGroup brings the sheet of a group up to date.
func (p *page) updateGroup(g *group) {
	s := p.groups[g]
	if s == nil {
		s = &sheet{}
		p.groups[g] = s
	}
	if key := (sheetKey{built: true, generation: g.figures.Structure()}); s.key != key || p.roomier(s) {
		p.clear(g, s)
		p.addList(g, s, g.figures.Series(), reservedToGroups)
		p.addExtremes(g, s)
		s.key = key
	}
	for reason, n := range s.dropped {
		countMore(p.drop, g.left, reason, n)
	}
}

// reservedToGroups says whether not even the series of ranks together may have this name.
func reservedToGroups(name string) bool {
	return Reserved(name) && (!strings.HasPrefix(name, mapping.NodePrefix) || name == mapping.ExtremeName)
}

// addExtremes adds whose the watermarks are.
func (p *page) addExtremes(g *group, s *sheet) {
	var extremes sheet
	p.addList(g, &extremes, g.figures.Extremes(), func(string) bool { return false })
	s.families = append(s.families, extremes.families...)
	for reason, n := range extremes.dropped {
		s.drop(reason, n)
	}
}

// removeGroup takes everything of a group from the page.
func (p *page) removeGroup(g *group) {
	if s := p.groups[g]; s != nil {
		p.clear(g, s)
		delete(p.groups, g)
	}
}

var _, _ owner = (*rank)(nil), (*group)(nil)
