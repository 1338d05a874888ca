package exporter

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// maxInquiries is how many ranks of one user are asked for more than a sample at the same time: each costs the rank's
	// process a little time, and there may be a thousand that have just begun. Each user has his own, for ranks that don't
	// answer hold theirs until inquiryTimeout.
	maxInquiries = 4
	// inquiryTimeout is how long a rank may take for it.
	inquiryTimeout = 10 * time.Second
	// inquiryRetry is when a rank that could not say it is asked again.
	inquiryRetry = time.Minute
)

// inquiry is what a rank is asked for besides samples: seldom, in the background, and never while a scrape waits for it. What it
// says is on the page from the next scrape on.
type inquiry uint8

const (
	askCategories inquiry = 1 << iota
	askControls
)

// inquire chooses the ranks that are to be asked now and tells their sessions' goroutines. It does not wait. The caller holds mu.
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
