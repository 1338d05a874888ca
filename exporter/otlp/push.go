package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	deltas  *deltas // nil: all is cumulative
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
	cfg, err := cfg.complete(ctx)
	if err != nil {
		return nil, err
	}
	p := &Pusher{cfg: cfg, source: source, metrics: newMetrics(), limit: maxMessage, turn: make(chan struct{}, 1)}
	if cfg.done.sums == metricdata.DeltaTemporality || cfg.done.histograms == metricdata.DeltaTemporality {
		since := cfg.Since
		if since.IsZero() {
			since = time.Now()
		}
		p.deltas = newDeltas(cfg.done.sums, cfg.done.histograms, since)
	}
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
func (p *Pusher) Describe(to chan<- *prometheus.Desc) { p.metrics.describe(to) }

// Collect never waits for a push.
func (p *Pusher) Collect(to chan<- prometheus.Metric) { p.metrics.collect(to) }

// Push exports now, whatever the interval, and returns how many points were accepted. Pushes never overlap: it waits
// for its turn. The time is bounded by ctx and Config.PushTimeout.
func (p *Pusher) Push(ctx context.Context) (points int, err error) {
	return p.push(ctx, func(ctx context.Context) ([]metricdata.ScopeMetrics, func(), error) {
		ctx, cancel := context.WithTimeout(ctx, min(maxRead, p.cfg.PushTimeout/2))
		defer cancel()
		scopes, delivered, err := p.source.Read(ctx)
		if err == nil && p.deltas != nil {
			defer p.deltas.pushed()
		}
		return scopes, delivered, err
	})
}

// PushEnded exports now what ended ranks have left and nobody has got. Where there is nothing, nothing is sent.
func (p *Pusher) PushEnded(ctx context.Context) (points int, err error) {
	return p.push(ctx, func(context.Context) ([]metricdata.ScopeMetrics, func(),
		error) {
		return p.source.ReadEnded()
	})
}

// push waits for its turn, then reads and sends.
func (p *Pusher) push(ctx context.Context, read func(context.Context) ([]metricdata.ScopeMetrics, func(),
	error)) (int, error) {
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
	scopes, delivered, err := read(ctx)
	if err != nil {
		p.metrics.failed(begun)
		p.log(ctx, nil, fmt.Errorf("reading the ranks: %w", err))
		return 0, fmt.Errorf("reading the ranks: %w", err)
	}
	blocks := blocks(p.deltas, scopes)
	if p.deltas != nil {
		p.metrics.points.WithLabelValues(pointsBase).Add(float64(p.deltas.takeBased()))
		p.metrics.series.Set(float64(p.deltas.size()))
	}
	batches, tooLarge := pack(p.cfg.done.resource, blocks, p.limit)
	p.metrics.points.WithLabelValues(pointsTooLarge).Add(float64(tooLarge))
	if len(batches) == 0 && tooLarge == 0 {
		delivered()
		return 0, nil
	}
	sent, last, err := p.send(ctx, batches)
	if err != nil {
		p.metrics.failed(begun)
		p.log(ctx, last, err)
		return sent.accepted, fmt.Errorf("pushing to %s: %w; %s", p.cfg.Target(), err, remedy(p.cfg, last, err))
	}
	delivered()
	p.metrics.succeeded(begun)
	p.log(ctx, last, nil)
	p.complain(ctx, sent, tooLarge)
	return sent.accepted, nil
}

// outcome is what became of the points of a push.
type outcome struct {
	accepted int
	rejected int
	message  string
}

// send sends one message after the other. After one that the receiver does not like the others still go; if it is
// away they don't.
func (p *Pusher) send(ctx context.Context, batches []*batch) (sent outcome, last *reply, failure error) {
	p.sender.prepare()
	for i, b := range batches {
		r, err := p.sendOne(ctx, b)
		if err == nil {
			rejected := min(max(0, int(r.rejected)), b.points)
			sent.accepted += b.points - rejected
			sent.rejected += rejected
			if r.message != "" {
				sent.message = r.message
			}
			p.metrics.points.WithLabelValues(pointsSent).Add(float64(b.points - rejected))
			p.metrics.points.WithLabelValues(pointsRejected).Add(float64(rejected))
			b.delivered()
			if failure == nil {
				last = r
			}
			continue
		}
		p.metrics.points.WithLabelValues(pointsFailed).Add(float64(b.points))
		if failure == nil {
			failure, last = err, r
		}
		if !r.ofThisMessage() {
			for _, rest := range batches[i+1:] {
				p.metrics.points.WithLabelValues(pointsFailed).Add(float64(rest.points))
			}
			return sent, last, failure
		}
	}
	return sent, last, failure
}

func (p *Pusher) sendOne(ctx context.Context, b *batch) (*reply, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	return p.sender.send(ctx, &b.data)
}

// log says once that pushes fail, and once that they work again.
func (p *Pusher) log(ctx context.Context, r *reply, err error) {
	switch {
	case err != nil && !p.outage:
		if r == nil {
			r = &reply{}
		}
		p.cfg.Logger.LogAttrs(ctx, slog.LevelError, "OTLP: can't push; said once until it works again",
			slog.String("endpoint", p.cfg.Target()),
			slog.String("protocol", p.cfg.Protocol), slog.String("err", err.Error()),
			slog.String("remedy", remedy(p.cfg, r, err)))
	case err == nil && p.outage:
		p.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "OTLP: pushing works again",
			slog.String("endpoint", p.cfg.Target()))
	}
	p.outage = err != nil
}

// complain says once that points do not arrive although pushes succeed.
func (p *Pusher) complain(ctx context.Context, sent outcome, tooLarge int) {
	bad := sent.rejected > 0 || tooLarge > 0 || sent.message != ""
	if bad && !p.refuse {
		p.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "OTLP: the receiver has not taken all points; said once until it "+
			"does", slog.String("endpoint", p.cfg.Target()),
			slog.Int("rejected", sent.rejected), slog.Int("too_large", tooLarge),
			slog.String("says", strings.ToValidUTF8(sent.message, "?")))
	}
	p.refuse = bad
}
