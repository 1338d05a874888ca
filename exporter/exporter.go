// Package exporter gathers the performance variables of all ranks on a node and hands them out as Prometheus metrics: over
// HTTP, or into somebody else's registry.
//
// An Exporter is fed by a mpit.Listener (Serve) and read by any number of scrapers at once (Handler, Gather, Gatherer,
// Snapshot, Collector). Ranks are asked only when somebody reads. Any number of Exporters may stand in one process.
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
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/control"
	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/budget"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/categories"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/tally"
	"github.com/mpit-exporter/mpit-exporter/mapping"
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
	newRank func(m *mapping.Mapper, p mapping.Process) figures
	proc    fs.FS       // /proc
	grouped func() bool // rules match by category

	tuning

	deaf deafness

	started time.Time

	lastScrape atomic.Pointer[time.Time] // when the last page was delivered to a scraper; nil: none has been

	// Locks are taken in this order: that of rounds or of pages, a user's place, one rank's, mu, and those of tables such as budgets.
	rounds  rounds
	pages   pages
	budgets *budget.Budgets

	categories *tally.Tally[categories.Row]
	controls   *tally.Tally[controlRow]

	rules atomic.Pointer[ruling]

	reloading sync.Mutex // held while rules come into force

	mu      sync.Mutex // guards what follows, and the attendance of ranks; held for a look or a change, never while ranks are taken in
	table   table
	removed []*rank // from the table, to be closed
	freed   freed
	finals  map[uint32]int // connections that are to bring a last sample, by uid

	readers   map[*OTelReader]bool // those that are open
	producing bool                 // somebody reads metric data besides

	worlds    worlds
	inquiries map[uint32]int // ranks that are being asked for more than a sample, by uid

	clashLogged map[uint32]time.Time // when a clash of labels was logged, by uid
}

// New returns an Exporter without ranks.
func New(cfg Config) (*Exporter, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, fmt.Errorf("exporter: making an exporter: %w", err)
	}
	names, err := identity.Compile(cfg.Identity)
	if err != nil {
		return nil, fmt.Errorf("exporter: making an exporter: %w", err)
	}
	budgets, err := budget.New(cfg.Limits)
	if err != nil {
		return nil, fmt.Errorf("exporter: making an exporter: %w", err)
	}
	e := &Exporter{
		cfg:       cfg,
		log:       cfg.Logger,
		self:      newSelfMetrics(),
		users:     identity.NewUsers(cfg.UserName),
		scrapes:   make(chan struct{}, cfg.MaxScrapes),
		now:       time.Now,
		proc:      os.DirFS("/proc"),
		tuning:    usual(),
		started:   time.Now(),
		table:     newTable(),
		budgets:   budgets,
		finals:    map[uint32]int{},
		inquiries: map[uint32]int{},
		readers:   map[*OTelReader]bool{},

		worlds:     newWorlds(),
		categories: tally.New[categories.Row](categories.MaxRows),
		controls:   tally.New[controlRow](maxControlRows),

		clashLogged: map[uint32]time.Time{},
	}
	e.newRank = func(m *mapping.Mapper, p mapping.Process) figures { return m.NewRank(p) }
	e.rules.Store(&ruling{mapper: cfg.Mapper, identity: names})
	e.grouped = func() bool { return e.mapper().NeedsCategories() }
	e.control = newControl(e)
	e.api = api.Handler(source{e}, e.log)
	e.pages.board = e.newBoard()
	e.self.reloadSucceeded(e.now())
	e.showLimits(budgets.Limits())
	return e, nil
}

func (e *Exporter) newBoard() *board { return newBoard(e.drop) }

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

// line is how the goroutine of a rank's connection is told what to do.
type line struct {
	// asked is the question that is open, as long as its answer has not been taken in; nil: none. It changes under Exporter.mu.
	asked atomic.Pointer[question]
	wake  chan struct{} // there is something in the outbox
}

func newLine() *line { return &line{wake: make(chan struct{}, 1)} }

