package exporter

import (
	"context"
	"slices"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
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
	such := func(r *rank) bool { return which.Selects(r.ID) }
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
	seen := map[*world]bool{}
	for _, c := range ranks {
		known, infos, own := p.Of(&c.rank.Rank)
		variables := values.AddRank(c.status, known, infos, own)
		id, together, grouped := p.OfWorld(c.rank.World)
		if w := c.rank.world; variables != nil && grouped && !seen[w] {
			seen[w] = true
			values.AddWorld(id, variables, together)
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
