package mapping

import "math"

// Count is what has been counted of something that only grows, as long as somebody looks: it never falls, and counts
// nothing twice. The zero Count has counted nothing and knows no value yet.
type Count struct {
	total float64
	last  float64 // the value at the last Take
	known bool    // there has been one
}

// Total is what has been counted.
func (c *Count) Total() float64 { return c.total }

// Known says whether there has been a value.
func (c *Count) Known() bool { return c.known }

// Take takes the present value and returns what has been gained since the last one. The first value counts as a
// whole. A value that is less than the last one was reset, or a part of it is missing: nothing was gained, and
// counting goes on from there. Values that are not finite are passed over, and so is what would make the total so.
func (c *Count) Take(value float64) (gained float64) {
	if !finite(value) {
		return 0
	}
	had, last := c.total, c.last
	if !c.known {
		had, last = 0, 0
	}
	c.last, c.known = value, true
	if value <= last {
		return 0
	}
	total := had + (value - last)
	if had == last {
		total = value // nothing has ever fallen: no sum that is rounded time after time
	}
	if !finite(total) {
		return 0
	}
	c.total = total
	return total - had
}

// Skip takes a value of which nothing counts: the total stays what it is, and counting goes on from there.
func (c *Count) Skip(value float64) {
	if finite(value) {
		c.last, c.known = value, true
	}
}

// SkipPart is Skip for a part of the value that has become known and was counted before anybody looked.
func (c *Count) SkipPart(value float64) {
	if c.known && finite(c.last+value) {
		c.last += value
	}
}

// takeAll is Take for many values at once, as the buckets of a histogram are: last are those of the last time, and
// become those of this one. total[k] grows by what values[k] has gained.
func takeAll(total, last, values []uint64) {
	for k, x := range values {
		if x > last[k] {
			total[k] = min(total[k]+(x-last[k]), maxEvents)
		}
		last[k] = x
	}
}

func finite(x float64) bool { return x-x == 0 }

// element is the value of one element of a handle of a class that only grows.
type element struct {
	last  uint64 // the last good value; before one was read, that at the handle's making or the object's last rename
	wraps uint32 // since then
	ok    bool   // a good value has been read
}

// begin sets an element to what it was when the handle was made, or the object got its name.
func (e *element) begin(w uint64) { *e = element{last: w} }

// take takes a value. One that went from the top quarter of a range of fewer than 64 bits to the bottom quarter has
// wrapped; with judge false nobody can say that, since something else than the program's counting moved it. Any other
// fall is a reset, which needs no mark: the sum that the element is a part of falls (Count).
func (e *element) take(v *spec, w uint64, judge bool) {
	if judge && v.number != floating && v.bits < 64 && v.number.quarter(e.last, v.bits) == 3 && v.number.quarter(w, v.bits) == 0 &&
		e.wraps < math.MaxUint32 {
		e.wraps++
	}
	e.last, e.ok = w, true
}
