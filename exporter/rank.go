package exporter

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/board"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/budget"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/process"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/tally"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/guard"
)

// rankState says what became of a rank in the last round.
type rankState uint8

const (
	stateNew     rankState = iota // connected, no answer since: not on the page unless it was there before
	stateUp                       // answered
	stateBusy                     // answered without values; the last ones stand
	statePassive                  // answered with values of an earlier time
	statePaused                   // answered with the values of when the program called MPI_Pcontrol(0)
	stateLate                     // did not answer in time, or its connection has just ended
	stateEnded
)

func (s rankState) String() string { return stateNames[s] }

var stateNames = [...]string{"new", "up", "busy", "passive", "paused", "late", "ended"}

// rank is one process. What is not said to be guarded never changes once it stands in the table.
type rank struct {
	board.Rank

	arrived uint64 // rises from rank to rank
	library mapping.Library
	phases  map[int]string // names of the program's, by their numbers
	since   time.Time      // since when the exporter can vouch for what only it counts; zero: since the rank began
	world   *world

	contents *guard.Value[contents]      // what has been taken in of it
	facts    atomic.Pointer[board.Facts] // of that; never nil
	taking   *semaphore.Weighted         // bounds how many ranks of its user are taken in at the same time
	account  *budget.Account             // of its series

	attendance // guarded by the registry's lock
}

// attendance is what of a rank may be looked at and changed without waiting for what is being taken in.
type attendance struct {
	line  *line     // its connection; nil: there is none
	last  rankState // what its last answer made of it
	send  outbox
	state rankState // on the last page; of a rank that was not on it, of its first answer

	inquiry   inquiry   // what it is being asked for besides samples
	notBefore time.Time // is it asked for that again: it could not say it
	controls  controls

	gone    time.Time // when the connection ended; zero: it has not
	end     mpit.EndReason
	ended   time.Time      // when it ended, by the exporter's clock
	process process.Handle // knows its exit status
	left    time.Time      // when its process was seen to have gone; zero: it hasn't been
	exit    string         // that, once it is known
	scraped bool           // since its last change
	took    map[taker]bool // the same of readers of metric data
	lives   int            // changes with each end and each new beginning

	entered account // as the table has it in its books
}

// outbox is what the session's goroutine is to send to the agent.
type outbox struct {
	selection bool
	inquiry   bool // rank.inquiry
	selected  bool // there is a selection at all
	def       bool // the selection: see mpit.Session.Select
	ids       map[uint32]bool
	open      []uint32 // variables that rules ask for: see mpit.Session.Open
}

// account is what a rank counts for in the books.
type account struct {
	alive bool
	away  bool  // without a connection
	at    int64 // when it left, in Unix nanoseconds; of those that are away
	size  int
}

// controls is what a rank keeps of its control variables: the series that it is counted in.
type controls struct {
	rows []*tally.Held[board.ControlRow]
	at   time.Time // when they were read; zero: not since it connected first
	told bool      // they are to be read as soon as possible
	left map[string]int
}

// inquiry is what a rank is asked for besides samples: seldom, in the background, and never while a scrape waits for
// it. What it says is on the page from the next scrape on.
type inquiry uint8

const (
	askCategories inquiry = 1 << iota
	askControls
)

// view is what a refresh of the page sees of a rank without its lock.
type view struct {
	rank  *rank
	state rankState
	end   mpit.EndReason
	lives int
	since api.StateSeconds // its end
	facts *board.Facts
}

// ending is an ended rank that stands on a page, with how often it had brought something new by then.
type ending struct {
	rank  *rank
	lives int
}

// taker is a reader of metric data. It gets a value when a rank has ended.
type taker chan struct{}

// newRank makes a rank beside so many others. It keeps of HELLO only what is bounded: the rank stays long after its
// connection, and may be anybody's.
func newRank(b *base, h mpit.Hello, peer mpit.Peer, w identity.Process, ranks int) *rank {
	r := &rank{
		Rank: board.Rank{
			Key: h.ID, ID: w.ID, UID: peer.UID, Started: h.InitTime, About: api.StatusOf(&h, peer, w),
			Labels: board.Labels(w.ID),
			Light:  slices.Contains(strings.Split(h.Attributes["MPIT_CALLS"], ","), "light"),
		},
		library: mapping.ParseLibrary(h.LibraryVersion),
	}
	r.phases, _ = api.PhaseNames(h.Attributes[api.EnvPhases]) // of one that exec has not refused, none
	r.contents = guard.New(contents{base: b, rank: r, left: map[string]int{}, comms: api.Comms{Most: mostComms(ranks)}})
	r.facts.Store(&board.Facts{})
	r.controls.left = map[string]int{}
	return r
}

// mostComms is how many communicators of a rank are known where there are so many ranks: 65,536 of all, or 16 of each.
func mostComms(ranks int) int { return max(16, min(256, 65_536/max(ranks, 1))) }

func (r *rank) attrs() []any {
	return []any{"jobid", r.ID.JobID, "world", r.ID.World, "rank", r.ID.Rank, "dup", r.ID.Dup, "user", r.About.User}
}

