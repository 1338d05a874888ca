package own

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// pushAgain is the pause after a push that has failed, while ranks wait.
const pushAgain = 100 * time.Millisecond

// finalPush pushes the last values of ranks, or reports them, while they wait in MPI_Finalize. Ranks end together: one
// push is for all that had ended when it began. It is safe for concurrent use.
type finalPush struct {
	push []func(ctx context.Context) error // one for each that wants them
	wait time.Duration                     // how long a rank waits
	log  *slog.Logger

	turn      *semaphore.Weighted // to push
	begun     atomic.Int64        // how many pushes have
	delivered int64               // number of the last that was delivered; it belongs to the one whose turn it is
}

func newFinalPush(wait time.Duration) *finalPush {
	return &finalPush{wait: wait, turn: semaphore.NewWeighted(1)}
}

// also lets ranks wait for this, too. It comes before any await.
func (f *finalPush) also(push func(ctx context.Context) error) { f.push = append(f.push, push) }

// await returns when a push that has begun after its call has been delivered, or the wait is over.
func (f *finalPush) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	came := f.begun.Load()
	for delivered := false; !delivered; {
		if f.turn.Acquire(ctx, 1) != nil {
			return
		}
		if delivered = f.delivered > came || f.deliver(ctx); !delivered {
			select { // and nobody else pushes meanwhile
			case <-time.After(pushAgain):
			case <-ctx.Done():
			}
		}
		f.turn.Release(1)
	}
}

// deliver pushes for all that wait.
func (f *finalPush) deliver(ctx context.Context) bool {
	// The wait of the one whose turn it is does not end it for the others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.wait)
	defer cancel()
	number := f.begun.Add(1)
	var err error
	for _, push := range f.push {
		err = errors.Join(err, push(ctx))
	}
	if err != nil {
		f.log.Warn("Last values were not delivered while their ranks waited", "err", err)
		return false
	}
	f.delivered = number
	return true
}
