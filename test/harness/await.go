package harness

import (
	"context"
	"testing"
	"time"
)

// Await tries until try returns nil; the test fails with the last error when that takes longer than anybody should
// wait.
func Await(tb testing.TB, what string, try func(ctx context.Context) error) {
	tb.Helper()
	ctx, cancel := Patient(tb)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		if last == nil || ctx.Err() == nil { // the end of our patience says nothing
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tb.Fatalf("waited in vain for %s: %v", what, last)
		}
	}
}
