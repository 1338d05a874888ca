package mapping

import (
	"cmp"
	"math"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// compile brings the plan up to date. Snapshots are never changed, so what is the same pointer is the same.
func (r *Rank) compile(s *mpit.Sample) {
	remains := s.Remains
	if s.Variables == r.variables && s.Layout == r.layout && remains == r.remains && !r.told {
		r.refit()
		return
	}
	if s.Variables != r.variables || r.told {
		r.catalogue(s.Variables)
	}
	if s.Layout != r.layout {
		r.objects = nil
	}
	r.variables, r.layout, r.remains, r.told = s.Variables, s.Layout, remains, false
	r.arrange()
	r.rebuilt, r.relist = true, true
}

// arrange makes handles and cells follow the layout and the remains.
func (r *Rank) arrange() {
	r.generation++
	for _, v := range r.order {
		for _, c := range v.list {
			if c.rare != nil {
				c.rare.fixed, c.rare.fixedKnown = 0, false
			}
			if c.timer != nil {
				c.timer.companion = nil
			}
			if d := c.exactly(); d != nil {
				d.expectParts()
			}
		}
	}
	r.follow()
	r.takeRemains()
	r.pairUp()
	r.takeRestored()
	r.sweep()
	r.fit()
	r.slabs = slabs{}
}

// follow takes the handles of the layout over, renames and retires.
func (r *Rank) follow() {
	handles := r.layout.Handles
	objects, order := arranged(r.layout)
	nameOf := func(v *variable, i int32) string {
		if v.info.Bind == mpit.BindNone {
			return ""
		}
		if o := objects.of[i]; o > 0 {
			return objects.names[o-1]
		}
		return Unnamed
	}
	type place struct {
		v    *variable
		name string
	}
	shared := map[place]int{} // of variables that are never merged
	if slices.ContainsFunc(r.byID, func(v *variable) bool { return v.separate }) {
		for i := range handles {
			if v := r.variable(handles[i].Variable); v != nil && v.separate {
				shared[place{v, v.shown(nameOf(v, int32(i)))}]++
			}
		}
	}
	old := r.index()
	r.slabs.expect(max(0, len(handles)-len(old)))
	for _, v := range r.order {
		v.next = 0
	}
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
			r.retire(h)
			h = nil
		}
		if h == nil {
			h = r.newHandle(v, lh, name)
		} else if v.mode == modeCount && (h.name != name || !slices.Equal(h.of.Origin, lh.Origin)) {
			r.rename(h, lh)
		}
		if h.seen != r.generation {
			there++
		}
		h.of, h.name, h.solo, h.offset, h.seen = lh, name, 0, int32(max(-1, min(lh.Offset, math.MaxInt32))), r.generation
		h.gaps = len(lh.Excluded) == lh.Count
		h.based = len(lh.Origin) == lh.Count || v.offset && len(lh.First) == lh.Count
		if v.separate && (v.lasts() || shared[place{v, v.shown(name)}] > 1) {
			h.solo = lh.Object
		}
		if !h.wrong {
			r.place(h)
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
			r.retire(h)
			delete(old, number)
		}
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

// arranged puts the handles of a layout into the order of their objects' names: so cells are made in the order that they are to
// have.
func arranged(l *mpit.Layout) (objectNames, []int32) {
	type object struct {
		id   uint32
		name string
	}
	objects := make([]object, len(l.Objects))
	for i := range l.Objects {
		objects[i] = object{l.Objects[i].ID, CleanName(l.Objects[i].Name)}
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

// place finds the cells of a handle: one, or one for each element.
func (r *Rank) place(h *handle) {
	h.placed = true
	n := int(h.n)
	if h.v.each == "" || h.v.numbered && n == 1 {
		n = 1
	}
	if h.several != nil {
		h.several.cells = slices.Grow(h.several.cells[:0], n)[:n]
	}
	switch v, cells := h.v, h.cells(); {
	case v.each == "" || v.numbered && h.n == 1:
		cells[0] = r.cell(v, h.element(-1))
	case v.nonzero:
		r.fill(h)
		r.sparse = append(r.sparse, h)
	default:
		for i := range cells {
			cells[i] = r.cell(v, h.element(i))
		}
	}
	created := unixNano(h.of.Created)
	for _, c := range h.cells() {
		if c != nil {
			c.since(created)
			c.born(h.of.Object)
			if d := c.exactly(); d != nil {
				d.handles = append(d.handles, h)
			}
		}
	}
}

// element is the cell of an element; -1 of all together.
func (h *handle) element(i int) cellID {
	return cellID{object: h.v.shown(h.name), number: h.solo, elem: int32(i)}
}

// fill finds the cells that elements have already, where those alone get one that are not 0.
func (r *Rank) fill(h *handle) {
	cells := h.cells()
	for i := range cells {
		cells[i] = nil
		if c := h.v.find(h.element(i)); c != nil {
			cells[i] = r.cell(h.v, c.id)
		}
	}
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
			c := r.cell(h.v, h.element(i))
			cells[i] = c
			r.changing(c)
			c.since(unixNano(h.of.Created))
			c.born(h.of.Object)
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
			r.fill(h)
		}
	}
	for v := range grown {
		v.sort()
	}
	r.fit()
	r.relist = true
}

// moved says whether an element is not 0, or has counted anything.
func (h *handle) moved(i int, w uint64) bool {
	n := h.v.number
	if h.v.mode != modeCount {
		return n.float(w) != 0
	}
	return h.elems()[i].wraps > 0 || n.gained(w, h.base(i), h.excludedOf(i)) > 0
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
	if v.label == "" {
		return ""
	}
	return name
}

// lasts says whether what freed objects leave stays.
func (s *spec) lasts() bool { return s.mode == modeCount || s.mode == modeWatermark }

func (r *Rank) newHandle(v *variable, lh *mpit.Handle, name string) *handle {
	h := r.slabs.handle()
	h.of, h.v, h.name, h.n = lh, v, name, int32(lh.Count)
	if h.n > 1 && !v.exact { // a distribution's buckets go their own way
		h.several = &several{}
	}
	if r.handles != nil {
		r.handles[lh.ID] = h
	}
	if v.exact && !v.hasElements(lh.Count) {
		h.wrong = true
		r.dropped[ReasonDistribution]++
	}
	if v.mode != modeCount {
		return h
	}
	if h.several != nil {
		h.several.elems = make([]element, h.n)
	}
	elems := h.elems()
	for i := range elems {
		e := &elems[i]
		switch {
		case len(lh.Origin) == lh.Count:
			e.last = lh.Origin[i]
		case len(lh.First) == lh.Count:
			e.last = lh.First[i]
		case v.offset && v.number == floating:
			e.last = math.Float64bits(math.Inf(-1))
		}
		if v.number != floating {
			e.quarter = v.number.quarter(e.last, v.bits)
		}
	}
	if r.restored != nil {
		r.restored.handle(h, lh.Origin)
	}
	return h
}

// retire keeps what the exporter knows of a handle that is no more, and the agent's remains don't.
func (r *Rank) retire(h *handle) {
	relative, elems := h.v.relative(h.based), h.elems()
	for i := range elems {
		if e := &elems[i]; e.wraps > 0 && h.placed {
			if !relative {
				r.keepWraps(h.v, h.name, i, float64(e.wraps)*h.v.span())
			}
			e.wraps = 0
		}
	}
}

// relative says whether the remains of a handle are right whatever has wrapped: the agent takes differences of 64 bits. With based
// they do not begin at zero.
func (v *variable) relative(based bool) bool { return v.bits == 64 && (based || v.offset) }

// maxWraps is of how many elements a variable remembers what they wrapped each; of more only what they did together.
const maxWraps = 4096

// keepWraps adds the wraps of a handle's element to what stays of its object. They are remembered for each object and element,
// however these are merged: other rules may show them otherwise.
func (r *Rank) keepWraps(v *variable, object string, elem int, amount float64) {
	key := wrapped{object, elem}
	p := v.keep()
	if _, ok := p.wraps[key]; !ok && len(p.wraps) >= maxWraps {
		key.elem = -1
	}
	p.wrap(key, amount)
	id := cellID{object: v.shown(object), elem: -1}
	if v.each != "" {
		id.elem = int32(elem)
	}
	r.cell(v, id).rarely().gone += amount
	r.dirty = true
}

// wrap adds to what an object's element has wrapped.
func (p *past) wrap(key wrapped, amount float64) {
	if p.wraps == nil {
		p.wraps = map[wrapped]float64{}
	}
	p.wraps[key] += amount
}

// rename ends the contribution to the old name with the values at the rename, and begins the one to the new name.
func (r *Rank) rename(h *handle, lh *mpit.Handle) {
	if len(lh.Origin) == int(h.n) {
		elems := h.elems()
		for i := range elems {
			e := &elems[i]
			// A value that wrapped before the rename did so under the old name. With a pause in between, which of what it
			// gained was excluded is known to the agent alone: then it is the sum with the remains that tells.
			if !r.pcontrol && e.ok && h.v.number != floating && h.v.number.less(lh.Origin[i], e.last) &&
				h.v.number.quarter(e.last, h.v.bits) == 3 && h.v.number.quarter(lh.Origin[i], h.v.bits) == 0 {
				e.wraps++
			}
			e.last, e.excluded, e.earlier = lh.Origin[i], 0, false
			if h.v.number != floating {
				e.quarter = h.v.number.quarter(e.last, h.v.bits)
			}
		}
	}
	r.retire(h)
	r.dirty = true // what the blob has of the handle was the old name's
}
