package mapping

import (
	"hash/fnv"
	"math"
	"slices"
	"sort"
	"strconv"
	"time"
)

// restored is what a blob held and no variable has taken yet: those that come later, are left out now, or wait for their
// categories. It is written into the next blob again.
type restored struct {
	closed    time.Duration
	hasClosed bool

	shown     map[uint32]shown // by variableKey.hash
	series    map[uint32]bool  // all shown.series of the blob
	variables map[variableKey]*history
	order     []variableKey
	handles   map[uint32]*restoredHandle
	folds     restoredFolds
}

// history is what the blob has of one variable.
type history struct {
	cells   []kept
	handles []uint32
}

// kept is what the blob has of a cell of some rules' making. Its place says with which labels it was shown.
type kept struct {
	object string // "" not bound, or all objects
	elem   int    // -1 all
	number uint32 // of the object; 0 all of that name

	gone                 float64 // not this cell's, but this object's and element's
	adjust               float64
	resetAt, begun       int64
	scale                float64 // of adjust, if it is not that of the variable's other cells; else 0
	floor, low           float64
	floorKnown, lowKnown bool
	timer                *observed
	buckets              []int64 // of a distribution: corrected.adjust
}

// observed is a timer's histogram, in whatever buckets.
type observed struct {
	seconds, events float64
	companion       uint32         // hash of the COUNTER; 0 none
	bounds          uint64         // hash
	counts          []NativeBucket // classic buckets, by their place
	native          []NativeBucket
	zero            uint64
}

// anyCompanion stands in blobs of version 1, which did not say which.
const anyCompanion = math.MaxUint32

// shown is what a variable's series meant.
type shown struct {
	series uint32 // hash of the family and the labels that rules give
	flags  byte
	scale  float64
	moved  int64 // variable.moved
}

type restoredHandle struct {
	number    uint32
	variable  variableKey
	object    string
	excluding bool
	origin    uint64 // hash; 0 none
	elems     []restoredElement
}

type restoredElement struct {
	index    int
	wraps    uint32
	quarter  uint8
	excluded uint64
}

// change is what becomes of a series that was shown before, and now means something else.
type change struct {
	anew  bool    // it begins at 0 again: its value has nothing to do with what was there
	scale float64 // it had this one, and goes on from where it was; 0: the same
	hand  bool    // what objects had counted in their common series stays there; those of their own begin at 0

	handed float64 // to this cell, by those of the objects
}

func (k *kept) flags() (flags uint64) {
	for _, f := range []struct {
		has  bool
		flag uint64
	}{{k.gone != 0, hasGone}, {k.adjust != 0, hasAdjust}, {k.resetAt != 0, hasReset}, {k.begun != 0, hasBegun}, {k.floorKnown, hasFloor}, {k.lowKnown, hasLow}, {k.scale != 0, hasScale}} {
		if f.has {
			flags |= f.flag
		}
	}
	return flags
}

func (rs *restored) of(key variableKey) *history {
	h := rs.variables[key]
	if h == nil {
		h = &history{}
		rs.variables[key] = h
		rs.order = append(rs.order, key)
	}
	return h
}

// add takes one more record in; those of one place stand beside one another.
func (h *history) add(k kept) { h.cells = append(h.cells, k) }

func (rs *restored) write(w *blobWriter, which func(variableKey) bool) {
	for _, key := range rs.order {
		h := rs.variables[key]
		if h == nil || !which(key) {
			continue
		}
		for _, number := range h.handles {
			if old := rs.handles[number]; old != nil {
				w.restored(old)
			}
		}
		w.list(key, h.cells)
	}
}

func (k variableKey) hash() uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte{byte(k.class)})
	_, _ = h.Write([]byte(k.name))
	return h.Sum32()
}

