package exporter

import (
	"cmp"
	"strconv"
	"time"

	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sync/semaphore"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/budget"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/guard"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/tally"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/series"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Identity is what tells the series of one rank from those of all others on the node.
type Identity = identity.Identity

// figures is what the exporter needs of a series.Rank.
type figures interface {
	SetRoom(shared series.Room)
	SetVariableLimit(weight int)
	Update(s *mpit.Sample)
	Reload(m *variables.Mapper, at time.Time)
	Weight() int
	Structure() uint64
	Series() []*mapping.Series
	Select() (def bool, ids map[uint32]bool, changed bool)
	Requests() []uint32
	Dropped() map[mapping.Reason]uint64
	Infos() []variables.Info
	Objects() []series.ObjectInfo
	SetCategories(c variables.Categories)
	Close()
}

// rankState says what became of a rank in the last round.
type rankState uint8

const (
	stateNew     rankState = iota // connected, not asked since: not on the page unless it was there before
	stateUp                       // answered
	stateBusy                     // answered without values; the last ones stand
	statePassive                  // answered with values of an earlier time
	statePaused                   // answered with the values of when the program called MPI_Pcontrol(0)
	stateLate                     // did not answer in time, or its connection has just ended
	stateEnded
)

func (s rankState) String() string {
	return stateNames[s]
}

var stateNames = [...]string{"new", "up", "busy", "passive", "paused", "late", "ended"}

// rank is one process. What is not said to be guarded never changes once it stands in the table.
type rank struct {
	key     mpit.RankID
	id      Identity
	peer    mpit.Peer // of its first connection
	arrived uint64    // rises from rank to rank
	started time.Time // zero: not known
	about   api.RankStatus
	library mapping.Library
	old     bool             // it was there before this exporter
	since   time.Time        // since when the exporter can vouch for what only it counts; zero: since the rank began
	version string           // of the library, as the rank wrote it
	labels  []*dto.LabelPair // of id, sorted by name; shared by all its series
	world   *world

	contents *guard.Value[contents] // what has been taken in of it
	taking   *semaphore.Weighted    // bounds how many ranks of its user are taken in at the same time
	account  *budget.Account        // of its series

	attendance // guarded by Exporter.mu
}

// contents is what has been taken in of a rank. Its lock is held while a sample is taken in and while the page copies
// it, never that of another rank besides, and before any lock that ranks share.
type contents struct {
	figures  figures       // nil: not made yet, or thrown away after a panic
	over     bool          // the rank has been forgotten: nothing more is taken in
	since    time.Time     // when figures were thrown away; zero: never
	epoch    uint64        // of the rules that figures are made by
	made     uint64        // how often figures have been made
	anew     bool          // figures have news of the variables: they have just been made, or told categories
	selected bool          // the agent has been told what to read
	reselect bool          // the agent is to be told what to read even if figures think that it knows
	clock    time.Duration // of the newest sample that figures have taken

	sampled   bool // stats hold something
	stats     mpit.AgentStats
	variables *mpit.Variables
	byState   [variableStates]int // variables by their state
	layout    *mpit.Layout
	structure uint64 // of figures, for which variables were selected last
	infos     []variables.Info
	dropped   map[mapping.Reason]uint64 // by the figures, as counted in mpit_exporter_series_dropped_total
	left      map[string]int            // left out, as counted there
	size      int                       // about how many bytes it holds of what it has sent
	trimmed   trimmed
	final     bool // its last sample has been taken in
	kept      kept // by its last MPI_Pcontrol(2)

	tell outbox // what came of the last sample, for the agent
}

// attendance is what of a rank may be looked at and changed without waiting for what is being taken in.
type attendance struct {
	session *mpit.Session // nil: not connected
	line    *line         // to the session's goroutine; nil: there is none
	last    rankState     // what its last answer made of it
	send    outbox
	facts   facts
	state   rankState // on the last page

	inquiry             inquiry   // what it is being asked for besides samples
	categoriesNotBefore time.Time // it could not say them
	controls            controls

	gone    time.Time // when the connection ended; zero: it has not
	end     mpit.EndReason
	ended   time.Time      // when it ended, by the exporter's clock
	scraped bool           // since its last change
	took    map[taker]bool // the same of readers of metric data
	lives   int            // changes with each end and each new beginning

	entered account // as the table has it in its books
}

// facts is what is known of a rank without its lock, as of its last sample.
type facts struct {
	figures   bool // it has some
	sampled   bool // it has answered
	made      uint64
	structure uint64 // of figures
	series    int
	size      int
	stamp     uint64 // of its categories
	variables *mpit.Variables
	infos     []variables.Info
	kept      kept
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
	rows []*tally.Held[controlRow]
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

// taker is a reader of metric data. It gets a value when a rank has ended.
type taker chan struct{}

const variableStates = int(mpit.VariableOnRequest) + 1

// newRank keeps of HELLO only what is bounded: the rank stays long after its connection, and may be anybody's.
func newRank(h mpit.Hello, peer mpit.Peer, w identity.Process) *rank {
	id := w.ID
	r := &rank{
		key:      h.ID,
		id:       id,
		peer:     peer,
		started:  h.InitTime,
		about:    api.StatusOf(&h, peer, w),
		library:  mapping.ParseLibrary(h.LibraryVersion),
		version:  clean.Cut(h.LibraryVersion, clean.MaxLabel),
		contents: guard.New(contents{left: map[string]int{}}),
	}
	r.controls.left = map[string]int{}
	labels := []mapping.Label{
		{Name: "jobid", Value: id.JobID}, {Name: "rank", Value: strconv.Itoa(id.Rank)},
		{Name: "user", Value: id.User}, {Name: "world", Value: id.World},
	}
	if id.Dup > 0 {
		labels = append([]mapping.Label{{Name: "dup", Value: strconv.Itoa(id.Dup)}}, labels...)
	}
	r.labels = exposition.LabelPairs(nil, labels)
	return r
}

// job is whose budget its series count for.
func (r *rank) job() budget.Job { return budget.Job{ID: r.id.JobID, UID: r.peer.UID} }

// leftAt is when a rank without a connection ended, or lost it.
func (r *attendance) leftAt() time.Time {
	if r.end == mpit.EndNone {
		return r.gone
	}
	return r.ended
}

// live says whether all series of a rank in this state stand on the page; else the lasting ones alone.
func (s rankState) live() bool {
	return s == stateUp || s == stateBusy || s == statePassive || s == statePaused
}

// visible says whether the rank stands on the page at all.
func (r *attendance) visible() bool { return r.state != stateNew || r.facts.sampled }

// nudge tells the session's goroutine of what there is to send.
func (r *attendance) nudge() {
	if r.line == nil || !r.send.selection && !r.send.inquiry && len(r.send.open) == 0 {
		return
	}
	r.line.nudge()
}

// count takes what the agent counts of itself in. None of it falls, whatever an agent leaves out of an answer: busy
// ones and last ones don't say everything.
func (r *contents) count(s *mpit.AgentStats) {
	r.sampled = true
	level := r.stats.PcontrolLevel
	if s.PcontrolCalls > 0 && s.PcontrolCalls >= r.stats.PcontrolCalls {
		level = s.PcontrolLevel
	}
	r.stats = mpit.AgentStats{
		Samples:      max(r.stats.Samples, s.Samples),
		Busy:         max(r.stats.Busy, s.Busy),
		ReadErrors:   max(r.stats.ReadErrors, s.ReadErrors),
		GateWaits:    max(r.stats.GateWaits, s.GateWaits),
		GateWaitTime: max(r.stats.GateWaitTime, s.GateWaitTime),
		GateWaitMax:  max(r.stats.GateWaitMax, s.GateWaitMax),
		CPUTime:      max(r.stats.CPUTime, s.CPUTime),
		ObjectsAlive: s.ObjectsAlive,

		PcontrolLevel: level,
		PcontrolCalls: max(r.stats.PcontrolCalls, s.PcontrolCalls),
		KeptSamples:   max(r.stats.KeptSamples, s.KeptSamples),
		PausedTime:    max(r.stats.PausedTime, s.PausedTime),
		CategoryStamp: cmp.Or(s.CategoryStamp, r.stats.CategoryStamp),
	}
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
