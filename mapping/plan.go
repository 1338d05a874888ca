package mapping

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// maxItems is how many items of an enumeration become series each; of larger ones only the present value does.
	maxItems = 128
	// maxRankFamilies bounds what one rank can take of Config.MaxFamilies. The largest library known has 1,100 variables.
	maxRankFamilies = 8192
	// maxGone is how many series may stay of whose contributions not even remains are left.
	maxGone = 4096
	// highRatio and levelRatio stand for a class in the keys of ratios.
	highRatio  mpit.Class = 254
	levelRatio mpit.Class = 253
)

// compile brings the plan up to date. Snapshots are never changed, so what is the same pointer is the same.
func (r *Rank) compile(s *mpit.Sample) {
	remains := s.Remains
	if s.Variables == r.variables && s.Layout == r.layout && remains == r.remains {
		r.refit()
		return
	}
	if s.Variables != r.variables {
		r.catalogue(s.Variables)
	}
	if s.Layout != r.layout {
		r.objects = nil
	}
	r.variables, r.layout, r.remains = s.Variables, s.Layout, remains
	r.arrange()
	r.rebuilt, r.relist = true, true
}

// catalogue takes new and changed variables in. nil is a library that has none, as Debian's MPICH.
func (r *Rank) catalogue(vs *mpit.Variables) {
	if vs == nil {
		return
	}
	counters := map[string]bool{}
	for i := range vs.ByID {
		v := &vs.ByID[i]
		if v.Class == mpit.ClassCounter && numberOf(v.Datatype) != notNumber {
			counters[v.Name] = true
		}
	}
	var fresh []*variable
	for i := range vs.ByID {
		info := &vs.ByID[i]
		if i < len(r.byID) {
			old := r.byID[i]
			if same(&old.info, info) {
				if old.info.State != info.State {
					r.countState(info.State)
				}
				old.info = *info
				continue
			}
			// An agent never uses a number again; whoever does starts anew with it.
			r.forget(old)
			r.byID[i] = r.newVariable(info, counters)
		} else {
			r.byID = append(r.byID, r.newVariable(info, counters))
		}
		fresh = append(fresh, r.byID[i])
	}
	for _, v := range fresh {
		if v.companion == "" || v.metric == nil {
			continue
		}
		if with := r.byKey[variableKey{v.companion, mpit.ClassCounter}]; with != nil && with.mode == modeCount && with.number != notNumber {
			v.with = with
			with.wanted = true
		}
	}
	for _, v := range fresh {
		r.findRatio(v)
	}
}

func same(a, b *mpit.Variable) bool {
	return a.Name == b.Name && a.Class == b.Class && a.Datatype == b.Datatype && a.DatatypeBytes == b.DatatypeBytes && a.Bind == b.Bind
}

func (r *Rank) newVariable(info *mpit.Variable, counters map[string]bool) *variable {
	v := &variable{info: *info, key: variableKey{info.Name, info.Class}, cells: map[cellID]*cell{}}
	r.order = append(r.order, v)
	r.countState(info.State)
	if r.byKey[v.key] != nil {
		r.drop(v, ReasonDuplicate)
		return v
	}
	r.byKey[v.key] = v
	spec, want, reason := r.mapper.resolve(r.rules, info, func(name string) bool { return counters[name] })
	v.spec = spec
	switch {
	case reason != "":
	case r.families[want.Name] != nil:
		reason, v.why = ReasonTypeConflict, fmt.Sprintf("%s is already made of %s, class %s",
			want.Name, fold(r.families[want.Name].info.Name, 200), nameOf(r.families[want.Name].info.Class))
	case len(r.families) >= maxRankFamilies:
		reason = ReasonFamiliesOverMax
	default:
		v.metric, reason = r.mapper.acquire(want.Metric, func() string { return helpText(info, want.set, v.unit, want.note) })
		if reason == ReasonTypeConflict {
			v.why = r.mapper.conflict(&want.Metric)
		}
	}
	if reason != "" {
		r.drop(v, reason)
		return v
	}
	r.families[v.metric.Name] = v
	v.wanted = true
	if v.mode == modeState {
		v.items = itemsOf(info.Enum)
	}
	return v
}

func (r *Rank) drop(v *variable, reason Reason) {
	v.reason = reason
	r.dropped[reason]++
}