// shownAs is what the variable's series mean.
func (v *variable) shownAs() shown {
	h := fnv.New32a()
	_, _ = h.Write([]byte(v.metric.Name + "\x00" + BindLabel(v.info.Bind)))
	for _, l := range v.labels {
		_, _ = h.Write([]byte("\x00" + l.Name + "\x00" + l.Value))
	}
	s := shown{series: h.Sum32(), scale: v.scale, moved: v.had().moved}
	for _, f := range []struct {
		has  bool
		flag byte
	}{
		{v.offset, shownOffset}, {v.separate, shownSeparate}, {v.label != "", shownObject},
		{v.each == string(ElementsPeer), shownPeer}, {v.each == string(ElementsIndex), shownIndex},
	} {
		if f.has {
			s.flags |= f.flag
		}
	}
	return s
}

// handle gives a new handle what it had, unless its object has been renamed since: back to the same name even.
func (rs *restored) handle(h *handle, origin []uint64) {
	old := rs.handles[h.of.ID]
	if old == nil || old.variable != h.v.key() || old.object != h.name || old.origin != originHash(origin) || h.v.number == floating {
		return
	}
	delete(rs.handles, h.of.ID)
	elems := h.elems()
	for _, o := range old.elems {
		if o.index >= len(elems) || o.quarter > 3 {
			continue
		}
		e := &elems[o.index]
		e.wraps, e.quarter, e.excluded, e.earlier = o.wraps, o.quarter, o.excluded, true
		e.last = h.v.number.bottom(o.quarter, h.v.bits)
	}
}

// takeRestored gives variables that are new in the plan what the blob has of them. Handles have taken theirs.
func (r *Rank) takeRestored() {
	var fresh []*variable
	for _, v := range r.order {
		if v.taken || v.held || !v.wanted {
			continue
		}
		v.taken = true
		fresh = append(fresh, v)
	}
	changes := map[*variable]change{}
	for _, v := range fresh {
		if v.mode != modeCount || v.metric == nil {
			continue
		}
		if r.restored == nil {
			r.dirty = true
			continue
		}
		if c := r.changeOf(v); c != (change{}) {
			changes[v] = c
			if c.hand && v.with != nil && v.with.metric == nil { // it is shown, if at all, through the timer
				changes[v.with] = change{hand: true}
			}
		}
		if v.shownAs() != r.restored.shown[v.key().hash()] {
			r.dirty = true
		}
	}
	if r.restored == nil {
		return
	}
	for _, v := range fresh {
		r.take(v, changes[v])
		r.takeFold(v, changes[v])
	}
}

// changeOf compares what a variable's series mean with what they meant.
func (r *Rank) changeOf(v *variable) (c change) {
	now := v.shownAs()
	was, known := r.restored.shown[v.key().hash()]
	switch {
	case !known || was.series != now.series:
		c.anew = r.restored.series[now.series] // another variable's, so far
	case was.flags&shownOffset != now.flags&shownOffset:
		c.anew = true
	default:
		if was.scale != now.scale {
			c.scale = was.scale
		}
		c.hand = v.separate && was.flags&shownSeparate == 0
	}
	if known && was.series == now.series {
		v.keep().moved = was.moved
	}
	if c.anew || c.scale != 0 {
		v.keep().moved = r.now
	}
	if c != (change{}) {
		v.keep().before = &before{was, known}
	}
	return c
}

// before is what a variable's series meant, for the blob, as long as the change has not reached all of its cells.
type before struct {
	shown
	known bool
}

// fit says how the place of a record is related to the cells that a variable has now.
type fit uint8

const (
	alike   fit = iota // it is one of them
	finer              // it is a part of one: they are added up
	coarser            // it is several
)

func (r *Rank) fits(v *variable, k *kept) (cellID, fit) {
	id := cellID{object: v.shown(k.object), elem: int32(k.elem)}
	switch {
	case v.label != "" && k.object == "", v.each != "" && k.elem < 0:
		return id, coarser
	}
	how := alike
	if v.label == "" && k.object != "" || v.each == "" && k.elem >= 0 || !v.separate && k.number != 0 {
		how = finer
	}
	if v.each == "" {
		id.elem = -1
	}
	if v.separate && k.number != 0 {
		id.number = k.number
		if v.find(id) == nil && !slices.ContainsFunc(r.sparse, func(h *handle) bool { return h.v == v && h.solo == k.number }) {
			id.number = 0 // the object is no more
		}
	}
	return id, how
}

