package otlp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// maxRead is how long reading may take of a push, at most; it is no more than half of Config.PushTimeout either, so
// that there is time left to send what has been read.
const maxRead = 10 * time.Second

// Pusher exports at each interval. Its methods may be called from any goroutine.
type Pusher struct {
	cfg     Config
	source  Source
	sender  *sender
	metrics *metrics
	limit   int // of a message

	turn   chan struct{} // holds a value while somebody pushes, who then has what follows
	closed bool
	outage bool // the last push failed
	refuse bool // the last push had points that were not accepted, or not sent

	closing  sync.Once
	closeErr error
}

// ErrClosed is what a push returns after Close.
var ErrClosed = errors.New("pushing: the pusher is closed")

// New makes a pusher, completing cfg if Complete has not been called. It does not connect yet: a receiver that is
// away is no error. The pusher must be closed; Run does it.
func New(ctx context.Context, cfg Config, source Source) (*Pusher, error) {
	return newPusher(ctx, cfg, source, firstRetry)
}

func newPusher(ctx context.Context, cfg Config, source Source, retry time.Duration) (*Pusher, error) {
	err := ctx.Err()
	if err == nil && cfg.done == nil {
		cfg, err = cfg.Complete()
	}
	if err != nil {
		return nil, err
	}
	p := &Pusher{cfg: cfg, source: source, metrics: newMetrics(), limit: maxMessage, turn: make(chan struct{}, 1)}
	if p.sender, err = newSender(ctx, cfg, retry); err != nil {
		return nil, err
	}
	return p, nil
}

// Close closes the connection when whoever pushes has finished. Only the first call does something; all return what
// it did.
func (p *Pusher) Close() error {
	p.closing.Do(func() {
		p.turn <- struct{}{}
		defer func() { <-p.turn }()
		p.closed = true
		p.closeErr = p.sender.close(context.Background()) // closes, waits for nobody
	})
	return p.closeErr
}

// Describe and Collect: mpit_exporter_otlp_* of this pusher.
func (p *Pusher) Describe(to chan<- *prometheus.Desc) {
	for _, c := range p.metrics.all() {
		c.Describe(to)
	}
}

// Collect never waits for a push.
func (p *Pusher) Collect(to chan<- prometheus.Metric) {
	for _, c := range p.metrics.all() {
		c.Collect(to)
	}
}

// Push exports now, whatever the interval, and returns how many points were accepted. Pushes never overlap: it waits
// for its turn. The time is bounded by ctx and Config.PushTimeout.
func (p *Pusher) Push(ctx context.Context) (points int, err error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return 0, fmt.Errorf("waiting for another push: %w", ctx.Err())
	}
	if p.closed {
		return 0, ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.PushTimeout)
	defer cancel()

	begun := time.Now()
	scopes, delivered, err := p.read(ctx)
	if err != nil {
		p.metrics.done(begun, pushFailure)
		err = fmt.Errorf("reading the ranks: %w", err)
		p.log(ctx, err)
		return 0, err
	}
	batches, tooLarge := pack(p.cfg.done.resource, scopes, p.limit)
	p.metrics.points.WithLabelValues(pointsTooLarge).Add(float64(tooLarge))
	if len(batches) == 0 && tooLarge == 0 {
		delivered()
		return 0, nil
	}
	sent, err := p.send(ctx, batches)
	if err != nil {
		p.metrics.done(begun, pushFailure)
		p.log(ctx, err)
		return sent.accepted, fmt.Errorf("pushing to %s: %w", p.cfg.Target(), err)
	}
	delivered()
	p.metrics.done(begun, pushSuccess)
	p.log(ctx, nil)
	p.complain(ctx, sent, tooLarge)
	return sent.accepted, nil
}

func (p *Pusher) read(ctx context.Context) (scopes []metricdata.ScopeMetrics, delivered func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, min(maxRead, p.cfg.PushTimeout/2))
	defer cancel()
	return p.source.Read(ctx)
}

// outcome is what became of the points of a push.
type outcome struct {
	accepted int
	rejected int
	message  string
}

// send sends one message after the other. After one that the receiver does not like the others still go; if it is
// away they don't.
func (p *Pusher) send(ctx context.Context, batches []*batch) (sent outcome, failure error) {
	p.sender.prepare()
	count := func(result string, n int) { p.metrics.points.WithLabelValues(result).Add(float64(n)) }
	away := false
	for _, b := range batches {
		if away {
			count(pointsFailed, b.points)
			continue
		}
		r, err := p.sendOne(ctx, b)
		if err != nil {
			count(pointsFailed, b.points)
			failure = cmp.Or(failure, err)
			away = !r.ofThisMessage()
			continue
		}
		rejected := min(max(0, int(r.rejected)), b.points)
		sent.accepted += b.points - rejected
		sent.rejected += rejected
		sent.message = cmp.Or(r.message, sent.message)
		count(pointsSent, b.points-rejected)
		count(pointsRejected, rejected)
	}
	return sent, failure
}

func (p *Pusher) sendOne(ctx context.Context, b *batch) (*reply, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	return p.sender.send(ctx, &b.data)
}

// log says once that pushes fail, and once that they work again.
func (p *Pusher) log(ctx context.Context, err error) {
	switch {
	case err != nil && !p.outage:
		p.cfg.Logger.ErrorContext(ctx, "OTLP: can't push; said once until it works again", "endpoint", p.cfg.Target(),
			"protocol", p.cfg.Protocol, "err", err.Error())
	case err == nil && p.outage:
		p.cfg.Logger.InfoContext(ctx, "OTLP: pushing works again", "endpoint", p.cfg.Target())
	}
	p.outage = err != nil
}

// complain says once that points do not arrive although pushes succeed.
func (p *Pusher) complain(ctx context.Context, sent outcome, tooLarge int) {
	bad := sent.rejected > 0 || tooLarge > 0 || sent.message != ""
	if bad && !p.refuse {
		p.cfg.Logger.WarnContext(ctx, "OTLP: the receiver has not taken all points; said once until it does",
			"endpoint", p.cfg.Target(), "rejected", sent.rejected, "too_large", tooLarge,
			"says", strings.ToValidUTF8(sent.message, "?"))
	}
	p.refuse = bad
}
