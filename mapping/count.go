package mapping

import (
	"math"
	"time"
)

// element is one element of a handle of a class that only grows.
type element struct {
	last     uint64 // the last good value; before one was read, the value at the handle's making
	excluded uint64 // what MPI_Pcontrol(0) had kept out by then: int64 or double bits
	wraps    uint32 // outside of MPI_Pcontrol(0)
	ok       bool   // a good value has been read
	earlier  bool   // last is from the blob: the bottom of the quarter it stood in
	quarter  uint8  // of last, as the blob knows it
}

// count is what a cell of a class that only grows keeps. Amounts are in the variable's own unit.
type count struct {
	total float64 // at the last Update, before what is added to it (rare.adjust)
	value float64 // at the last Update
	reset *resets // contributions that were reset in the running Update; nil none

	has       bool  // total and value are set
	waited    uint8 // Updates in which a part was missing, before has
	restarted bool  // in the running Update
	rounded   bool  // in the running Update what is excluded has changed, so that the rest may be a digit less than it was
}

// resets is what contributions that were reset have to do with a cell.
type resets struct {
	gain          float64 // what they have counted since
	before, after float64 // what they contributed to total
}

// readCount takes the elements of a handle in. One that could not be read counts as what it was.
func (h *handle) readCount(r *Rank, values []uint64, fresh bool) {
	elems := h.elems()
	for i := range elems {
		e, c := &elems[i], h.cell(i)
		if c == nil { // it has never counted anything
			c = &r.nowhere
			c.count = count{}
		}
		if fresh {
			h.step(r, e, c, i, values[i])
		}
		h.ok = fresh
		c.want++
		c.unselected = c.unselected || h.offset < 0
		if !e.ok || h.v.exact && !fresh && !c.count.has {
			continue // of a distribution only the time is remembered: its buckets are there when all are read
		}
		if x := h.amount(e, i); finite(x) {
			c.sum += x
			c.known++
		} else {
			r.dropped[ReasonNotANumber]++
		}
	}
}

// amount is what an element has counted since the handle was made, or the object got its name, except while the program had
// switched that off.
func (h *handle) amount(e *element, i int) float64 {
	return h.v.number.grown(e.last, h.base(i), e.excluded, e.wraps, h.v.bits)
}

// span is how much a wrap stands for.
func (v *variable) span() float64 { return math.Ldexp(1, int(v.bits)) }

// step takes one new value of an element. A value that falls has wrapped if it went from the top quarter of its
// datatype's range to the bottom quarter; otherwise it was reset.
//
// Between the last value and this one, the program may have switched observation off for a while. What the value gained
// then, or lost by a reset or a wrap, is known: the last value is moved by as much before the two are compared. So what
// happens while nobody is to look is neither a wrap nor a reset, and never shows.
func (h *handle) step(r *Rank, e *element, c *cell, i int, w uint64) {
	v := h.v
	if v.number == floating && !finite(math.Float64frombits(w)) {
		r.dropped[ReasonNotANumber]++
		return
	}
	excluded := h.excludedOf(i)
	if v.number == floating && !finite(math.Float64frombits(excluded)) {
		r.dropped[ReasonNotANumber]++
		return
	}
	last, moved, wraps := e.last, uint64(0), uint32(0)
	if excluded != e.excluded {
		c.count.rounded = true
		moved = v.number.difference(excluded, e.excluded)
		last, wraps = v.number.shift(last, moved, v.bits)
	}
	// Below zero is no count, unless it has come there by a wrap: one seen here, one before the object's last rename, or one
	// that is excluded.
	negative := !v.offset && v.number.less(w, 0) && // the bits of 0 are those of 0.0
		wraps == 0 && e.wraps == 0 && (!h.based || !v.number.less(h.base(i), 0)) && v.number.gained(w, 0, excluded) < 0
	if !v.number.less(w, last) {
		if negative {
			r.dropped[ReasonNegative]++
			return
		}
		e.accept(r, h, w, excluded, wraps)
		return
	}
	if v.number != floating && v.number.quarter(last, v.bits) == 3 && v.number.quarter(w, v.bits) == 0 {
		e.accept(r, h, w, excluded, wraps+1)
		return
	}
	if r.paused && h.based && v.number.less(w, h.base(i)) {
		e.ok = e.ok || !e.earlier
		return // an object renamed during the pause: the value is older than the name
	}
	if negative {
		r.dropped[ReasonNegative]++
		return
	}
	if v.number == floating {
		// Sums of doubles are not always in the same order.
		x := math.Abs(math.Float64frombits(e.last))
		few := 4 * (math.Nextafter(x, math.Inf(1)) - x)
		if excluded != e.excluded {
			// Each pause has rounded once more, and values may have been larger then.
			few = max(x, math.Abs(math.Float64frombits(excluded)), math.Abs(math.Float64frombits(e.excluded))) / (1 << 40)
		}
		if math.Float64frombits(last)-math.Float64frombits(w) <= few {
			if excluded != e.excluded {
				e.accept(r, h, w, excluded, 0)
			}
			e.ok = true // as good as the one at the handle's making, or the rename
			return
		}
	}
	// A fall before anything was shown concerns nobody, except that a sample before a restart was shown.
	shown, known := e.ok || e.earlier, e.ok
	old := h.amount(e, i)
	e.wraps = 0
	e.accept(r, h, w, excluded, 0)
	if !shown {
		return
	}
	if c.count.reset == nil {
		c.count.reset = &resets{}
	}
	t := c.count.reset
	t.after += h.amount(e, i)
	if known {
		t.before += old
	}
	if !v.offset {
		// Nobody knows which came first, the reset or the pause; what may have been counted in the pause is left out.
		t.gain += max(0, v.number.float(w)-max(0, remainFloat(v.number, moved)))
	}
}

