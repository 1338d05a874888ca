package series

import (
	"cmp"
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
	variableSet
	room    room
	layout  *mpit.Layout
	remains *mpit.Remains

	handles map[uint32]*handle // by their number, once index needs it
	reading []*handle          // those of the layout, in the order of their objects' names
	sparse  []*handle          // of reading, those of variables that have a cell only once they are not 0
	pairs   []pair
	slabs   slabs
	start   timersStart

	generation uint32                    // of the plan, to find what is no longer there
	at         int64                     // of the sample, in Unix nanoseconds
	dropped    map[mapping.Reason]uint64 // of values, handles, objects and elements
	relist     bool                      // the set of series may have changed
	reselect   bool                      // what the agent has been told to read is not what it should, or not known
}

// renew makes the plan's variables those of the catalogue. again says that those are asked again that found no room.
func (p *plan) renew(c *variables.Catalogue, again bool) {
	if gone := p.variableSet.follow(c, again); len(gone) > 0 {
		maps.DeleteFunc(p.index(), func(_ uint32, h *handle) bool { return gone[h.v] })
	}
	p.room.used, p.room.reserved = 0, 0
	for _, v := range p.all {
		if v.Metric != nil {
			p.room.used += len(v.list) * v.charge()
			p.room.reserved += v.reserve()
		}
	}
}

// arrange makes handles and cells follow the layout and the remains.
func (p *plan) arrange() {
	p.generation++
	for _, v := range p.all {
		v.next = 0
		for _, c := range v.list {
			if !v.of.IsRatio() { // which no remains know
				c.fixed, c.fixedKnown = 0, false
			}
			if c.timer == nil {
				continue
			}
			if c.timer.exact != nil {
				c.timer.exact.forget()
			} else {
				c.timer.estimate.fixed, c.timer.estimate.fixedKnown = 0, false
			}
		}
	}
	p.findStart()
	p.follow()
	p.takeRemains()
	p.pairUp()
	p.sweep()
	p.slabs = slabs{}
	p.relist = true
}

// follow takes the handles of the layout over, and renames.
func (p *plan) follow() {
	handles := p.layout.Handles
	objects, order := arranged(p.layout)
	if p.tight() {
		p.byRight(order)
	}
	nameOf := func(v *variable, i int32) string {
		if v.of.Info.Bind == mpit.BindNone {
			return ""
		}
		if o := objects.of[i]; o > 0 {
			return objects.names[o-1]
		}
		return mapping.Unnamed
	}
	type place struct {
		v    *variable
		name string
	}
	shared := map[place]int{} // of variables that are never merged
	if slices.ContainsFunc(p.byID, func(v *variable) bool { return v.Separate }) {
		for i := range handles {
			if v := p.variable(handles[i].Variable); v != nil && v.Separate {
				shared[place{v, v.shown(nameOf(v, int32(i)))}]++
			}
		}
	}
	old := p.index()
	p.slabs.expect(max(0, len(handles)-len(old)))
	p.reading, p.sparse = slices.Grow(p.reading[:0], len(handles)), p.sparse[:0]
	there := 0
	for _, i := range order {
		lh := &handles[i]
		v := p.variable(lh.Variable)
		if v == nil || lh.Count <= 0 || lh.Count > math.MaxInt32 {
			continue
		}
		name := nameOf(v, i)
		h := old[lh.ID]
		if h != nil && (h.v != v || int(h.n) != lh.Count) {
			h = nil
		}
		if h == nil {
			h = p.newHandle(v, lh, name)
		} else if v.Mode == mapping.ModeCount && (h.name != name ||
			!slices.Equal(h.of.Before().Origin, lh.Before().Origin)) {
			h.rename(lh)
			if v.Separate {
				p.restart(v, cellID{object: v.shown(name), number: lh.Object})
			}
		}
		if h.seen != p.generation {
			there++
		}
		h.of, h.name, h.solo, h.offset, h.seen = lh, name, 0, int32(max(-1, min(lh.Offset, math.MaxInt32))),
			p.generation
		if v.Separate && (v.Lasts() || shared[place{v, v.shown(name)}] > 1) {
			h.solo = lh.Object
		}
		if !h.wrong {
			p.assign(h)
		}
		if h.offset < 0 && !v.asked {
			v.asked, p.reselect = true, true // an earlier exporter, or other rules, told the agent to leave it out
		}
		p.reading = append(p.reading, h)
	}
	if there == len(old) {
		return
	}
	for number, h := range old {
		if h.seen != p.generation {
			delete(old, number)
		}
	}
}

