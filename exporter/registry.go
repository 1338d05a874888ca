package exporter

import (
	"context"
	"errors"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

var (
	errOtherUser    = errors.New("another user has a rank with the same id")
	errTooManyRanks = errors.New("the user has too many ranks")
)

// connect registers a session. A rank that was known before goes on with it: its agent has connected anew.
func (e *Exporter) connect(ctx context.Context, s *mpit.Session, w identity.Process) (*rank, *line, error) {
	h, peer := s.Hello(), s.Peer()
	r, l, old, err := func() (*rank, *line, *mpit.Session, error) {
		e.mu.Lock()
		defer e.unlock()
		r := e.table.byID[h.ID]
		switch {
		case r != nil && r.peer.UID != peer.UID:
			e.self.refused.WithLabelValues(refusedUID).Inc()
			return nil, nil, nil, errOtherUser
		case (r == nil || r.end != mpit.EndNone) && e.table.alive(peer.UID) >= e.cfg.MaxRanks:
			e.self.refused.WithLabelValues(refusedRanks).Inc()
			return nil, nil, nil, errTooManyRanks
		case r == nil:
			r = e.add(h, peer, w)
		case r.end == mpit.EndLost:
			r.revive()
		}
		old := r.session
		r.session, r.line = s, newLine()
		line := r.line
		s.OnAnswer(func() { e.takeAnswered(ctx, line) })
		r.gone = time.Time{}
		if r.state == stateLate {
			r.state = stateNew
		}
		if r.send.selected {
			// An agent may or may not remember what its last connection selected.
			r.send.selection = true
		}
		e.table.enter(r)
		r.nudge()
		return r, r.line, old, nil
	}()
	if old != nil {
		_ = old.Close()
	}
	return r, l, err
}

// unlock gives mu back, and closes what has been removed from the table.
func (e *Exporter) unlock() {
	removed := e.removed
	e.removed = nil
	for _, r := range removed {
		e.freed.leaving = true
		e.freed.bytes += r.facts.size + seriesBytes*r.facts.series
	}
	e.mu.Unlock()
	for _, r := range removed {
		e.close(r)
	}
}

// add puts a new rank into the table. The caller holds mu.
func (e *Exporter) add(h mpit.Hello, peer mpit.Peer, w identity.Process) *rank {
	e.makeWay(w.ID, peer.UID)
	r := e.table.add(h, peer, w)
	r.account = e.budgets.Open(r.job())
	if r.old = h.InitTime.Before(e.started); r.old {
		r.since = e.now()
	}
	e.worlds.join(r)
	e.noteClash(r)
	if w.Check == identity.Differs {
		e.self.mismatches.Inc()
		e.log.Debug("a rank claims another job than the kernel says", append(rankAttrs(r), "cgroup_jobid", w.CgroupJobID)...)
	}
	return r
}

// disconnect notes the end of a connection, unless the rank has a newer one.
func (e *Exporter) disconnect(r *rank, s *mpit.Session) {
	e.mu.Lock()
	defer e.unlock()
	if r.session != s {
		return
	}
	r.session, r.line = nil, nil
	e.abandon(r)
	if r.end == mpit.EndNone {
		r.gone = e.now()
		r.state = stateLate
	}
	e.table.enter(r)
	e.evict()
}

// receiveFinal takes the last sample of a rank, which may be all that is ever seen of it.
func (e *Exporter) receiveFinal(ctx context.Context, s *mpit.Session, w identity.Process) {
	if !e.enterFinal(s.Peer().UID) {
		e.log.Debug("refused a last sample", "user", w.ID.User, "pid", s.Peer().PID)
		return
	}
	defer e.leaveFinal(s.Peer().UID)
	taking, cancel := context.WithTimeout(ctx, finalTimeout)
	defer cancel()
	select {
	case <-s.Done():
	case <-taking.Done():
		return
	}
	if e.takeFinal(ctx, s, w) && e.cfg.FinalTaken != nil {
		e.cfg.FinalTaken(ctx)
	}
}

// takeFinal takes the last sample of a connection that has brought all it had. It waits until it is its turn.
func (e *Exporter) takeFinal(ctx context.Context, s *mpit.Session, w identity.Process) bool {
	sample, ok := s.Final()
	if !ok {
		e.countProtocolError(s.Err())
		e.log.Debug("no last sample", "user", w.ID.User, "pid", s.Peer().PID, "err", s.Err())
		return false
	}
	r := e.rankOfFinal(s, w)
	if r == nil {
		return false
	}
	leave, err := e.enter(ctx, r)
	if err != nil {
		return false // the exporter ends
	}
	defer leave()
	e.self.samples.WithLabelValues(resultFinal).Inc()
	c := r.contents.Lock()
	e.absorb(r, c, &sample)
	e.publish(r, c)
	r.contents.Unlock()
	reason := sample.End
	if reason == mpit.EndNone {
		reason = mpit.EndExit
	}
	e.mu.Lock()
	defer e.unlock()
	if e.table.byID[r.key] != r {
		return false // there were too many
	}
	e.finish(r, reason, e.now())
	return true
}

// rankOfFinal returns the rank that a last sample is of; nil: it is not to be taken.
func (e *Exporter) rankOfFinal(s *mpit.Session, w identity.Process) *rank {
	h, peer := s.Hello(), s.Peer()
	e.mu.Lock()
	defer e.unlock()
	r := e.table.byID[h.ID]
	switch {
	case r == nil:
		r = e.add(h, peer, w)
		r.gone = e.now()
		e.table.enter(r)
	case r.peer.UID != peer.UID:
		e.self.refused.WithLabelValues(refusedUID).Inc()
		return nil
	}
	return r
}

// enterFinal counts a connection that is to bring a last sample, if its user may have one more.
func (e *Exporter) enterFinal(uid uint32) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := e.finals[uid]; n >= maxFinals && n >= maxFinals+e.table.alive(uid) {
		e.self.refused.WithLabelValues(refusedFinals).Inc()
		return false
	}
	e.finals[uid]++
	return true
}

