package series

import (
	"math"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// element is the value of one element of a handle of a class that only grows.
type element struct {
	last  uint64 // the last good value; before one was read, that at the handle's making or the object's last rename
	wraps uint32 // since then
	ok    bool   // a good value has been read
}

// begin sets an element to what it was when the handle was made, or the object got its name.
func (e *element) begin(w uint64) { *e = element{last: w} }

// take takes a value. One that went from the top quarter of its range to the bottom quarter has wrapped, but for one of
// 64 bits that began at zero, which never comes there; with judge false nobody can say that, since something else than
// the program's counting moved it. Any other fall is a reset, which needs no mark: the sum that the element is a part
// of falls (Count).
func (e *element) take(v *mapping.Spec, w uint64, judge bool) {
	if judge && v.Number != mapping.Floating && (v.Bits < 64 || v.Offset) && v.Number.Quarter(e.last, v.Bits) == 3 &&
		v.Number.Quarter(w, v.Bits) == 0 &&
		e.wraps < math.MaxUint32 {
		e.wraps++
	}
	e.last, e.ok = w, true
}
