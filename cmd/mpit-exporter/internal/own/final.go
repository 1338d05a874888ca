package own

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// pushAgain is the pause after a push that has failed, while ranks wait.
const pushAgain = 100 * time.Millisecond

// finalPush pushes the last values of ranks, or reports them, while they wait in MPI_Finalize. Ranks end together: one
// push is for all that had ended when it began. It is safe for concurrent use.
type finalPush struct {
	push []func(ctx context.Context) error // one for each that wants them
	wait time.Duration                     // how long a rank waits
	log  *slog.Logger

	mu      sync.Mutex
	next    *pushTurn // that has not begun; nil: none
	running bool
}

// pushTurn is a push, or will be one.
type pushTurn struct {
	done      chan struct{} // closed at its end
	delivered bool
}

// await returns when a push that has begun after its call has been delivered, or the wait is over.
func (f *finalPush) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	for {
		turn := f.join() //nolint:contextcheck // a push is for all who wait, and has a time of its own
		select {
		case <-turn.done:
		case <-ctx.Done():
			return
		}
		if turn.delivered {
			return
		}
		select {
		case <-time.After(pushAgain):
		case <-ctx.Done():
			return
		}
	}
}

// join returns the next push to begin, which begins at once unless one is under way.
func (f *finalPush) join() *pushTurn {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == nil {
		f.next = &pushTurn{done: make(chan struct{})}
	}
	turn := f.next
	if !f.running {
		f.running = true
		go f.run()
	}
	return turn
}

// run pushes until nobody waits. Each push has its own timeout: those who wait for it may give up before.
func (f *finalPush) run() {
	for {
		f.mu.Lock()
		turn := f.next
		f.next = nil
		f.running = turn != nil
		f.mu.Unlock()
		if turn == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), f.wait)
		var err error
		for _, push := range f.push {
			err = errors.Join(err, push(ctx))
		}
		cancel()
		if err != nil {
			f.log.Warn("Last values were not delivered while their ranks waited", "err", err)
		}
		turn.delivered = err == nil
		close(turn.done)
	}
}
