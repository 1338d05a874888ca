package series

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// plan is where the values of a rank's handles go. It is made anew whenever the catalogue, the objects or the remains
// of freed ones change, and keeps what goes on.
type plan struct {
	all     []*variable               // in the catalogue's order
	byID    []*variable               // by mpit.Variable.ID
	timers  map[*variable][]*variable // of companions, whose they are
	room    room
	layout  *mpit.Layout
	remains *mpit.Remains

	handles    map[uint32]*handle // by their number, once index needs it
	reading    []*handle          // those of the layout
	sparse     []*handle          // of reading, those of variables that have a cell only once they are not 0
	companions []companion        // of reading, those that count the events of timers
	slabs      slabs
	start      timersStart

	generation uint32                    // of the plan, to find what is no longer there
	at         int64                     // of the sample, in Unix nanoseconds
	dropped    map[mapping.Reason]uint64 // of values, handles, objects and elements
	relist     bool                      // the set of series may have changed
	reselect   bool                      // what the agent has been told to read is not what it should, or not known
}

// slabs make what a plan consists of. They are thrown away when the plan stands.
type slabs struct {
	seriesSlabs
	handles slab[handle]
	elems   slab[element]
	cells   slab[cell]
}

// expect says how many handles are to come, most of which have an element, a cell, a series and a label.
func (s *slabs) expect(n int) {
	s.handles.expected, s.elems.expected, s.cells.expected, s.series.expected, s.labels.expected = n, n, n, n, n
}

// arrange makes handles and cells follow the layout and the remains. The values are those of the sample that is to be
// taken in: they say what is not 0 any more.
func (p *plan) arrange(values []uint64) {
	p.generation++
	for _, v := range p.all {
		for _, c := range v.list {
			c.forget()
		}
	}
	p.findStart()
	p.place(values)
	p.takeRemains()
	p.assignZeros() // remains make cells, too
	p.sweep()
	p.slabs = slabs{}
	p.relist = true
}

// place makes the handles those of the layout, and finds their cells.
func (p *plan) place(values []uint64) {
	old, groups := p.index(), p.groups()
	p.admitNew()
	alike := p.namesakes(groups)
	p.slabs.expect(len(p.layout.Handles) - len(old))
	p.reading = slices.Grow(p.reading[:0], len(p.layout.Handles))
	p.sparse, p.companions = p.sparse[:0], nil
	for name, of := range p.inOrder(groups) {
		v := p.byID[of.Variable]
		if v.of.Info.Bind == mpit.BindNone {
			name = ""
		}
		h := p.handle(old[of.ID], v, of, name)
		if v.Separate && (v.Lasts() || alike[namesake{v, v.shown(name)}] > 1) {
			h.solo = of.Object
		}
		p.assign(h, values)
		if of.Offset < 0 && !v.asked {
			v.asked, p.reselect = true, true // an earlier exporter, or other rules, told the agent to leave it out
		}
		p.reading = append(p.reading, h)
	}
	for _, v := range p.all {
		v.reread = false
	}
	if len(p.handles) > len(p.reading) {
		maps.DeleteFunc(p.handles, func(_ uint32, h *handle) bool { return h.seen != p.generation })
	}
}

// handle is old, the one that stood for a handle in the last plan, or a new one, if there was none or its values are
// to be read differently.
func (p *plan) handle(old *handle, v *variable, of *mpit.Handle, name string) *handle {
	h := old
	switch {
	case h == nil || h.v != v || v.reread || h.of.Count != of.Count:
		h = p.newHandle(v, of)
	case v.Mode == mapping.ModeCount && (h.name != name || !slices.Equal(h.of.Before().Origin, of.Before().Origin)):
		h.rename(of)
		if v.Separate { // what its series had is in those of its name
			v.restart(cellID{object: v.shown(name), number: of.Object}, p.at)
		}
	}
	h.of, h.name, h.solo, h.seen = of, name, 0, p.generation
	return h
}

func (p *plan) newHandle(v *variable, lh *mpit.Handle) *handle {
	h := p.slabs.handles.one()
	h.of, h.base, h.v = lh, lh, v
	if p.handles != nil {
		p.handles[lh.ID] = h
	}
	switch {
	case !v.Exact:
		h.elems = p.slabs.elems.take(lh.Count)
	case v.hasElements(lh.Count):
		h.elems = p.slabs.elems.take(1) // its buckets go their own way
	default:
		p.dropped[mapping.ReasonDistribution]++
	}
	if v.Mode == mapping.ModeCount {
		h.begin()
	}
	return h
}

// index is the handles of the plan by their number: none, of a plan that is empty. The first plan needs no index.
func (p *plan) index() map[uint32]*handle {
	if p.handles == nil && len(p.reading) > 0 {
		p.handles = make(map[uint32]*handle, len(p.reading))
		for _, h := range p.reading {
			p.handles[h.of.ID] = h
		}
	}
	return p.handles
}

// variable is the one with that number, if it is to be read.
func (p *plan) variable(id uint32) *variable {
	if uint64(id) >= uint64(len(p.byID)) || !p.byID[id].of.Wanted {
		return nil
	}
	return p.byID[id]
}

