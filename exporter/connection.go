package exporter

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/self"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// connection is one connection of a rank, as the goroutine has it that serves it.
type connection struct {
	*ranks
	*line
	who  identity.Process
	rank *rank            // nil: it is not known yet, or the connection brings a last sample
	open prometheus.Gauge // of its user's connections
}

// serve serves the connection for as long as it lives.
func (c *connection) serve(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	defer func() { _ = c.session.Close() }()
	if c.session.Hello().Final {
		c.receiveFinal(ctx)
		return
	}
	for {
		select {
		case <-ctx.Done():
			c.disconnect()
			return
		case <-c.session.Done():
			c.end(ctx)
			return
		case <-c.wake:
			c.takeAnswered(ctx) // it may have failed at once
			c.push(ctx)
			if what := c.begin(); what != 0 {
				asking.Go(func() { c.inquire(ctx, what) })
			}
		}
	}
}

// end takes in what a connection that has ended has left.
func (c *connection) end(ctx context.Context) {
	c.takeLast(ctx)
	if _, ok := c.session.Final(); ok {
		c.receiveFinal(ctx) // first: it hasn't lost its connection
	}
	c.disconnect()
	if err := c.session.Err(); !errors.Is(err, io.EOF) {
		c.countProtocolError(err)
		c.log.Debug("rank's connection failed", append(c.rank.attrs(), "err", err)...)
	} else {
		c.log.Debug("rank disconnected", c.rank.attrs()...)
	}
}

// disconnect notes the end of the connection, and lets those go who wait for an answer that nobody will take in.
// Nobody asks any more.
func (c *connection) disconnect() {
	g := c.lock()
	defer g.unlock()
	g.disconnect(c.rank, c.line)
	if q := c.asked.Load(); q != nil {
		q.settle()
	}
}

// takeAnswered takes the answer to the question in that is open, if it has come.
func (c *connection) takeAnswered(ctx context.Context) {
	if q := c.asked.Load(); q != nil && q.isAnswered() {
		c.take(ctx, q)
	}
}

// takeLast is takeAnswered for a connection that has ended.
func (c *connection) takeLast(ctx context.Context) {
	q := c.asked.Load()
	if q == nil {
		return
	}
	pending := q.pending.Load()
	if pending == nil {
		return
	}
	if _, err := pending.Sample(); err == nil {
		c.take(ctx, q)
	}
}

// take takes the answer to a question in, which has come, unless somebody else does. The goroutine that has read an
// answer takes it in.
func (c *connection) take(ctx context.Context, q *question) {
	if !q.begun.CompareAndSwap(false, true) {
		return
	}
	r := q.rank
	sample, err := q.pending.Swap(nil).Sample()
	result, state := self.ResultFailed, stateLate
	switch {
	case errors.Is(err, mpit.ErrCongested):
		result = self.ResultLate
	case err != nil:
		c.log.Debug("asking a rank failed", append(r.attrs(), "err", err)...)
	default:
		if c.mayTake(ctx, r, &sample, func() { c.with(func(*registry) { q.giveUp() }) }) != nil {
			return // the exporter ends; see disconnect
		}
		in := r.contents.Lock()
		result, state = in.accept(&sample)
		if !c.publish(in) {
			result, state = self.ResultFailed, stateLate
		}
		r.contents.Unlock()
		r.taking.Release(1)
	}
	c.self.Samples.WithLabelValues(result).Inc()
	g := c.lock()
	defer g.unlock()
	if q.line.asked.Store(nil); r.line == q.line { // else there is a newer connection
		r.last = state
		if r.state == stateNew && r.facts.Load().Sampled {
			r.state = state // no round may have asked
		}
	}
	q.settle()
}

// mayTake waits until a sample of a rank may be taken in. It calls waiting if its user has had too much work done.
func (c *connection) mayTake(ctx context.Context, r *rank, sample *mpit.Sample, waiting func()) error {
	cells := r.contents.Lock().cells(sample)
	r.contents.Unlock()
	if err := c.work.Take(ctx, r.UID, cells, waiting); err != nil {
		return err
	}
	return r.taking.Acquire(ctx, 1)
}

