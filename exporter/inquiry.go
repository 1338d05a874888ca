package exporter

import (
	"context"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/board"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/self"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// maxInquiries is how many ranks of one user are asked for more than a sample at the same time: each costs the
	// rank's process a little time, and there may be a thousand that have just begun. The bound is for
	// each user, because ranks that don't answer hold their places until inquiryTimeout.
	maxInquiries = 4
	// inquiryTimeout is how long a rank may take for it.
	inquiryTimeout = 10 * time.Second
	// inquiryRetry is when a rank that could not say it is asked again.
	inquiryRetry = time.Minute
)

// inquire chooses the ranks that are to be asked now and tells their connections' goroutines. It does not wait.
func (g *registry) inquire() {
	now := g.now()
	for _, r := range g.table.ordered {
		if g.inquiries[r.UID] >= maxInquiries {
			continue
		}
		if r.line == nil || r.end != mpit.EndNone || !r.facts.Load().Figured || r.inquiry != 0 || r.state == stateLate ||
			now.Before(r.notBefore) {
			continue
		}
		var what inquiry
		if r.categoriesDue() {
			what |= askCategories
			r.world.begin(r)
		}
		if g.controlsDue(r, now) {
			what |= askControls
			r.controls.told = false
		}
		if what == 0 {
			continue
		}
		r.inquiry, r.send.inquiry = what, true
		g.inquiries[r.UID]++
		r.nudge()
	}
}

// abandon gives up an inquiry that nobody has begun, for its connection has ended.
func (g *registry) abandon(r *rank) {
	if !r.send.inquiry {
		return
	}
	r.send.inquiry = false
	g.failed(r, r.inquiry, mpit.ErrFinal)
	g.conclude(r)
}

// failed notes that a rank could not say what it was asked for. Of its world's categories another one is asked.
func (g *registry) failed(r *rank, what inquiry, err error) {
	r.notBefore = g.now().Add(min(inquiryRetry, g.cfg.ControlVariableInterval))
	if what&askCategories != 0 {
		r.world.asking, r.world.source = false, nil
	}
	if what&askControls != 0 {
		r.controls.told = true
	}
	g.log.Debug("asking a rank for its categories or control variables failed", append(r.attrs(), "err", err)...)
}

// conclude lets the next rank be asked.
func (g *registry) conclude(r *rank) {
	r.inquiry = 0
	if g.inquiries[r.UID]--; g.inquiries[r.UID] == 0 {
		delete(g.inquiries, r.UID)
	}
	g.inquire()
}

// categoriesDue says whether a rank is to be asked for its world's categories: if nobody has answered who is still
// there, and again when it says that they have changed, or has new variables.
func (r *rank) categoriesDue() bool {
	w := r.world
	switch {
	case w.asking:
		return false
	case w.source == r:
		return w.stamp != r.facts.Load().Stats.CategoryStamp || w.generation != r.facts.Load().Generation()
	}
	return w.source == nil || w.source.line == nil || w.source.end != mpit.EndNone
}

// controlsDue says whether a rank's control variables are to be read: once after its first answer, then from time to
// time, and when somebody says so.
func (g *registry) controlsDue(r *rank, now time.Time) bool {
	c := &r.controls
	return len(g.cfg.ControlVariables) > 0 && (c.told || c.at.IsZero() ||
		now.Sub(c.at) >= g.cfg.ControlVariableInterval)
}

// dropControls takes a rank that has ended out of all counts.
func (g *registry) dropControls(r *rank) {
	r.controls.rows, _ = g.controls.Replace(r.UID, r.controls.rows, nil)
	r.controls.at = time.Time{}
}

// begin takes an inquiry out of the rank's outbox; 0: there is none.
func (c *connection) begin() inquiry {
	g := c.lock()
	defer g.unlock()
	if !c.rank.send.inquiry {
		return 0
	}
	c.rank.send.inquiry = false
	return c.rank.inquiry
}

// inquire makes an inquiry.
func (c *connection) inquire(ctx context.Context, what inquiry) {
	ctx, cancel := context.WithTimeout(ctx, inquiryTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			c.panicked("panic on a rank's account", p, append(c.rank.attrs(), "doing", "taking in what it was asked for")...)
		}
		g := c.lock()
		defer g.unlock()
		g.conclude(c.rank)
	}()
	if what&askCategories != 0 {
		list, _, err := c.session.Categories(ctx)
		c.takeCategories(c.rank, list, err)
	}
	if what&askControls != 0 {
		list, err := c.session.ControlVariables(ctx)
		c.takeControls(c.rank, list, err)
	}
}

// takeCategories takes the answer in. A rank that did not give one leaves what is known, and lets another be asked.
func (rs *ranks) takeCategories(r *rank, list []mpit.Category, err error) {
	f := r.facts.Load()
	rows, over := board.CategoryRows(list, f.Variables, f.Infos)
	g := rs.lock()
	defer g.unlock()
	switch w := r.world; {
	case g.table.byID[r.Key] != r: // the world may have gone with it
	case err != nil:
		g.failed(r, askCategories, err)
	default:
		w.asking = false
		var more int
		w.rows, more = rs.categories.Replace(w.uid, w.rows, rows)
		exposition.CountMore(rs.drop, w.left, self.DroppedBound, over+more)
	}
}

// takeControls takes a rank's control variables in. If they could not be read, the last ones stand.
func (rs *ranks) takeControls(r *rank, list []mpit.ControlVariable, err error) {
	rows, unreadable, over := board.ControlRows(r.world.WorldName, list, rs.cfg.ControlVariables)
	g := rs.lock()
	defer g.unlock()
	switch {
	case g.table.byID[r.Key] != r || r.end != mpit.EndNone:
	case err != nil:
		g.failed(r, askControls, err)
	default:
		c := &r.controls
		c.at = g.now()
		var more int
		c.rows, more = rs.controls.Replace(r.UID, c.rows, rows)
		exposition.CountMore(rs.drop, c.left, self.DroppedControl, unreadable)
		exposition.CountMore(rs.drop, c.left, self.DroppedBound, over+more)
	}
}