// nudge wakes the goroutine.
func (l *line) nudge() {
	select {
	case l.wake <- struct{}{}:
	default: // it knows
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

// identify finds out who connects. It reads files, so it is called once for each connection, and not by anybody who holds mu.
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

var (
	errOtherUser    = errors.New("another user has a rank with the same id")
	errTooManyRanks = errors.New("the user has too many ranks")
)

// connect registers a session. A rank that was known before goes on with it: its agent has connected anew.
func (e *Exporter) connect(ctx context.Context, s *mpit.Session, w identity.Process) (*rank, *line, error) {
	h, peer := s.Hello(), s.Peer()
	r, l, old, err := func() (*rank, *line, *mpit.Session, error) {
		e.mu.Lock()
		defer e.unlock()
		r := e.table.byID[h.ID]
		switch {
		case r != nil && r.peer.UID != peer.UID:
			e.self.refused.WithLabelValues(refusedUID).Inc()
			return nil, nil, nil, errOtherUser
		case (r == nil || r.end != mpit.EndNone) && e.table.alive(peer.UID) >= e.cfg.MaxRanks:
			e.self.refused.WithLabelValues(refusedRanks).Inc()
			return nil, nil, nil, errTooManyRanks
		case r == nil:
			r = e.add(h, peer, w)
		case r.end == mpit.EndLost:
			r.revive()
		}
		old := r.session
		r.session, r.line = s, newLine()
		line := r.line
		s.OnAnswer(func() { e.takeAnswered(ctx, line) })
		r.gone = time.Time{}
		if r.state == stateLate {
			r.state = stateNew
		}
		if r.send.selected {
			// An agent may or may not remember what its last connection selected.
			r.send.selection = true
		}
		e.table.enter(r)
		r.nudge()
		return r, r.line, old, nil
	}()
	if old != nil {
		_ = old.Close()
	}
	return r, l, err
}

// unlock gives mu back, and closes what has been removed from the table.
func (e *Exporter) unlock() {
	removed := e.removed
	e.removed = nil
	for _, r := range removed {
		e.freed.leaving = true
		e.freed.bytes += r.facts.size + seriesBytes*r.facts.series
	}
	e.mu.Unlock()
	for _, r := range removed {
		e.close(r)
	}
}

const (
	// seriesBytes is about what a series takes, wherever.
	seriesBytes = 1000
	// worthGivingBack is how much must have been freed.
	worthGivingBack  = 32 << 20
	givingBackPauses = time.Minute
)

// freed is about how many bytes ranks had that have left since memory was given back last.
type freed struct {
	bytes   int
	at      time.Time
	leaving bool // some have left since the last page: more may follow, or others take the room
}

// giveBack has the memory of ranks that have left given back to the kernel, once the page is without them.
func (e *Exporter) giveBack() {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, leaving := e.now(), e.freed.leaving
	e.freed.leaving = false
	if leaving || e.cfg.GiveBack == nil || e.freed.bytes < worthGivingBack || now.Sub(e.freed.at) < givingBackPauses {
		return
	}
	e.freed = freed{at: now}
	go e.cfg.GiveBack()
}

// add puts a new rank into the table. The caller holds mu.
func (e *Exporter) add(h mpit.Hello, peer mpit.Peer, w identity.Process) *rank {
	e.makeWay(w.ID, peer.UID)
	r := e.table.add(h, peer, w)
	r.account = e.budgets.Open(r.job())
	if r.old = h.InitTime.Before(e.started); r.old {
		r.since = e.now()
	}
	e.worlds.join(r)
	e.noteClash(r)
	if w.Check == identity.Differs {
		e.self.mismatches.Inc()
		e.log.Debug("a rank claims another job than the kernel says", append(rankAttrs(r), "cgroup_jobid", w.CgroupJobID)...)
	}
	return r
}

// disconnect notes the end of a connection, unless the rank has a newer one.
func (e *Exporter) disconnect(r *rank, s *mpit.Session) {
	e.mu.Lock()
	defer e.unlock()
	if r.session != s {
		return
	}
	r.session, r.line = nil, nil
	e.abandon(r)
	if r.end == mpit.EndNone {
		r.gone = e.now()
		r.state = stateLate
	}
	e.table.enter(r)
	e.evict()
}

// receiveFinal takes the last sample of a rank, which may be all that is ever seen of it.
func (e *Exporter) receiveFinal(ctx context.Context, s *mpit.Session, w identity.Process) {
	if !e.enterFinal(s.Peer().UID) {
		e.log.Debug("refused a last sample", "user", w.ID.User, "pid", s.Peer().PID)
		return
	}
	defer e.leaveFinal(s.Peer().UID)
	taking, cancel := context.WithTimeout(ctx, finalTimeout)
	defer cancel()
	select {
	case <-s.Done():
	case <-taking.Done():
		return
	}
	if e.takeFinal(ctx, s, w) && e.cfg.FinalTaken != nil {
		e.cfg.FinalTaken(ctx)
	}
}

// takeFinal takes the last sample of a connection that has brought all it had. It waits until it is its turn.
func (e *Exporter) takeFinal(ctx context.Context, s *mpit.Session, w identity.Process) bool {
	sample, ok := s.Final()
	if !ok {
		e.countProtocolError(s.Err())
		e.log.Debug("no last sample", "user", w.ID.User, "pid", s.Peer().PID, "err", s.Err())
		return false
	}
	r := e.rankOfFinal(s, w)
	if r == nil {
		return false
	}
	leave, err := e.enter(ctx, r)
	if err != nil {
		return false // the exporter ends
	}
	defer leave()
	e.self.samples.WithLabelValues(resultFinal).Inc()
	c := r.contents.Lock()
	e.absorb(r, c, &sample)
	e.publish(r, c)
	r.contents.Unlock()
	reason := sample.End
	if reason == mpit.EndNone {
		reason = mpit.EndExit
	}
	e.mu.Lock()
	defer e.unlock()
	if e.table.byID[r.key] != r {
		return false // there were too many
	}
	e.finish(r, reason, e.now())
	return true
}

// rankOfFinal returns the rank that a last sample is of; nil: it is not to be taken.
func (e *Exporter) rankOfFinal(s *mpit.Session, w identity.Process) *rank {
	h, peer := s.Hello(), s.Peer()
	e.mu.Lock()
	defer e.unlock()
	r := e.table.byID[h.ID]
	switch {
	case r == nil:
		r = e.add(h, peer, w)
		r.gone = e.now()
		e.table.enter(r)
	case r.peer.UID != peer.UID:
		e.self.refused.WithLabelValues(refusedUID).Inc()
		return nil
	}
	return r
}

// enterFinal counts a connection that is to bring a last sample, if its user may have one more.
func (e *Exporter) enterFinal(uid uint32) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := e.finals[uid]; n >= maxFinals && n >= maxFinals+e.table.alive(uid) {
		e.self.refused.WithLabelValues(refusedFinals).Inc()
		return false
	}
	e.finals[uid]++
	return true
}

func (e *Exporter) leaveFinal(uid uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.finals[uid]--; e.finals[uid] == 0 {
		delete(e.finals, uid)
	}
}

// finish marks a rank as ended and makes room for it. The caller holds mu.
func (e *Exporter) finish(r *rank, reason mpit.EndReason, at time.Time) {
	r.finish(reason, at)
	e.table.enter(r)
	e.dropControls(r)
	e.log.Debug("rank ended", append(rankAttrs(r), "reason", r.end.String())...)
	e.tellReaders()
	e.evict()
}

// evict makes room for ended ranks. The caller holds mu.
func (e *Exporter) evict() {
	for {
		victim := e.table.surplus(e.cfg.MaxEnded, e.endedBytes)
		if victim == nil {
			return
		}
		e.self.evicted.Inc()
		e.countLost(victim)
		e.remove(victim)
	}
}

// remove forgets a rank; it leaves the page when that is made next. The caller holds mu.
func (e *Exporter) remove(r *rank) {
	e.table.remove(r)
	if e.worlds.leave(r) {
		e.categories.Replace(r.world.key.uid, r.world.rows, nil)
	}
	e.removed = append(e.removed, r)
}

// expire ends ranks whose last sample is overdue and forgets ended ones whose time is over, or whose room others need. The caller holds mu.
func (e *Exporter) expire() {
	now := e.now()
	var over, lost []*rank
	for _, r := range e.table.ordered {
		switch {
		case r.end != mpit.EndNone && !e.wanted(r) && (now.Sub(r.ended) >= e.cfg.Retention || r.account.Short()):
			over = append(over, r)
		case r.end == mpit.EndNone && r.session == nil && now.Sub(r.gone) >= e.grace:
			lost = append(lost, r)
		}
	}
	for _, r := range over {
		e.remove(r)
	}
	for _, r := range lost {
		if e.table.byID[r.key] == r { // and has not been evicted meanwhile
			e.finish(r, mpit.EndLost, r.gone)
		}
	}
}

// Remaining returns how many ranks live, or may still bring their last sample, and how many have ended whose last values nobody has got.
// It asks none of them. An exporter that serves one job has nothing left to do when both are zero.
func (e *Exporter) Remaining() (living, untaken int) {
	e.mu.Lock()
	defer e.unlock()
	e.expire()
	for _, r := range e.table.ordered {
		switch {
		case r.end == mpit.EndNone:
			living++
		case e.wanted(r):
			untaken++
		}
	}
	for _, n := range e.finals {
		living += n
	}
	return living, untaken
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
