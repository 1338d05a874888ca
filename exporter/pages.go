package exporter

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/board"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/body"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/budget"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/self"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/guard"
)

// copyTimeout is how long the page waits for ranks that are being taken in just when it wants to copy their numbers,
// for all of them together. Then their last copies stand.
const copyTimeout = 100 * time.Millisecond

// way is what a reader wants the page as.
type way uint8

const (
	asText        = way(exposition.Text)
	asOpenMetrics = way(exposition.OpenMetrics)
	asProtobuf    = way(exposition.Protobuf)
	asValues      = asProtobuf + 1 // not at all: the reader looks at its series
	asPoints      = asValues + 1   // metric data of OpenTelemetry
	ways          = asPoints + 1
)

// readers is how many there are that want each.
type readers [ways]int

// result is a page as its readers want it: each way is made once, for all who wait for it, and counts them already.
type result struct {
	bodies [ways]*body.Body          // the page as it is written, without own; nil: nobody wants it
	data   chan []metricdata.Metrics // the page as metric data, with own: for each reader a copy, which is the reader's
	own    []*dto.MetricFamily       // the exporter's figures of itself, which nobody changes
	at     time.Time                 // of metric data
	ended  []ending
}

// lease is one reader's hold on a result.
type lease struct {
	*result
	way way
}

// release gives back what the reader has. It is called once.
func (l *lease) release() {
	if b := l.bodies[l.way]; b != nil {
		b.Release()
	}
}

// pages makes the page, for one round after the other. It is safe for concurrent use.
type pages struct {
	*ranks
	page guard.Mutex[page]

	at    atomic.Pointer[time.Time] // when the last round's page was made; nil: none has been
	sizes [ways]atomic.Int64        // about, of the last page in each way, in bytes
}

func newPages(rs *ranks) *pages {
	ps := &pages{ranks: rs}
	p := ps.page.Lock()
	defer ps.page.Unlock()
	*p = page{ranks: rs, board: newBoard(rs.base)}
	return ps
}

// bytes is about how large the last page was.
func (ps *pages) bytes(w way) int { return int(ps.sizes[w].Load()) }

// committed is when the last round's page was begun: it has all that ranks had given until then. Zero: none has been.
func (ps *pages) committed() time.Time {
	if at := ps.at.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// commit brings the page up to date, with the answers that have come to these questions, and makes of it what these
// readers want. Ranks that have not answered are late.
func (ps *pages) commit(asked *questions, want readers) (r *result, err error) {
	p := ps.page.Lock()
	defer ps.page.Unlock()
	defer p.recover(&err)
	at := time.Now()
	ps.with(func(g *registry) { g.judge(asked) })
	r = p.make(want)
	for w, b := range r.bodies {
		if b != nil {
			ps.sizes[w].Store(int64(b.Length()))
		}
	}
	ps.at.Store(&at)
	g := ps.lock()
	defer g.unlock()
	g.inquire()
	return r, nil
}

// page is what stands on the page. To have one is to hold its lock, which comes before that of any rank.
type page struct {
	*ranks
	board *board.Board
	views []view        // of the last refresh, whose memory is used again
	order []*board.Rank // of views
}

func newBoard(b *base) *board.Board {
	return board.New(b.drop)
}

// recover turns a panic while the page is being made into an error; the page is made anew. It is to be deferred.
func (p *page) recover(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("exporter: making the page: panic: %v", v)
		p.board = newBoard(p.base)
		p.log.Error("panic while making the page; please report it", "panic", v, "stack", string(debug.Stack()))
	}
}

// make brings the page up to date and makes of it what these readers want.
func (p *page) make(want readers) *result {
	b := p.board
	r := &result{ended: p.refresh()}
	for w := range asValues {
		if want[w] > 0 {
			r.bodies[w] = b.Write(exposition.Format(w), want[w])
		}
	}
	r.at = p.now().Round(0) // by the wall clock alone
	points := make([][]metricdata.Metrics, want[asPoints])
	for i := range points {
		points[i] = b.Points(r.at)
	}
	p.setSelf()
	var err error
	if r.own, err = p.self.Gather(); err != nil {
		p.log.Error("gathering the exporter's metrics of itself failed", "err", err)
	}
	r.data = make(chan []metricdata.Metrics, len(points))
	for _, list := range points {
		r.data <- append(list, exposition.OwnPoints(r.own, board.ByName(), r.at, p.started)...)
	}
	return r
}

