package exporter

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// figures is what the exporter needs of a mapping.Rank.
type figures interface {
	SetLimit(weight int, reason mapping.Reason)
	SetVariableLimit(weight int)
	Update(s *mpit.Sample)
	Reload(m *mapping.Mapper, at time.Time)
	Weight() int
	Structure() uint64
	Series() []*mapping.Series
	Select() (def bool, ids map[uint32]bool, changed bool)
	Requests() []uint32
	Dropped() map[mapping.Reason]uint64
	Infos() []mapping.Info
	Objects() []mapping.ObjectInfo
	SetCategories(c mapping.Categories)
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

// rank is one process. Everything in it belongs to Exporter.mu, except what never changes after newRank.
type rank struct {
	key     mpit.RankID
	id      Identity
	peer    mpit.Peer // of its first connection
	arrived uint64    // rises from rank to rank
	started time.Time // zero: not known
	about   RankStatus
	library mapping.Library
	old     bool             // it was there before this exporter
	since   time.Time        // from when on the exporter can vouch for what only it counts; zero: from the rank's beginning on
	version string           // of the library, as the rank wrote it
	labels  []*dto.LabelPair // of id, sorted by name; shared by all its series

	session *mpit.Session // nil: not connected
	wake    chan struct{} // tells the session's goroutine that there is something to send

	asked   *mpit.Pending // the session's open question, as long as its answer has not been taken in; nil: none
	askedAt time.Time
	last    rankState // what its last answer made of it

	figures  figures // nil: not made yet, or thrown away after a panic
	budget   budget
	epoch    uint64        // Exporter.epoch of the rules that figures are made by
	made     uint64        // how often figures have been made
	anew     bool          // figures have something new to say of the variables: they have just been made, or told categories
	reselect bool          // the agent is to be told what to read even if figures think that it knows
	clock    time.Duration // of the newest sample that figures have taken
	send     outbox

	state     rankState // on the last page
	sampled   bool      // stats hold something
	stats     mpit.AgentStats
	variables *mpit.Variables
	byState   [variableStates]int // variables by their state
	layout    *mpit.Layout
	structure uint64 // of figures, for which variables were selected last
	infos     []mapping.Info
	dropped   map[mapping.Reason]uint64 // by the figures, as counted in mpit_exporter_series_dropped_total
	left      map[string]int            // left off the page, as counted there
	size      int                       // about how many bytes it holds of what it has sent
	trimmed   trimmed
	kept      kept // by its last MPI_Pcontrol(2)

	world               *world
	inquiry             inquiry   // what it is being asked for besides samples
	categoriesNotBefore time.Time // it could not say them
	controls            controls

	gone    time.Time // when the connection ended; zero: it has not
	end     mpit.EndReason
	ended   time.Time            // when it ended, by the exporter's clock
	scraped bool                 // since its last change
	took    map[*OTelReader]bool // the same of readers of metric data
	lives   int                  // changes with each end and each new beginning
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

const variableStates = int(mpit.VariableOnRequest) + 1

// newRank keeps of HELLO only what is bounded: the rank stays long after its connection, and may be anybody's.
func newRank(h mpit.Hello, peer mpit.Peer, w who) *rank {
	id := w.id
	r := &rank{
		key:     h.ID,
		id:      id,
		peer:    peer,
		started: h.InitTime,
		about:   describe(&h, peer, w),
		library: mapping.ParseLibrary(h.LibraryVersion),
		version: truncate(h.LibraryVersion, maxLabelValue),
		left:    map[string]int{},

		controls: controls{left: map[string]int{}},
	}
	labels := []mapping.Label{
		{Name: "jobid", Value: id.JobID}, {Name: "rank", Value: strconv.Itoa(id.Rank)},
		{Name: "user", Value: id.User}, {Name: "world", Value: id.World},
	}
	if id.Dup > 0 {
		labels = append([]mapping.Label{{Name: "dup", Value: strconv.Itoa(id.Dup)}}, labels...)
	}
	r.labels = labelPairs(nil, labels)
	return r
}

// place is where the rank stands on the page.
func (r *rank) place() Identity { return r.id }

// sharedLabels are on all series of the rank.
func (r *rank) sharedLabels() []*dto.LabelPair { return r.labels }

// begun is when the rank's MPI_T session was opened; zero: not known.
func (r *rank) begun() time.Time { return r.started }

// counted is what is left off the page, as it has been counted.
func (r *rank) counted() map[string]int { return r.left }

// leftAt is when a rank without a connection ended, or lost it.
func (r *rank) leftAt() time.Time {
	if r.end == mpit.EndNone {
		return r.gone
	}
	return r.ended
}

// live says whether all series of the rank stand on the page; else the lasting ones alone.
func (r *rank) live() bool {
	return r.state == stateUp || r.state == stateBusy || r.state == statePassive || r.state == statePaused
}

// controlled says whether the program has called MPI_Pcontrol.
func (r *rank) controlled() bool { return r.stats.PcontrolCalls > 0 }

// visible says whether the rank stands on the page at all.
func (r *rank) visible() bool { return r.state != stateNew || r.sampled }

// answered says whether the open question has been answered.
func (r *rank) answered() bool {
	if r.asked == nil {
		return false
	}
	select {
	case <-r.asked.Done():
		return true
	default:
		return false
	}
}

// nudge tells the session's goroutine of what there is to send.
func (r *rank) nudge() {
	if r.session == nil || !r.send.selection && !r.send.inquiry && len(r.send.open) == 0 {
		return
	}
	select {
	case r.wake <- struct{}{}:
	default: // it knows
	}
}

// count takes what the agent counts of itself in. None of it falls, whatever an agent leaves out of an answer: busy ones
// and last ones don't say everything.
func (r *rank) count(s *mpit.AgentStats) {
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

// finish marks the rank as ended. A last sample may follow a lost connection; the first reason given by the rank itself stands.
func (r *rank) finish(reason mpit.EndReason, at time.Time) {
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
func (r *rank) revive() {
	r.end = mpit.EndNone
	r.ended = time.Time{}
	r.scraped, r.took = false, nil
	r.lives++
	r.state = stateNew
}

// table holds all ranks that are on the page or may come onto it.
type table struct {
	byID    map[mpit.RankID]*rank
	taken   map[Identity]bool
	ordered []*rank // by Identity
	arrived uint64  // ranks so far
}

func newTable() table {
	return table{byID: map[mpit.RankID]*rank{}, taken: map[Identity]bool{}}
}

// add puts a new rank into the table, with the lowest dup that is free for its labels.
func (t *table) add(h mpit.Hello, peer mpit.Peer, w who) *rank {
	for t.taken[w.id] {
		w.id.Dup++
	}
	id := w.id
	r := newRank(h, peer, w)
	t.arrived++
	r.arrived = t.arrived
	t.byID[h.ID] = r
	t.taken[id] = true
	i, _ := t.find(id)
	t.ordered = slices.Insert(t.ordered, i, r)
	return r
}

func (t *table) remove(r *rank) {
	delete(t.byID, r.key)
	delete(t.taken, r.id)
	if i, found := t.find(r.id); found {
		t.ordered = slices.Delete(t.ordered, i, i+1)
	}
}

// find returns a rank's place in ordered, or where it would be.
func (t *table) find(id Identity) (int, bool) {
	return slices.BinarySearchFunc(t.ordered, id, func(r *rank, id Identity) int { return r.id.compare(id) })
}

// alive counts the ranks of one user that have not ended.
func (t *table) alive(uid uint32) int {
	n := 0
	for _, r := range t.ordered {
		if r.peer.UID == uid && r.end == mpit.EndNone {
			n++
		}
	}
	return n
}

// surplus returns the rank to be given up when there are more ended ones than limit, or they and those that have lost their connection
// hold more than so many bytes: the oldest of the user who has most of it, so that nobody pushes out somebody else's. nil: not too many.
func (t *table) surplus(limit, bytes int) *rank {
	ended, held := 0, 0
	for _, r := range t.ordered {
		if r.end != mpit.EndNone {
			ended++
		}
		if r.session == nil {
			held += r.size
		}
	}
	large := held > bytes
	if !large && ended <= limit {
		return nil
	}
	perUser := map[uint32]int{}
	oldest := map[uint32]*rank{}
	for _, r := range t.ordered {
		weight := 1
		if large {
			weight = r.size
		}
		if r.end == mpit.EndNone && !large || r.session != nil || weight == 0 {
			continue
		}
		perUser[r.peer.UID] += weight
		if o := oldest[r.peer.UID]; o == nil || r.leftAt().Before(o.leftAt()) {
			oldest[r.peer.UID] = r
		}
	}
	var victim *rank
	for uid, r := range oldest {
		if victim == nil || cmp.Or(cmp.Compare(perUser[uid], perUser[victim.peer.UID]), cmp.Compare(victim.peer.UID, uid)) > 0 {
			victim = r
		}
	}
	return victim
}
