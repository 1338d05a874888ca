package series

import (
	"cmp"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// cell is where values of that variable, object and element count: their own cell, or the one called other, marked as
// being in use. nil: there was no room for either.
func (p *plan) cell(v *variable, id cellID) *cell {
	c, decided := p.lookup(v, id)
	if !decided {
		c = p.place(v, id)
	}
	if c != nil {
		c.seen = p.generation
	}
	return c
}

// lookup is cell for what has been decided already.
func (p *plan) lookup(v *variable, id cellID) (_ *cell, decided bool) {
	if c := v.find(id); c != nil {
		return c, true
	}
	if v.overflow.find(id, p.generation) {
		return v.overflow.cell, true
	}
	return nil, false
}

// place finds a place for what is new.
func (p *plan) place(v *variable, id cellID) *cell {
	m := &p.room
	m.admit(v)
	within := func(more int) bool { return m.variable.allows((len(v.list) + more) * v.lines()) }
	switch {
	case v.enter == refused:
	case v.folds() && v.other() == nil && within(2) && m.has(v.charge()), // room for other stays reserved
		v.folds() && v.other() != nil && within(1) && m.has(v.charge()),
		!v.folds() && len(v.list) > 0 && within(1) && m.has(v.charge()):
		m.used += v.charge()
		return p.newCell(v, id)
	case !v.folds() && len(v.list) == 0:
		m.reserved -= v.charge()
		m.used += v.charge()
		return p.newCell(v, id)
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
		if other = v.find(v.otherID()); other == nil { // an object may really have that name
			m.used += v.charge()
			other = p.newCell(v, v.otherID())
		}
		m.reserved -= v.charge()
	}
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

// newCell makes a cell with its series.
func (p *plan) newCell(v *variable, id cellID) *cell {
	c := p.slabs.cell()
	c.v, c.id = v, id
	if v.list == nil {
		n := 1
		if v.Label != "" && p.layout != nil {
			n = min(len(p.layout.Objects), 64)
		}
		v.list = make([]*cell, 0, n)
	}
	if n := len(v.list); n > 0 && !v.unsorted {
		v.unsorted = id.compare(v.list[n-1].id) < 0
	}
	v.list = append(v.list, c)
	v.next = int32(len(v.list))
	if v.cells != nil {
		v.cells[id] = c
	}
	p.expose(c)
	return c
}

// expose gives a cell its series.
func (p *plan) expose(c *cell) {
	v := c.v
	if v.Mode == mapping.ModeState {
		c.state = &stateCell{}
		for _, it := range v.Items {
			c.state.series = append(c.state.series, c.newSeries(&p.slabs, it.Name))
		}
		return
	}
	c.series = c.newSeries(&p.slabs, "")
	c.series.Lasting = v.Lasts()
	if v.Metric.Kind == mapping.KindHistogram {
		if c.timer == nil {
			c.timer = p.slabs.timer()
			c.timer.begin(v)
		}
		c.series.Histogram = &c.timer.hist
	}
	c.setCreated()
}

// tight says whether what is new in a layout may not all find room, so that it matters what comes first.
func (p *plan) tight() bool {
	m := &p.room
	if m.shared == nil && !m.variable.set {
		return false
	}
	more := 0
	for i := range p.layout.Handles {
		lh := &p.layout.Handles[i]
		if v := p.variable(lh.Variable); v != nil && v.Metric != nil {
			n := v.charge()
			if v.Each != "" {
				n *= lh.Count
			}
			more += n
			if v.enter == undecided && v.folds() {
				more += v.charge()
			}
			if m.variable.set && (len(v.list)+2)*v.lines() > m.variable.weight/2 {
				return true
			}
		}
	}
	missing := m.missing(more)
	return missing > 0 && missing > m.shared.Left()
}

// byRight puts the handles of a layout, which stand in order by their objects' names, into the order in which they
// have a right to room: the predefined objects' first, then by age. Variables that are new are let in or left out
// here, those of the highest verbosity last.
func (p *plan) byRight(order []int32) {
	handles := p.layout.Handles
	var fresh []*variable
	seen := map[*variable]bool{}
	for i := range handles {
		if v := p.variable(handles[i].Variable); v != nil && v.Metric != nil && v.enter == undecided && !seen[v] {
			seen[v] = true
			fresh = append(fresh, v)
		}
	}
	slices.SortStableFunc(fresh, func(a, b *variable) int { return cmp.Compare(a.verbosity(), b.verbosity()) })
	for _, v := range fresh {
		p.room.admit(v)
	}
	predefined := map[uint32]bool{}
	for i := range p.layout.Objects {
		if o := &p.layout.Objects[i]; o.Predefined {
			predefined[o.ID] = true
		}
	}
	age := func(i int32) uint32 {
		if object := handles[i].Object; !predefined[object] {
			return object // objects get rising numbers as the program makes them
		}
		return 0
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(age(a), age(b)) })
}
