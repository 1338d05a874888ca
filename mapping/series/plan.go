package series

import (
	"cmp"
	"math"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// compile brings the plan up to date. Snapshots are never changed, so what is the same pointer is the same.
func (r *Rank) compile(s *mpit.Sample) {
	if s.Variables == r.variables && s.Layout == r.layout && s.Remains == r.remains && !r.told && r.reloading == nil {
		return
	}
	if r.reloading != nil {
		r.reload()
	}
	if s.Variables != r.variables || r.told {
		r.catalogue(s.Variables)
	}
	if s.Layout != r.layout {
		r.objects = nil
	}
	r.variables, r.layout, r.remains, r.told = s.Variables, s.Layout, s.Remains, false
	r.arrange()
	r.relist = true
}

// arrange makes handles and cells follow the layout and the remains.
func (r *Rank) arrange() {
	r.generation++
	for _, v := range r.order {
		v.next = 0
		for _, c := range v.list {
			if v.info.Class != highRatio { // which no remains know
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
	r.follow()
	r.takeRemains()
	r.pairUp()
	r.sweep()
	r.slabs = slabs{}
}

// follow takes the handles of the layout over, and renames.
func (r *Rank) follow() {
	handles := r.layout.Handles
	objects, order := arranged(r.layout)
	if r.tight() {
		r.byRight(order)
	}
	nameOf := func(v *variable, i int32) string {
		if v.info.Bind == mpit.BindNone {
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
	if slices.ContainsFunc(r.byID, func(v *variable) bool { return v.Separate }) {
		for i := range handles {
			if v := r.variable(handles[i].Variable); v != nil && v.Separate {
				shared[place{v, v.shown(nameOf(v, int32(i)))}]++
			}
		}
	}
	old := r.index()
	r.slabs.expect(max(0, len(handles)-len(old)))
	r.plan, r.sparse = slices.Grow(r.plan[:0], len(handles)), r.sparse[:0]
	there := 0
	for _, i := range order {
		lh := &handles[i]
		v := r.variable(lh.Variable)
		if v == nil || lh.Count <= 0 || lh.Count > math.MaxInt32 {
			continue
		}
		name := nameOf(v, i)
		h := old[lh.ID]
		if h != nil && (h.v != v || int(h.n) != lh.Count) {
			h = nil
		}
		if h == nil {
			h = r.newHandle(v, lh, name)
		} else if v.Mode == mapping.ModeCount && (h.name != name || !slices.Equal(h.of.Before().Origin, lh.Before().Origin)) {
			h.rename(lh)
			if v.Separate {
				r.restart(v, cellID{object: v.shown(name), number: lh.Object})
			}
		}
		if h.seen != r.generation {
			there++
		}
		h.of, h.name, h.solo, h.offset, h.seen = lh, name, 0, int32(max(-1, min(lh.Offset, math.MaxInt32))), r.generation
		if v.Separate && (v.Lasts() || shared[place{v, v.shown(name)}] > 1) {
			h.solo = lh.Object
		}
		if !h.wrong {
			r.assign(h)
		}
		if h.offset < 0 && !v.asked {
			v.asked, r.reselect = true, true // an earlier exporter, or other rules, told the agent to leave it out
		}
		r.plan = append(r.plan, h)
	}
	if there == len(old) {
		return
	}
	for number, h := range old {
		if h.seen != r.generation {
			delete(old, number)
		}
	}
}

// restart lets the series of an object that was renamed begin at zero where they are called as before: what they had
// is in those of its name.
func (r *Rank) restart(v *variable, id cellID) {
	for _, c := range v.list {
		if id.elem = c.id.elem; c.id != id {
			continue
		}
		c.count, c.anew, c.created = mapping.Count{}, true, r.now
		if c.timer != nil {
			*c.timer = timer{}
			c.timer.begin(v)
			c.timer.fromZero()
		}
		c.setCreated()
	}
}

// index is the handles of the plan by their number: none, of a plan that is empty. The first plan needs no index.
func (r *Rank) index() map[uint32]*handle {
	if r.handles == nil && len(r.plan) > 0 {
		r.handles = make(map[uint32]*handle, len(r.plan))
		for _, h := range r.plan {
			r.handles[h.of.ID] = h
		}
	}
	return r.handles
}

// objectNames is what the objects of a layout are called.
type objectNames struct {
	names []string // sorted
	of    []int32  // of each handle of the layout, the place of its object's name + 1; 0 none
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
func (r *Rank) assign(h *handle) {
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
		r.fill(h, v, h.cells())
		if v.Nonzero && !v.Merged(int(h.n)) {
			r.sparse = append(r.sparse, h)
		}
		for _, c := range h.cells() {
			if c != nil && v.Exact {
				c.timer.exact.handles = append(c.timer.exact.handles, h)
			}
		}
	}
	h.timers = nil
	if len(r.timers[v]) > 0 {
		r.follows(h)
	}
}

// follows finds the cells of the timers that a handle counts the events of.
func (r *Rank) follows(h *handle) {
	h.timers = nil
	for _, t := range r.timers[h.v] {
		if t.Metric == nil || t.Metric.Kind != mapping.KindHistogram {
			continue
		}
		n := int(h.n)
		if t.Merged(n) {
			n = 1
		}
		cells := make([]*cell, n)
		r.fill(h, t, cells)
		if h.timers == nil {
			h.timers = &timersOf{}
		}
		*h.timers = append(*h.timers, cells)
	}
}

// fill finds cells of a variable for a handle: one, or one for each element. Where only elements that are not 0 get
// one, it makes none.
func (r *Rank) fill(h *handle, v *variable, cells []*cell) {
	for i := range cells {
		id := h.element(v, i)
		if v.Merged(int(h.n)) {
			id.elem = -1
		}
		c := (*cell)(nil)
		if v.Nonzero && id.elem >= 0 {
			if c, _ = r.lookup(v, id); c != nil {
				c.seen = r.generation
			}
		} else {
			c = r.cell(v, id)
		}
		if cells[i] = c; c != nil && v == h.v {
			c.since(h.began(i))
		}
	}
}

// began is when an element began to count, in Unix nanoseconds. One that had no series when it was read last, because
// it was 0, lacks nothing of what has come since its variable counts.
func (h *handle) began(i int) int64 {
	at := unixNano(h.of.Created)
	if elems := h.elems(); h.v.Nonzero && len(elems) > 0 && elems[i].ok && h.amount(i) == 0 {
		return max(at, h.v.since)
	}
	return at
}

// element is the cell of an element in a variable: the handle's own, or a timer's.
func (h *handle) element(v *variable, i int) cellID {
	return cellID{object: v.shown(h.name), number: h.solo, elem: int32(i)}
}

// reveal makes cells for elements that are not 0 any more, of variables that have no others.
func (r *Rank) reveal(values []uint64) {
	var grown map[*variable]bool
	for _, h := range r.sparse {
		words, _ := h.words(values)
		cells := h.cells()
		for i, w := range words {
			if cells[i] != nil || !h.moved(i, w) {
				continue
			}
			c := r.cell(h.v, h.element(h.v, i))
			if c == nil {
				continue
			}
			cells[i] = c
			c.since(h.began(i))
			if grown == nil {
				grown = map[*variable]bool{}
			}
			grown[h.v] = true
		}
	}
	if grown == nil {
		return
	}
	for _, h := range r.sparse { // other objects of the same name
		if grown[h.v] {
			r.fill(h, h.v, h.cells())
		}
	}
	for _, h := range r.plan {
		if slices.ContainsFunc(r.timers[h.v], func(t *variable) bool { return grown[t] }) {
			r.follows(h)
		}
	}
	for v := range grown {
		v.sort()
	}
	r.slabs, r.relist = slabs{}, true
}

// moved says whether an element is not 0, or has counted anything.
func (h *handle) moved(i int, w uint64) bool {
	if h.v.Mode != mapping.ModeCount {
		return h.v.Number.Float(w) != 0
	}
	e := &h.elems()[i]
	return e.wraps > 0 || h.v.amountOf(h.of, i, w, 0) > 0
}

// variable is the one with that number, if it is to be read and has been found out about.
func (r *Rank) variable(id uint32) *variable {
	if uint64(id) >= uint64(len(r.byID)) || !r.byID[id].wanted || r.byID[id].held {
		return nil
	}
	return r.byID[id]
}

// shown is how an object is called in the variable's cells.
func (v *variable) shown(name string) string {
	if v.Label == "" {
		return ""
	}
	return name
}
