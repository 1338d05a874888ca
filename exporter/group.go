package exporter

import (
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/budget"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/merge"
)

// groupRank stands for a rank's number in the Identity of a group: it comes before the ranks of its world.
const groupRank = -1

// group is the ranks of one world that are shown together: an owner of series, whose ranks have ended or not. It
// belongs to the page.
type group struct {
	id      Identity
	labels  []*dto.LabelPair // of id, but its rank
	figures *merge.Group
	account *budget.Account           // of its series
	dropped map[mapping.Reason]uint64 // by the figures, as counted in mpit_exporter_series_dropped_total
	left    map[string]int            // left off the page, as counted there
	sheet   *sheet
}

func newGroup(id Identity) *group {
	g := &group{id: id, figures: merge.NewGroup(), dropped: map[mapping.Reason]uint64{}, left: map[string]int{}}
	labels := []mapping.Label{{Name: "jobid", Value: id.JobID}, {Name: "user", Value: id.User}, {Name: "world", Value: id.World}}
	if id.Dup > 0 {
		labels = append([]mapping.Label{{Name: "dup", Value: strconv.Itoa(id.Dup)}}, labels...)
	}
	g.labels = exposition.LabelPairs(nil, labels)
	return g
}

func (g *group) place() Identity { return g.id }

// Compare puts owners of series into the order of their labels.
func (g *group) Compare(other exposition.Owner) int { return g.place().Compare(other.(owner).place()) }

// Labels are the world's.
func (g *group) Labels() []*dto.LabelPair { return g.labels }

// Begun is not known.
func (g *group) Begun() time.Time { return time.Time{} }

// LeftOff is what of it does not come onto the page.
func (g *group) LeftOff() map[string]int { return g.left }

// Live is always true: which of its ranks' values count is in its figures.
func (g *group) Live() bool { return true }

// gathered is the ranks of one world, while groups are brought up to date.
type gathered struct {
	refresh uint64 // the running one
	members []merge.Member
	grouped bool // one of them has series to be merged
}

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

// updateGroup brings the sheet of a group up to date.
func (p *board) updateGroup(g *group) {
	key := sheetKey{generation: g.figures.Structure()}
	if s := g.sheet; s != nil && s.key == key && !p.Roomier(s.Sheet) {
		p.CopyNumbers(s.Sheet)
	} else {
		p.clear(s)
		g.sheet = &sheet{exposition.NewSheet(g), key}
		p.Fill(g.sheet.Sheet, g.figures.Series(), reservedToGroups, g.figures.Extremes()...) // those say whose the watermarks are
	}
	for reason, n := range g.sheet.Dropped() {
		exposition.CountMore(p.drop, g.left, reason, n)
	}
}

// reservedToGroups says whether not even the series of ranks together may have this name.
func reservedToGroups(name string) bool {
	return Reserved(name) && (!strings.HasPrefix(name, mapping.NodePrefix) || name == mapping.ExtremeName)
}

// owner is whom series on the page belong to: a rank, or those of a world together.
type owner interface {
	exposition.Owner
	place() Identity
}

var _, _ owner = (*portrait)(nil), (*group)(nil)
