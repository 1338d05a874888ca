// Package work bounds how much each user can have done by the exporter. What is counted is what there is to do, never
// how long it took: that says more of the machine than of the user.
package work

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Work is what users may have done, in cells. A user who has had too much of it
// waits, each of the user's ranks in its turn, and nobody else does. It is safe for concurrent use.
type Work struct {
	most, perSecond int
	now             func() time.Time

	mu    sync.Mutex
	users map[uint32]*rate.Limiter
}

// mostUsers is how many users are noted before those are looked for who may have all at once again.
const mostUsers = 256

// New returns Work of which nothing has been done: a user may have most cells done at once, and so many a second.
func New(most, perSecond int, now func() time.Time) *Work {
	return &Work{most: most, perSecond: perSecond, now: now, users: map[uint32]*rate.Limiter{}}
}

// Take waits until a user may have so much more done; what is more than may be done at once counts as that. It calls
// waiting if that isn't at once. The error is that of ctx.
func (w *Work) Take(ctx context.Context, uid uint32, cells int, waiting func()) error {
	if cells == 0 {
		return nil
	}
	now := w.now()
	turn := w.reserve(uid, cells, now)
	wait := turn.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	waiting()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		turn.CancelAt(w.now())
		return ctx.Err()
	}
}

func (w *Work) reserve(uid uint32, cells int, now time.Time) *rate.Reservation {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.users) >= mostUsers {
		maps.DeleteFunc(w.users, func(_ uint32, l *rate.Limiter) bool { return l.TokensAt(now) >= float64(w.most) })
	}
	l := w.users[uid]
	if l == nil {
		l = rate.NewLimiter(rate.Limit(w.perSecond), w.most)
		w.users[uid] = l
	}
	return l.ReserveN(now, min(cells, w.most))
}
