package mapping

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// maxGone is how many series may stay of whose contributions not even remains are left.
const maxGone = 4096

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
			c.fixed, c.fixedKnown = 0, false
			if c.timer != nil {
				c.timer.companion = nil
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
	for _, v := range r.order {
		v.next = 0
	}
	r.plan, r.sparse = slices.Grow(r.plan[:0], len(handles)), r.sparse[:0]
	there := 0
	for _, i := range order {
		lh := &handles[i]
		v := r.variable(lh.Variable)
		if v == nil || lh.Count <= 0 {
			continue
		}
		name := nameOf(v, i)
		h := old[lh.ID]
		if h != nil && (h.v != v || h.n != lh.Count) {
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
		h.of, h.name, h.solo, h.offset, h.seen = lh, name, 0, lh.Offset, r.generation
		h.base, h.exclude = nil, nil
		if len(lh.Excluded) == h.n {
			h.exclude = lh.Excluded
		}
		switch {
		case len(lh.Origin) == h.n:
			h.base = lh.Origin
		case v.offset && len(lh.First) == h.n:
			h.base = lh.First
		}
		if v.separate && (v.lasts() || shared[place{v, v.shown(name)}] > 1) {
			h.solo = lh.Object
		}
		r.place(h)
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
	h.cells = h.cells[:0]
	if h.cells == nil {
		h.cells = h.one[:0]
	}
	switch v := h.v; {
	case v.each == "" || v.numbered && h.n == 1:
		h.cells = append(h.cells, r.cell(v, h.element(-1)))
	case v.nonzero:
		h.cells = slices.Grow(h.cells, h.n)[:h.n]
		r.fill(h)
		r.sparse = append(r.sparse, h)
	default:
		for i := range h.n {
			h.cells = append(h.cells, r.cell(v, h.element(i)))
		}
	}
	created := unixNano(h.of.Created)
	for _, c := range h.cells {
		if c != nil {
			c.since(created)
			c.born(h.of.Object)
		}
	}
}

// element is the cell of an element; -1 of all together.
func (h *handle) element(i int) cellID {
	return cellID{object: h.v.shown(h.name), number: h.solo, elem: i}
}

// fill finds the cells that elements have already, where those alone get one that are not 0.
func (r *Rank) fill(h *handle) {
	for i := range h.cells {
		h.cells[i] = nil
		if c := h.v.find(h.element(i)); c != nil {
			h.cells[i] = r.cell(h.v, c.id)
		}
	}
}

// reveal makes cells for elements that are not 0 any more, of variables that have no others.
func (r *Rank) reveal(values []uint64) {
	var grown map[*variable]bool
	for _, h := range r.sparse {
		if h.offset < 0 || h.offset > len(values) || h.n > len(values)-h.offset {
			continue
		}
		for i, w := range values[h.offset : h.offset+h.n] {
			if h.cells[i] != nil || !h.moved(i, w) {
				continue
			}
			h.cells[i] = r.cell(h.v, h.element(i))
			r.changing(h.cells[i])
			h.cells[i].since(unixNano(h.of.Created))
			h.cells[i].born(h.of.Object)
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
	var base uint64
	if h.base != nil {
		base = h.base[i]
	}
	return h.elems[i].wraps > 0 || n.gained(w, base, h.excludedOf(i)) > 0
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
	h.of, h.v, h.name, h.n = lh, v, name, lh.Count
	if r.handles != nil {
		r.handles[lh.ID] = h
	}
	if v.mode != modeCount {
		return h
	}
	h.elems = r.slabs.elements(h.n)
	for i := range h.elems {
		e := &h.elems[i]
		switch {
		case len(lh.Origin) == h.n:
			e.last = lh.Origin[i]
		case len(lh.First) == h.n:
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
	relative := h.v.relative(h.base != nil)
	for i := range h.elems {
		if e := &h.elems[i]; e.wraps > 0 && len(h.cells) > 0 {
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
	if _, ok := v.wraps[key]; !ok && len(v.wraps) >= maxWraps {
		key.elem = -1
	}
	if v.wraps == nil {
		v.wraps = map[wrapped]float64{}
	}
	v.wraps[key] += amount
	id := cellID{object: v.shown(object), elem: -1}
	if v.each != "" {
		id.elem = elem
	}
	r.cell(v, id).count.gone += amount
	r.dirty = true
}

// rename ends the contribution to the old name with the values at the rename, and begins the one to the new name.
func (r *Rank) rename(h *handle, lh *mpit.Handle) {
	if len(lh.Origin) == h.n {
		for i := range h.elems {
			e := &h.elems[i]
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
		v.next = len(v.list)
		if v.cells != nil {
			v.cells[id] = c
		}
		if v.was != nil {
			v.was.give(c)
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
			}
			c.series.Histogram = &c.timer.hist
		}
		c.setCreated()
	}
}

// find looks for a cell. Cells are mostly asked for in the order that they have: without an index, as long as that goes well.
func (v *variable) find(id cellID) *cell {
	n := len(v.list)
	if v.next < n && v.list[v.next].id == id {
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
		labels = append(labels, Label{v.each, elementName(c.id.elem)})
	}
	if len(labels) > 1 {
		slices.SortFunc(labels, func(a, b Label) int { return cmp.Compare(a.Name, b.Name) })
	}
	s := from.newSeries()
	s.Metric, s.Labels, s.Ranks, s.Merge = v.metric, labels, v.ranks, v.across
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

// takeRemains adds what freed and renamed objects have counted. Their levels, sizes and states are no more.
func (r *Rank) takeRemains() {
	if r.remains == nil {
		return
	}
	for i := range r.remains.List {
		rm := &r.remains.List[i]
		v := r.variable(rm.Variable)
		if v == nil || !v.lasts() {
			continue
		}
		id := cellID{elem: -1}
		if v.label != "" {
			id.object = CleanName(rm.Name)
		}
		created := unixNano(rm.Created)
		if v.mode == modeWatermark {
			r.takeWatermarks(v, rm, id, created)
			continue
		}
		for k, gained := range rm.Gained {
			if v.each != "" {
				id.elem = k
			}
			x := remainFloat(v.number, gained)
			if !v.offset && k < len(rm.First) {
				x += remainFloat(v.number, rm.First[k])
			}
			if !finite(x) {
				r.dropped[ReasonNotANumber]++
				continue
			}
			if v.nonzero && x == 0 && v.find(id) == nil {
				continue
			}
			c := r.cell(v, id)
			c.fixed += x
			c.fixedKnown = true
			c.since(created)
		}
	}
}

func (r *Rank) takeWatermarks(v *variable, rm *mpit.Remain, id cellID, created int64) {
	values := rm.Max
	if v.among() == MergeMin {
		values = rm.Min
	}
	take := func(x float64) {
		if v.nonzero && x == 0 && v.find(id) == nil {
			return
		}
		c := r.cell(v, id)
		if c.fixedKnown {
			x = combine(v.among(), c.fixed, x)
		}
		c.fixed, c.fixedKnown = x, true
		c.since(created)
	}
	all, n := 0.0, 0
	for k, w := range values {
		x := v.number.float(w)
		if !finite(x) {
			continue
		}
		if v.each != "" {
			id.elem = k
			take(x)
			continue
		}
		if n++; n == 1 {
			all = x
		} else {
			all = combine(v.elements, all, x)
		}
	}
	if n > 0 {
		if v.elements == MergeMean {
			all /= float64(n)
		}
		take(all)
	}
}

// among is how watermarks of freed objects become one.
func (s *spec) among() Merge {
	switch {
	case s.objects != MergeEach && s.objects != MergeMean:
		return s.objects
	case s.real == mpit.ClassLowWatermark:
		return MergeMin
	}
	return MergeMax
}

// remainFloat reads gained and first, which are signed for all integers.
func remainFloat(n number, w uint64) float64 {
	if n == floating {
		return math.Float64frombits(w)
	}
	return float64(int64(w))
}

// pairUp finds the objects that have both a SIZE and a LEVEL or watermark of one name.
func (r *Rank) pairUp() {
	old := r.pairs
	r.pairs = nil
	if len(r.ratios) == 0 {
		return
	}
	type place struct {
		name   string
		class  mpit.Class // the real one
		object uint32
	}
	sizes := map[place]*handle{}
	for _, h := range r.plan {
		if h.v.real == mpit.ClassSize {
			sizes[place{h.v.info.Name, mpit.ClassSize, h.of.Object}] = h
		}
	}
	for _, h := range r.plan {
		key := variableKey{h.v.info.Name, levelRatio}
		switch h.v.real {
		case mpit.ClassLevel:
		case mpit.ClassHighWatermark:
			key.class = highRatio
		default:
			continue
		}
		ratio, size := r.ratios[key], sizes[place{h.v.info.Name, mpit.ClassSize, h.of.Object}]
		if ratio == nil || size == nil {
			continue
		}
		c := r.cell(ratio, cellID{object: ratio.shown(h.name), elem: -1})
		c.since(max(unixNano(h.of.Created), unixNano(size.of.Created)))
		r.pairs = append(r.pairs, pair{size: size, part: h, cell: c})
	}
	// The highest share of an object that is no more stays, as its watermark does.
	for _, p := range old {
		if p.cell.v.mode != modeWatermark || !p.ok || p.part.seen == r.generation && p.cell.v.shown(p.part.name) == p.cell.id.object {
			continue
		}
		if c := p.cell; !c.floorKnown || p.value > c.floor {
			c.floor, c.floorKnown, r.dirty = p.value, true, true
		}
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
		handing := v.separate && slices.ContainsFunc(v.list, func(c *cell) bool { return c.change != nil })
		var lost map[wrapped]bool // of cells that are no more, by what these are called
		kept := v.list[:0]
		for _, c := range v.list {
			if c.seen == r.generation || c.rest != nil || handing && c.id.number == 0 {
				kept = append(kept, c)
				continue
			}
			keep := false
			switch {
			case c.id.number != 0:
			case v.mode == modeCount:
				keep = c.count.has && c.count.value > 0 || c.hasHistory()
			case v.mode == modeWatermark:
				if !c.floorKnown && c.count.has && c.v.key.class != highRatio {
					c.floor, c.floorKnown = c.count.value, true
				}
				keep = c.floorKnown
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
				lost[wrapped{c.id.object, c.id.elem}] = true
			}
			c.leave(r)
			delete(v.cells, c.id)
		}
		if lost != nil {
			maps.DeleteFunc(v.wraps, func(w wrapped, _ float64) bool {
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
		to.count.adjust += c.count.adjust
		to.count.base += c.count.base
		to.count.resetAt = max(to.count.resetAt, c.count.resetAt)
		if c.timer != nil && to.timer != nil {
			to.timer.join(c.timer)
		}
	case modeWatermark:
		if c.count.has && (!to.floorKnown || combine(c.v.among(), to.floor, c.count.value) != to.floor) {
			to.floor, to.floorKnown = c.count.value, true
		}
	}
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