// restart lets the series of an object that was renamed begin at zero where they are called as before: what they had
// is in those of its name.
func (p *plan) restart(v *variable, id cellID) {
	for _, c := range v.list {
		if id.elem = c.id.elem; c.id != id {
			continue
		}
		c.count, c.anew, c.created = mapping.Count{}, true, p.at
		if c.timer != nil {
			*c.timer = timer{}
			c.timer.begin(v)
			c.timer.fromZero()
		}
		c.setCreated()
	}
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

// arranged puts the handles of a layout into the order of their objects' names: so cells are made in the order that
// they are to have.
func arranged(l *mpit.Layout) (objectNames, []int32) {
	type object struct {
		id   uint32
		name string
	}
	objects := make([]object, len(l.Objects))
	for i := range l.Objects {
		objects[i] = object{l.Objects[i].ID, mapping.CleanName(l.Objects[i].Name)}
	}
	slices.SortStableFunc(objects, func(a, b object) int { return cmp.Compare(a.name, b.name) })
	n := objectNames{names: make([]string, len(objects)), of: make([]int32, len(l.Handles))}
	places := make(map[uint32]int32, len(objects))
	for i, o := range objects {
		n.names[i], places[o.id] = o.name, int32(i+1)
	}
	// A counting sort: handles of one object stay in the layout's order, and those of none come first.
	start := make([]int32, len(objects)+2)
	for i := range l.Handles {
		n.of[i] = places[l.Handles[i].Object]
		start[n.of[i]+1]++
	}
	for i := 1; i < len(start); i++ {
		start[i] += start[i-1]
	}
	order := make([]int32, len(l.Handles))
	for i, o := range n.of {
		order[start[o]] = int32(i)
		start[o]++
	}
	return n, order
}

// assign finds the cells of a handle.
func (p *plan) assign(h *handle) {
	v := h.v
	if v.Metric != nil {
		h.placed = true
		if h.several != nil {
			n := int(h.n)
			if v.Merged(n) {
				n = 1
			}
			h.several.cells = slices.Grow(h.several.cells[:0], n)[:n]
		}
		p.fill(h, v, h.cells())
		for _, c := range h.cells() {
			if c != nil && v.Exact {
				c.timer.exact.handles = append(c.timer.exact.handles, h)
			}
		}
	}
	h.timers = nil
	if len(p.timers[v]) > 0 {
		p.follows(h)
	}
	if v.Nonzero && v.Metric != nil || slices.ContainsFunc(p.timers[v], func(t *variable) bool { return t.Nonzero }) {
		p.sparse = append(p.sparse, h)
	}
}

// follows finds the cells of the timers that a handle counts the events of.
func (p *plan) follows(h *handle) {
	h.timers = nil
	for _, t := range p.timers[h.v] {
		if !t.observes() {
			continue
		}
		n := int(h.n)
		if t.Merged(n) {
			n = 1
		}
		cells := make([]*cell, n)
		p.fill(h, t, cells)
		if h.timers == nil {
			h.timers = &timersOf{}
		}
		*h.timers = append(*h.timers, cells)
	}
}

// fill finds cells of a variable for a handle: one, or one for each element. Where only what is not 0 gets one, it
// makes none.
func (p *plan) fill(h *handle, v *variable, cells []*cell) {
	for i := range cells {
		c, id := (*cell)(nil), h.element(v, i)
		if v.Nonzero {
			if c, _ = p.lookup(v, id); c != nil {
				c.seen = p.generation
			}
		} else {
			c = p.cell(v, id)
		}
		if cells[i] = c; c != nil && v == h.v {
			c.since(h.began(i))
		}
	}
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
	elems := h.elems()
	if h.v.Merged(int(h.n)) {
		for i := range elems {
			if !elems[i].ok || h.amount(i) != 0 {
				return false
			}
		}
		return true
	}
	return elems[i].ok && h.amount(i) == 0
}

// element is the cell of an element in a variable: the handle's own, or a timer's.
func (h *handle) element(v *variable, i int) cellID {
	id := cellID{object: v.shown(h.name), number: h.solo, elem: int32(i)}
	if v.Merged(int(h.n)) {
		id.elem = -1
	}
	return id
}

// observes says whether the variable is a timer whose cells count the events of its companion.
func (v *variable) observes() bool { return v.Metric != nil && v.Metric.Kind == mapping.KindHistogram }

// reveal makes cells for what is not 0 any more, of variables that have no others. A timer has one as soon as its
// companion has counted an event, too short to be measured.
func (p *plan) reveal(values []uint64) {
	var grown map[*variable]bool
	for _, h := range p.sparse {
		words, _ := h.words(values)
		grown = p.revealOf(h, h.v, h.cells(), words, grown)
		if h.timers == nil {
			continue
		}
		k := 0
		for _, t := range p.timers[h.v] {
			if t.observes() {
				grown = p.revealOf(h, t, (*h.timers)[k], words, grown)
				k++
			}
		}
	}
	if grown == nil {
		return
	}
	for _, h := range p.sparse { // other objects of the same name
		if grown[h.v] {
			p.fill(h, h.v, h.cells())
		}
	}
	for _, h := range p.reading {
		if slices.ContainsFunc(p.timers[h.v], func(t *variable) bool { return grown[t] }) {
			p.follows(h)
		}
	}
	for v := range grown {
		v.sort()
	}
	p.slabs, p.relist = slabs{}, true
}

// revealOf makes cells of v for the elements of a handle that are not 0 any more, and notes in grown that it has.
func (p *plan) revealOf(h *handle, v *variable, cells []*cell, words []uint64, grown map[*variable]bool,
) map[*variable]bool {
	if !v.Nonzero || v.Metric == nil || len(cells) == 0 {
		return grown
	}
	for i, w := range words {
		at := min(i, len(cells)-1) // merged elements have one for all
		if cells[at] != nil || !h.moved(i, w) {
			continue
		}
		c := p.cell(v, h.element(v, i))
		if c == nil {
			continue
		}
		cells[at] = c
		if v == h.v {
			c.since(h.began(i))
		}
		if grown == nil {
			grown = map[*variable]bool{}
		}
		grown[v] = true
	}
	return grown
}

// moved says whether an element is not 0, or has counted anything.
func (h *handle) moved(i int, w uint64) bool {
	if h.v.Mode != mapping.ModeCount {
		return h.v.Number.Float(w) != 0
	}
	e := h.elems()[i]
	e.take(h.v.Spec, w, alike(h.base, h.of))
	return e.wraps > 0 || h.v.amountOf(h.of, i, w, e.wraps) > 0
}

// variable is the one with that number, if it is to be read.
func (p *plan) variable(id uint32) *variable {
	if uint64(id) >= uint64(len(p.byID)) || !p.byID[id].of.Wanted {
		return nil
	}
	return p.byID[id]
}

// shown is how an object is called in the variable's cells.
func (v *variable) shown(name string) string {
	if v.Label == "" {
		return ""
	}
	return name
}

// objectNames is what the objects of a layout are called.
type objectNames struct {
	names []string // sorted
	of    []int32  // of each handle of the layout, the place of its object's name + 1; 0 none
}

func (p *plan) newHandle(v *variable, lh *mpit.Handle, name string) *handle {
	h := p.slabs.handle()
	h.of, h.base, h.v, h.name, h.n = lh, lh, v, name, int32(lh.Count)
	if h.n > 1 && !v.Exact { // a distribution's buckets go their own way
		h.several = &several{}
	}
	if p.handles != nil {
		p.handles[lh.ID] = h
	}
	if v.Exact && !v.hasElements(lh.Count) {
		h.wrong = true
		p.dropped[mapping.ReasonDistribution]++
	}
	if v.Mode != mapping.ModeCount {
		return h
	}
	if h.several != nil {
		h.several.elems = make([]element, h.n)
	}
	h.begin()
	return h
}

// maxGone is how many series may stay of whose contributions not even remains are left.
const maxGone = 4096

// sweep takes out the cells that nothing contributes to any more, except for what has been counted there.
func (p *plan) sweep() {
	gone := 0
	for _, v := range p.all {
		v.overflow.sweep(p.generation)
		reserved, kept := v.reserve(), v.list[:0]
		for _, c := range v.list {
			keep := c.seen == p.generation
			if !keep && c.id.number == 0 && c.count.Known() {
				switch v.Mode {
				case mapping.ModeCount:
					if keep = c.count.Total() > 0; keep {
						c.lose()
					}
				case mapping.ModeWatermark:
					c.fixed, c.fixedKnown, keep = c.count.Total(), true, true
				}
				if keep {
					gone++
				}
				if keep && gone > maxGone {
					p.dropped[mapping.ReasonRemainsLost]++
					keep = false
				}
			}
			if keep {
				kept = append(kept, c)
				continue
			}
			delete(v.cells, c.id)
			p.room.used -= v.charge()
			if c == v.other() {
				v.overflow.cell = nil
			}
		}
		clear(v.list[len(kept):])
		v.list = kept
		p.room.reserved += v.reserve() - reserved
		v.sort()
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
