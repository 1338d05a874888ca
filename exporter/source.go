package exporter

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// maxValueSeries bounds the series in one answer, maxWindowSeries those that reports on the last seconds are made of.
	maxValueSeries  = 10_000
	maxWindowSeries = 40_000
	// copyBatch is how many of them are copied while a page waits.
	copyBatch = 5_000
	// maxValueBytes bounds one answer, about.
	maxValueBytes = 8 << 20
)

// API serves what the exporter knows as JSON, for reading only: see api.Handler.
func (e *Exporter) API() http.Handler { return e.api }

// Ranks returns all ranks that are connected or kept, sorted by jobid, world, user and rank.
func (e *Exporter) Ranks() []api.RankStatus { return source{e}.Ranks(api.Selector{}) }

// Values returns what stands on the page for the variables of the ranks that are meant, as GET /api/v1/values does, but
// all of it. With fresh nothing of it is older than the call: the last sample of a rank that has ended before is in it.
func (e *Exporter) Values(ctx context.Context, which api.Selector, fresh bool) (api.ValueList, error) {
	if err := e.bring(ctx, which, fresh); err != nil {
		return api.ValueList{}, err
	}
	return source{e}.values(which, api.Bounds{Series: 1 << 30, Bytes: 1 << 40}), nil
}

// Window returns of what Values does what a report on the last seconds is made of: the ranks, their call profiles and
// levels, within bounds that users share.
func (e *Exporter) Window(ctx context.Context) (api.ValueList, error) {
	if err := e.bring(ctx, api.Selector{}, false); err != nil {
		return api.ValueList{}, err
	}
	return source{e}.values(api.Selector{}, api.Bounds{Series: maxWindowSeries, Bytes: 2 * maxValueBytes,
		Of: func(of *exposition.Shown) bool {
			return strings.HasPrefix(of.Name(), "mpit_call_") || of.Series(0).Metric.Kind == mapping.KindGauge
		}}), nil
}

// CallTimes returns of what stands on the page what a verdict is made of: the ranks, and the time and number of their
// calls, within the same bounds. It asks no rank.
func (e *Exporter) CallTimes() api.ValueList {
	return source{e}.values(api.Selector{}, api.Bounds{Series: maxWindowSeries, Bytes: 2 * maxValueBytes, Bare: true,
		Of: func(of *exposition.Shown) bool { return of.Name() == "mpit_call_time_seconds" }})
}

// bring brings the page up to date for such ranks: it asks all ranks as a scrape does, together with scrapes that begin
// at that time, unless they have been asked within the last second or, with fresh, since the call; the deadline of ctx
// (10 s where it has none) is theirs. It does not count as a scrape: ended ranks stay for those who haven't seen them.
// The only errors are a canceled ctx and bugs.
func (e *Exporter) bring(ctx context.Context, which api.Selector, fresh bool) error {
	began := time.Now()
	if !fresh && e.upToDate(&which) {
		return nil
	}
	for {
		l, err := e.rounds.gather(ctx, asValues)
		if err != nil {
			return err
		}
		l.release()
		if !fresh || !e.pages.committed().Before(began) {
			return nil
		}
		select { // it was a round that others had begun
		case <-time.After(e.shareable / 10):
		case <-ctx.Done():
			return fmt.Errorf("exporter: waiting for the ranks' values: %w", ctx.Err())
		}
	}
}

// source is an Exporter as the API has it.
type source struct{ e *Exporter }

// Mapper is the one whose rules are in force.
func (s source) Mapper() *variables.Mapper { return s.e.rules.Load().mapper }

// Ranks are those that stand on the page, or will.
func (s source) Ranks(which api.Selector) []api.RankStatus {
	g := s.e.lock()
	defer g.unlock()
	list := []api.RankStatus{}
	for _, r := range g.table.ordered {
		if which.Selects(r.ID, r.UID) {
			list = append(list, r.status())
		}
	}
	return list
}

// Connected are those that can be asked.
func (s source) Connected(which api.Selector) []api.Connected {
	g := s.e.lock()
	defer g.unlock()
	var list []api.Connected
	for _, r := range g.table.connected() {
		if which.Selects(r.ID, r.UID) {
			list = append(list, api.Connected{
				Session: r.line.session, Status: r.status(), Layout: r.facts.Load().Layout, Late: r.state == stateLate,
			})
		}
	}
	return list
}

// Refresh brings what stands on the page for such ranks up to date.
func (s source) Refresh(ctx context.Context, which api.Selector) error {
	return s.e.bring(ctx, which, false)
}

// Values returns what stands on the page for the variables of the ranks that are meant, as far as there is room for it
// in an answer.
func (s source) Values(which api.Selector) api.ValueList {
	return s.values(which, api.Bounds{Series: maxValueSeries, Bytes: maxValueBytes})
}

// values returns what stands on the page now, within bounds. The page is made in between where that takes long.
func (s source) values(which api.Selector, of api.Bounds) api.ValueList {
	e := s.e
	type chosen struct {
		rank   *rank
		status api.RankStatus
	}
	var ranks []chosen
	e.with(func(g *registry) {
		for _, r := range g.table.ordered {
			if which.Selects(r.ID, r.UID) && r.state.visible(r.facts.Load()) {
				ranks = append(ranks, chosen{r, r.status()})
			}
		}
	})
	each := func(do func(s *api.Shown)) {
		batch := func(rest []chosen) []chosen {
			p := e.pages.page.Lock()
			defer e.pages.page.Unlock()
			for n := 0; len(rest) > 0 && n < copyBatch; rest = rest[1:] {
				c := rest[0]
				s := api.Shown{Rank: c.status}
				s.Variables, s.Infos, s.Series = p.board.Of(&c.rank.Rank)
				n += of.Count(&s)
				do(&s)
			}
			return rest
		}
		for rest := ranks; len(rest) > 0; {
			rest = batch(rest)
		}
	}
	at, wanted := e.pages.committed(), map[uint32]int{}
	each(func(s *api.Shown) { wanted[s.Rank.UID] += of.Count(s) })
	values := api.NewValues(at, of, wanted)
	each(values.Add)
	return values.List()
}

// upToDate says whether what the page has of such ranks need not be asked for.
func (e *Exporter) upToDate(which *api.Selector) bool {
	at := e.pages.committed()
	g := e.lock()
	defer g.unlock()
	return !at.IsZero() && time.Since(at) < e.recent &&
		!slices.ContainsFunc(g.table.ordered, func(r *rank) bool {
			return which.Selects(r.ID, r.UID) && !r.state.visible(r.facts.Load())
		})
}

func (r *rank) status() api.RankStatus {
	s := r.About
	s.State, s.Calls, s.ExitStatus = r.state.String(), r.facts.Load().Calls, r.exit
	if since := r.sinceEnd(); s.Calls != nil && since != (api.StateSeconds{}) {
		calls := *s.Calls
		calls.State = calls.State.Plus(since)
		s.Calls = &calls
	}
	switch {
	case r.end != mpit.EndNone:
		s.EndReason, s.Ended = r.end.String(), new(r.ended)
	case r.line == nil:
		s.Peer.Lost = r.gone
	}
	return s
}
