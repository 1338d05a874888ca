package series

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// plan is where the values of a rank's handles go. It is made anew whenever the catalogue, the objects or the remains
// of freed ones change, and keeps what goes on.
type plan struct {
	variableSet
	room    room
	layout  *mpit.Layout
	remains *mpit.Remains

	handles    map[uint32]*handle // by their number, once index needs it
	reading    []*handle          // those of the layout
	sparse     []*handle          // of reading, those of variables that have a cell only once they are not 0
	companions []companion        // of reading, those that count the events of timers
	pairs      []pair
	slabs      slabs
	start      timersStart

	generation uint32                    // of the plan, to find what is no longer there
	at         int64                     // of the sample, in Unix nanoseconds
	dropped    map[mapping.Reason]uint64 // of values, handles, objects and elements
	relist     bool                      // the set of series may have changed
	reselect   bool                      // what the agent has been told to read is not what it should, or not known
}

// renew makes the plan's variables those of the catalogue. again says that those are asked again that found no room.
func (p *plan) renew(c *variables.Catalogue, again bool) {
	p.follow(c, again)
	p.room.used, p.room.reserved = 0, 0
	for _, v := range p.all {
		if v.Metric != nil {
			p.room.used += len(v.list) * v.charge()
			p.room.reserved += v.reserve()
		}
	}
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
	p.pairUp()
	p.sweep()
	p.slabs = slabs{}
	p.relist = true
}

// forget takes out what a plan brings to a cell anew: what freed objects have counted, and what is counted where.
func (c *cell) forget() {
	if !c.v.of.IsRatio() { // which no remains know
		c.fixed, c.fixedKnown = 0, false
	}
	switch {
	case c.timer == nil:
	case c.timer.exact != nil:
		c.timer.exact.forget()
	default:
		c.timer.estimate.fixed, c.timer.estimate.fixedKnown = 0, false
	}
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
	p.assignZeros()
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

// group is an object of a layout with its handles.
type group struct {
	id, age uint32 // objects get rising numbers as the program makes them; a predefined one's age is 0
	name    string
	handles []int32 // places in the layout
}

// groups is the objects of the layout in the order in which they have a right to room: predefined ones first, then by
// age. Handles of no object are a group, too.
func (p *plan) groups() []group {
	groups := make([]group, 1, len(p.layout.Objects)+1)
	groups[0].name = mapping.Unnamed
	for i := range p.layout.Objects {
		o := &p.layout.Objects[i]
		g := group{id: o.ID, age: o.ID, name: mapping.CleanName(o.Name)}
		if o.Predefined {
			g.age = 0
		}
		groups = append(groups, g)
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(a.age, b.age) })
	at := make(map[uint32]int, len(groups))
	for i := range groups {
		at[groups[i].id] = i
	}
	for i := range p.layout.Handles {
		if of := &p.layout.Handles[i]; p.variable(of.Variable) != nil && of.Count > 0 && of.Count <= math.MaxInt32 {
			g := &groups[at[of.Object]]
			g.handles = append(g.handles, int32(i))
		}
	}
	return groups
}

// inOrder goes through the handles, each with the name of its object.
func (p *plan) inOrder(groups []group) iter.Seq2[string, *mpit.Handle] {
	return func(yield func(string, *mpit.Handle) bool) {
		for _, g := range groups {
			for _, i := range g.handles {
				if !yield(g.name, &p.layout.Handles[i]) {
					return
				}
			}
		}
	}
}

// admitNew lets variables in or leaves them out that are new in the layout, those of the highest verbosity last.
func (p *plan) admitNew() {
	var fresh []*variable
	for i := range p.layout.Handles {
		v := p.variable(p.layout.Handles[i].Variable)
		if v != nil && v.Metric != nil && v.enter == undecided {
			v.enter = asking
			fresh = append(fresh, v)
		}
	}
	slices.SortStableFunc(fresh, func(a, b *variable) int { return cmp.Compare(a.verbosity(), b.verbosity()) })
	for _, v := range fresh {
		p.room.admit(v)
	}
}

// shown is how an object is called in the variable's cells.
func (v *variable) shown(name string) string {
	if v.Label == "" {
		return ""
	}
	return name
}

// namesake is what a variable's handles share whose objects are called the same.
type namesake struct {
	v    *variable
	name string
}

// namesakes counts them, of variables that never merge objects.
func (p *plan) namesakes(groups []group) map[namesake]int {
	if !slices.ContainsFunc(p.byID, func(v *variable) bool { return v.Separate }) {
		return nil
	}
	counts := map[namesake]int{}
	for name, of := range p.inOrder(groups) {
		if v := p.byID[of.Variable]; v.Separate {
			counts[namesake{v, v.shown(name)}]++
		}
	}
	return counts
}

// assign finds the cells of a handle.
func (p *plan) assign(h *handle, values []uint64) {
	v := h.v
	words, _ := h.words(values)
	for i := range h.distinct(v) {
		h.join(i, p.cellOf(h, v, i, words, h.elems[i].cell))
	}
	if v.Nonzero && v.Metric != nil {
		p.sparse = append(p.sparse, h)
	}
	p.accompany(h, words)
}

// distinct is how many cells a variable has for the elements of a handle: one, where they are merged.
func (h *handle) distinct(v *variable) int {
	if v.Merged(len(h.elems)) {
		return min(1, len(h.elems))
	}
	return len(h.elems)
}

// join brings an element, or with the first all that are merged, to a cell.
func (h *handle) join(i int, c *cell) {
	elems := h.elems[i : i+1]
	if h.v.Merged(len(h.elems)) {
		elems = h.elems
	}
	for i := range elems {
		elems[i].cell = c
	}
	if c == nil {
		return
	}
	c.since(h.began(i))
	if h.v.Exact {
		c.timer.exact.handles = append(c.timer.exact.handles, h)
	}
}