func (r *Rank) countState(s mpit.VariableState) {
	switch s {
	case mpit.VariableDenied:
		r.dropped[ReasonDenied]++
	case mpit.VariableAllocFailed:
		r.dropped[ReasonAllocFailed]++
	case mpit.VariableStartFailed:
		r.dropped[ReasonStartFailed]++
	case mpit.VariableReadFailed:
		r.dropped[ReasonReadFailed]++
	case mpit.VariableExhausted:
		r.dropped[ReasonExhausted]++
	}
}

func (r *Rank) forget(v *variable) {
	r.order = slices.DeleteFunc(r.order, func(o *variable) bool { return o == v })
	if r.byKey[v.key] == v {
		delete(r.byKey, v.key)
	}
	r.giveBack(v)
	for id, h := range r.handles {
		if h.v == v {
			delete(r.handles, id)
		}
	}
}

// giveBack lets go of the family that a variable holds.
func (r *Rank) giveBack(v *variable) {
	if v.metric != nil && r.families[v.metric.Name] == v {
		delete(r.families, v.metric.Name)
		r.mapper.release(v.metric)
	}
}

// Close gives the families of the rank back. The Rank must not be used any more, and its Series must not be shown. It may
// be called more than once.
func (r *Rank) Close() {
	for _, v := range r.families {
		r.giveBack(v)
	}
}

// itemsOf is the items of an enumeration, with names that differ.
func itemsOf(e *mpit.Enum) []item {
	if e == nil || len(e.Items) > maxItems {
		return nil
	}
	var items []item
	names, values := map[string]bool{}, map[int64]bool{}
	for _, it := range e.Items {
		if values[it.Value] {
			continue
		}
		name := cleanText(it.Name, maxStateName)
		if name == "" || names[name] {
			name = strings.TrimSpace(name + " (" + stateName(it.Value) + ")")
		}
		if names[name] {
			continue
		}
		names[name], values[it.Value] = true, true
		items = append(items, item{it.Value, name})
	}
	return items
}

func stateName(v int64) string { return strconv.FormatInt(v, 10) }

// outsideName names a value that has no series of its own: its number, or in an enumeration of more than maxItems its item. An
// item that is called by another one's number has been there first.
func (v *variable) outsideName(value int64) string {
	if v.items == nil && v.info.Enum != nil {
		for _, it := range v.info.Enum.Items {
			if name := cleanText(it.Name, maxStateName); it.Value == value && name != "" {
				return name
			}
		}
	}
	name := stateName(value)
	for slices.ContainsFunc(v.items, func(it item) bool { return it.name == name }) {
		name = "(" + name + ")"
	}
	return name
}

// findRatio makes the ratio of a variable that shares its name with a SIZE, or is that SIZE.
func (r *Rank) findRatio(v *variable) {
	if v.metric == nil || v.info.Name == "" {
		return
	}
	find := func(really mpit.Class) *variable {
		for class := range mpit.Class(len(classWords)) {
			if o := r.byKey[variableKey{v.info.Name, class}]; o != nil && o.metric != nil && o.real == really {
				return o
			}
		}
		return nil
	}
	size := find(mpit.ClassSize)
	if size == nil {
		return
	}
	for _, class := range []mpit.Class{mpit.ClassLevel, mpit.ClassHighWatermark} {
		part := find(class)
		key := variableKey{v.info.Name, levelRatio}
		mode := modeGauge
		if class == mpit.ClassHighWatermark {
			key.class, mode = highRatio, modeWatermark
		}
		if part == nil || part.info.Bind != size.info.Bind || part.unit != size.unit || r.ratios[key] != nil {
			continue
		}
		metric, reason := r.mapper.ratioMetric(v.info.Name, class == mpit.ClassHighWatermark)
		if reason != "" {
			r.dropped[reason]++
			continue
		}
		if r.families[metric.Name] != nil {
			r.mapper.release(metric)
			continue // the library has a PERCENTAGE of that name itself
		}
		ratio := &variable{
			spec: spec{metric: metric, mode: mode, scale: 1, objects: MergeMax, label: part.label},
			key:  key, cells: map[cellID]*cell{},
		}
		r.ratios[key], r.families[metric.Name] = ratio, ratio
		r.order = append(r.order, ratio)
	}
}

// arrange makes handles and cells follow the layout and the remains.
func (r *Rank) arrange() {
	r.generation++
	for _, v := range r.order {
		for _, c := range v.list {
			c.fixed, c.fixedKnown = 0, false
		}
	}
	r.follow()
	r.takeRemains()
	r.pairUp()
	if r.restored != nil {
		r.takeRestored()
	}
	r.sweep()
	r.fit()
}