func (g *registry) leaveFinal(uid uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.finals[uid]--; g.finals[uid] == 0 {
		delete(g.finals, uid)
	}
}

// finish marks a rank as ended and makes room for it. The caller holds mu.
func (e *Exporter) finish(r *rank, reason mpit.EndReason, at time.Time) {
	r.finish(reason, at)
	e.table.enter(r)
	e.dropControls(r)
	e.log.Debug("rank ended", append(rankAttrs(r), "reason", r.end.String())...)
	e.tellReaders()
	e.evict()
}

// evict makes room for ended ranks. The caller holds mu.
func (e *Exporter) evict() {
	for {
		victim := e.table.surplus(e.cfg.MaxEnded, e.endedBytes)
		if victim == nil {
			return
		}
		e.self.evicted.Inc()
		e.countLost(victim)
		e.remove(victim)
	}
}

// remove forgets a rank; it leaves the page when that is made next. The caller holds mu.
func (e *Exporter) remove(r *rank) {
	e.table.remove(r)
	if e.worlds.leave(r) {
		e.categories.Replace(r.world.key.uid, r.world.rows, nil)
	}
	e.removed = append(e.removed, r)
}

// expire ends ranks whose last sample is overdue and forgets ended ones whose time is over, or whose room others
// need. The caller holds mu.
func (e *Exporter) expire() {
	now := e.now()
	var over, lost []*rank
	for _, r := range e.table.ordered {
		switch {
		case r.end != mpit.EndNone && !e.wanted(r) && (now.Sub(r.ended) >= e.cfg.Retention || r.account.Short()):
			over = append(over, r)
		case r.end == mpit.EndNone && r.session == nil && now.Sub(r.gone) >= e.grace:
			lost = append(lost, r)
		}
	}
	for _, r := range over {
		e.remove(r)
	}
	for _, r := range lost {
		if e.table.byID[r.key] == r { // and has not been evicted meanwhile
			e.finish(r, mpit.EndLost, r.gone)
		}
	}
}

// Remaining returns how many ranks live, or may still bring their last sample, and how many have ended whose last
// values nobody has got. It asks none of them. An exporter that serves one job has nothing left to do when both are
// zero.
func (e *Exporter) Remaining() (living, untaken int) {
	e.mu.Lock()
	defer e.unlock()
	e.expire()
	for _, r := range e.table.ordered {
		switch {
		case r.end == mpit.EndNone:
			living++
		case e.wanted(r):
			untaken++
		}
	}
	for _, n := range e.finals {
		living += n
	}
	return living, untaken
}

// clashLogInterval is how often one user's clashes of labels are worth a line: a user can make any number of them.
const clashLogInterval = time.Minute

// maxClashLogged bounds the users of whom it is known when a clash was logged.
const maxClashLogged = 256

// maxWays is at how many ranks with the same labels a new one looks, for an ended one in whose place it could be.
const maxWays = 16

// makeWay removes the ended rank whose labels a new one would have, if it is the same user's and nobody waits for its
// last values. A job that is requeued, or a program that is started again and again by one shell, so goes on in the
// same series, which begin anew; with a label dup it would be another one until its end. Others keep their labels.
// The caller holds mu.
func (e *Exporter) makeWay(id Identity, uid uint32) {
	for ; id.Dup < maxWays; id.Dup++ {
		i, found := e.table.find(id)
		if !found {
			return
		}
		if old := e.table.ordered[i]; old.end != mpit.EndNone && !e.wanted(old) && old.peer.UID == uid {
			e.remove(old)
			return
		}
	}
}

// noteClash counts and logs that a new rank has the labels of another one, or is in a world that another user claims
// too: once for each world, and of one user at most one line in clashLogInterval. The caller holds mu.
func (e *Exporter) noteClash(r *rank) {
	if r.id.Dup > 0 {
		e.self.clashes.Inc()
	}
	if r.id.Dup == 0 && r.world.dup == 0 || r.world.warned {
		return
	}
	now := e.now()
	if last, found := e.clashLogged[r.peer.UID]; found && now.Sub(last) < clashLogInterval {
		return
	}
	if len(e.clashLogged) >= maxClashLogged {
		clear(e.clashLogged) // a few lines more
	}
	e.clashLogged[r.peer.UID] = now
	r.world.warned = true
	e.log.Warn("ranks have the labels of others; the later ones have a label dup "+
		"(further clashes of this world are only counted)",
		append(rankAttrs(r), "pid", r.about.PID, "jobid_source", r.about.JobIDSource, "jobid_check", r.about.JobIDCheck)...)
}

const (
	// seriesBytes is about what a series takes, wherever.
	seriesBytes = 1000
	// worthGivingBack is how much must have been freed.
	worthGivingBack  = 32 << 20
	givingBackPauses = time.Minute
)

// giveBack has the memory of ranks that have left given back to the kernel, once the page is without them.
func (e *Exporter) giveBack() {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, leaving := e.now(), e.freed.leaving
	e.freed.leaving = false
	if leaving || e.cfg.GiveBack == nil || e.freed.bytes < worthGivingBack || now.Sub(e.freed.at) < givingBackPauses {
		return
	}
	e.freed = freed{at: now}
	go e.cfg.GiveBack()
}
