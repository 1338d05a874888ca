package exporter

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/budget"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// copyTimeout is how long the page waits for ranks that are being taken in just when it wants to copy their numbers,
// for all of them together. Then their last copies stand.
const copyTimeout = 100 * time.Millisecond

// messageBytes is about how long a series is as a message.
const messageBytes = 150

// pages makes the page, for one round after the other.
type pages struct {
	mu        sync.Mutex
	board     *board
	views     []view // of the last refresh, whose memory is used again
	refreshes uint64

	at    atomic.Pointer[time.Time] // when the last round's page was made; nil: none has been
	sizes [ways]atomic.Int64        // about, of the last page in each way, in bytes
}

// lock returns the page to who has it for himself until unlock.
func (ps *pages) lock() (p *board, unlock func()) {
	ps.mu.Lock()
	return ps.board, ps.mu.Unlock
}

// bytes is about how large the last page was.
func (ps *pages) bytes(w way) int { return int(ps.sizes[w].Load()) }

// committed is when the last round's page was made; zero: none has been.
func (ps *pages) committed() time.Time {
	if at := ps.at.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// commit brings the page up to date, with the answers that have come to these questions, and makes of it what these
// readers want. Ranks that have not answered are late.
func (e *Exporter) commit(asked *questions, want readers) (r *result, err error) {
	e.pages.mu.Lock()
	defer e.pages.mu.Unlock()
	defer e.saveThePage(&err)
	e.judge(asked)
	p := e.pages.board
	if want[asMessages]+want[asPoints]+want[asExponential] > 0 || e.cfg.Created && want[asOpenMetrics] > 0 {
		p.KeepCreated()
	}
	r = &result{ended: e.refresh()}
	if want[asMessages] > 0 {
		r.messages = p.Messages()
		e.pages.sizes[asMessages].Store(int64(p.Series()) * messageBytes)
	}
	for _, w := range []way{asText, asOpenMetrics} {
		if want[w] > 0 {
			b := p.Text(exposition.TextStyle{OpenMetrics: w == asOpenMetrics, Created: e.cfg.Created}, want[w])
			r.bodies[w] = b
			e.pages.sizes[w].Store(int64(len(b.Text())))
		}
	}
	style := exposition.PointStyle{At: e.now().Round(0)}
	for _, w := range []way{asPoints, asExponential} {
		style.Exponential = w == asExponential
		for range want[w] {
			r.data[w].list = append(r.data[w].list, p.Points(style))
		}
	}
	e.setSelf(p)
	if r.own, err = e.self.gather(); err != nil {
		e.log.Error("gathering the exporter's own metrics failed", "err", err)
	}
	if r.messages != nil {
		r.families = exposition.MergeFamilies(r.messages.Families(), r.own)
		r.messages.Lease(want[asMessages])
		r.messages.Forget() // they are not to be held when their series have left
	}
	for _, w := range []way{asPoints, asExponential} {
		for i, list := range r.data[w].list {
			r.data[w].list[i] = append(list, exposition.OwnPoints(r.own, ownFamilies(), style.At)...)
		}
	}
	e.tidySets(p)
	e.giveBack()
	at := time.Now()
	e.pages.at.Store(&at)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inquire()
	return r, nil
}

// judge says of all ranks that were asked what has become of them.
func (e *Exporter) judge(asked *questions) {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range asked.all() {
		for _, q := range a.list {
			r := q.rank
			switch {
			case r.end != mpit.EndNone || r.session != q.session:
				// It has brought its last sample, lost its connection or made a new one meanwhile: that is what it is.
			case r.line.asked.Load() != q:
				r.state = r.last
			default:
				e.self.samples.WithLabelValues(resultLate).Inc()
				if r.state != stateNew || r.facts.sampled || now.Sub(q.at) >= e.overdue { // else it has just come
					r.state = stateLate
				}
			}
		}
	}
}

// look returns what there is, without waiting for any rank. It belongs to who has the page.
func (e *Exporter) look() []view {
	e.mu.Lock()
	defer e.unlock()
	e.expire()
	clear(e.pages.views)
	views := e.pages.views[:0]
	for _, r := range e.table.ordered {
		views = append(views, view{r, r.state, r.end, r.lives, r.facts})
	}
	e.pages.views = views
	return views
}

// refresh brings the page up to date and returns the ended ranks on it. It is called by who has the page.
func (e *Exporter) refresh() []ending {
	views, p := e.look(), e.pages.board
	e.pages.refreshes++
	for i := range views {
		if r := p.ranks[views[i].rank]; r != nil {
			r.refresh = e.pages.refreshes
		}
	}
	for _, r := range p.ranks {
		if r.refresh != e.pages.refreshes {
			p.remove(r)
		}
	}
	for i := range views {
		p.outdate(&views[i])
	}
	users := map[uint32]bool{}
	for i := range views {
		users[views[i].rank.peer.UID] = true
	}
	copies := copying{e: e, board: p, described: map[uint32]int{}, describing: e.describingAll / max(1, len(users))}
	var later []*view
	for i := range views {
		v := &views[i]
		if !v.visible() {
			continue
		}
		if c := v.rank.contents.TryLock(); c != nil {
			copies.copy(v, c)
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
			copies.copy(v, c)
		}
	}
	e.updateGroups(p, views)
	p.addInfos(views)
	p.addCategories(e.categories)
	p.addControls(e.controls)
	p.Arrange()
	return copies.ended
}

// copying copies ranks onto the page.
type copying struct {
	e          *Exporter
	board      *board
	described  map[uint32]int   // series that describe each user's ranks
	describing int              // the most that any user may have
	infos      []variables.Info // of the last rank's variables, as far as they are on the page: a world's ranks share them
	ended      []ending         // whose last values are on the page
}

// copy copies what is in a rank and gives its lock back. Where there is none, the last copy stands, and the rank is
// late.
func (cs *copying) copy(v *view, c *contents) {
	e, p, uid := cs.e, cs.board, v.rank.peer.UID
	r := p.portrait(v.rank)
	r.refresh = e.pages.refreshes
	up := v.state.live()
	if c == nil {
		up = false
	} else {
		room := describingRoom{min(e.describing, cs.describing-cs.described[uid]), cs.known(c.infos)}
		if !e.guard(v.rank, c, "making its series", func() { p.update(r, c, room) }) {
			p.remove(r)
			r = p.portrait(v.rank)
			r.refresh = e.pages.refreshes
			p.update(r, c, room) // without figures
			up = false
		}
		v.rank.contents.Unlock()
		if v.end != mpit.EndNone {
			cs.ended = append(cs.ended, ending{v.rank, v.lives})
		}
	}
	if v.state.live() && !up {
		e.mu.Lock()
		if v.rank.state == v.state {
			v.rank.state = stateLate
		}
		e.mu.Unlock()
		v.state = stateLate
	}
	cs.described[uid] += p.conclude(r, v, up) - cs.known(r.infos[:r.shown])
	cs.infos = r.infos[:r.shown]
}

// known is how many of these stand on the page already, for the rank before.
func (cs *copying) known(infos []variables.Info) int {
	if len(infos) == 0 || len(cs.infos) == 0 || &infos[0] != &cs.infos[0] {
		return 0
	}
	return min(len(infos), len(cs.infos))
}

// setSelf sets the gauges of the exporter's own.
func (e *Exporter) setSelf(p *board) {
	var states [len(stateNames)]int
	var variables [variableStates]int
	ranks := make([]*budget.Account, len(e.pages.views))
	for i := range e.pages.views {
		v := &e.pages.views[i]
		ranks[i] = v.rank.account
		states[v.state]++
		if r := p.ranks[v.rank]; r != nil && r.up {
			for state, n := range r.byState {
				variables[state] += n
			}
		}
	}
	for state := stateUp; int(state) < len(stateNames); state++ {
		e.self.ranks.WithLabelValues(state.String()).Set(float64(states[state]))
	}
	for state, n := range variables {
		e.self.variables.WithLabelValues(mpit.VariableState(state).String()).Set(float64(n))
	}
	e.self.series.Set(float64(p.Series()))
	e.showUse(ranks)
}

// showUse shows how many series there are, of these ranks among others.
func (e *Exporter) showUse(ranks []*budget.Account) {
	use := e.budgets.Used(ranks)
	for scope, n := range map[string]int{scopeAll: use.All, scopeJob: use.Job, scopeUser: use.User, scopeRank: use.Rank} {
		e.self.seriesUsed.WithLabelValues(scope).Set(float64(n))
	}
}

// saveThePage turns a panic while the page is being made into an error; the page is made anew. It is to be deferred
// by who has the page.
func (e *Exporter) saveThePage(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("exporter: making the page: panic: %v", p)
		e.pages.board = e.newBoard() // the old one is half done
		e.log.Error("panic while making the page; please report it", "panic", p, "stack", string(debug.Stack()))
	}
}

func (e *Exporter) newBoard() *board { return newBoard(e.drop) }