// assignZeros finds cells for what is 0 where others, of the same name, have made one: an object, or a timer's events.
func (p *plan) assignZeros() {
	for _, h := range p.sparse {
		for i := range h.distinct(h.v) {
			if h.elems[i].cell == nil {
				c, _ := p.lookup(h.v, h.cellID(h.v, i))
				h.join(i, c)
			}
		}
	}
	for _, of := range p.companions {
		for i, c := range of.cells {
			if c == nil && of.timer.Nonzero {
				of.cells[i], _ = p.lookup(of.timer, of.h.cellID(of.timer, i))
			}
		}
	}
}

// cellOf finds the cell of an element of a handle, in its own variable or a timer's, or the one that merged elements
// share. had is the one of the last plan. Where only what is not 0 gets a cell, it makes no other.
func (p *plan) cellOf(h *handle, v *variable, i int, words []uint64, had *cell) *cell {
	if v.Metric == nil {
		return nil
	}
	id := h.cellID(v, i)
	if had != nil && !had.removed && had.id == id {
		had.seen = p.generation
		return had
	}
	c, at := p.lookup(v, id)
	if at < 0 || v.Nonzero && !h.appears(id.elem, words) {
		return c
	}
	return p.findRoom(v, id, at)
}

// cellID is that of the cell of an element in a variable: the handle's own, or a timer's.
func (h *handle) cellID(v *variable, i int) cellID {
	id := cellID{object: v.shown(h.name), number: h.solo, elem: int32(i)}
	if v.Merged(len(h.elems)) {
		id.elem = -1
	}
	return id
}

// appears says whether an element is not 0 any more; below zero, any of them.
func (h *handle) appears(elem int32, words []uint64) bool {
	if elem >= 0 {
		return int(elem) < len(words) && h.moved(int(elem), words[elem])
	}
	for i, w := range words {
		if h.moved(i, w) {
			return true
		}
	}
	return false
}

// appearing says whether something that had no cell, because it was 0, is to have one now. A timer has one as soon as
// its companion has counted an event, too short to be measured.
func (p *plan) appearing(values []uint64) bool {
	appears := func(h *handle, v *variable, i int) bool {
		words, _ := h.words(values)
		id := h.cellID(v, i)
		if !h.appears(id.elem, words) {
			return false
		}
		_, at := p.lookup(v, id)
		return at >= 0
	}
	for _, h := range p.sparse {
		for i := range h.distinct(h.v) {
			if h.elems[i].cell == nil && appears(h, h.v, i) {
				return true
			}
		}
	}
	for _, of := range p.companions {
		for i, c := range of.cells {
			if c == nil && of.timer.Nonzero && appears(of.h, of.timer, i) {
				return true
			}
		}
	}
	return false
}

// reveal makes cells for what is not 0 any more. All else of the plan stays: a rank may have something new in each
// sample.
func (p *plan) reveal(values []uint64) {
	for _, h := range p.sparse {
		words, _ := h.words(values)
		for i := range h.distinct(h.v) {
			if h.elems[i].cell == nil {
				h.join(i, p.cellOf(h, h.v, i, words, nil))
			}
		}
	}
	for _, of := range p.companions {
		words, _ := of.h.words(values)
		for i, c := range of.cells {
			if c == nil {
				of.cells[i] = p.cellOf(of.h, of.timer, i, words, nil)
			}
		}
	}
	p.assignZeros()
	p.slabs, p.relist = slabs{}, true
}

// began is when an element began to count, in Unix nanoseconds. One that had no series when it was read last, because
// it was 0, lacks nothing of what has come since its variable counts.
func (h *handle) began(i int) int64 {
	at := mapping.UnixNano(h.of.Created)
	if h.v.Nonzero && h.v.Mode == mapping.ModeCount && h.idle(i) {
		return max(at, h.v.of.Since)
	}
	return at
}

// idle says whether an element has been read, and was 0; where elements are merged, whether all of them were.
func (h *handle) idle(i int) bool {
	from, to := i, i+1
	if h.v.Merged(len(h.elems)) {
		from, to = 0, len(h.elems)
	}
	for i := from; i < to; i++ {
		if !h.elems[i].ok || h.amount(i) != 0 {
			return false
		}
	}
	return true
}

// variable is the one with that number, if it is to be read.
func (p *plan) variable(id uint32) *variable {
	if uint64(id) >= uint64(len(p.byID)) || !p.byID[id].of.Wanted {
		return nil
	}
	return p.byID[id]
}

// cell is where values of that variable, object and element count: their own cell, or the one called other, marked as
// being in use. nil: there was no room for either.
func (p *plan) cell(v *variable, id cellID) *cell {
	c, at := p.lookup(v, id)
	if at >= 0 {
		return p.findRoom(v, id, at)
	}
	return c
}

// lookup is cell for what has been decided already. at is below zero then; else a new cell's place in the list.
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
			c.state.series = append(c.state.series, c.newSeries(&p.slabs, it.Name))
		}
		return c
	}
	c.series = c.newSeries(&p.slabs, "")
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
			p.room.used -= v.charge()
			if c == v.other() {
				v.overflow.cell = nil
			}
			return true
		})
		p.room.reserved += v.reserve() - reserved
	}
}

// stays says whether a cell is kept that nothing contributes to any more.
func (c *cell) stays() bool {
	switch {
	case c.id.number != 0 || !c.count.Known():
	case c.v.Mode == mapping.ModeCount && c.count.Total() > 0:
		c.lose()
		return true
	case c.v.Mode == mapping.ModeWatermark:
		c.fixed, c.fixedKnown = c.count.Total(), true
		return true
	}
	return false
}
