package series

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

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

// gap is an element of a handle that has no cell in a variable, its own or a timer's, because it was 0.
type gap struct {
	h  *handle
	v  *variable
	i  int
	of *companion // nil: in its own
}

func (g gap) fill(c *cell) {
	if g.of == nil {
		g.h.join(g.i, c)
		return
	}
	g.of.cells[g.i] = c
}

// gaps goes through those that there are.
func (p *plan) gaps() iter.Seq[gap] {
	return func(yield func(gap) bool) {
		for _, h := range p.sparse {
			for i := range h.distinct(h.v) {
				if h.elems[i].cell == nil && !yield(gap{h: h, v: h.v, i: i}) {
					return
				}
			}
		}
		for k := range p.companions {
			of := &p.companions[k]
			for i, c := range of.cells {
				if c == nil && of.timer.Nonzero && !yield(gap{of.h, of.timer, i, of}) {
					return
				}
			}
		}
	}
}

// assignZeros finds cells for what is 0 where others, of the same name, have made one: an object, what is left
// of one, or a timer's events.
func (p *plan) assignZeros() {
	for g := range p.gaps() {
		c, _ := p.lookup(g.v, g.h.cellID(g.v, g.i))
		g.fill(c)
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

// appearing says whether something that had no cell, because it was 0, is to have one now. A timer has one as soon as
// its companion has counted an event, too short to be measured.
func (p *plan) appearing(values []uint64) bool {
	for g := range p.gaps() {
		words, _ := g.h.words(values)
		id := g.h.cellID(g.v, g.i)
		if !g.h.appears(id.elem, words) {
			continue
		}
		if _, at := p.lookup(g.v, id); at >= 0 {
			return true
		}
	}
	return false
}

// reveal makes cells for what is not 0 any more. All else of the plan stays: a rank may have something new in each
// sample.
func (p *plan) reveal(values []uint64) {
	for g := range p.gaps() {
		words, _ := g.h.words(values)
		g.fill(p.cellOf(g.h, g.v, g.i, words, nil))
	}
	p.assignZeros()
	p.slabs, p.relist = slabs{}, true
}

// findRoom decides where values of what is new count: in a cell of its own, in other, or nowhere.
func (p *plan) findRoom(v *variable, id cellID, at int) *cell {
	m := &p.room
	m.admit(v)
	more := 1
	if v.folds() && v.other() == nil {
		more = 2 // room for other stays reserved
	}
	switch {
	case v.enter == refused:
	case !v.folds() && len(v.list) == 0:
		m.reserved -= v.lines()
		m.used += v.lines()
		return p.newCell(v, id, at)
	case m.allows((len(v.list)+more)*v.lines()) && m.has(v.lines()):
		m.used += v.lines()
		return p.newCell(v, id, at)
	case v.folds():
		return p.fold(v, id)
	}
	p.leaveOut(v, id, nil)
	return nil
}

// fold lets an object or an element count into other.
func (p *plan) fold(v *variable, id cellID) *cell {
	m := &p.room
	other := v.other()
	if other == nil {
		at := 0
		if other, at = v.find(v.otherID()); other == nil { // an object may really have that name
			m.used += v.lines()
			other = p.newCell(v, v.otherID(), at)
		}
		m.reserved -= v.lines()
	}
	other.seen = p.generation
	p.leaveOut(v, id, other)
	return other
}

// leaveOut notes that something has no series of its own, and counts that once.
func (p *plan) leaveOut(v *variable, id cellID, other *cell) {
	if v.overflow == nil {
		v.overflow = &overflow{ids: map[cellID]uint32{}}
	}
	v.overflow.cell = other
	if other != nil && other.id == id {
		return
	}
	v.overflow.ids[id] = p.generation
	p.dropped[p.room.reason(v)] += uint64(v.lines())
}

// accompany finds the cells of the timers that a handle counts the events of.
func (p *plan) accompany(h *handle, words []uint64) {
	for _, t := range p.timers[h.v] {
		if !t.estimates() {
			continue
		}
		of := companion{h: h, timer: t, cells: make([]*cell, h.distinct(t))}
		for i := range of.cells {
			of.cells[i] = p.cellOf(h, t, i, words, nil)
		}
		p.companions = append(p.companions, of)
	}
}
