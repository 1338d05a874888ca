package mapping

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxGone is how many series may stay of whose contributions not even remains are left.
const maxGone = 4096

// cell is the cell of that id, a new one if there is none, marked as being in use.
func (r *Rank) cell(v *variable, id cellID) *cell {
	c := v.find(id)
	if c == nil {
		c = r.slabs.cell()
		c.v, c.id = v, id
		if v.list == nil {
			n := 1
			if v.label != "" {
				n = min(len(r.layout.Objects), 64)
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
		if was := v.had().was; was != nil {
			was.give(c)
		}
		r.expose(c)
	}
	c.seen = r.generation
	return c
}

// expose gives a cell its series, unless it has them.
func (r *Rank) expose(c *cell) {
	v := c.v
	switch {
	case v.mode == modeState:
		if c.state == nil {
			c.state = &stateCell{}
		}
		if c.lost || !c.owns && (r.limits.rank.set || r.limits.variable.set) {
			return // there may be very many: not before the limits allow them
		}
		for _, it := range v.items[len(c.state.series):] {
			c.state.series = append(c.state.series, c.newSeries(&r.slabs, it.name))
		}
	case v.metric != nil && c.series == nil:
		c.series = c.newSeries(&r.slabs, "")
		c.series.Lasting = v.lasts()
		if v.metric.Kind == KindHistogram {
			if c.timer == nil {
				c.timer = r.slabs.timer()
				*c.timer = newTimer(v.buckets)
				if v.exact {
					c.timer.hist.Schema, c.timer.exact = ExactSchema, &exact{}
				}
			}
			c.series.Histogram = &c.timer.hist
		}
		c.setCreated()
	}
}

// find looks for a cell. Cells are mostly asked for in the order that they have: without an index, as long as that goes well.
func (v *variable) find(id cellID) *cell {
	n := len(v.list)
	if int(v.next) < n && v.list[v.next].id == id {
		v.next++
		return v.list[v.next-1]
	}
	if n == 0 || !v.unsorted && id.compare(v.list[n-1].id) > 0 {
		return nil
	}
	if v.cells == nil {
		v.cells = make(map[cellID]*cell, n)
		for _, c := range v.list {
			v.cells[c.id] = c
		}
	}
	return v.cells[id]
}

// newSeries has the labels of the cell, and of a state its name.
func (c *cell) newSeries(from *slabs, state string) *Series {
	v := c.v
	n := len(v.labels)
	for _, there := range []bool{v.mode == modeState, v.label != "", c.id.number != 0, c.id.elem >= 0} {
		if there {
			n++
		}
	}
	labels := append(from.labels(n), v.labels...)
	if v.mode == modeState {
		labels = append(labels, Label{"state", state})
	}
	if v.label != "" {
		labels = append(labels, Label{v.label, c.id.object})
	}
	if c.id.number != 0 {
		labels = append(labels, Label{"object", strconv.FormatUint(uint64(c.id.number), 10)})
	}
	if c.id.elem >= 0 {
		labels = append(labels, Label{v.each, elementName(int(c.id.elem))})
	}
	if len(labels) > 1 {
		slices.SortFunc(labels, func(a, b Label) int { return cmp.Compare(a.Name, b.Name) })
	}
	s := from.newSeries()
	s.Metric, s.Labels, s.Together = v.metric, labels, NewTogether(v.ranks, v.across)
	return s
}

// unixNano is a time of the agent's in Unix nanoseconds, 0 where it is not known.
func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// since moves the beginning of a cell to an earlier time, never to a later one; 0 is not known.
func (c *cell) since(at int64) {
	if at > 0 && (c.created == 0 || at < c.created) {
		c.created = at
		c.setCreated()
	}
}

// sweep takes out the cells that nothing contributes to any more, except for what has been counted there.
func (r *Rank) sweep() {
	gone := 0
	for _, v := range r.order {
		if v.separate && v.lasts() {
			for _, c := range v.list {
				if c.seen != r.generation && c.id.number != 0 {
					r.leave(c)
				}
			}
		}
		// Objects that have not been read yet since other rules are in force hand over to the series of their name.
		handing := v.separate && slices.ContainsFunc(v.list, func(c *cell) bool { return c.changes() != nil })
		var lost map[wrapped]bool // of cells that are no more, by what these are called
		kept := v.list[:0]
		for _, c := range v.list {
			if c.seen == r.generation || c.rest() != nil || handing && c.id.number == 0 {
				kept = append(kept, c)
				continue
			}
			keep := false
			switch {
			case c.id.number != 0:
			case v.mode == modeCount:
				keep = c.count.has && c.count.value > 0 || c.hasHistory()
			case v.mode == modeWatermark:
				if c.count.has && c.v.info.Class != highRatio && !c.seldom().floorKnown {
					c.setFloor(c.count.value)
				}
				keep = c.seldom().floorKnown
			}
			if keep {
				if gone++; gone <= maxGone {
					kept = append(kept, c)
					continue
				}
				r.dropped[ReasonRemainsLost]++
				if lost == nil {
					lost = map[wrapped]bool{}
				}
				lost[wrapped{c.id.object, int(c.id.elem)}] = true
			}
			c.leave(r)
			delete(v.cells, c.id)
		}
		if lost != nil {
			maps.DeleteFunc(v.had().wraps, func(w wrapped, _ float64) bool {
				if v.each == "" {
					w.elem = -1
				}
				return lost[wrapped{v.shown(w.object), w.elem}]
			})
		}
		clear(v.list[len(kept):])
		v.list = kept
		v.sort()
	}
}

// leave hands what an object that is no more has, besides its remains, to those of its name.
func (r *Rank) leave(c *cell) {
	to := r.cell(c.v, cellID{object: c.id.object, elem: c.id.elem})
	r.dirty = true
	switch c.v.mode {
	case modeCount:
		if c.rare != nil {
			p := to.rarely()
			p.adjust += c.rare.adjust
			p.base += c.rare.base
			p.resetAt = max(p.resetAt, c.rare.resetAt)
		}
		switch {
		case c.exactly() != nil:
			c.joinBuckets(to)
		case c.timer != nil && to.timer != nil:
			to.timer.join(c.timer)
		}
	case modeWatermark:
		if p := to.seldom(); c.count.has && (!p.floorKnown || combine(c.v.among(), p.floor, c.count.value) != p.floor) {
			to.setFloor(c.count.value)
		}
	}
}

// setFloor notes a watermark that stays.
func (c *cell) setFloor(x float64) {
	p := c.rarely()
	p.floor, p.floorKnown = x, true
}

func (v *variable) sort() {
	if !v.unsorted {
		return
	}
	v.unsorted = false
	slices.SortFunc(v.list, func(a, b *cell) int { return a.id.compare(b.id) })
}

func (id cellID) compare(o cellID) int {
	if c := strings.Compare(id.object, o.object); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(id.number, o.number), cmp.Compare(id.elem, o.elem))
}

// list makes the list of series anew, and a new structure if it isn't the same.
func (r *Rank) list() {
	r.relist = false
	same, n := true, 0
	add := func(s *Series) {
		if same && (n >= len(r.series) || r.series[n] != s) {
			same = false
			r.series = append(make([]*Series, 0, max(len(r.series), len(r.plan))), r.series[:n]...) // who holds the old slice may still read it
		}
		if !same {
			r.series = append(r.series, s)
		}
		n++
	}
	for _, v := range r.order {
		if v.metric == nil {
			continue
		}
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