// take puts what the blob has of a variable into its cells. Where they are merged from those of before, these are added up, and
// stay in the blob for when they are wanted again. So do those that are several of now; all that can be known of these is that
// something has begun anew.
func (r *Rank) take(v *variable, c change) {
	rs := r.restored
	was, known := rs.shown[v.key().hash()]
	h := rs.variables[v.key()]
	if h == nil {
		h = &history{}
	}
	switch v.mode {
	case modeCount:
		delete(rs.variables, v.key())
		r.takeCounts(v, h)
	case modeWatermark:
		delete(rs.variables, v.key())
		if len(h.handles) > 0 {
			rs.variables[v.key()] = &history{handles: h.handles}
		}
		r.takeFloors(v, h)
	}
	if v.mode != modeCount {
		return
	}
	now := shown{}
	if v.metric != nil {
		now = v.shownAs()
	}
	if c != (change{}) {
		v.keep().change = &c
		r.returning = append(r.returning, v)
	}
	for _, cell := range slices.Clone(v.list) {
		if known && v.metric != nil && (was.flags^now.flags)&shownStructure&^shownSeparate != 0 && was.moved > 0 {
			// It had these labels when its value had yet another meaning.
			cell.restart(was.moved)
		}
		r.changing(cell)
		if known && now.series != was.series && v.scale != was.scale && cell.timer != nil && !v.exact {
			*cell.timer = timer{hist: cell.timer.hist} // seconds that aren't seconds
			cell.timer.hist.clear()
		}
		cell.setCreated()
	}
	for _, h := range r.sparse {
		if h.v == v {
			r.fill(h)
		}
	}
}

// changing notes that a cell's first value is to change what it means.
func (r *Rank) changing(c *cell) {
	all := c.v.had().change
	if all == nil || c.changes() != nil || c.count.has {
		return
	}
	how := *all
	c.rarely().change = &how
	if how.hand && c.id.number != 0 {
		r.changing(r.cell(c.v, cellID{object: c.id.object, elem: c.id.elem}))
	}
}

// waiting is the returning variables with elements of which it is not known yet whether they have a cell, and whether the agent
// does not read one of them yet.
func (r *Rank) waiting() (unselected map[*variable]bool) {
	for _, h := range r.sparse {
		if h.v.had().was == nil || h.offset >= 0 && h.elems()[0].ok {
			continue
		}
		if unselected == nil {
			unselected = map[*variable]bool{}
		}
		unselected[h.v] = unselected[h.v] || h.offset < 0
	}
	return unselected
}

// doneReturning ends what is to happen to cells that come: elements have one only once it is known that they are not 0, which is
// when the agent reads them.
func (r *Rank) doneReturning() {
	waiting := r.waiting()
	r.returning = slices.DeleteFunc(r.returning, func(v *variable) bool {
		if _, ok := waiting[v]; ok {
			return false
		}
		p := v.keep()
		p.change, p.was = nil, nil
		if p.before != nil && slices.ContainsFunc(v.list, func(c *cell) bool { return c.changes() != nil }) {
			return false
		}
		p.before = nil
		if p.wraps == nil && p.kept == nil && p.moved == 0 {
			v.past = nil
		}
		return true
	})
}