// follow takes the handles of the layout over, renames and retires.
func (r *Rank) follow() {
	names := make(map[uint32]string, len(r.layout.Objects))
	for i := range r.layout.Objects {
		names[r.layout.Objects[i].ID] = CleanName(r.layout.Objects[i].Name)
	}
	nameOf := func(v *variable, lh *mpit.Handle) string {
		if v.label == "" {
			return ""
		}
		if n, ok := names[lh.Object]; ok {
			return n
		}
		return Unnamed
	}
	type place struct {
		v    *variable
		name string
	}
	shared := map[place]int{} // of variables that are never merged
	for i := range r.layout.Handles {
		lh := &r.layout.Handles[i]
		if v := r.variable(lh.Variable); v != nil && v.separate {
			shared[place{v, nameOf(v, lh)}]++
		}
	}
	first := r.plan == nil
	r.plan = r.plan[:0]
	for i := range r.layout.Handles {
		lh := &r.layout.Handles[i]
		v := r.variable(lh.Variable)
		if v == nil || lh.Count <= 0 {
			continue
		}
		name := nameOf(v, lh)
		h := r.handles[lh.ID]
		if h != nil && (h.v != v || h.n != lh.Count) {
			r.retire(h)
			h = nil
		}
		if h == nil {
			h = r.newHandle(v, lh, name)
		} else if v.mode == modeCount && (h.name != name || !slices.Equal(h.origin, lh.Origin)) {
			r.rename(h, lh)
		}
		h.name, h.object, h.offset, h.seen = name, lh.Object, lh.Offset, r.generation
		h.origin, h.first, h.base, h.excluded = lh.Origin, nil, nil, nil
		if len(lh.Excluded) == h.n {
			h.excluded = lh.Excluded
		}
		if len(lh.First) == h.n {
			h.first = lh.First
		}
		switch {
		case len(lh.Origin) == h.n:
			h.base = lh.Origin
		case v.offset:
			h.base = h.first
		}
		id := cellID{object: name, elem: -1}
		if shared[place{v, name}] > 1 {
			id.number = lh.Object
		}
		h.cells = h.cells[:0]
		if v.each == "" || v.separate && h.n == 1 {
			h.cells = append(h.cells, r.cell(v, id))
		} else {
			for i := range h.n {
				id.elem = i
				h.cells = append(h.cells, r.cell(v, id))
			}
		}
		for _, c := range h.cells {
			c.since(lh.Created.UnixNano(), !lh.Created.IsZero())
			c.born(lh.Object)
		}
		if first && h.offset < 0 {
			r.reselect = true // an agent that an earlier exporter told to leave it out
		}
		r.plan = append(r.plan, h)
	}
	for id, h := range r.handles {
		if h.seen != r.generation {
			r.retire(h)
			delete(r.handles, id)
		}
	}
}

// variable is the one with that number, if it is to be read.
func (r *Rank) variable(id uint32) *variable {
	if uint64(id) >= uint64(len(r.byID)) || !r.byID[id].wanted {
		return nil
	}
	return r.byID[id]
}

func (r *Rank) newHandle(v *variable, lh *mpit.Handle, name string) *handle {
	h := &handle{id: lh.ID, v: v, name: name, n: lh.Count}
	r.handles[lh.ID] = h
	if v.mode != modeCount {
		return h
	}
	h.elems = make([]element, h.n)
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
				h.cell(i).count.gone += float64(e.wraps) * h.v.span()
			}
			e.wraps = 0
			r.dirty = true
		}
	}
}

// relative says whether the remains of a handle are right whatever has wrapped: the agent takes differences of 64 bits. With based
// they do not begin at zero.
func (v *variable) relative(based bool) bool { return v.bits == 64 && (based || v.offset) }

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
	c := v.cells[id]
	if c == nil {
		c = &cell{v: v, id: id}
		v.cells[id] = c
		r.expose(c)
		if r.restored != nil {
			r.restored.cell(c)
		}
	}
	c.seen = r.generation
	return c
}

