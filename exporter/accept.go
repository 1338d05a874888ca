package exporter

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/turns"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// acceptLogInterval is how often it may be logged that no connection can be accepted: where ranks come and go at the
// limit, that ends and begins again with each of them.
const acceptLogInterval = time.Minute

// maxArriving is how many connections are being identified, or are at the registry's lock for the first time, at the
// same time. However many users come at once, most of the machine is left to rounds.
const maxArriving = 2

// door is where connections wait to be identified: of each user one goes through at a time, and users take turns. So
// no queue of newcomers is ever ahead of a round, or of another user's ranks. It is safe for concurrent use.
type door struct {
	users turns.Turns[uint32]
	all   *semaphore.Weighted // of each user one waits for it, so it is fair to them
}

func newDoor() *door { return &door{all: semaphore.NewWeighted(maxArriving)} }

// admit finds out who connects, when it is the user's turn, and makes the connection known. nil: it is refused. old is
// one that it takes the place of, to be closed.
func (e *Exporter) admit(ctx context.Context, s *mpit.Session) (c *connection, old *line) {
	peer := s.Peer()
	leave, err := e.door.users.Take(ctx, peer.UID)
	if err != nil {
		return nil, nil // the exporter ends
	}
	defer leave()
	user := e.users.Name(peer.UID) // which may block: nobody else's connections
	if e.work.Take(ctx, peer.UID, arrivalWork, func() {}) != nil || e.door.all.Acquire(ctx, 1) != nil {
		return nil, nil
	}
	defer e.door.all.Release(1)
	s.Admit()
	shown := e.users.Bounded(user)
	e.self.Accepted.WithLabelValues(shown).Inc()
	h := s.Hello()
	c = &connection{ranks: e.ranks, line: newLine(s), who: e.identify(&h, peer, user),
		open: e.self.Connections.WithLabelValues(shown)}
	if h.Final {
		return c, nil
	}
	s.OnAnswer(func() { c.takeAnswered(ctx) })
	if c.with(func(g *registry) { c.rank, old, err = g.connect(c.line, c.who) }); err != nil {
		e.log.Debug("refused a rank", "user", user, "pid", peer.PID, "err", err)
		return nil, nil
	}
	e.log.Debug("rank connected", c.rank.attrs()...)
	return c, old
}
