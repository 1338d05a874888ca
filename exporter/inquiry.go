package exporter

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime/debug"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/categories"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/cvar"
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

// inquire chooses the ranks that are to be asked now and tells their sessions' goroutines. It does not wait. The
// caller holds mu.
func (e *Exporter) inquire() {
	now := e.now()
	for _, r := range e.table.ordered {
		if e.inquiries[r.peer.UID] >= maxInquiries {
			continue
		}
		if r.session == nil || r.end != mpit.EndNone || !r.facts.figures || r.inquiry != 0 || r.state == stateLate {
			continue
		}
		var what inquiry
		if e.categoriesDue(r, now) {
			what |= askCategories
			r.world.begin(r)
		}
		if e.controlsDue(r, now) {
			what |= askControls
			r.controls.told = false
		}
		if what == 0 {
			continue
		}
		r.inquiry, r.send.inquiry = what, true
		e.inquiries[r.peer.UID]++
		r.nudge()
	}
}

// begin takes an inquiry out of a rank's outbox; 0: there is none.
func (e *Exporter) begin(r *rank) inquiry {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !r.send.inquiry {
		return 0
	}
	r.send.inquiry = false
	return r.inquiry
}

// answers is what came of an inquiry.
type answers struct {
	categories    []mpit.Category
	categoriesErr error
	controls      []mpit.ControlVariable
	controlsErr   error
}

// askRank makes an inquiry of a rank over one of its connections.
func (e *Exporter) askRank(ctx context.Context, r *rank, s *mpit.Session, what inquiry) {
	ctx, cancel := context.WithTimeout(ctx, inquiryTimeout)
	defer cancel()
	var a answers
	if what&askCategories != 0 {
		a.categories, a.categoriesErr = s.Categories(ctx)
	}
	if what&askControls != 0 {
		a.controls, a.controlsErr = s.ControlVariables(ctx)
	}
	e.takeAnswers(r, what, &a)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conclude(r)
}

// takeAnswers takes in what came of an inquiry.
func (e *Exporter) takeAnswers(r *rank, what inquiry, a *answers) {
	defer func() {
		if p := recover(); p != nil {
			e.self.panics.Inc()
			e.log.Error("panic on a rank's account; please report it",
				append(rankAttrs(r), "doing", "taking in what it was asked for", "panic", p, "stack", string(debug.Stack()))...)
		}
	}()
	if what&askCategories != 0 {
		e.takeCategories(r, a.categories, a.categoriesErr)
	}
	if what&askControls != 0 {
		e.takeControls(r, a.controls, a.controlsErr)
	}
}

// abandon gives up an inquiry that nobody has begun, for its connection has ended. The caller holds mu.
func (e *Exporter) abandon(r *rank) {
	if !r.send.inquiry {
		return
	}
	r.send.inquiry = false
	if r.inquiry&askCategories != 0 {
		e.categoriesFailed(r, mpit.ErrFinal)
	}
	if r.inquiry&askControls != 0 {
		e.controlsFailed(r, mpit.ErrFinal)
	}
	e.conclude(r)
}

// conclude lets the next rank be asked. The caller holds mu.
func (e *Exporter) conclude(r *rank) {
	r.inquiry = 0
	if e.inquiries[r.peer.UID]--; e.inquiries[r.peer.UID] == 0 {
		delete(e.inquiries, r.peer.UID)
	}
	e.inquire()
}

// categoriesDue says whether a rank is to be asked for its world's categories: if nobody has answered who is still
// there, and again when it says that they have changed, or has new variables. The caller holds mu.
func (e *Exporter) categoriesDue(r *rank, now time.Time) bool {
	w := r.world
	switch {
	case w.asking || now.Before(r.categoriesNotBefore):
		return false
	case w.source == r:
		return w.stamp != r.facts.stamp || w.generation != r.variablesGeneration() || !w.told && e.grouped()
	}
	return w.source == nil || w.source.session == nil || w.source.end != mpit.EndNone
}

// takeCategories takes the answer in. A rank that did not give one leaves what is known, and lets another be asked.
func (e *Exporter) takeCategories(r *rank, list []mpit.Category, err error) {
	w := r.world
	e.mu.Lock()
	known, variables, infos := e.table.byID[r.key] == r, r.facts.variables, r.facts.infos
	e.mu.Unlock()
	if !known {
		return
	}
	if err != nil {
		e.mu.Lock()
		learn := e.categoriesFailed(r, err)
		e.mu.Unlock()
		if learn {
			e.learnCategories(w)
		}
		return
	}
	rows, over := categories.Rows(list, variables, infos)
	told := e.grouped()
	var s categories.Standing
	if told {
		var more int
		s, more = categories.StandingOf(list, variables)
		over += more
	}
	func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.table.byID[r.key] != r {
			return // the world may have gone with it
		}
		var more int
		w.asking, w.told, w.standing = false, told, s
		w.rows, more = e.categories.Replace(w.key.uid, w.rows, rows)
		exposition.CountMore(e.drop, w.left, droppedBound, over+more)
	}()
	if told {
		e.learnCategories(w)
	}
}

