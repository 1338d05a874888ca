package exporter

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// enter waits until a rank may be taken in, at most until ctx ends.
func (e *Exporter) enter(ctx context.Context, r *rank) (leave func(), err error) {
	if err := r.taking.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { r.taking.Release(1) }, nil
}

// take takes the answer to a question in, which has come, unless somebody else does. The goroutine that has read an
// answer takes it in.
func (e *Exporter) take(ctx context.Context, q *question) {
	if !q.begun.CompareAndSwap(false, true) {
		return
	}
	r := q.rank
	sample, err := q.pending.Sample()
	result, state := resultFailed, stateLate
	switch {
	case errors.Is(err, mpit.ErrCongested):
		result = resultLate
	case err != nil:
		e.log.Debug("asking a rank failed", append(rankAttrs(r), "err", err)...)
	default:
		leave, err := e.enter(ctx, r)
		if err != nil {
			return // the exporter ends; see giveUp
		}
		c := r.contents.Lock()
		result, state = e.accept(r, c, &sample)
		if !e.publish(r, c) {
			result, state = resultFailed, stateLate
		}
		r.contents.Unlock()
		leave()
	}
	e.self.samples.WithLabelValues(result).Inc()
	e.mu.Lock()
	defer e.mu.Unlock()
	if q.line.asked.Store(nil); r.line == q.line { // else there is a newer connection
		r.last = state
	}
	q.settle()
}

// accept takes a sample in and returns what came of the question for it.
func (e *Exporter) accept(r *rank, c *contents, sample *mpit.Sample) (result string, state rankState) {
	switch {
	case sample.Status == mpit.SampleBusy:
		c.count(&sample.Stats)
		return resultBusy, stateBusy
	case c.final:
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

// absorb takes a sample with values into the rank's figures and reports whether that went well. It is to be published.
func (e *Exporter) absorb(r *rank, c *contents, s *mpit.Sample) bool {
	if c.over {
		return false
	}
	c.count(&s.Stats)
	c.final = c.final || s.Status == mpit.SampleFinal
	return s.Monotonic < c.clock || e.takeIn(r, c, s) // else it is of an earlier connection
}

// takeIn is absorb for all that the sample has.
func (e *Exporter) takeIn(r *rank, c *contents, s *mpit.Sample) bool {
	c.kept.keep(s)
	c.size = s.Size()
	s = c.trimmed.bounded(s, func(n int) { exposition.CountMore(e.drop, c.left, droppedVariables, n) })
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

// update takes a sample into a rank's figures, which draw on the budgets for what is new.
func (e *Exporter) update(r *rank, c *contents, s *mpit.Sample) {
	c.figures.SetVariableLimit(e.budgets.Limits().SeriesPerVariable)
	c.figures.Update(s)
	r.account.Settle(c.figures.Weight())
}

// publish tells all who don't have the rank's lock what is in it now, and the session's goroutine what the agent is
// to be told. It reports whether the figures, if there are some, are sound.
func (e *Exporter) publish(r *rank, c *contents) bool {
	sound := true
	f := facts{
		figures: c.figures != nil, sampled: c.sampled, made: c.made, size: c.size,
		stamp: c.stats.CategoryStamp, variables: c.variables, infos: c.infos, kept: c.kept,
	}
	if f.figures {
		sound = e.guard(r, c, "looking at its series", func() {
			f.structure, f.series = c.figures.Structure(), len(c.figures.Series())
		})
		f.figures = sound
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
	return sound
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
	p := variables.Process{Library: r.library, User: r.peer.UID, Older: r.since}
	if !c.since.IsZero() {
		p.Older = c.since
	}
	c.figures, c.epoch = e.newRank(rules.mapper, p), rules.epoch
	c.figures.SetRoom(r.account)
	c.made++
	c.anew = true
	c.reselect = c.reselect || c.selected
	e.tellCategories(r, c)
}

// renew puts the rules that are in force into a rank's figures.
func (e *Exporter) renew(r *rank, c *contents, rules *ruling) {
	c.figures.Reload(rules.mapper, e.now())
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

// guard runs what may fail on a rank's account. A panic costs the rank its figures, which are made anew at its next
// answer and begin then, as far as they can't be had from its agent; and nobody else anything.
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
	r.account.Settle(0)
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

// outdate says whether a rank's figures are to go over to these rules, with a sample that can fill them. A passive
// rank may answer with what it had before.
func (r *ruling) outdate(c *contents, s *mpit.Sample) bool {
	return c.epoch != r.epoch && s.Layout != nil && (s.Values != nil || s.Layout.Values == 0) && s.Monotonic >= c.clock
}
