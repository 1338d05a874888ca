package series

import (
	"maps"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Rank is what the variables of one process become. NewRank makes one when the process connects; it goes on through
// later connections of the same process. It belongs to one goroutine.
type Rank struct {
	catalogue *variables.Catalogue
	plan

	series    []*mapping.Series
	structure uint64

	closed    time.Duration // when the last interval of timers closed
	hasClosed bool

	clock    time.Duration // of the last sample
	reloaded bool          // rules have changed since the last plan
	objects  []ObjectInfo  // of the layout; nil: not made yet
}

// NewRank makes the Rank of a process.
func NewRank(m *variables.Mapper, p variables.Process) *Rank {
	r := &Rank{catalogue: m.NewCatalogue(p)}
	r.dropped = map[mapping.Reason]uint64{}
	r.reselect = !p.Older.IsZero() // what an earlier exporter told the agent to leave out is not known
	return r
}

// Reload puts the rules of another Mapper into force, at a time of the exporter's clock. The next Update shows what
// they make of the variables, and Select says what the agent is to be told. A series whose meaning they change begins
// at zero; all others go on.
func (r *Rank) Reload(m *variables.Mapper, at time.Time) {
	r.catalogue.Reload(m, at)
	r.reloaded = true
}

// Infos describes all variables of the rank, also those that are not shown, in the agent's order.
func (r *Rank) Infos() []variables.Info { return r.catalogue.Infos() }

// Close gives the families of the rank back. The Rank must not be used any more, and its Series must not be shown. It
// may be called more than once.
func (r *Rank) Close() { r.catalogue.Close() }

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
	r.clock, r.at = s.Monotonic, s.Time.UnixNano()
	r.compile(s)
	r.markFailed(s)
	if len(r.sparse) > 0 {
		r.reveal(s.Values)
	}
	r.clear()
	in := &intake{values: s.Values, at: r.at, dropped: r.dropped}
	for _, h := range r.reading {
		h.read(in)
	}
	r.readPairs(s.Values)
	r.unmarkFailed(s)
	r.publish(s, in)
	if r.relist || in.relist {
		r.list()
	}
	r.room.giveBack()
}

// compile brings the plan up to date. Snapshots are never changed, so what is the same pointer is the same.
func (r *Rank) compile(s *mpit.Sample) {
	changed := r.catalogue.Update(s.Variables)
	if !changed && s.Layout == r.layout && s.Remains == r.remains {
		return
	}
	if changed {
		r.renew(r.catalogue, r.reloaded)
		r.reselect = r.reselect || r.reloaded
		r.reloaded = false
	}
	if s.Layout != r.layout {
		r.objects = nil
	}
	r.layout, r.remains = s.Layout, s.Remains
	r.arrange()
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
	for _, v := range r.all {
		for _, c := range v.list {
			c.sum, c.known, c.want = 0, 0, 0
			if c.timer != nil && c.timer.estimate != nil {
				c.timer.estimate.sum, c.timer.estimate.known = 0, false
			}
		}
	}
}

// publish turns cells into the values of series.
func (r *Rank) publish(s *mpit.Sample, in *intake) {
	for _, v := range r.all {
		for _, c := range v.list {
			switch v.Mode {
			case mapping.ModeCount:
				c.settle(in)
			case mapping.ModeState:
				c.publishState(in)
			default:
				c.publishGauge(in)
			}
		}
	}
	if closing := r.closing(s); closing {
		for _, v := range r.all {
			if v.Exact || v.Metric == nil || v.Metric.Kind != mapping.KindHistogram {
				continue
			}
			for _, c := range v.list {
				c.observe(s.Status == mpit.SampleFinal)
			}
		}
	}
}

// closing says whether the interval ends with this sample. The rank's own clock decides, so that it doesn't matter how
// many scrapers there are, nor how late a scrape is served.
func (r *Rank) closing(s *mpit.Sample) bool {
	if r.hasClosed && s.Status != mpit.SampleFinal && s.Monotonic >= r.closed &&
		s.Monotonic-r.closed < r.catalogue.Interval() {
		return false
	}
	r.closed, r.hasClosed = s.Monotonic, true
	return true
}

// list makes the list of series anew, and a new structure if it isn't the same.
func (r *Rank) list() {
	r.relist = false
	same, n := true, 0
	add := func(s *mapping.Series) {
		if same && (n >= len(r.series) || r.series[n] != s) {
			same = false
			// who holds the old slice may still read it
			r.series = append(make([]*mapping.Series, 0, max(len(r.series), len(r.reading))), r.series[:n]...)
		}
		if !same {
			r.series = append(r.series, s)
		}
		n++
	}
	for _, v := range r.all {
		for _, c := range v.list {
			if c.series != nil {
				add(c.series)
			}
			if c.state == nil {
				continue
			}
			for _, s := range c.state.series {
				add(s)
			}
			if c.state.outside != nil {
				add(c.state.outside)
			}
		}
	}
	if same && n == len(r.series) {
		return
	}
	r.series = r.series[:n:n]
	r.structure++
}

// Structure is a number that changes when the set of series does.
func (r *Rank) Structure() uint64 { return r.structure }

// Series is all series of the rank, by variable and object name. The slice belongs to the Rank; it is good until the
// next Update.
func (r *Rank) Series() []*mapping.Series { return r.series }

// SetRoom bounds the weight of the rank's series, from the next Update on: where there is no room left, what comes
// finds none, which is counted for Room's reason. What is there stays. An Update takes room for what comes, and may
// take more than Weight grows by: after it, the rank holds no more than Weight. nil: no limit, which is also what a
// new Rank has.
func (r *Rank) SetRoom(shared Room) { r.room.shared = shared }

// SetVariableLimit bounds, in the same way, the weight of the series of each variable by itself.
func (r *Rank) SetVariableLimit(weight int) {
	r.room.variable = newBound(weight, mapping.ReasonVariableOverLimit)
}

// Weight is how many series the rank has on the page for itself (RankKeep, RankBoth), as Prometheus counts them: a
// histogram is as many as it has lines. Room that is kept for a value outside of a STATE's enumeration counts as
// well.
func (r *Rank) Weight() int { return r.room.used }

// Dropped counts what has been left out since NewRank, by reason. The map is the caller's.
func (r *Rank) Dropped() map[mapping.Reason]uint64 {
	d := maps.Clone(r.dropped)
	r.catalogue.AddDropped(d)
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
		if v.of.Info.State == mpit.VariableOnRequest && v.Open && r.reads(v) {
			ids = append(ids, uint32(id))
		}
	}
	return ids
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