// categoriesFailed notes that a rank could not say its categories, and whether its world is to be told that nobody
// can. The caller holds mu.
func (e *Exporter) categoriesFailed(r *rank, err error) (learn bool) {
	w := r.world
	w.asking, w.source, r.categoriesNotBefore = false, nil, e.now().Add(inquiryRetry)
	e.log.Debug("asking a rank for its categories failed", append(rankAttrs(r), "err", err)...)
	if w.told || connectionEnded(err) { // another rank will say, or this one when it is back
		return false
	}
	w.told, w.standing = true, nil
	return true
}

// learnCategories tells all ranks of a world its categories, as they are known now: figures that are made meanwhile
// find out themselves.
func (e *Exporter) learnCategories(w *world) {
	var ranks []*rank
	func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, r := range e.table.ordered {
			if r.world == w {
				ranks = append(ranks, r)
			}
		}
	}()
	for _, r := range ranks {
		func() {
			c := r.contents.Lock()
			defer r.contents.Unlock()
			if c.figures != nil {
				e.guard(r, c, "telling it its categories", func() { e.tellCategories(r, c) })
			}
		}()
	}
}

// standingOfWorld returns what is known of the categories of a rank's world; false: nothing yet, or no rule wants to
// know.
func (e *Exporter) standingOfWorld(r *rank) (categories.Standing, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return r.world.standing, r.world.told && e.grouped()
}

// tellCategories tells a rank's figures the world's categories, if rules want to know and the world does.
func (e *Exporter) tellCategories(r *rank, c *contents) {
	s, told := e.standingOfWorld(r)
	switch {
	case !told:
		return
	case s == nil:
		c.figures.SetCategories(nil)
	default:
		c.figures.SetCategories(s.Of)
	}
	c.anew = true
}

// categoriesAtLast tells figures that are to take a rank's last sample that nobody can say what its categories are,
// if nobody has said by now: what waits for them would never be shown.
func (e *Exporter) categoriesAtLast(r *rank, c *contents) {
	if _, told := e.standingOfWorld(r); !told && e.grouped() {
		c.figures.SetCategories(nil)
		c.anew = true
	}
}

// connectionEnded says whether a question failed only because its connection ended.
func connectionEnded(err error) bool {
	return errors.Is(err, mpit.ErrFinal) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}

// controlsDue says whether a rank's control variables are to be read: once after its first answer, then from time to
// time, and when somebody says so. The caller holds mu.
func (e *Exporter) controlsDue(r *rank, now time.Time) bool {
	c := &r.controls
	return len(e.cfg.ControlVariables) > 0 && (c.told || c.at.IsZero() || now.Sub(c.at) >= e.cfg.ControlVariableInterval)
}

// takeControls takes a rank's control variables in. If they could not be read, the last ones stand.
func (e *Exporter) takeControls(r *rank, list []mpit.ControlVariable, err error) {
	chosen, unreadable, over := cvar.Rows(list, e.cfg.ControlVariables)
	rows := make([]controlRow, len(chosen))
	for i, c := range chosen {
		rows[i] = controlRow{r.world.name(), c}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.table.byID[r.key] != r || r.end != mpit.EndNone:
	case err != nil:
		e.controlsFailed(r, err)
	default:
		c := &r.controls
		c.at = e.now()
		var more int
		c.rows, more = e.controls.Replace(r.peer.UID, c.rows, rows)
		exposition.CountMore(e.drop, c.left, droppedControl, unreadable)
		exposition.CountMore(e.drop, c.left, droppedBound, over+more)
	}
}

// controlsFailed notes that a rank's control variables could not be read. The caller holds mu.
func (e *Exporter) controlsFailed(r *rank, err error) {
	r.controls.at = e.now().Add(min(inquiryRetry, e.cfg.ControlVariableInterval) - e.cfg.ControlVariableInterval)
	e.log.Debug("asking a rank for its control variables failed", append(rankAttrs(r), "err", err)...)
}

// dropControls takes a rank that has ended out of all counts. The caller holds mu.
func (e *Exporter) dropControls(r *rank) {
	r.controls.rows, _ = e.controls.Replace(r.peer.UID, r.controls.rows, nil)
	r.controls.at = time.Time{}
}