// live says whether all series of a rank in this state stand on the page; else the lasting ones alone.
func (s rankState) live() bool {
	return s == stateUp || s == stateBusy || s == statePassive || s == statePaused
}

// visible says whether a rank in this state stands on the page at all.
func (s rankState) visible(f *board.Facts) bool { return s != stateNew || f.Sampled }

// watch has the exit status of the process that has opened the session known, where the kernel tells it.
func (r *attendance) watch(s *mpit.Session) {
	if of, err := s.Process(); err == nil {
		r.process = process.New(of)
	}
}

// nudge tells the session's goroutine of what there is to send.
func (r *attendance) nudge() {
	if r.line == nil || !r.send.selection && !r.send.inquiry && len(r.send.open) == 0 {
		return
	}
	r.line.nudge()
}

// sinceEnd is a rank's time since its last sample, as far as others of its world have run meanwhile: in MPI_Finalize
// until its process has gone. Of one that is lost, and may come again, none.
func (r *rank) sinceEnd() (s api.StateSeconds) {
	if r.end == mpit.EndNone || r.end == mpit.EndLost && r.left.IsZero() {
		return s
	}
	all := max(r.world.ran.Sub(r.ended).Seconds(), 0)
	switch {
	case r.end == mpit.EndFinalize && r.left.IsZero():
		s[api.Finalize] = all
	case r.end == mpit.EndFinalize:
		s[api.Finalize] = min(max(r.left.Sub(r.ended).Seconds(), 0), all)
	}
	s[api.Ended] = all - s[api.Finalize]
	return s
}

// over is when an ended rank was last in MPI_Finalize while others of its world ran, or else ended.
func (r *rank) over() time.Time {
	if r.end == mpit.EndFinalize && r.left.IsZero() {
		return r.world.ran
	}
	return latest(r.ended, r.left)
}

// finish marks the rank as ended. A last sample may follow a lost connection; the first reason given by the rank
// itself stands.
func (r *attendance) finish(reason mpit.EndReason, at time.Time) {
	if r.end == mpit.EndNone {
		r.ended = at
	}
	if r.end == mpit.EndNone || r.end == mpit.EndLost {
		r.end = reason
	}
	r.state = stateEnded
	r.scraped, r.took = false, nil
	r.lives++
}

// revive makes a lost rank a living one: it was its connection that had been lost.
func (r *attendance) revive() {
	r.end = mpit.EndNone
	r.ended = time.Time{}
	r.scraped, r.took = false, nil
	r.lives++
	r.state = stateNew
}

// line is a rank's connection, as others than its goroutine have it.
type line struct {
	session *mpit.Session
	// asked is the question that is open, as long as its answer has not been taken in; nil: none. It changes under the
	// registry's lock.
	asked atomic.Pointer[question]
	wake  chan struct{} // there is something in the outbox
}

func newLine(s *mpit.Session) *line { return &line{session: s, wake: make(chan struct{}, 1)} }

// nudge wakes the goroutine.
func (l *line) nudge() {
	select {
	case l.wake <- struct{}{}:
	default: // it knows
	}
}

// question is a request for a sample.
type question struct {
	rank *rank
	line *line
	at   time.Time

	begun   atomic.Bool                  // somebody takes the answer in
	pending atomic.Pointer[mpit.Pending] // nil: whoever takes the answer in has it, so that no round holds the sample

	awaiting // guarded by the registry's lock
}

// awaiting is who waits for the answer to a question.
type awaiting struct {
	taken   bool         // the answer has been taken in, or never will be
	awaited []*countdown // by rounds; nil once it is taken
	waited  bool         // a round has had patience with it
}

// settle lets those go who wait, for good.
func (w *awaiting) settle() {
	w.taken = true
	w.giveUp()
}

// giveUp lets those go who wait, and no round wait again.
func (w *awaiting) giveUp() {
	w.waited = true
	for _, c := range w.awaited {
		c.less()
	}
	w.awaited = nil
}

// question is the one that is open to the rank, which is asked if there is none.
func (l *line) question(r *rank, now time.Time) *question {
	q := l.asked.Load()
	if q == nil {
		q = &question{rank: r, line: l, at: now}
		q.pending.Store(l.session.Ask())
		if l.asked.Store(q); q.isAnswered() {
			l.nudge() // it has failed, which nobody else tells
		}
	}
	return q
}

// isAnswered says whether there is an answer that nobody takes in yet.
func (q *question) isAnswered() bool {
	pending := q.pending.Load()
	if pending == nil {
		return false
	}
	select {
	case <-pending.Done():
		return true
	default:
		return false
	}
}

// countdown is how many questions of a round have not been taken in. It is safe for concurrent use.
type countdown struct {
	left atomic.Int64
	over chan struct{} // closed when none is left
}

// newCountdown returns one that is too high by one until all questions are counted, for answers may come before.
func newCountdown() *countdown {
	c := &countdown{over: make(chan struct{})}
	c.left.Store(1)
	return c
}

func (c *countdown) less() {
	if c.left.Add(-1) == 0 {
		close(c.over)
	}
}
