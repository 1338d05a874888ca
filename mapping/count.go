package mapping

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
	if !Finite(value) {
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
	if !Finite(total) {
		return 0
	}
	c.total = total
	return total - had
}

// Skip takes a value of which nothing counts: the total stays what it is, and counting goes on from there.
func (c *Count) Skip(value float64) {
	if Finite(value) {
		c.last, c.known = value, true
	}
}

// SkipPart is Skip for a part of the value that has become known and was counted before anybody looked.
func (c *Count) SkipPart(value float64) {
	if c.known && Finite(c.last+value) {
		c.last += value
	}
}

// Set makes value the total, of something that doesn't only grow.
func (c *Count) Set(value float64) { c.total, c.known = value, true }

// Finite says whether x is neither infinite nor not a number.
func Finite(x float64) bool { return x-x == 0 }
