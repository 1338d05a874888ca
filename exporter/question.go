package exporter

import (
	"sync/atomic"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// question is a request for a sample.
type question struct {
	rank    *rank
	session *mpit.Session
	line    *line
	pending *mpit.Pending
	at      time.Time

	begun atomic.Bool // somebody takes the answer in

	// Exporter.mu guards these.
	taken   bool         // the answer has been taken in, or never will be
	awaited []*countdown // by rounds; nil once it is taken
	waited  bool         // a round has had patience with it
}

// countdown is how many questions of a round have not been taken in. Exporter.mu guards it.
type countdown struct {
	left int
	over chan struct{} // closed when none is left
}

// newCountdown returns one that is too high by one until all questions are counted, for answers may come before.
func newCountdown() *countdown { return &countdown{left: 1, over: make(chan struct{})} }

func (c *countdown) less() {
	if c.left--; c.left == 0 {
		close(c.over)
	}
}

// settle lets those go who wait for the answer. The caller holds mu.
func (q *question) settle() {
	q.taken = true
	for _, c := range q.awaited {
		c.less()
	}
	q.awaited = nil
}

func (q *question) isAnswered() bool {
	select {
	case <-q.pending.Done():
		return true
	default:
		return false
	}
}

// line is how the goroutine of a rank's connection is told what to do.
type line struct {
	// asked is the question that is open, as long as its answer has not been taken in; nil: none. It changes under
	// Exporter.mu.
	asked atomic.Pointer[question]
	wake  chan struct{} // there is something in the outbox
}

func newLine() *line { return &line{wake: make(chan struct{}, 1)} }

// nudge wakes the goroutine.
func (l *line) nudge() {
	select {
	case l.wake <- struct{}{}:
	default: // it knows
	}
}
