package exporter

import (
	"context"
	"slices"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

const (
	// maxValueSeries bounds the series in one answer: everybody waits while they are copied.
	maxValueSeries = 10_000
	// maxValueBytes bounds one answer, about.
	maxValueBytes = 16 << 20
)

// Values returns what stands on the page for the variables of the ranks that are meant, and of their worlds. It asks
// all ranks as a scrape does, together with scrapes that begin at that time, unless they have been asked within the
// last second; the deadline of ctx (10 s where it has none) is theirs. It does not count as a scrape: ended ranks
// stay for those who haven't seen them. The only errors are a canceled ctx and bugs.
func (s source) Values(ctx context.Context, which api.Selector) (api.ValueList, error) {
	e := s.e
	such := func(r *rank) bool { return which.Selects(r.id) }
	if !e.upToDate(such) {
		l, err := e.rounds.gather(ctx, asValues)
		if err != nil {
			return api.ValueList{}, err
		}
		l.release()
	}
	type chosen struct {
		rank   *rank
		status api.RankStatus
	}
	var ranks []chosen
	e.with(func(g *registry) {
		for _, r := range g.table.ordered {
			if such(r) && r.visible() {
				ranks = append(ranks, chosen{r, r.status()})
			}
		}
	})
	p := e.pages.page.Lock().board
	defer e.pages.page.Unlock()
	values := api.NewValues(e.pages.committed(), maxValueSeries, maxValueBytes)
	seen := map[*group]bool{}
	for _, c := range ranks {
		var own []exposition.Shown
		is := p.ranks[c.rank]
		if is == nil {
			is = &portrait{rank: c.rank} // it has just come
		} else if is.series != nil {
			own = is.series.Shown()
		}
		variables := values.AddRank(c.status, is.variables, is.infos, own)
		if g := p.groups[c.rank.world]; variables != nil && g != nil && g.sheet != nil && !seen[g] {
			seen[g] = true
			values.AddWorld(g.id, variables, shownOfGroup(g))
		}
	}
	return values.List(), nil
}

// upToDate says whether what the page has of such ranks need not be asked for.
func (e *Exporter) upToDate(such func(*rank) bool) bool {
	at := e.pages.committed()
	g := e.lock()
	defer g.unlock()
	return !at.IsZero() && time.Since(at) < e.recent &&
		!slices.ContainsFunc(g.table.ordered, func(r *rank) bool { return such(r) && !r.visible() })
}

// shownOfGroup is what is shown of the ranks of a world together, but the family that says whose a value is.
func shownOfGroup(g *group) []exposition.Shown {
	return slices.DeleteFunc(g.sheet.Shown(), func(of exposition.Shown) bool { return of.Name() == mapping.ExtremeName })
}
