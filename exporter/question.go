package exporter

import (
	"sync/atomic"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// line is a rank's connection, as others than its goroutine have it.
type line struct {
	session *mpit.Session
	// asked is the question that is open, as long as its answer has not been taken in; nil: none. It changes under the
	// registry's lock.
	asked atomic.Pointer[question]
	wake  chan struct{} // there is something in the outbox
}

func newLine(s *mpit.Session) *line { return &line{session: s, wake: make(chan struct{}, 1)} }

// nudge wakes the goroutine.
func (l *line) nudge() {
	select {
	case l.wake <- struct{}{}:
	default: // it knows
	}
}

// question is a request for a sample.
type question struct {
	rank *rank
	line *line
	at   time.Time

	begun   atomic.Bool                  // somebody takes the answer in
	pending atomic.Pointer[mpit.Pending] // nil: whoever takes the answer in has it, so that no round holds the sample

	awaiting // guarded by the registry's lock
}

// awaiting is who waits for the answer to a question.
type awaiting struct {
	taken   bool         // the answer has been taken in, or never will be
	awaited []*countdown // by rounds; nil once it is taken
	waited  bool         // a round has had patience with it
}

// settle lets those go who wait, for good.
func (w *awaiting) settle() {
	w.taken = true
	w.giveUp()
}

// giveUp lets those go who wait, and no round wait again.
func (w *awaiting) giveUp() {
	w.waited = true
	for _, c := range w.awaited {
		c.less()
	}
	w.awaited = nil
}

// question is the one that is open to the rank, which is asked if there is none.
func (l *line) question(r *rank, now time.Time) *question {
	q := l.asked.Load()
	if q == nil {
		q = &question{rank: r, line: l, at: now}
		q.pending.Store(l.session.Ask())
		if l.asked.Store(q); q.isAnswered() {
			l.nudge() // it has failed, which nobody else tells
		}
	}
	return q
}

// isAnswered says whether there is an answer that nobody takes in yet.
func (q *question) isAnswered() bool {
	pending := q.pending.Load()
	if pending == nil {
		return false
	}
	select {
	case <-pending.Done():
		return true
	default:
		return false
	}
}

// countdown is how many questions of a round have not been taken in. It is safe for concurrent use.
type countdown struct {
	left atomic.Int64
	over chan struct{} // closed when none is left
}

// newCountdown returns one that is too high by one until all questions are counted, for answers may come before.
func newCountdown() *countdown {
	c := &countdown{over: make(chan struct{})}
	c.left.Store(1)
	return c
}

func (c *countdown) less() {
	if c.left.Add(-1) == 0 {
		close(c.over)
	}
}
