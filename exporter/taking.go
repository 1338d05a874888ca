package exporter

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// question is a request for a sample.
type question struct {
	rank    *rank
	session *mpit.Session
	pending *mpit.Pending
	at      time.Time
	taken   chan struct{} // closed when the answer has been taken in, or never will be

	waited bool // a round has had patience with it; guarded by Exporter.mu
}

// maxTaking is how many ranks of one user are taken in at the same time.
const maxTaking = 4

// places bounds how many ranks of one user are taken in at the same time. Others' ranks don't wait.
type places struct {
	mu    sync.Mutex
	users map[uint32]*place
}

// place is what one user has: maxTaking places.
type place struct {
	*semaphore.Weighted
	wanted int // by who have a place, or wait for one
}

func newPlaces() *places { return &places{users: map[uint32]*place{}} }

// enter waits for one of the user's places, or for all of them, at most until ctx ends. leave gives back what it has got.
func (p *places) enter(ctx context.Context, uid uint32, all bool) (leave func(), err error) {
	p.mu.Lock()
	mine := p.users[uid]
	if mine == nil {
		mine = &place{Weighted: semaphore.NewWeighted(maxTaking)}
		p.users[uid] = mine
	}
	mine.wanted++
	p.mu.Unlock()
	forget := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if mine.wanted--; mine.wanted == 0 {
			delete(p.users, uid)
		}
	}
	n := int64(1)
	if all {
		n = maxTaking
	}
	if err := mine.Acquire(ctx, n); err != nil {
		forget()
		return nil, err
	}
	return func() {
		mine.Release(n)
		forget()
	}, nil
}

// enter waits until a rank of a job may be taken in. Where ranks that are taken in at the same time could have more series together than the
// job or its user may, it is alone.
func (e *Exporter) enter(ctx context.Context, key jobKey) (leave func(), err error) {
	leave, err = e.places.enter(ctx, key.uid, false)
	if err != nil || !e.budgets.crowded(key) {
		return leave, err
	}
	leave()
	return e.places.enter(ctx, key.uid, true)
}

// take takes the answer to a question in, which has come.
func (e *Exporter) take(ctx context.Context, q *question) {
	defer close(q.taken)
	r := q.rank
	sample, err := q.pending.Sample()
	var result string
	var state rankState
	switch {
	case errors.Is(err, mpit.ErrCongested):
		result, state = resultLate, stateLate
	case err != nil:
		e.log.Debug("asking a rank failed", append(rankAttrs(r), "err", err)...)
		result, state = resultFailed, stateLate
	default:
		leave, err := e.enter(ctx, r.job())
		if err != nil {
			return // the exporter ends
		}
		c := r.contents.Lock()
		result, state = e.accept(r, c, &sample)
		r.contents.Unlock()
		leave()
	}
	e.self.samples.WithLabelValues(result).Inc()
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.asked == q { // else there is a newer connection
		r.asked, r.last = nil, state
	}
}

// accept takes a sample in and returns what came of the question for it.
func (e *Exporter) accept(r *rank, c *contents, sample *mpit.Sample) (result string, state rankState) {
	if sample.Status == mpit.SampleBusy {
		c.count(&sample.Stats)
		e.publish(r, c)
		return resultBusy, stateBusy
	}
	e.mu.Lock()
	over := r.end == mpit.EndFinalize || r.end == mpit.EndExit || r.end == mpit.EndAbort
	e.mu.Unlock()
	switch {
	case over:
		return resultFresh, stateEnded // older than the last sample
	case !e.absorb(r, c, sample):
		return resultFailed, stateLate
	case sample.Status == mpit.SamplePassive:
		return resultPassive, statePassive
	case sample.Status == mpit.SamplePaused:
		return resultPaused, statePaused
	}
	return resultFresh, stateUp
}

// absorb takes a sample with values into the rank's figures and reports whether that went well.
func (e *Exporter) absorb(r *rank, c *contents, s *mpit.Sample) bool {
	if c.over {
		return false
	}
	c.count(&s.Stats)
	ok := s.Monotonic < c.clock || e.takeIn(r, c, s) // else it is of an earlier connection
	return e.publish(r, c) && ok
}

// takeIn is absorb for all that the sample has.
func (e *Exporter) takeIn(r *rank, c *contents, s *mpit.Sample) bool {
	c.keep(s)
	c.size = s.Size()
	s = e.bounded(c, s)
	return e.guard(r, c, "mapping a sample", func() {
		rules := e.rules.Load()
		if c.figures == nil {
			e.makeFigures(r, c, rules)
		} else if rules.outdate(c, s) {
			e.renew(r, c, rules)
		}
		if s.Status == mpit.SampleFinal {
			e.categoriesAtLast(r, c)
		}
		e.update(r, c, s)
		c.clock = max(c.clock, s.Monotonic)
		// Figures that are made after a panic leave out the same things, which have been counted already.
		dropped := c.figures.Dropped()
		for reason, n := range dropped {
			if n > c.dropped[reason] {
				e.self.dropped.WithLabelValues(string(reason)).Add(float64(n - c.dropped[reason]))
			}
		}
		c.dropped = dropped
		if s.Variables != nil && (c.anew || s.Variables != c.variables || len(c.infos) != len(s.Variables.ByID)) {
			c.variables = s.Variables
			c.infos = r.world.describe(c.figures.Infos())
			c.countVariables()
			c.anew = false
			e.logConflicts(r, c)
		} else if s.Layout == c.layout && c.figures.Structure() == c.structure {
			return // nothing new to select
		}
		c.layout, c.structure = s.Layout, c.figures.Structure()
		if def, ids, changed := c.figures.Select(); changed || c.reselect {
			c.tell.selected, c.tell.selection, c.tell.def, c.tell.ids = true, true, def, ids
			c.selected = true
		}
		c.reselect = false
		c.tell.open = c.figures.Requests()
	})
}

