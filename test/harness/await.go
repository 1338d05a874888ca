package harness

import (
	"context"
	"testing"
	"time"
)

// Await tries until try returns nil; the test fails with the last error when that takes longer than anybody should
// wait. It tries less often the longer it takes: a try has an exporter or a Prometheus answer, and what is waited for
// needs the cores, too.
func Await(tb testing.TB, what string, try func(ctx context.Context) error) {
	tb.Helper()
	ctx, cancel := Patient(tb)
	defer cancel()
	var last error
	for pause := 20 * time.Millisecond; ; pause = min(pause*5/4, 400*time.Millisecond) {
		err := try(ctx)
		if err == nil {
			return
		}
		if last == nil || ctx.Err() == nil { // the end of our patience says nothing
			last = err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			tb.Fatalf("waited in vain for %s: %v", what, last)
		}
	}
}