// push sends the agent what has gathered in the rank's outbox.
func (c *connection) push(ctx context.Context) {
	r, s := c.rank, c.session
	g := c.lock()
	todo := r.send
	r.send.selection, r.send.open = false, nil
	g.unlock()

	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	failed := func(doing string, err error) bool {
		if err != nil {
			c.log.Debug(doing+" variables failed", append(r.attrs(), "err", err)...)
		}
		return err != nil
	}
	again := todo.selection && failed("selecting", s.Select(ctx, todo.def, todo.ids))
	if len(todo.open) == 0 || !failed("opening", s.Open(ctx, todo.open)) {
		todo.open = nil
	}
	g = c.lock()
	defer g.unlock()
	r.send.selection = r.send.selection || again // the next round tries again
	if r.send.open == nil {
		r.send.open = todo.open
	}
}

// receiveFinal takes the last sample of a rank, which may be all that is ever seen of it.
func (c *connection) receiveFinal(ctx context.Context) {
	uid, entered := c.session.Peer().UID, false
	if c.with(func(g *registry) { entered = g.finals.enter(uid, g.table.alive(uid)) }); !entered {
		c.self.Refused.WithLabelValues(self.RefusedFinals).Inc()
		c.log.Debug("refused a last sample", "user", c.who.ID.User, "pid", c.session.Peer().PID)
		return
	}
	defer c.with(func(g *registry) { g.finals.leave(uid) })
	taking, cancel := context.WithTimeout(ctx, finalTimeout)
	defer cancel()
	select {
	case <-c.session.Done():
	case <-taking.Done():
		return
	}
	if c.takeFinal(ctx) && c.cfg.FinalTaken != nil {
		c.cfg.FinalTaken(ctx)
	}
}

// takeFinal takes the last sample of a connection that has brought all it had. It waits until it is its turn, however
// long: what waits counts as its user's, as the session is not closed before.
func (c *connection) takeFinal(ctx context.Context) bool {
	came := c.now() // what ends together is told apart by it, however long this sample's turn takes to come
	sample, ok := c.session.Final()
	if !ok {
		c.countProtocolError(c.session.Err())
		c.log.Debug("no last sample", "user", c.who.ID.User, "pid", c.session.Peer().PID, "err", c.session.Err())
		return false
	}
	r := c.rankOfFinal()
	// Nothing of this rank is taken in until then: no round is to wait for an answer.
	letGo := func() {
		c.with(func(*registry) {
			if r.line == c.line {
				c.line.question(r, time.Now()).giveUp()
			}
		})
	}
	if r == nil || c.mayTake(ctx, r, &sample, letGo) != nil { // there is none, or the exporter ends
		return false
	}
	defer r.taking.Release(1)
	c.self.Samples.WithLabelValues(self.ResultFinal).Inc()
	in := r.contents.Lock()
	in.absorb(&sample)
	c.publish(in)
	r.contents.Unlock()
	reason := sample.End
	if reason == mpit.EndNone {
		reason = mpit.EndExit
	}
	g := c.lock()
	defer g.unlock()
	if g.table.byID[r.Key] != r {
		return false // there were too many
	}
	g.finish(r, reason, came)
	return true
}

// rankOfFinal returns the rank that the last sample is of; nil: it is not to be taken.
func (c *connection) rankOfFinal() *rank {
	h, peer := c.session.Hello(), c.session.Peer()
	g := c.lock()
	defer g.unlock()
	r := g.table.byID[h.ID]
	switch {
	case r == nil:
		r = g.add(h, peer, c.who)
		r.watch(c.session)
		r.gone = c.now()
		g.table.enter(r)
	case r.UID != peer.UID:
		c.self.Refused.WithLabelValues(self.RefusedUID).Inc()
		return nil
	}
	return r
}
