// Package otlp pushes what an exporter.Exporter has to a receiver of the OpenTelemetry protocol, over gRPC or HTTP.
//
// Whoever imports package exporter alone does not get gRPC with it.
//
// A push reads the source once, packs the data into messages that receivers take (batch.go) and sends one after the
// other with the SDK's exporters (client.go). There is no queue: what could not be sent is contained in the next push,
// for the source is cumulative.
package otlp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// maxRead is how long reading may take of a push, at most; it is no more than half of the push's time either, so that
// there is time left to send what has been read.
const maxRead = 10 * time.Second

// Source is where the data come from: an exporter.OTelReader. Data are gauges, and cumulative sums and histograms with
// explicit buckets, all of float64 and without exemplars; anything else is not sent. Attributes are text or
// numbers. Each series stands once in what is read, and what is read belongs to the reader.
type Source interface {
	// Read returns all there is. delivered is called when all of it has been accepted.
	Read(ctx context.Context) (scopes []metricdata.ScopeMetrics, delivered func(), err error)
	// Ended gets a value when ranks have ended. It is never closed.
	Ended() <-chan struct{}
}

// Pusher exports at each interval. Its methods may be called from any goroutine.
type Pusher struct {
	set      *settings
	source   Source
	exporter sdk.Exporter
	metrics  *metrics
	limit    int // of a message

	turn   chan struct{} // holds a value during a push, which then has what follows
	closed bool
	outage bool // the last push failed
	refuse bool // the last push had points that were not accepted, or not sent
}

// New makes a pusher and registers its metrics, mpit_exporter_otlp_*, of which registry has no others. An error of cfg
// names the variable or field, what is wrong and what to write. New does not connect yet: a receiver that is away is no
// error. The pusher must be closed.
func New(ctx context.Context, cfg Config, source Source, registry prometheus.Registerer) (*Pusher, error) {
	return newPusher(ctx, cfg, source, registry, firstRetry)
}

func newPusher(ctx context.Context, cfg Config, source Source, registry prometheus.Registerer, retry time.Duration) (
	*Pusher, error) {
	set, err := cfg.settings()
	if err != nil {
		return nil, err
	}
	protocol := newHTTP
	if set.Protocol == ProtocolGRPC {
		protocol = newGRPC
	}
	exporter, err := protocol(ctx, set, retry)
	if err != nil {
		return nil, fmt.Errorf("OTLP to %s: %w", set.shown, err)
	}
	return &Pusher{set: set, source: source, exporter: exporter, metrics: newMetrics(registry), limit: maxMessage,
		turn: make(chan struct{}, 1)}, nil
}

// Target is the receiver as it may be logged: without a user's name, password and query.
func (p *Pusher) Target() string { return p.set.shown }

// Files are those that pushes read again and again: certificates. Some are empty.
func (p *Pusher) Files() []string { return p.set.files }

// Close closes the connection after the push that is under way. Only the first call does something.
func (p *Pusher) Close() error {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	if p.closed {
		return nil
	}
	p.closed = true
	return p.exporter.Shutdown(context.Background()) // closes, waits for nothing
}

// Push exports now, whatever the interval, and returns how many points were accepted. Pushes never overlap: it waits
// for its turn. The time is bounded by ctx and by OTEL_METRIC_EXPORT_TIMEOUT.
func (p *Pusher) Push(ctx context.Context) (points int, err error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return 0, fmt.Errorf("waiting for another push: %w", ctx.Err())
	}
	if p.closed {
		return 0, errors.New("pushing: the pusher is closed")
	}
	ctx, cancel := context.WithTimeout(ctx, p.set.pushTimeout)
	defer cancel()

	begun := time.Now()
	scopes, delivered, err := p.read(ctx)
	if err != nil {
		p.metrics.done(begun, pushFailure)
		err = fmt.Errorf("reading the ranks: %w", err)
		p.log(ctx, err)
		return 0, err
	}
	batches, tooLarge := pack(p.set.resource, scopes, p.limit)
	p.metrics.points.WithLabelValues(pointsTooLarge).Add(float64(tooLarge))
	if len(batches) == 0 && tooLarge == 0 {
		delivered()
		return 0, nil
	}
	sent, err := p.send(ctx, batches)
	if err != nil {
		p.metrics.done(begun, pushFailure)
		p.log(ctx, err)
		return sent.accepted, fmt.Errorf("pushing to %s: %w", p.Target(), err)
	}
	delivered()
	p.metrics.done(begun, pushSuccess)
	p.log(ctx, nil)
	p.complain(ctx, sent, tooLarge)
	return sent.accepted, nil
}

func (p *Pusher) read(ctx context.Context) (scopes []metricdata.ScopeMetrics, delivered func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, min(maxRead, p.set.pushTimeout/2))
	defer cancel()
	return p.source.Read(ctx)
}

// outcome is what became of the points of a push.
type outcome struct {
	accepted int
	rejected int
	message  string
}

// send sends one message after the other. After one that the receiver refuses the others still go; after one that
// took all its time they don't: the receiver is away.
func (p *Pusher) send(ctx context.Context, batches []*batch) (sent outcome, failure error) {
	count := func(result string, n int) { p.metrics.points.WithLabelValues(result).Add(float64(n)) }
	away := false
	for _, b := range batches {
		if away {
			count(pointsFailed, b.points)
			continue
		}
		var said partial
		var err error
		if away, err = p.sendOne(ctx, b, &said); err != nil {
			count(pointsFailed, b.points)
			failure = cmp.Or(failure, err)
			continue
		}
		rejected := min(max(0, int(said.RejectedDataPoints)), b.points)
		sent.accepted += b.points - rejected
		sent.rejected += rejected
		sent.message = cmp.Or(bounded(said.ErrorMessage), sent.message)
		count(pointsSent, b.points-rejected)
		count(pointsRejected, rejected)
	}
	return sent, failure
}

// sendOne notes in said what the receiver has said of a message that it has accepted. late: the message's time is over.
func (p *Pusher) sendOne(ctx context.Context, b *batch, said *partial) (late bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, partialKey{}, said), p.set.timeout)
	defer cancel()
	if err = p.exporter.Export(ctx, &b.data); err != nil {
		err = errors.New(bounded(err.Error()))
	}
	return ctx.Err() != nil, err
}

// log says once that pushes fail, and once that they work again.
func (p *Pusher) log(ctx context.Context, err error) {
	switch {
	case err != nil && !p.outage:
		p.set.Logger.ErrorContext(ctx, "OTLP: can't push; said once until it works again", "endpoint", p.Target(),
			"protocol", p.set.Protocol, "err", err.Error())
	case err == nil && p.outage:
		p.set.Logger.InfoContext(ctx, "OTLP: pushing works again", "endpoint", p.Target())
	}
	p.outage = err != nil
}

// complain says once that points do not arrive although pushes succeed.
func (p *Pusher) complain(ctx context.Context, sent outcome, tooLarge int) {
	bad := sent.rejected > 0 || tooLarge > 0 || sent.message != ""
	if bad && !p.refuse {
		p.set.Logger.WarnContext(ctx, "OTLP: the receiver has not taken all points; said once until it does",
			"endpoint", p.Target(), "rejected", sent.rejected, "too_large", tooLarge,
			"says", strings.ToValidUTF8(sent.message, "?"))
	}
	p.refuse = bad
}

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
