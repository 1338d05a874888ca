package series

import (
	"math"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// handle is an open handle of the rank.
type handle struct {
	of     *mpit.Handle // in the layout that it was last seen in
	base   *mpit.Handle // the same of the last good value, whose Origin and Excluded that value goes with
	v      *variable
	name   string  // the object's, whatever it is called in cells
	value  float64 // of gauges, elements merged, unscaled
	solo   uint32  // the object's number, where its cells are not those of all that share the name
	seen   uint32  // generation
	offset int32
	n      int32
	failed bool // in this Update
	ok     bool // there is a value
	placed bool // it has cells
	wrong  bool // it can't be what its variable is, and is not read

	// Most have one element. Others have what follows in several.
	one     [1]*cell
	elem    [1]element // ModeCount
	several *several

	timers *timersOf // nil: it is no companion
}

// several is the cells and elements of a handle that has more than one.
type several struct {
	cells []*cell   // one, or one for each element; nil for those that have none
	elems []element // ModeCount
}

// timersOf is the cells of timers that a companion's handle counts the events of: for each timer one, or one for each
// element.
type timersOf [][]*cell

// cells is one, or one for each element; nil for those that have always been 0 and need none, and for those that find
// no room. None: it has not been placed.
func (h *handle) cells() []*cell {
	switch {
	case h.several != nil:
		return h.several.cells
	case h.placed:
		return h.one[:]
	}
	return nil
}

// elems is the elements, of ModeCount only.
func (h *handle) elems() []element {
	switch {
	case h.several != nil:
		return h.several.elems
	case h.v.Mode == mapping.ModeCount:
		return h.elem[:]
	}
	return nil
}

// cell is that of an element; nil: it has none.
func (h *handle) cell(i int) *cell { return pick(h.cells(), i) }

func pick(cells []*cell, i int) *cell {
	switch len(cells) {
	case 0:
		return nil
	case 1:
		return cells[0]
	}
	return cells[i]
}

// words are the handle's values in a sample; false: it has none there.
func (h *handle) words(values []uint64) ([]uint64, bool) {
	from, n := int(h.offset), int(h.n)
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
	e := &h.elems()[i]
	return max(0, h.v.amountOf(h.base, i, e.last, e.wraps))
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
	elems, before := h.elems(), h.of.Before()
	if before.Excluded != nil {
		then, earlier := *h.of, before
		earlier.Excluded = nil
		then.Earlier = &earlier
		h.base = &then
	}
	for i := range elems {
		first := uint64(0)
		switch {
		case i < len(before.Origin):
			first = before.Origin[i]
		case i < len(before.First):
			first = before.First[i]
		}
		elems[i].begin(first)
	}
}

// rename begins the handle's contribution to a new name, with the values at the rename. What it had counted until
// then is among the remains of the old one.
func (h *handle) rename(lh *mpit.Handle) {
	h.of, h.base = lh, lh
	known := h.ok
	h.begin()
	elems := h.elems()
	for i := range elems {
		elems[i].ok = known
	}
}

// read brings one handle's values to its cells.
func (h *handle) read(in *intake) {
	if h.wrong {
		return
	}
	values, fresh := h.words(in.values)
	fresh = fresh && !h.failed
	switch h.v.Mode {
	case mapping.ModeCount:
		h.readCount(in, values, fresh)
	case mapping.ModeState:
		for i := range int(h.n) {
			c := h.cell(i)
			if c == nil {
				continue
			}
			c.want++
			if fresh {
				c.known++
				c.state.now = stateOf(h.v.Number, values[i])
			}
		}
	default:
		h.readGauge(in, values, fresh)
	}
}

func stateOf(n mapping.Number, w uint64) int64 {
	if n == mapping.Floating {
		return int64(n.Float(w))
	}
	return int64(w)
}

// readCount takes the elements of a handle in. One that could not be read counts as what it was.
func (h *handle) readCount(in *intake, values []uint64, fresh bool) {
	fresh = fresh && h.good(in, values)
	judge := fresh && alike(h.base, h.of)
	if fresh {
		h.base = h.of
	}
	elems := h.elems()
	for i := range elems {
		e := &elems[i]
		late := !e.ok
		if fresh {
			e.take(h.v.Spec, values[i], judge)
		}
		h.ok = fresh
		if !e.ok {
			continue
		}
		x := h.amount(i)
		if c := h.cell(i); c != nil && (!h.v.Exact || fresh) {
			if late && c.anew && h.before(h.v.of.Since) {
				c.count.SkipPart(x)
			}
			c.sum += x
			c.known++
		}
		if h.timers == nil {
			continue
		}
		for _, cells := range *h.timers {
			if c := pick(cells, i); c != nil {
				if late && c.anew && h.before(c.v.of.Since) {
					c.timer.estimate.events.SkipPart(x)
				}
				c.timer.estimate.sum += x
				c.timer.estimate.known = true
			}
		}
	}
	cells := h.cells()
	for _, c := range cells {
		if c != nil {
			c.want += int32(len(elems) / len(cells))
		}
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
	elems := h.elems()
	for i := range elems {
		w := values[i]
		if v.Number == mapping.Floating && (!mapping.Finite(math.Float64frombits(w)) ||
			!mapping.Finite(math.Float64frombits(excludedOf(h.of, i)))) {
			in.dropped[mapping.ReasonNotANumber]++
			return false
		}
		// Below zero is no count, unless it has come there by a wrap, now or earlier.
		if v.Offset || !v.Number.Less(w, 0) { // the bits of 0 are those of 0.0
			continue
		}
		next := elems[i]
		next.take(v.Spec, w, alike(h.base, h.of))
		if v.amountOf(h.of, i, w, next.wraps) < 0 {
			in.dropped[mapping.ReasonNegative]++
			return false
		}
	}
	return true
}

// readGauge merges elements, then objects. A watermark that could not be read is still what it was.
func (h *handle) readGauge(in *intake, values []uint64, fresh bool) {
	v := h.v
	if !v.Merged(int(h.n)) {
		for i, c := range h.cells() {
			if c == nil {
				continue
			}
			c.want++
			if !fresh {
				continue
			}
			if x, reason := v.gauge(values[i]); reason == "" {
				c.merge(v.Objects, x)
				h.value = x
			} else {
				in.dropped[reason]++
			}
		}
		h.ok = fresh
		return
	}
	if fresh {
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
				h.value = combine(v.Elements, h.value, x)
			}
		}
		if v.Elements == mapping.MergeMean {
			h.value /= float64(h.n)
		}
	} else if v.Mode != mapping.ModeWatermark {
		h.ok = false
	}
	if c := h.cell(0); c != nil {
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

func combine(m mapping.Merge, a, b float64) float64 {
	switch m {
	case mapping.MergeMax:
		return max(a, b)
	case mapping.MergeMin:
		return min(a, b)
	}
	return a + b
}
