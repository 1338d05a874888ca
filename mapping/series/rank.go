package series

import (
	"maps"
	"slices"
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
	r.dropped, r.room.limit = map[mapping.Reason]uint64{}, -1
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
	r.fill(s)
	if r.closing(s) {
		r.observe(s.Status == mpit.SampleFinal)
	}
	if r.relist {
		r.list()
	}
	r.room.giveBack()
}

// compile brings the plan up to date. Snapshots are never changed, so what is the same pointer is the same.
func (r *Rank) compile(s *mpit.Sample) {
	changed := r.catalogue.Update(s.Variables)
	if !changed && s.Layout == r.layout && s.Remains == r.remains {
		if r.appearing(s.Values) {
			r.reveal(s.Values)
		}
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
	r.arrange(s.Values)
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
	list := make([]*mapping.Series, 0, max(len(r.series), len(r.reading))) // who holds the old one may still read it
	for _, v := range r.all {
		for _, c := range v.list {
			if c.series != nil {
				list = append(list, c.series)
			}
			if c.state == nil {
				continue
			}
			list = append(list, c.state.series...)
			if c.state.outside != nil {
				list = append(list, c.state.outside)
			}
		}
	}
	if !slices.Equal(list, r.series) {
		r.series = slices.Clip(list)
		r.structure++
	}
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

// SetVariableLimit bounds, in the same way, the weight of the series of each variable by itself; below zero: no limit.
func (r *Rank) SetVariableLimit(weight int) { r.room.limit = weight }

// Weight is how many series the rank has on the page for itself (RankKeep), as Prometheus counts them: a histogram is
// as many as it has lines. Room that is kept for a value outside of a STATE's enumeration counts as well.
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
// true when the agent has to be told, and false again at the next call. It is true at the first call of a Rank that is
// older than the exporter, and after a Reload: what the agent was told before is not known. The map is the caller's.
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