func (r *Rank) takeCounts(v *variable, h *history) {
	for _, number := range h.handles {
		old := r.restored.handles[number]
		if old == nil || v.number == floating {
			continue
		}
		delete(r.restored.handles, number)
		for _, e := range old.elems {
			if e.wraps > 0 && !v.relative(old.origin != 0) {
				r.keepWraps(v, old.object, e.index, float64(e.wraps)*v.span())
			}
		}
	}
	type sums struct {
		exact   bool // its own observations are there
		resetAt int64
	}
	parts := map[*cell]*sums{}
	partsOf := func(c *cell) *sums {
		if parts[c] == nil {
			parts[c] = &sums{}
		}
		return parts[c]
	}
	var several int64 // newest reset of what is several cells now
	var later []*kept
	for i := range h.cells {
		k := &h.cells[i]
		if k.gone != 0 {
			r.takeWraps(v, k)
			k.gone = 0
		}
		if k.flags()&^(hasFloor|hasLow) == 0 && k.timer == nil && k.buckets == nil {
			if k.flags() != 0 { // of when it was a watermark
				v.keep().add(*k)
			}
			continue
		}
		id, how := r.fits(v, k)
		if how != alike {
			later = append(later, k)
		}
		switch how {
		case coarser:
			several = max(several, k.resetAt)
		case alike:
			c := r.cell(v, id)
			p := c.rarely()
			p.adjust += k.adjust
			p.resetAt = max(p.resetAt, k.resetAt)
			if id.number != 0 {
				p.begun = k.begun
			}
			if k.scale != 0 {
				p.change = &change{scale: k.scale}
			}
			switch {
			case k.buckets == nil:
			case c.exactly() != nil:
				c.takeBuckets(k.buckets, false)
			default:
				v.keep().add(kept{object: k.object, elem: k.elem, number: k.number, buckets: k.buckets})
			}
			if k.timer != nil && c.timer != nil && !v.exact {
				c.timer.join(k.timer.in(v))
				partsOf(c).exact = true
				r.dirty = r.dirty || k.timer.bounds != boundsHash(v.buckets) // other buckets, which must not fall either
			}
			if (c.timer == nil || v.exact) && k.timer != nil {
				v.keep().add(kept{object: k.object, elem: k.elem, number: k.number, timer: k.timer})
			}
		}
	}
	for _, k := range later {
		v.keep().add(*k)
		id, how := r.fits(v, k)
		if how != finer {
			continue
		}
		c := r.cell(v, id)
		c.rarely().base += k.adjust
		if c.exactly() != nil {
			c.takeBuckets(k.buckets, true)
		}
		p := partsOf(c)
		p.resetAt = max(p.resetAt, k.resetAt)
		if k.timer != nil && c.timer != nil && !p.exact && !v.exact {
			c.timer.join(k.timer.in(v))
		}
	}
	for c, p := range parts {
		c.restart(p.resetAt)
	}
	for _, c := range v.list {
		if p := c.rare; p != nil {
			if p.adjust += p.base; !finite(p.adjust + p.gone) { // nothing that was ever shown
				p.adjust, p.base, p.gone = 0, 0, 0
			}
		}
		c.restart(several)
	}
}

// restart notes that the series began anew at a time, if it did not do so later.
func (c *cell) restart(at int64) {
	if at > 0 {
		p := c.rarely()
		p.resetAt = max(p.resetAt, at)
	}
}

func (r *Rank) takeWraps(v *variable, k *kept) {
	v.keep().wrap(wrapped{k.object, k.elem}, k.gone)
	id := cellID{object: v.shown(k.object), elem: -1}
	if v.each != "" {
		if id.elem = int32(k.elem); k.elem < 0 {
			return // nobody knows which element's
		}
	}
	r.cell(v, id).rarely().gone += k.gone
}

func (r *Rank) takeFloors(v *variable, h *history) {
	for i := range h.cells {
		k := &h.cells[i]
		floor, known := k.floor, k.floorKnown && v.among() == MergeMax
		if v.among() == MergeMin {
			floor, known = k.low, k.lowKnown
		}
		id, how := r.fits(v, k)
		if known && how != coarser && (!v.nonzero || floor != 0) {
			id.number = 0
			c := r.cell(v, id)
			if p := c.seldom(); p.floorKnown {
				floor = combine(v.among(), p.floor, floor)
			}
			c.setFloor(floor)
		}
		if !known || how != alike {
			v.keep().add(*k)
		}
	}
}