// update takes a sample into a rank's figures, within its budget.
func (e *Exporter) update(r *rank, c *contents, s *mpit.Sample) {
	c.figures.SetLimit(e.budgets.offer(r))
	c.figures.SetVariableLimit(e.budgets.of().SeriesPerVariable)
	c.figures.Update(s)
	e.budgets.take(r, c.figures.Weight())
}

// publish tells all who don't have the rank's lock what is in it now, and the session's goroutine what the agent is to be told. It reports
// whether there are figures.
func (e *Exporter) publish(r *rank, c *contents) bool {
	f := facts{
		figures: c.figures != nil, sampled: c.sampled, made: c.made, size: c.size,
		stamp: c.stats.CategoryStamp, variables: c.variables, infos: c.infos, kept: c.kept,
	}
	if f.figures {
		f.figures = e.guard(r, c, "looking at its series", func() { f.structure, f.series = c.figures.Structure(), len(c.figures.Series()) })
	}
	tell := c.tell
	c.tell = outbox{}
	e.mu.Lock()
	defer e.mu.Unlock()
	r.facts = f
	e.table.enter(r)
	if tell.selected {
		r.send.selected, r.send.selection, r.send.def, r.send.ids = true, true, tell.def, tell.ids
	}
	if tell.open != nil {
		r.send.open = tell.open
	}
	r.nudge()
	return f.figures
}

// logConflicts says which variables of a rank find their names taken, and by what.
func (e *Exporter) logConflicts(r *rank, c *contents) {
	for i := range c.infos {
		if info := &c.infos[i]; info.Why != "" {
			e.log.Debug("a variable is left out", append(rankAttrs(r),
				"pvar", info.Name, "class", info.Class.String(), "reason", string(info.Reason), "why", info.Why)...)
		}
	}
}

// makeFigures makes a rank's figures by the rules that are in force.
func (e *Exporter) makeFigures(r *rank, c *contents, rules *ruling) {
	p := mapping.Process{Library: r.library, User: r.peer.UID, Older: r.since}
	if !c.since.IsZero() {
		p.Older = c.since
	}
	c.figures, c.epoch = e.newRank(rules.Mapper, p), rules.epoch
	c.made++
	c.anew = true
	c.reselect = c.reselect || c.selected
	e.tellCategories(r, c)
}

// renew puts the rules that are in force into a rank's figures.
func (e *Exporter) renew(r *rank, c *contents, rules *ruling) {
	c.figures.Reload(rules.Mapper, e.now())
	c.epoch, c.anew, c.reselect = rules.epoch, true, true
	e.tellCategories(r, c)
}

func (c *contents) countVariables() {
	c.byState = [variableStates]int{}
	for i := range c.variables.ByID {
		if state := int(c.variables.ByID[i].State); state < variableStates {
			c.byState[state]++
		}
	}
}

// guard runs what may fail on a rank's account. A panic costs the rank its figures, which are made anew at its next answer and begin then,
// as far as they can't be had from its agent; and nobody else anything.
func (e *Exporter) guard(r *rank, c *contents, doing string, f func()) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			ok = false
			e.self.panics.Inc()
			e.log.Error("panic on a rank's account; please report it",
				append(rankAttrs(r), "doing", doing, "panic", p, "stack", string(debug.Stack()))...)
			e.discard(r, c)
			c.since = e.now()
		}
	}()
	f()
	return true
}

// discard throws a rank's figures away.
func (e *Exporter) discard(r *rank, c *contents) {
	f := c.figures
	c.figures = nil
	e.budgets.take(r, 0)
	if f != nil {
		e.guard(r, c, "closing its figures", f.Close)
	}
}

// close gives back what a rank has that has been forgotten. It does not wait.
func (e *Exporter) close(r *rank) {
	c := r.contents.TryLock()
	if c == nil {
		go func() { // its sample is being taken in, which ends
			c := r.contents.Lock()
			defer r.contents.Unlock()
			e.discardForGood(r, c)
		}()
		return
	}
	defer r.contents.Unlock()
	e.discardForGood(r, c)
}

func (e *Exporter) discardForGood(r *rank, c *contents) {
	c.over = true
	e.discard(r, c)
}