// lookup is where values of that variable, object and element count, as far as that has been decided: their own cell,
// or the one called other, marked as being in use; nil: there was no room for either. at is below zero then; else it is
// not decided, and at is a new cell's place in the list.
func (p *plan) lookup(v *variable, id cellID) (_ *cell, at int) {
	c, at := v.find(id)
	if c == nil && !v.overflow.find(id, p.generation) {
		return nil, at
	}
	if c == nil {
		c = v.overflow.cell
	}
	if c != nil {
		c.seen = p.generation
	}
	return c, -1
}

// newCell makes a cell with its series, at a place in the list.
func (p *plan) newCell(v *variable, id cellID, at int) *cell {
	c := p.slabs.cells.one()
	c.v, c.id, c.seen = v, id, p.generation
	if v.list == nil && v.Label != "" {
		v.list = make([]*cell, 0, min(len(p.layout.Objects), maxSlab))
	}
	v.list = slices.Insert(v.list, at, c) // limits keep it short
	if v.Mode == mapping.ModeState {
		c.state = &stateCell{}
		for _, it := range v.Items {
			c.state.series = append(c.state.series, c.newSeries(&p.slabs.seriesSlabs, it.Name))
		}
		return c
	}
	c.series = c.newSeries(&p.slabs.seriesSlabs, "")
	c.series.Lasting = v.Lasts()
	if v.Metric.Kind == mapping.KindHistogram {
		c.timer = newTimer(v)
		c.series.Histogram = &c.timer.hist
	}
	return c
}

// maxGone is how many series may stay of whose contributions not even remains are left.
const maxGone = 4096

// sweep takes out the cells that nothing contributes to any more, except for what has been counted there.
func (p *plan) sweep() {
	gone := 0
	for _, v := range p.all {
		v.overflow.sweep(p.generation)
		reserved := v.reserve()
		v.list = slices.DeleteFunc(v.list, func(c *cell) bool {
			if c.seen == p.generation {
				return false
			}
			if c.stays() {
				if gone++; gone <= maxGone {
					return false
				}
				p.dropped[mapping.ReasonRemainsLost]++
			}
			c.removed = true
			p.room.used -= v.lines()
			if c == v.other() {
				v.overflow.cell = nil
			}
			return true
		})
		p.room.reserved += v.reserve() - reserved
	}
}

// findStart takes in the layout's handles of such TIMERs. Those of objects begin with their object, and those that are
// opened on request may have counted for somebody else.
func (p *plan) findStart() {
	sooner := func(at time.Time) {
		if p.start.since.IsZero() || at.Before(p.start.since) {
			p.start.since = at
		}
	}
	for i := range p.layout.Objects {
		sooner(p.layout.Objects[i].Created)
	}
	for i := range p.layout.Handles {
		h := &p.layout.Handles[i]
		sooner(h.Created)
		if uint64(h.Variable) >= uint64(len(p.byID)) {
			continue
		}
		v := p.byID[h.Variable]
		v.start = nil
		if !v.Offset || v.Real != mpit.ClassTimer || v.Number != mapping.Floating || v.of.Info.OnRequest ||
			v.of.Info.Bind != mpit.BindNone {
			continue
		}
		v.start = &p.start
		for _, first := range h.Before().First {
			p.start.saw(math.Float64frombits(first))
		}
	}
}

// renew makes the plan's variables those of the catalogue. With again, a variable that found no room is tried again.
func (p *plan) renew(c *variables.Catalogue, again bool) {
	known := make(map[*variables.Variable]*variable, len(c.All()))
	for _, v := range p.all {
		known[v.of] = v
	}
	fresh := make([]variable, 0, max(0, len(c.All())-len(p.all)))
	p.all = make([]*variable, 0, len(c.All()))
	for _, of := range c.All() {
		v := known[of]
		if v == nil {
			fresh = append(fresh, variable{of: of})
			v = &fresh[len(fresh)-1]
			known[of] = v
		}
		v.follow()
		if again && v.enter == refused {
			v.empty() // there may be room now
		}
		p.all = append(p.all, v)
	}
	p.timers = map[*variable][]*variable{}
	p.room.used, p.room.reserved = 0, 0
	for _, v := range p.all {
		if with := known[v.of.With]; with != nil {
			p.timers[with] = append(p.timers[with], v)
		}
		if v.Metric != nil {
			p.room.used += len(v.list) * v.lines()
			p.room.reserved += v.reserve()
		}
	}
	p.byID = p.byID[:0]
	for _, of := range c.ByID() {
		p.byID = append(p.byID, known[of])
	}
}

// counts says whether the variable counts the events of a timer that is shown.
func (p *plan) counts(v *variable) bool {
	for _, t := range p.timers[v] {
		if t.Metric != nil && t.enter != refused {
			return true
		}
	}
	return false
}

// reads says whether a variable's values are needed: it is shown, or counts the events of a timer that is.
func (p *plan) reads(v *variable) bool { return v.of.Wanted && (v.enter != refused || p.counts(v)) }
