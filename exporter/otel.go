package exporter

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/self"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// OTelConfig says how a reader wants metric data.
type OTelConfig struct {
	Version string // of the instrumentation scope: the build's. "": none
	// Extra is read with the page, as Handler's extra gatherers are; of one that fails, what it has got. nil: none
	Extra prometheus.Gatherer
}

// errReaderClosed is all that a closed reader has to say.
var errReaderClosed = errors.New("exporter: reading metric data: the reader is closed")

// OTelReader takes the page as metric data of OpenTelemetry, always cumulative: the same snapshot as /metrics, asked
// for in the same rounds. It is safe for concurrent use.
//
// An ended rank stays until every reader that is not closed has taken its last values, as far as Config.MaxEnded
// allows.
type OTelReader struct {
	e     *Exporter
	cfg   OTelConfig
	ended taker
}

// OTelReader makes a reader; it must be closed.
func (e *Exporter) OTelReader(cfg OTelConfig) *OTelReader {
	r := &OTelReader{e: e, cfg: cfg, ended: make(chan struct{}, 1)}
	e.with(func(g *registry) { g.takers.open[r.ended] = true })
	return r
}

// Read asks all ranks, or joins the round that is under way, within ctx's deadline (10 s where it has none), and
// returns all there is. All points have one time, that of the round. They are the caller's, but for the attribute
// sets and the bounds of buckets, which are shared and never change. delivered, never nil, says that they have
// reached whoever they are for: only then may ended ranks go. Not calling it is how a failed export is told.
//
// The only errors are a canceled ctx and bugs, and that the reader is closed.
func (r *OTelReader) Read(ctx context.Context) (scopes []metricdata.ScopeMetrics, delivered func(), err error) {
	var open bool
	if r.e.with(func(g *registry) { open = g.takers.open[r.ended] }); !open {
		return nil, func() {}, errReaderClosed
	}
	l, err := r.e.rounds.gather(ctx, asPoints)
	if err != nil {
		return nil, func() {}, err
	}
	metrics := <-l.data
	if r.cfg.Extra != nil {
		extra, err := r.cfg.Extra.Gather()
		if err != nil {
			r.e.log.Warn("a reader's extra gatherer failed", "err", err)
		}
		metrics = append(metrics, exposition.OwnPoints(extra, nil, l.at, r.e.started)...)
	}
	if len(metrics) > 0 {
		scope := instrumentation.Scope{Name: exposition.ScopeName, Version: r.cfg.Version}
		scopes = []metricdata.ScopeMetrics{{Scope: scope, Metrics: metrics}}
	}
	return scopes, func() {
		r.e.with(func(g *registry) {
			g.each(l.ended, func(of *rank) {
				if of.took == nil {
					of.took = map[taker]bool{}
				}
				of.took[r.ended] = true
			})
		})
	}, nil
}

// Ended gets a value when a rank has ended since the last was taken. It is never closed.
func (r *OTelReader) Ended() <-chan struct{} { return r.ended }

// Close lets go of what the reader has not taken: that is counted. It may be called more than once.
func (r *OTelReader) Close() {
	r.e.with(func(g *registry) {
		if !g.takers.open[r.ended] {
			return
		}
		delete(g.takers.open, r.ended)
		for _, of := range g.table.ordered {
			if f := of.facts.Load(); of.end != mpit.EndNone && f.Figured && !of.took[r.ended] {
				g.drop(self.DroppedUndelivered, f.Series)
			}
		}
	})
}