// excludedOf is what is to be subtracted from an element, as int64 or double bits.
func (h *handle) excludedOf(i int) uint64 {
	if !h.gaps {
		return 0
	}
	return h.of.Excluded[i]
}

func (e *element) accept(r *Rank, h *handle, w, excluded uint64, wraps uint32) {
	e.last, e.excluded, e.ok, e.earlier = w, excluded, true, false
	if wraps > 0 {
		e.wraps = min(e.wraps, math.MaxUint32-wraps) + wraps
		r.dirty = true
	}
	if h.v.number == floating {
		return
	}
	if q := h.v.number.quarter(w, h.v.bits); q != e.quarter {
		e.quarter, r.dirty = q, true
	}
}

// maxWait is how many Updates of a restarted exporter may wait for a part that can't be read.
const maxWait = 2

// settle makes the value of a cell out of its parts.
func (c *cell) settle(r *Rank, now time.Time) {
	n := &c.count
	if how := c.changes(); how != nil && how.hand && c.id.number != 0 && c.known < c.want {
		// The series of its name, which comes after it, can't have what this one is to hand over to it yet.
		if all := c.v.find(cellID{object: c.id.object, elem: c.id.elem}); all != nil {
			all.want++
			all.unselected = all.unselected || c.unselected
		}
	}
	if how := c.changes(); c.known == 0 && !n.has && !c.seldom().fixedKnown && !c.hasHistory() && (how == nil || how.handed == 0) {
		if c.series != nil {
			c.series.Valid = false
		}
		return
	}
	if r.again && !n.has && c.known < c.want && (c.unselected || n.waited < maxWait) {
		// An earlier exporter has shown the sum with the part that could not be read now, or is not yet read again.
		if !c.unselected {
			n.waited++
		}
		if c.series != nil {
			c.series.Valid = false
		}
		return
	}
	total, adjust, fixed := c.sum, 0.0, false
	if p := c.rare; p != nil {
		total += p.fixed + p.gone
		if p.change != nil {
			c.apply(r, total)
		}
		adjust, fixed = p.adjust, p.fixedKnown
	}
	value := total + adjust
	switch {
	case n.reset != nil:
		if n.has {
			// The series starts anew: with what the reset parts have counted since, and what the others have gained
			// in the meantime. What all others had before would otherwise count twice.
			others := max(0, (total-n.reset.after)-(n.total-n.reset.before))
			value = n.reset.gain + others
			c.rarely().adjust = value - total
		}
		n.restarted = true
	case n.has && value < n.value:
		lost := n.value - value
		if r.rebuilt || n.rounded {
			// The last values of a freed object were never seen here: they may have wrapped.
			if span := c.v.span(); c.v.number != floating && c.v.bits < 64 && fixed && lost >= span/2 && lost < span {
				adjust += span
				value += span
			}
			// Something is missing among the remains, or sums were rounded otherwise; what has been shown must not
			// fall, not even by a digit: Prometheus takes every fall for a reset.
			ulp := math.Nextafter(n.value, math.Inf(1)) - n.value
			for range 4 {
				if value >= n.value {
					break
				}
				adjust += max(n.value-value, ulp)
				value = total + adjust
			}
			value = max(value, n.value)
			c.rarely().adjust = adjust
			r.dirty = true
		} else {
			value = n.value
		}
	}
	if value < 0 {
		c.rarely().adjust -= value
		value = 0
		n.restarted = n.restarted || n.has
		r.dirty = true
	}
	if n.restarted {
		c.rarely().resetAt, r.dirty = now.UnixNano(), true
		c.setCreated()
	}
	n.total, n.value, n.has = total, value, true
	if c.series != nil {
		c.series.Value, c.series.Valid = value*c.v.scale, true
	}
}

// hasHistory says whether the exporter itself has something to add to the cell.
func (c *cell) hasHistory() bool {
	if d := c.exactly(); d != nil && d.hasCorrections() {
		return true
	}
	return c.rare != nil && (c.rare.gone != 0 || c.rare.adjust != 0) || c.timer != nil && c.timer.hist.Count > 0
}

// setCreated puts the moment where the series' value was zero.
func (c *cell) setCreated() {
	at := c.created
	if c.rare != nil {
		at = max(at, c.rare.resetAt, c.rare.begun)
	}
	if c.series != nil && at > 0 {
		c.series.Since = at
	}
}
