package otlp

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/mpit-exporter/mpit-exporter/exporter/otlp/otlptest"
)

// run runs p until stop is called, which returns what Run has returned.
func run(t *testing.T, p *Pusher) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(cancel)
	return func() error {
		cancel()
		return <-done
	}
}

// Pushes come at each interval, and one more at the end.
func TestRun(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			r := receiver(t, otlptest.Options{Protocol: protocol})
			value := make(chan int64, 1)
			value <- 1
			last := int64(1)
			s := newSource(func() []metricdata.ScopeMetrics {
				select {
				case last = <-value:
				default:
				}
				return inScope(counter("calls", point(0, 0, 1, last)))
			})
			p := pusher(t, Config{Protocol: protocol, Endpoint: r.URL(), Interval: time.Millisecond}, s)
			stop := run(t, p)
			require.NoError(t, r.AwaitRequests(patient(t), 3))
			r.Stop()
			value <- 42
			require.NoError(t, r.Restart())
			require.NoError(t, stop())
			assert.InDelta(t, 42, r.Totals()["calls{jobid=4711,rank=0}"].Float, 0)
			require.NoError(t, p.Close())
			_, err := p.Push(patient(t))
			require.ErrorContains(t, err, "closed")
		})
	}
}

// What is left at the end is pushed although no interval has passed.
func TestRunPushesAtTheEnd(t *testing.T) {
	r := receiver(t, otlptest.Options{})
	p := pusher(t, Config{Protocol: ProtocolGRPC, Endpoint: r.URL(), Interval: 1000 * time.Hour}, one())
	stop := run(t, p)
	require.NoError(t, stop())
	assert.Len(t, r.Requests(), 1)
}

// There is a push when ranks have ended, if that is wanted, and else the next one has what they left.
func TestRunPushesWhenRanksHaveEnded(t *testing.T) {
	t.Parallel() // it waits between two pushes
	r := receiver(t, otlptest.Options{})
	s := one()
	p := pusher(t, Config{Protocol: ProtocolGRPC, Endpoint: r.URL(), Interval: 1000 * time.Hour, Final: true}, s)
	stop := run(t, p)
	s.ended <- struct{}{}
	require.NoError(t, r.AwaitRequests(patient(t), 1))
	s.ended <- struct{}{}
	require.NoError(t, r.AwaitRequests(patient(t), 2))
	require.NoError(t, stop())

	p = pusher(t, Config{Protocol: ProtocolGRPC, Endpoint: r.URL(), Interval: 1000 * time.Hour}, s)
	stop = run(t, p)
	s.ended <- struct{}{}
	require.NoError(t, stop())
	assert.Len(t, s.ended, 1, "nobody has asked for it")
}

// A receiver that never answers does not keep the exporter from ending.
func TestRunEndsInTime(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			r := receiver(t, otlptest.Options{Protocol: protocol})
			r.Answer(func(*otlptest.Request) otlptest.Answer { return otlptest.Accept().When(make(chan struct{})) })
			p := pusher(t, Config{Protocol: protocol, Endpoint: r.URL(), Interval: time.Millisecond,
				Environ: env("OTEL_EXPORTER_OTLP_TIMEOUT", "100")}, one())
			stop := run(t, p)
			require.Error(t, stop())
		})
	}
}

func TestAfter(t *testing.T) {
	const minute = time.Minute
	for _, tt := range []struct {
		name string
		now  time.Duration // since the last push was due
		want time.Duration
	}{
		{"a short push", time.Second, minute},
		{"a push of just an interval", minute, 2 * minute},
		{"a long push", 2*minute + time.Second, 3 * minute},
		{"a clock that was set back", -time.Hour, minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, epoch.Add(tt.want),
				after(epoch, minute, epoch.Add(tt.now)))
		})
	}
}