// apply puts a change into effect, when the cell's first value is known.
func (c *cell) apply(r *Rank, total float64) {
	n, p, how := &c.count, c.rare, *c.rare.change
	p.change = nil
	r.dirty = true
	switch {
	case how.anew:
		p.adjust, n.restarted = -total, true
		c.turn(turnAnew)
		return
	case how.hand && c.id.number != 0:
		all := c.v.find(cellID{object: c.id.object, elem: c.id.elem})
		switch {
		case n.reset != nil:
			all.count.restarted = true
			return
		case all.changes() != nil: // it comes after those of its name
			all.changes().handed += total + p.adjust
		default:
			all.rarely().adjust += total + p.adjust
		}
		p.adjust, p.begun = -total, r.now
		c.turn(turnHand)
		if c.timer != nil {
			c.timer.recount = true
		}
		c.setCreated()
		return
	}
	scale := how.scale
	if scale == 0 {
		scale = c.v.scale
	}
	was := (total + how.handed + p.adjust) * scale
	p.adjust = was/c.v.scale - total
	for range 4 { // not less, by not even a digit
		if (total+p.adjust)*c.v.scale >= was {
			break
		}
		x := max(math.Abs(p.adjust), math.Abs(total))
		p.adjust += math.Nextafter(x, math.Inf(1)) - x
	}
}

// kept is what the blob is to have of a cell, but for its observations.
func (c *cell) kept() kept {
	p := c.seldom()
	k := kept{object: c.id.object, elem: int(c.id.elem), number: c.id.number}
	switch c.v.mode {
	case modeCount:
		switch {
		case p.change != nil:
			k.scale = p.change.scale
		case c.v.had().before != nil && c.count.has:
			k.scale = c.v.scale
		}
		k.resetAt, k.begun, k.adjust = p.resetAt, p.begun, p.adjust-p.base
		if p.base != 0 && p.base+k.adjust < p.adjust {
			k.adjust = math.Nextafter(k.adjust, math.Inf(1))
		}
		k.buckets = c.keptBuckets()
	case modeWatermark:
		switch c.v.among() {
		case MergeMax:
			k.floor, k.floorKnown = p.floor, p.floorKnown
		case MergeMin:
			k.low, k.lowKnown = p.floor, p.floorKnown
		}
	}
	return k
}

// observed is what the blob is to have of a cell's observations.
func (c *cell) observed() *observed {
	t := c.timer
	o := &observed{
		seconds: t.seconds, events: t.events, companion: c.v.companionHash(), bounds: boundsHash(c.v.buckets),
		native: t.hist.Native, zero: t.hist.NativeZero,
	}
	if t.recount {
		o.companion = 0
	}
	for i, n := range t.hist.Counts {
		if n > 0 {
			o.counts = append(o.counts, NativeBucket{int32(i), n})
		}
	}
	return o
}

// companionHash tells companions apart, and 0 is none.
func (v *variable) companionHash() uint32 {
	if v.with == nil {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(v.with.key().name + "\x00" + strconv.FormatFloat(v.with.scale, 'g', -1, 64)))
	return min(max(h.Sum32(), 1), anyCompanion-1)
}

// in is the observations in the buckets of a variable. Where they were made with other bounds, native buckets say where they
// stand: each goes where its lower edge belongs, so that no cumulative count of a bound that both have is less than it was.
func (o *observed) in(v *variable) *timer {
	made := newTimer(v.buckets)
	t := &made
	t.seconds, t.events = o.seconds, o.events
	t.recount = v.with != nil && o.companion != v.companionHash() && o.companion != anyCompanion
	h := &t.hist
	h.Native, h.NativeZero, h.Count = slices.Clone(o.native), o.zero, o.zero
	for _, b := range o.native {
		h.Count += b.Count
	}
	if o.bounds == boundsHash(v.buckets) && !slices.ContainsFunc(o.counts, func(b NativeBucket) bool { return int(b.Index) >= len(h.Counts) }) {
		for _, b := range o.counts {
			h.Counts[b.Index] += b.Count
		}
		return t
	}
	h.Counts[0] += o.zero
	for _, b := range o.native {
		lower := math.Exp2(float64(b.Index-1) / (1 << NativeSchema))
		h.Counts[sort.Search(len(h.Bounds), func(i int) bool { return h.Bounds[i] > lower })] += b.Count
	}
	return t
}
