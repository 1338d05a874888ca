package series

import (
	"math"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// handle is an open handle of the rank. There are very many.
type handle struct {
	of     *mpit.Handle // in the layout that it was last seen in
	base   *mpit.Handle // the same of the last good value, whose Origin and Excluded that value goes with
	v      *variable
	name   string    // the object's, whatever it is called in cells
	elems  []element // of a distribution its sum alone; none: it can't be what its variable is, and is not read
	value  float64   // of gauges, elements merged, unscaled
	solo   uint32    // the object's number, where its cells are not those of all that share the name
	seen   uint32    // generation
	failed bool      // in this Update
	ok     bool      // there is a value
}

// element is one element of a handle. The values are those of what only grows.
type element struct {
	cell  *cell  // nil: it has always been 0 and needs none, or found no room, or is not shown
	last  uint64 // the last good value; before one was read, that at the handle's making or the object's last rename
	wraps uint32 // since then
	ok    bool   // a good value has been read
	late  bool   // in this Update, for the first time
}

// take takes a value. One that went from the top quarter of its range to the bottom quarter has wrapped, but for one of
// 64 bits that began at zero, which never comes there; with judge false nobody can say that, since something else than
// the program's counting moved it. Any other fall is a reset, which needs no mark: the sum that the element is a part
// of falls (Count).
func (e *element) take(v *mapping.Spec, w uint64, judge bool) {
	if judge && v.Number != mapping.Floating && (v.Bits < 64 || v.Offset) && v.Number.Quarter(e.last, v.Bits) == 3 &&
		v.Number.Quarter(w, v.Bits) == 0 && e.wraps < math.MaxUint32 {
		e.wraps++
	}
	e.last, e.ok = w, true
}

// words are the handle's values in a sample; false: it has none there.
func (h *handle) words(values []uint64) ([]uint64, bool) {
	from, n := h.of.Offset, h.of.Count
	if from < 0 || from > len(values) || n > len(values)-from {
		return nil, false
	}
	return values[from : from+n], true
}

// baseOf is what is subtracted from an element: the value at its last rename, or, where the variable goes on from an
// offset, when the handle was made; of a TIMER what all of the process began at, if the handle was made later.
func (v *variable) baseOf(of *mpit.Handle, i int) uint64 {
	switch {
	case of.Earlier == nil:
	case i < len(of.Earlier.Origin):
		return of.Earlier.Origin[i]
	case v.Offset && i < len(of.Earlier.First):
		return v.start.of(of.Earlier.First[i], of.Created)
	}
	return 0
}

// excludedOf is what MPI_Pcontrol(0) has kept out of an element, as int64 or double bits.
func excludedOf(of *mpit.Handle, i int) uint64 {
	if of.Earlier != nil && i < len(of.Earlier.Excluded) {
		return of.Earlier.Excluded[i]
	}
	return 0
}

// amountOf is what an element of that value has counted since the handle was made, or the object got its name, but
// for what MPI_Pcontrol(0) kept out.
func (v *variable) amountOf(of *mpit.Handle, i int, w uint64, wraps uint32) float64 {
	return v.Number.Grown(w, v.baseOf(of, i), excludedOf(of, i), wraps, v.Bits)
}

// amount is the same of the last good value. It is never below zero: a value from before the object's rename counts
// nothing under the new name.
func (h *handle) amount(i int) float64 {
	e := &h.elems[i]
	return max(0, h.v.amountOf(h.base, i, e.last, e.wraps))
}

// moved says whether an element is not 0, or has counted anything, once it has that value.
func (h *handle) moved(i int, w uint64) bool {
	if h.v.Mode != mapping.ModeCount {
		return h.v.Number.Float(w) != 0
	}
	e := h.elems[i]
	e.take(h.v.Spec, w, alike(h.base, h.of))
	return e.wraps > 0 || h.v.amountOf(h.of, i, w, e.wraps) > 0
}

// alike says whether two records of a handle subtract the same.
func alike(a, b *mpit.Handle) bool {
	if a == b || a.Earlier == b.Earlier {
		return true
	}
	x, y := a.Before(), b.Before()
	return slices.Equal(x.Origin, y.Origin) && slices.Equal(x.Excluded, y.Excluded)
}

// begin sets all elements to where the handle's count under its present name begins. Nothing had been excluded there.
func (h *handle) begin() {
	before := h.of.Before()
	if before.Excluded != nil {
		then, earlier := *h.of, before
		earlier.Excluded = nil
		then.Earlier = &earlier
		h.base = &then
	}
	for i := range h.elems {
		first := uint64(0)
		switch {
		case i < len(before.Origin):
			first = before.Origin[i]
		case i < len(before.First):
			first = before.First[i]
		}
		e := &h.elems[i]
		e.last, e.wraps, e.ok = first, 0, false
	}
}

// rename begins the handle's contribution to a new name, with the values at the rename. What it had counted until
// then is among the remains of the old one.
func (h *handle) rename(lh *mpit.Handle) {
	h.of, h.base = lh, lh
	h.begin()
	for i := range h.elems {
		h.elems[i].ok = h.ok
	}
}

// read brings one handle's values to its cells.
func (h *handle) read(in *intake) {
	values, fresh := h.words(in.values)
	fresh = fresh && !h.failed
	switch {
	case len(h.elems) == 0:
	case h.v.Mode == mapping.ModeCount:
		h.readCount(in, values, fresh)
	case h.v.Mode == mapping.ModeState || !h.v.Merged(len(h.elems)):
		h.readEach(in, values, fresh)
	default:
		h.readMerged(in, values, fresh)
	}
}

// readCount takes the elements of a handle in. One that could not be read counts as what it was.
func (h *handle) readCount(in *intake, values []uint64, fresh bool) {
	fresh = fresh && h.good(in, values)
	judge := fresh && alike(h.base, h.of)
	if fresh {
		h.base = h.of
	}
	h.ok = fresh
	for i := range h.elems {
		e := &h.elems[i]
		e.late = fresh && !e.ok
		if fresh {
			e.take(h.v.Spec, values[i], judge)
		}
		c := e.cell
		if c == nil {
			continue
		}
		c.want++
		if !e.ok || h.v.Exact && !fresh {
			continue
		}
		x := h.amount(i)
		if e.late && c.anew && h.before(h.v.of.Since) {
			c.count.SkipPart(x)
		}
		c.sum += x
		c.known++
	}
}

// before says whether the handle was made before a moment in Unix nanoseconds.
func (h *handle) before(at int64) bool { return mapping.UnixNano(h.of.Created) < at }

// good says whether values are what a class that only grows can have. Else the handle counts as not read.
func (h *handle) good(in *intake, values []uint64) bool {
	v := h.v
	if v.Number == mapping.Unsigned {
		return true
	}
	for i, next := range h.elems {
		w := values[i]
		if v.Number == mapping.Floating && (!mapping.Finite(math.Float64frombits(w)) ||
			!mapping.Finite(math.Float64frombits(excludedOf(h.of, i)))) {
			in.dropped[mapping.ReasonNotANumber]++
			return false
		}
		// Below zero is no count, unless it has come there by a wrap, now or earlier.
		if v.Offset || v.Number.Float(w) >= 0 {
			continue
		}
		next.take(v.Spec, w, alike(h.base, h.of))
		if v.amountOf(h.of, i, w, next.wraps) < 0 {
			in.dropped[mapping.ReasonNegative]++
			return false
		}
	}
	return true
}

// readEach takes in the elements of a gauge or a STATE that have a cell each.
func (h *handle) readEach(in *intake, values []uint64, fresh bool) {
	for i := range h.elems {
		c := h.elems[i].cell
		if c == nil {
			continue
		}
		if c.want++; !fresh {
			continue
		}
		if c.state != nil {
			c.known++
			c.state.now = int64(values[i])
			if h.v.Number == mapping.Floating {
				c.state.now = int64(h.v.Number.Float(values[i]))
			}
		} else if x, reason := h.v.gauge(values[i]); reason == "" {
			c.merge(h.v.Objects, x)
		} else {
			in.dropped[reason]++
		}
	}
}

// readMerged merges the elements of a gauge, then objects. A watermark that could not be read is still what it was.
func (h *handle) readMerged(in *intake, values []uint64, fresh bool) {
	v := h.v
	switch {
	case fresh:
		h.ok = true
		for i, w := range values {
			x, reason := v.gauge(w)
			if reason != "" {
				h.ok = false
				in.dropped[reason]++
				break
			}
			if i == 0 {
				h.value = x
			} else {
				h.value = v.Elements.Combine(h.value, x)
			}
		}
	case v.Mode != mapping.ModeWatermark:
		h.ok = false
	}
	if c := h.elems[0].cell; c != nil {
		if c.want++; h.ok {
			c.merge(v.Objects, h.value)
		}
	}
}

// gauge is the value of a word of a sample, or why it is none.
func (v *variable) gauge(w uint64) (float64, mapping.Reason) {
	x := v.Number.Float(w)
	if !mapping.Finite(x) {
		return 0, mapping.ReasonNotANumber
	}
	if v.Real == mpit.ClassPercentage {
		const digit = 1e-9 // sums of shares are rounded
		switch share := x * v.Scale; {
		case share < -digit || share > 1+digit:
			return 0, mapping.ReasonOutOfRange
		case share < 0:
			return 0, ""
		case share > 1:
			return 1 / v.Scale, ""
		}
	}
	return x, ""
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
