// Package exporter gathers the performance variables of all ranks on a node and hands them out as Prometheus metrics
// over HTTP, with those of other registries if that is wanted.
//
// An Exporter is fed by a mpit.Listener (Serve) and read by any number of scrapers at once (Handler). Ranks are asked
// only when somebody reads. Any number of Exporters may stand in one process.
//
// It doesn't know what a variable becomes (package mapping), how a page is written (exposition), who a rank is
// (identity), or what is said over JSON (api, control) and OTLP (otlp).
//
// Begin reading at connection.serve, which serves the connection of one rank. There are three layers, each of which
// knows only those before it, over the packages in internal:
//
//   - what is known of a rank: base.go and config.go (which all know), rank.go (with the question that it is asked),
//     taking.go (its answers), table.go (with its world);
//   - what happens: registry.go (ranks come and go, and who waits for their last values), connection.go (what passes
//     between a rank and the registry), inquiry.go (what else ranks are asked), round.go (asking all for a sample),
//     pages.go (making the page, and what readers get of it);
//   - what programs call: exporter.go, accept.go (who is let in), reload.go, handler.go, otel.go, source.go and
//     control.go.
package exporter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/control"
	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/board"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/budget"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/self"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/tally"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/work"
	"github.com/mpit-exporter/mpit-exporter/mapping/series"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Exporter holds all ranks of a node and the page on which they stand. It is safe for concurrent use.
//
// Locks are taken in this order: that of the shared round or of the page, a user's place (rank.taking), one rank's,
// the registry's, and those of tables such as budgets. Each guards what is had by locking it.
type Exporter struct {
	*ranks
	rounds rounds
	pages  *pages

	logging   rate.Sometimes // that connections can't be accepted
	door      *door
	lending   lending
	api       http.Handler
	control   *control.Server
	reloading sync.Mutex // held while rules come into force
}

// New returns an Exporter without ranks.
func New(cfg Config) (*Exporter, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, fmt.Errorf("exporter: making an exporter: %w", err)
	}
	b := &base{
		cfg:     cfg,
		log:     cfg.Logger,
		self:    self.New(),
		users:   identity.NewUsers(cfg.UserName),
		budgets: budget.New(),

		categories: tally.New[board.CategoryRow](board.MaxCategoryRows),
		controls:   tally.New[board.ControlRow](maxControlRows),

		started: time.Now(),
		now:     time.Now,
		newRank: func(m *variables.Mapper, p variables.Process) figures { return series.NewRank(m, p) },
		proc:    os.DirFS("/proc"),
		tuning:  usual(),
	}
	if err := b.enforce(Rules{cfg.Mapper, cfg.Limits, cfg.Identity}, 0); err != nil {
		return nil, fmt.Errorf("exporter: making an exporter: %w", err)
	}
	b.work = work.New(maxWork, workRate, func() time.Time { return b.now() }) // which tests change
	rs := newRanks(b)
	e := &Exporter{ranks: rs, pages: newPages(rs), door: newDoor(), logging: rate.Sometimes{Interval: acceptLogInterval}}
	e.rounds.ranks, e.rounds.pages = rs, e.pages
	e.control = control.New(control.Config{
		Targets: e.targets, Written: e.written, Log: e.log, User: e.users.Name, SeesAll: e.cfg.SeesAll,
		Count: func(result string) { e.self.CvarWrites.WithLabelValues(result).Inc() },
	})
	e.api = api.Handler(source{e}, api.NewTurns(), e.log)
	return e, nil
}

// Serve accepts ranks from l until ctx ends. It returns nil then, else why the listener failed.
func (e *Exporter) Serve(ctx context.Context, l *mpit.Listener) error {
	if err := l.Serve(ctx, e.serveSession, e.refuseConnection); err != nil && ctx.Err() == nil {
		return fmt.Errorf("exporter: accepting ranks at %s: %w", l.Path(), err)
	}
	return nil
}

// refuseConnection counts a connection that never became a session.
func (e *Exporter) refuseConnection(peer mpit.Peer, err error) {
	e.countProtocolError(err)
	if failed := (*net.OpError)(nil); errors.As(err, &failed) && failed.Op == "accept" {
		e.logging.Do(func() {
			e.log.Error("Connections of ranks can't be accepted; they come again until they can", "err", err)
		})
	}
	e.log.Debug("refused a connection", "uid", peer.UID, "pid", peer.PID, "err", err)
}

// serveSession serves one connection for as long as it lives.
func (e *Exporter) serveSession(ctx context.Context, s *mpit.Session) {
	c, old := e.admit(ctx, s)
	if old != nil {
		_ = old.session.Close()
	}
	if c == nil {
		_ = s.Close()
		return
	}
	c.open.Inc()
	defer c.open.Dec()
	c.serve(ctx)
}

// Remaining returns how many ranks live, or may still bring their last sample, and how many have ended whose last
// values nobody has got. It asks none of them. An exporter that serves one job has nothing left to do when both are
// zero.
func (e *Exporter) Remaining() (living, untaken int) {
	g := e.lock()
	defer g.unlock()
	g.expire()
	now := g.now()
	for _, r := range g.table.ordered {
		switch {
		case r.end == mpit.EndNone:
			living++
		case g.takers.want(r, now):
			untaken++
		}
	}
	for _, n := range g.finals {
		living += n
	}
	return living, untaken
}
