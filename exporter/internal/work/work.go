// Package work bounds how much each user can have done by the exporter. What is counted is what there is to do, never
// how long it took: that says more of the machine than of the user.
package work

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/turns"
)

// Work is what users have had done lately, in cells. What has been done is forgotten at a steady rate, so that a user
// who has had too much of it waits, each of the user's ranks in its turn, and nobody else does. It is safe for
// concurrent use.
type Work struct {
	most, rate int // what may have been done; what is forgotten of it in a second
	now        func() time.Time
	turns      turns.Turns[uint32]

	mu   sync.Mutex
	done map[uint32]done
}

// done is how much a user has had done, as of some time.
type done struct {
	cells int
	at    time.Time
}

// mostDone is how many users are noted before those are looked for whose work is forgotten.
const mostDone = 256

// New returns Work of which nothing has been done.
func New(most, rate int, now func() time.Time) *Work {
	return &Work{most: most, rate: rate, now: now, done: map[uint32]done{}}
}

// Take waits until a user may have so much more done. It calls waiting if that isn't at once. The error is that of ctx.
func (w *Work) Take(ctx context.Context, uid uint32, cells int, waiting func()) error {
	if cells == 0 || w.turns.Users(uid) == 0 && w.take(uid, cells) == 0 {
		return nil
	}
	waiting()
	leave, err := w.turns.Take(ctx, uid)
	if err != nil {
		return err
	}
	defer leave()
	for {
		wait := w.take(uid, cells)
		if wait == 0 {
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// take notes what a user has done, or returns when to ask again. However much it is, whoever has had less than most
// done may have it.
func (w *Work) take(uid uint32, cells int) (wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	left := w.left(w.done[uid], now)
	if left >= w.most {
		return time.Duration(left-w.most+1)*time.Second/time.Duration(w.rate) + time.Millisecond
	}
	w.done[uid] = done{left + cells, now}
	if len(w.done) >= mostDone {
		maps.DeleteFunc(w.done, func(_ uint32, d done) bool { return w.left(d, now) == 0 })
	}
	return 0
}

// left is how much of it is not forgotten.
func (w *Work) left(d done, now time.Time) int {
	return max(0, d.cells-int(now.Sub(d.at).Seconds()*float64(w.rate)))
}
