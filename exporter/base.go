package exporter

import (
	"errors"
	"io/fs"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/board"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/budget"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/self"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/tally"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/work"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/series"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// base is what all parts of an Exporter share. Nothing in it changes once there are ranks, except what has a lock of
// its own.
type base struct {
	cfg     Config
	log     *slog.Logger
	self    *self.Metrics
	users   *identity.Users
	budgets *budget.Budgets
	work    *work.Work
	rules   atomic.Pointer[ruling]
	started time.Time

	// The series that any number of ranks hold together.
	categories *tally.Tally[board.CategoryRow]
	controls   *tally.Tally[board.ControlRow]

	now     func() time.Time
	newRank func(m *variables.Mapper, p variables.Process) figures
	proc    fs.FS // /proc
	tuning
}

// ruling is rules that are, or were, in force; a reload puts another one in its place.
type ruling struct {
	mapper   *variables.Mapper
	identity *identity.Rules // for ranks that come
	epoch    uint64          // how often rules have come into force before
}

// figures is what the exporter needs of a series.Rank.
type figures interface {
	board.Figures
	Weight() int
	SetRoom(shared series.Room)
	SetVariableLimit(weight int)
	Update(s *mpit.Sample)
	Reload(m *variables.Mapper, at time.Time)
	Select() (def bool, ids map[uint32]bool, changed bool)
	Requests() []uint32
	Dropped() map[mapping.Reason]uint64
	Infos() []variables.Info
	Close()
}

func (b *base) drop(reason string, n int) { b.self.Dropped.WithLabelValues(reason).Add(float64(n)) }

func (b *base) countProtocolError(err error) {
	if breach, is := errors.AsType[*mpit.ProtocolError](err); is {
		b.self.ProtocolErrors.WithLabelValues(breach.Reason).Inc()
	}
}

// identify finds out who connects. It reads files, so it is called once for each connection, and by nobody who holds a
// lock.
func (b *base) identify(h *mpit.Hello, peer mpit.Peer, user string) identity.Process {
	p, err := b.rules.Load().identity.Identify(b.proc, h, peer, user)
	if err != nil {
		b.log.Debug("the kernel does not say which job a process belongs to", "pid", peer.PID, "user", user, "err", err)
	}
	return p
}

// panicked counts and logs a panic that costs a rank something, and nobody else anything.
func (b *base) panicked(message string, value any, attrs ...any) {
	b.self.Panics.Inc()
	b.log.Error(message+"; please report it", append(attrs, "panic", value, "stack", string(debug.Stack()))...)
}

// Identity is what tells the series of one rank from those of all others on the node.
type Identity = identity.Identity

// Families returns every family of the exporter's own, sorted by name.
func Families() []exposition.Family { return board.Families() }

// Reserved says whether no performance variable of a rank may have this name, in any format.
func Reserved(name string) bool { return board.Reserved(name) }