// expose gives a cell its series, unless it has them.
func (r *Rank) expose(c *cell) {
	v := c.v
	switch {
	case v.mode == modeState:
		for _, it := range v.items[len(c.states):] {
			c.states = append(c.states, c.newSeries(Label{"state", it.name}))
		}
	case v.metric != nil && c.series == nil:
		c.series = c.newSeries()
		c.series.Lasting = v.mode == modeCount || v.mode == modeWatermark
		if v.metric.Kind == KindHistogram {
			if c.timer == nil {
				c.timer = &timer{hist: Histogram{Bounds: r.mapper.buckets, Counts: make([]uint64, len(r.mapper.buckets)+1)}}
			}
			c.series.Histogram = &c.timer.hist
		}
		c.setCreated()
	}
}

// newSeries has the labels of the cell and those of extra.
func (c *cell) newSeries(extra ...Label) *Series {
	labels := extra
	if c.v.label != "" {
		labels = append(labels, Label{c.v.label, c.id.object})
	}
	if c.id.number != 0 {
		labels = append(labels, Label{"object", strconv.FormatUint(uint64(c.id.number), 10)})
	}
	if c.id.elem >= 0 {
		labels = append(labels, Label{c.v.each, elementName(c.id.elem)})
	}
	slices.SortFunc(labels, func(a, b Label) int { return cmp.Compare(a.Name, b.Name) })
	return &Series{Metric: c.v.metric, Labels: labels}
}

// since moves the beginning of a cell to an earlier time, never to a later one.
func (c *cell) since(at int64, known bool) {
	if known && at > 0 && (c.created == 0 || at < c.created) {
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
		if v == nil || v.mode != modeCount && v.mode != modeWatermark {
			continue
		}
		id := cellID{elem: -1}
		if v.label != "" {
			id.object = CleanName(rm.Name)
		}
		switch v.mode {
		case modeCount:
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
				c := r.cell(v, id)
				c.fixed += x
				c.fixedKnown = true
				c.since(rm.Created.UnixNano(), !rm.Created.IsZero())
			}
		case modeWatermark:
			values := rm.Max
			if v.objects == MergeMin {
				values = rm.Min
			}
			for k, w := range values {
				x := v.number.float(w)
				if !finite(x) {
					continue
				}
				m := v.elements
				if v.each != "" {
					id.elem, m = k, v.objects
				}
				c := r.cell(v, id)
				if c.fixedKnown {
					x = combine(m, c.fixed, x)
				}
				c.fixed, c.fixedKnown = x, true
				c.since(rm.Created.UnixNano(), !rm.Created.IsZero())
			}
		}
	}
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
			sizes[place{h.v.info.Name, mpit.ClassSize, h.object}] = h
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
		ratio, size := r.ratios[key], sizes[place{h.v.info.Name, mpit.ClassSize, h.object}]
		if ratio == nil || size == nil {
			continue
		}
		c := r.cell(ratio, cellID{object: h.name, elem: -1})
		c.since(max(h.cells[0].created, size.cells[0].created), true)
		r.pairs = append(r.pairs, pair{size: size, part: h, cell: c})
	}
	// The highest share of an object that is no more stays, as its watermark does.
	for _, p := range old {
		if p.cell.v.mode != modeWatermark || !p.ok || p.part.seen == r.generation && p.part.name == p.cell.id.object {
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
		for id, c := range v.cells {
			if c.seen == r.generation || c.rest != nil {
				continue
			}
			keep := false
			switch v.mode {
			case modeCount:
				keep = c.count.has && c.count.value > 0 || c.hasHistory()
			case modeWatermark:
				if !c.floorKnown && c.count.has && c.v.key.class != highRatio {
					c.floor, c.floorKnown = c.count.value, true
				}
				keep = c.floorKnown
			}
			if keep {
				if gone++; gone <= maxGone {
					continue
				}
				r.dropped[ReasonRemainsLost]++
			}
			c.leave(r)
			delete(v.cells, id)
		}
		v.list = v.list[:0]
		for _, c := range v.cells {
			v.list = append(v.list, c)
		}
		slices.SortFunc(v.list, compareCells)
	}
}

// list makes the list of series anew, and a new structure if it isn't the same.
func (r *Rank) list() {
	r.relist = false
	same, n := true, 0
	add := func(s *Series) {
		if same && (n >= len(r.series) || r.series[n] != s) {
			same = false
			r.series = slices.Clone(r.series[:n]) // whoever holds the old slice may still read it
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
			for _, s := range c.states {
				add(s)
			}
			if c.outside != nil {
				add(c.outside)
			}
		}
	}
	if same && n == len(r.series) {
		return
	}
	r.series = r.series[:n:n]
	r.structure++
}
