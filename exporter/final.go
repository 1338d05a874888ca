package exporter

import (
	"context"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/self"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

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
