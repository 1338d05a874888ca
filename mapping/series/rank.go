package series

import (
	"maps"
	"slices"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Rank is what the variables of one process become. NewRank makes one when the process connects; it goes on through
// later connections of the same process. It belongs to one goroutine.
//
// The numbers go this way: a handle's elements are merged into cells, one for each variable and object name; a cell
// is a series, or several for a STATE. What is compiled once, whenever the catalogue, the objects or the remains of
// freed ones change, stands in variables.go (variables) and plan.go (handles and cells). Where a cell begins, and for
// how many there is room, is in limit.go.
type Rank struct {
	mapper  *Mapper
	process Process
	rules   *rules.Set

	catalogued
	planned
	room room

	closed    time.Duration // when the last interval of timers closed
	hasClosed bool

	clock   time.Duration // of the last sample
	now     int64         // its time in Unix nanoseconds
	dropped map[mapping.Reason]uint64

	reselect bool // what the agent has been told to read is not what it should, or not known
}

// catalogued is the variables of a rank, and what they have been made from.
type catalogued struct {
	variables *mpit.Variables

	byID     []*variable // by Variable.ID
	byKey    []*variable // sorted, without those that another one's key is taken by
	ratios   map[variableKey]*variable
	refused  map[variableKey]mapping.Reason // ratios that are left out, each counted once; nil: none
	order    []*variable                    // all of them, those of ratios too
	families holdings                       // that this rank has
	timers   map[*variable][]*variable      // of companions, whose they are

	held        int        // variables that wait for their categories
	categories  Categories // nil: not known, or the rank can't tell
	categorised bool       // they are known, or no rule asks
	answered    bool       // SetCategories has been called
	told        bool       // categories, since the last plan
	reloading   *reloading // rules have changed since the last plan; nil: they haven't
}

// planned is the handles of a rank, where their values go, and what that has been made from.
type planned struct {
	layout  *mpit.Layout
	remains *mpit.Remains

	handles map[uint32]*handle
	plan    []*handle // those of the layout
	sparse  []*handle // of plan, those of variables whose elements have a cell only once they are not 0
	pairs   []pair
	slabs   slabs
	objects []ObjectInfo

	generation uint32 // of the plan, to find what is no longer there
	series     []*mapping.Series
	structure  uint64
	relist     bool // the set of series may have changed
}

// variableKey is what a variable is known by, for indices differ from run to run.
type variableKey struct {
	name  string
	class mpit.Class // as declared
}

// variable is a variable of this rank. What it has in common with other ranks' is not its own: see shared.go.
type variable struct {
	*mapping.Spec
	info *mpit.Variable // in the catalogue; of ratios, which stand in none, with their name and highRatio or levelRatio alone
	left *leftOut       // nil: it isn't
	with *variable      // companion of a timer

	list     []*cell          // cells, sorted
	cells    map[cellID]*cell // of list, once find needs it
	overflow *overflow        // nil: everything has found room
	since    int64            // what has begun before counts from here on, in Unix nanoseconds; 0: all of it counts
	next     int32            // in list, where find looks first
	meaning  uint32           // of its series; 0: it has none

	bucketCount int32 // of a distribution; 0: not known yet

	enter    admission // whether there was room for it
	wanted   bool      // to be read: shown, or the companion of one that is
	held     bool      // nobody knows yet what it becomes: its categories could make a difference
	asked    bool      // the agent has been asked to read what it left out
	adopted  bool      // it is the companion of a timer
	unsorted bool      // list is
	unread   bool      // the agent has been told not to read it
}

// leftOut says why a variable is not shown.
type leftOut struct {
	reason mapping.Reason
	why    string // of ReasonTypeConflict, in words
}

// Process is what a Rank has to know of its process.
type Process struct {
	Library mapping.Library
	User    uint32 // whose it is: users share the names that there are (Config.MaxFamilies)

	// Older is when the exporter met a process that was there before itself, the zero time for any other: of one that
	// is older, what nobody can vouch for begins at zero, when it is read first. That is histograms of estimated
	// observations, and counters of fewer than 64 bits, which may have wrapped.
	Older time.Time
}

// NewRank makes the Rank of a process.
func (m *Mapper) NewRank(p Process) *Rank {
	return &Rank{
		mapper:     m,
		process:    p,
		rules:      m.rules.ForLibrary(p.Library),
		catalogued: catalogued{ratios: map[variableKey]*variable{}, families: newHoldings(), timers: map[*variable][]*variable{}, categorised: !m.rules.ByCategory()},
		dropped:    map[mapping.Reason]uint64{},
		// What an earlier exporter told the agent to leave out is not known here.
		reselect: !p.Older.IsZero(),
	}
}

// Update takes a sample in. It keeps references to the sample's catalogue, layout and remains, none to its values.
// A sample without values (busy), or older than the last one, changes nothing but that gauges become invalid.
func (r *Rank) Update(s *mpit.Sample) {
	if s == nil || s.Monotonic < r.clock {
		return
	}
	if s.Status == mpit.SampleBusy || s.Layout == nil || s.Values == nil && s.Layout.Values > 0 {
		for _, series := range r.series {
			series.Valid = series.Valid && series.Lasting
		}
		return
	}
	r.clock, r.now = s.Monotonic, s.Time.UnixNano()
	r.compile(s)
	r.markFailed(s)
	if len(r.sparse) > 0 {
		r.reveal(s.Values)
	}
	r.clear()
	for _, h := range r.plan {
		h.read(r, s.Values)
	}
	r.readPairs(s.Values)
	r.unmarkFailed(s)
	r.publish(s)
	if r.relist {
		r.list()
	}
	r.room.giveBack()
}

func (r *Rank) markFailed(s *mpit.Sample) {
	for i := range s.Failed {
		if h := r.index()[s.Failed[i].Handle]; h != nil {
			h.failed = true
			r.dropped[mapping.ReasonReadFailed]++
		}
	}
}

func (r *Rank) unmarkFailed(s *mpit.Sample) {
	for i := range s.Failed {
		if h := r.index()[s.Failed[i].Handle]; h != nil {
			h.failed = false
		}
	}
}

func (r *Rank) clear() {
	for _, v := range r.order {
		for _, c := range v.list {
			c.sum, c.known, c.want = 0, 0, 0
			if c.timer != nil && c.timer.estimate != nil {
				c.timer.estimate.sum, c.timer.estimate.known = 0, false
			}
		}
	}
}

// publish turns cells into the values of series.
func (r *Rank) publish(s *mpit.Sample) {
	for _, v := range r.order {
		for _, c := range v.list {
			switch v.Mode {
			case mapping.ModeCount:
				c.settle(r, s.Values)
			case mapping.ModeState:
				c.publishState(r)
			default:
				c.publishGauge(r)
			}
		}
	}
	if closing := r.closing(s); closing {
		for _, v := range r.order {
			if v.Exact || v.Metric == nil || v.Metric.Kind != mapping.KindHistogram {
				continue
			}
			for _, c := range v.list {
				c.observe()
			}
		}
	}
}

// closing says whether the interval ends with this sample. The rank's own clock decides, so that it doesn't matter how
// many scrapers there are, nor how late a scrape is served.
func (r *Rank) closing(s *mpit.Sample) bool {
	if r.hasClosed && s.Status != mpit.SampleFinal && s.Monotonic >= r.closed && s.Monotonic-r.closed < r.mapper.basis.Interval {
		return false
	}
	r.closed, r.hasClosed = s.Monotonic, true
	return true
}

// Structure is a number that changes when the set of series does.
func (r *Rank) Structure() uint64 { return r.structure }

// Series is all series of the rank, by variable and object name. The slice belongs to the Rank; it is good until the
// next Update.
func (r *Rank) Series() []*mapping.Series { return r.series }

// Dropped counts what has been left out since NewRank, by reason. The map is the caller's.
func (r *Rank) Dropped() map[mapping.Reason]uint64 {
	d := maps.Clone(r.dropped)
	add := func(reason mapping.Reason, n uint64) {
		if n > 0 {
			d[reason] += n
		}
	}
	if r.layout != nil {
		add(mapping.ReasonObjectsOverBound, r.layout.ObjectsOverflow)
		add(mapping.ReasonHandlesOverBound, r.layout.HandlesOverflow)
	}
	if r.remains != nil {
		add(mapping.ReasonRemainsLost, r.remains.Lost)
	}
	return d
}

// Requests are the variables by their Variable.ID that rules open, that are shown, and that nobody has requested yet.
// What the agent has been asked for is no request any more once a sample says what came of it.
func (r *Rank) Requests() []uint32 {
	var ids []uint32
	for id, v := range r.byID {
		if v.info.State == mpit.VariableOnRequest && v.Open && r.reads(v) {
			ids = append(ids, uint32(id))
		}
	}
	return ids
}

// reads says whether a variable's values are needed: it is shown, or counts the events of a timer that is.
func (r *Rank) reads(v *variable) bool {
	return v.wanted && (v.enter != refused || slices.ContainsFunc(r.timers[v], func(t *variable) bool { return t.Metric != nil && t.enter != refused }))
}

// Select says which variables need to be read: those in ids by their Variable.ID, and with def all others. changed is
// true when the agent has to be told, and false again at the next call. It is true at the first call of a Rank that
// is older than the exporter, and after a Reload: what the agent was told before is not known. The map is the
// caller's.
func (r *Rank) Select() (def bool, ids map[uint32]bool, changed bool) {
	ids = make(map[uint32]bool, len(r.byID))
	changed = r.reselect
	r.reselect = false
	for id, v := range r.byID {
		read := r.reads(v)
		ids[uint32(id)] = read
		changed = changed || read == v.unread
		v.unread = !read
	}
	return true, ids, changed
}
