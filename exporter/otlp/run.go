package otlp

import (
	"context"
	"math/rand/v2"
	"time"
)

// A push because ranks have ended comes this long after the first of them has, so that those of a job go together, and
// not more often than this.
const (
	endedPause  = 100 * time.Millisecond
	endedPeriod = time.Second
)

// Run pushes until ctx ends, then once more. After ctx's end it takes at most OTEL_EXPORTER_OTLP_TIMEOUT, for a push
// that is under way and the last one together. Failed pushes are logged and counted; the error is that of the last
// push.
//
// The first push comes after a part of the interval that is drawn by lot, so that a cluster's nodes do not push all
// at once, and the others an interval apart from it. A push that takes longer lets those that it covers fall out.
func (p *Pusher) Run(ctx context.Context) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(p.set.timeout, stop) })()

	var ended <-chan struct{}
	if p.set.Final {
		ended = p.source.Ended()
	}
	next := time.Now().Add(rand.N(p.set.Interval)) //nolint:gosec // no secret
	tick := time.After(time.Until(next))
	var final <-chan time.Time // nil: no rank has ended since the last push for that reason
	var lastFinal time.Time
	for {
		select {
		case <-ctx.Done():
			_, err := p.Push(work)
			return err
		case <-tick:
			_, _ = p.Push(work) // logged and counted
			next = after(next, p.set.Interval, time.Now())
			tick = time.After(time.Until(next))
		case <-ended:
			if final == nil {
				final = time.After(max(endedPause, endedPeriod-time.Since(lastFinal)))
			}
		case <-final:
			final = nil
			_, _ = p.Push(work) // logged and counted; the next push has it
			lastFinal = time.Now()
		}
	}
}

// after is the first of the times that are an interval apart from last which is after now.
func after(last time.Time, interval time.Duration, now time.Time) time.Time {
	missed := now.Sub(last) / interval
	return last.Add((max(0, missed) + 1) * interval)
}