// refresh brings the page up to date and returns the ended ranks on it.
func (p *page) refresh() (ended []ending) {
	clear(p.views)
	p.with(func(g *registry) { p.views = g.look(p.views[:0]) })
	clear(p.order)
	p.order = p.order[:0]
	for i := range p.views {
		p.order = append(p.order, &p.views[i].rank.Rank)
	}
	p.board.Begin(p.order, p.describing, p.describingAll)
	for i := range p.views {
		v := &p.views[i]
		p.board.OutOfDate(&v.rank.Rank, v.facts)
	}
	var later []*view
	for i := range p.views {
		v := &p.views[i]
		if !v.state.visible(v.facts) {
			continue
		}
		if c := v.rank.contents.TryLock(); c != nil {
			ended = p.copy(v, c, ended)
		} else {
			later = append(later, v)
		}
	}
	if len(later) > 0 {
		timeout := time.NewTimer(copyTimeout)
		defer timeout.Stop()
		for _, v := range later {
			c := v.rank.contents.LockBefore(timeout.C)
			if c == nil {
				timeout.Reset(0) // nor is any of the others waited for
			}
			ended = p.copy(v, c, ended)
		}
	}
	p.board.End(p.categories, p.controls)
	return ended
}

// copy copies what is in a rank and gives its lock back. Where there is none, the last copy stands, and the rank is
// late. A rank that has ended, whose last values are on the page now, is added to ended.
func (p *page) copy(v *view, c *contents, ended []ending) []ending {
	r := &v.rank.Rank
	up := v.state.live() && c != nil
	if c != nil {
		if !c.guard("making its series", func() { p.board.Update(r, c.figures, v.rank.facts.Load()) }) {
			p.board.Forget(r)
			p.board.Update(r, nil, v.rank.facts.Load())
			up = false
		}
		v.rank.contents.Unlock()
		if v.end != mpit.EndNone {
			ended = append(ended, ending{v.rank, v.lives})
		}
	}
	if v.state.live() && !up {
		p.with(func(*registry) {
			if v.rank.state == v.state {
				v.rank.state = stateLate
			}
		})
		v.state = stateLate
	}
	p.board.Conclude(r, v.end, up, v.since)
	return ended
}

// setSelf sets the self metrics that are gauges.
func (p *page) setSelf() {
	var states [len(stateNames)]int
	noQueue := 0
	accounts := make([]*budget.Account, len(p.views))
	for i := range p.views {
		v := &p.views[i]
		accounts[i] = v.rank.account
		states[v.state]++
		calls := v.rank.facts.Load().Calls
		if v.state.live() && calls != nil && (calls.CPU == nil || calls.CPU.Queue == nil) {
			noQueue++
		}
	}
	p.self.NoQueue.Set(float64(noQueue))
	for state := stateUp; int(state) < len(stateNames); state++ {
		p.self.Ranks.WithLabelValues(state.String()).Set(float64(states[state]))
	}
	p.with(func(g *registry) { p.self.Ranks.WithLabelValues("unseen").Set(float64(g.worlds.unseen())) })
	for state, n := range p.board.Variables() {
		p.self.Variables.WithLabelValues(mpit.VariableState(state).String()).Set(float64(n))
	}
	p.self.Series.Set(float64(p.board.Series()))
	use := p.budgets.Used(accounts)
	for scope, n := range map[string]int{
		self.ScopeAll: use.All, self.ScopeJob: use.Job, self.ScopeUser: use.User, self.ScopeRank: use.Rank,
	} {
		p.self.SeriesUsed.WithLabelValues(scope).Set(float64(n))
	}
}
