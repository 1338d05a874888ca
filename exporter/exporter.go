// Package exporter gathers the performance variables of all ranks on a node and hands them out as Prometheus metrics:
// over HTTP, or into somebody else's registry.
//
// An Exporter is fed by a mpit.Listener (Serve) and read by any number of scrapers at once (Handler, Gather,
// Gatherer, Snapshot, Collector). Ranks are asked only when somebody reads. Any number of Exporters may stand in one
// process.
//
// It doesn't know what a variable becomes (package mapping), how a page is written (exposition), who a rank is
// (identity), or what is said over JSON (api, control) and OTLP (otlp).
//
// Begin reading at Exporter.serveSession, which serves the connection of one rank. There are four layers, each of
// which knows only those before it:
//
//   - what is known of ranks: rank.go, worlds.go, question.go, table.go (and config.go, which all know);
//   - what of them is on the page: board.go, portrait.go, group.go, families.go, self.go;
//   - what happens: exporter.go, registry.go (ranks come and go), taking.go (their answers), inquiry.go (what else
//     they are asked), round.go (asking all), pages.go and grouping.go (making the page), otelended.go;
//   - the face: new.go, reload.go, handler.go, collector.go, otel.go, source.go, values.go and control.go.
package exporter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/control"
	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/budget"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/categories"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/tally"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Exporter holds all ranks of a node and the page on which they stand. It is safe for concurrent use.
type Exporter struct {
	cfg     Config
	log     *slog.Logger
	self    *selfMetrics
	users   *identity.Users
	scrapes chan struct{} // one token for each HTTP request in flight
	lending lending
	api     http.Handler
	control *control.Server
	now     func() time.Time
	newRank func(m *variables.Mapper, p variables.Process) figures
	proc    fs.FS       // /proc
	grouped func() bool // rules match by category

	tuning

	deaf deafness

	started time.Time

	lastScrape atomic.Pointer[time.Time] // when the last page was delivered to a scraper; nil: none has been

	// Locks are taken in this order: that of rounds or of pages, a user's place, one rank's, mu, and those of tables
	// such as budgets.
	rounds  rounds
	pages   pages
	budgets *budget.Budgets

	categories *tally.Tally[categories.Row]
	controls   *tally.Tally[controlRow]

	rules atomic.Pointer[ruling]

	reloading sync.Mutex // held while rules come into force

	registry
}

// ruling is rules that are, or were, in force.
type ruling struct {
	mapper   *variables.Mapper
	identity *identity.Rules // for ranks that come
	epoch    uint64          // how often rules have come into force before
}

// mapper returns the one that is in force.
func (e *Exporter) mapper() *variables.Mapper { return e.rules.Load().mapper }

func (e *Exporter) drop(reason string, n int) { e.self.dropped.WithLabelValues(reason).Add(float64(n)) }

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
	if failed := (*net.OpError)(nil); errors.As(err, &failed) && failed.Op == "accept" && e.deaf.goes() {
		e.log.Error("Connections of ranks can't be accepted; they come again until they can", "err", err)
	}
	e.log.Debug("refused a connection", "uid", peer.UID, "pid", peer.PID, "err", err)
}

func (e *Exporter) countProtocolError(err error) {
	var breach *mpit.ProtocolError
	if errors.As(err, &breach) {
		e.self.protocolErrors.WithLabelValues(breach.Reason).Inc()
	}
}

// serveSession serves one connection for as long as it lives.
func (e *Exporter) serveSession(ctx context.Context, s *mpit.Session) {
	var asking sync.WaitGroup
	defer asking.Wait()
	defer func() { _ = s.Close() }()
	if e.deaf.comes() {
		e.log.Info("Connections of ranks are accepted again")
	}
	user := e.users.Name(s.Peer().UID)
	shown := e.users.Bounded(user)
	e.self.accepted.WithLabelValues(shown).Inc()
	open := e.self.connections.WithLabelValues(shown)
	open.Inc()
	defer open.Dec()

	h := s.Hello()
	w := e.identify(&h, s.Peer(), user)
	if h.Final {
		e.receiveFinal(ctx, s, w)
		return
	}
	r, line, err := e.connect(ctx, s, w)
	if err != nil {
		e.log.Debug("refused a rank", "user", user, "pid", s.Peer().PID, "err", err)
		return
	}
	e.log.Debug("rank connected", rankAttrs(r)...)
	for {
		select {
		case <-ctx.Done():
			e.disconnect(r, s)
			e.giveUp(line)
			return
		case <-s.Done():
			e.takeLast(ctx, line)
			if _, ok := s.Final(); ok {
				e.receiveFinal(ctx, s, w) // first: it hasn't lost its connection
			}
			e.disconnect(r, s)
			e.giveUp(line)
			if err := s.Err(); !errors.Is(err, io.EOF) {
				e.countProtocolError(err)
				e.log.Debug("rank's connection failed", append(rankAttrs(r), "err", err)...)
			} else {
				e.log.Debug("rank disconnected", rankAttrs(r)...)
			}
			return
		case <-line.wake:
			e.takeAnswered(ctx, line) // it may have failed at once
			e.push(ctx, r, s)
			if what := e.begin(r); what != 0 {
				asking.Go(func() { e.askRank(ctx, r, s, what) })
			}
		}
	}
}

// takeAnswered takes the answer to the question in that is open, if it has come.
func (e *Exporter) takeAnswered(ctx context.Context, l *line) {
	if q := l.asked.Load(); q != nil && q.isAnswered() {
		e.take(ctx, q)
	}
}

// takeLast is takeAnswered for a connection that has ended.
func (e *Exporter) takeLast(ctx context.Context, l *line) {
	q := l.asked.Load()
	if q == nil {
		return
	}
	<-q.pending.Done()
	if _, err := q.pending.Sample(); err == nil {
		e.take(ctx, q)
	}
}

// giveUp lets those go who wait for an answer that nobody will take in. Nobody asks any more.
func (e *Exporter) giveUp(l *line) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if q := l.asked.Load(); q != nil {
		q.settle()
	}
}

// identify finds out who connects. It reads files, so it is called once for each connection, and not by anybody who
// holds mu.
func (e *Exporter) identify(h *mpit.Hello, peer mpit.Peer, user string) identity.Process {
	p, err := e.rules.Load().identity.Identify(e.proc, h, peer, user)
	if err != nil {
		e.log.Debug("the kernel does not say which job a process belongs to", "pid", peer.PID, "user", user, "err", err)
	}
	return p
}

func rankAttrs(r *rank) []any {
	return []any{"jobid", r.id.JobID, "world", r.id.World, "rank", r.id.Rank, "dup", r.id.Dup, "user", r.about.User}
}

// push sends a rank's agent what has gathered in its outbox.
func (e *Exporter) push(ctx context.Context, r *rank, s *mpit.Session) {
	e.mu.Lock()
	todo := r.send
	r.send.selection, r.send.open = false, nil
	e.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	var again outbox
	if todo.selection {
		if err := s.Select(ctx, todo.def, todo.ids); err != nil {
			again.selection = true
			e.log.Debug("selecting variables failed", append(rankAttrs(r), "err", err)...)
		}
	}
	if len(todo.open) > 0 {
		if err := s.Open(ctx, todo.open); err != nil {
			again.open = todo.open
			e.log.Debug("opening variables failed", append(rankAttrs(r), "err", err)...)
		}
	}
	if again.selection || len(again.open) > 0 { // the next round tries again
		e.mu.Lock()
		defer e.mu.Unlock()
		r.send.selection = r.send.selection || again.selection
		if r.send.open == nil {
			r.send.open = again.open
		}
	}
}
