package mapping

import (
	"math"
	"slices"
	"strconv"
)

// Other is the name of the object, and the number of the element, into which fold those that find no room for series of their
// own.
const Other = "other"

// otherElement is the number of no element.
const otherElement = maxBlobElements

// A folded cell goes on as before, but has no series: what it holds stands in the series of the variable's cell other. Of what
// only grows, each cell's value has two parts, that which its own series shows, or has shown, and that which other does; so
// cells can fold, and get series again, with no series ever falling or jumping.

// folding is how a cell takes part in other.
type folding struct {
	folded  bool
	pending bool // to become the opposite of folded, as soon as the value is known
	exposed bool // an earlier exporter may have shown the value
}

// portion divides a value that only grows between the cell's own series and other.
type portion struct {
	part float64 // of a folded cell what belongs to its own series; else what belongs to other
	last float64 // the value at the last Update
}

// rest is what the cell other has besides a cell's own values.
type rest struct {
	value, events sum
	waited        uint8 // Updates in which a part was missing, before value.has

	level      float64 // of gauges: what folded cells have of objects that are no more
	levelKnown bool
}

// sum is what of other is a sum of cells' parts.
type sum struct {
	kept  float64 // parts of cells that are no more, or were reset
	total float64 // all together at the last Update, with what the cell itself counts
	has   bool    // total is set
}

// otherID is the id of the variable's cell other. Variables that are never merged have none.
func (v *variable) otherID() cellID {
	id := cellID{elem: -1}
	if v.label != "" {
		id.object = Other
	}
	if v.each != "" {
		id.elem = otherElement
	}
	return id
}

func elementName(n int) string {
	if n == otherElement {
		return Other
	}
	return strconv.Itoa(n)
}

// ensureOther makes the cell other where it is needed, and takes it out where it isn't any more.
func (r *Rank) ensureOther(s *share) {
	v, needed := s.v, s.cells(s.own) > s.own
	switch {
	case needed && (s.other == nil || s.other.rest() == nil) && s.own < s.n:
		c := s.other
		if c == nil {
			c = r.cell(v, v.otherID())
			c.seen = 0 // no object has that name
			v.sort()
		}
		c.rarely().rest = &rest{}
		v.other = c
		r.dirty = r.dirty || v.mode == modeCount
	case !needed && s.other != nil:
		delete(v.cells, s.other.id)
		v.list = slices.DeleteFunc(v.list, func(c *cell) bool { return c == s.other })
		v.other = nil
	}
}

// hide takes the series from a cell.
func (c *cell) hide() {
	if c.series = nil; c.state != nil {
		c.state.series, c.state.outside = nil, nil
	}
	if c.timer != nil && c.timer.exact == nil && c.timer.hist.Count == 0 {
		c.timer = nil
	}
}

// fold lets a cell count for other from here on.
func (r *Rank) fold(c *cell) {
	if c.pending = false; c.folded || c.v.mode != modeCount {
		c.folded = true
		return
	}
	since := r.now // when what it counts for other was zero
	switch {
	case c.count.has:
		c.flip(r)
	case c.exposed:
		c.pending = true
	default: // nobody has ever seen it by itself
		c.folded, since = true, c.created
	}
	if f := c.v.other; !f.rest().value.has {
		f.since(since)
	}
}

// unfold gives a cell series of its own again, which begin at zero, or where they ended.
func (r *Rank) unfold(c *cell) {
	switch c.pending = false; {
	case !c.folded:
	case c.v.mode != modeCount:
		c.folded = false
	case c.count.has:
		c.flip(r)
	default:
		c.pending = true
	}
}

func (c *cell) flip(r *Rank) {
	c.folded = !c.folded
	p := c.rarely()
	p.value.flip(c.count.value)
	if n, _, known := c.companionCount(); known {
		p.events.flip(n)
	}
	if c.exactly() != nil {
		c.flipBuckets()
	}
	if !c.folded && p.value.own(false, c.count.value) == 0 {
		// Its series begins now. One that goes on where it ended began when it did: with a later beginning, who adds up would take what it
		// had for new.
		p.resetAt = max(p.resetAt, r.now)
		c.setCreated()
	}
	r.dirty = true
}

// flip lets the other one of the two grow from now on, which must not begin a digit lower than it ended.
func (p *portion) flip(value float64) {
	had := p.part
	p.part = max(0, value-had)
	for p.part > 0 && value-p.part < had {
		p.part = math.Nextafter(p.part, 0)
	}
}

// other is the part that belongs to other.
func (p *portion) other(folded bool, value float64) float64 {
	if folded {
		return max(0, value-p.part)
	}
	return p.part
}

// own is the other part.
func (p *portion) own(folded bool, value float64) float64 {
	if folded {
		return p.part
	}
	return max(0, value-p.part)
}

// reset returns what other had of a value that begins anew, which is to be kept there.
func (p *portion) reset(folded bool) (kept float64) {
	kept = p.other(folded, p.last)
	p.part = 0
	return kept
}

// amount is what the cell's series stands for, of what only grows.
func (c *cell) amount() float64 {
	if rest := c.rest(); rest != nil {
		return rest.value.total
	}
	p := c.seldom().value
	return p.own(c.folded, c.count.value)
}

// gatherGauges merges folded cells into other, before cells are published.
func (r *Rank) gatherGauges() {
	if !r.limits.active {
		return
	}
	for _, v := range r.order {
		f := v.other
		if f == nil || v.off || v.mode == modeCount {
			continue
		}
		rest := f.rest()
		rest.levelKnown = false
		for _, c := range v.list {
			if c == f || !c.folded {
				continue
			}
			f.want += c.want
			if c.known > 0 {
				if f.known == 0 {
					f.sum = c.sum
				} else {
					f.sum = combine(v.objects, f.sum, c.sum)
				}
				f.known += c.known
			}
			p := c.seldom()
			rest.level, rest.levelKnown = merged(v.objects, rest.level, rest.levelKnown, p.fixed, p.fixedKnown)
			rest.level, rest.levelKnown = merged(v.objects, rest.level, rest.levelKnown, p.floor, p.floorKnown)
		}
	}
}

func merged(m Merge, a float64, known bool, b float64, other bool) (float64, bool) {
	switch {
	case !other:
		return a, known
	case !known:
		return b, true
	}
	return combine(m, a, b), true
}

// gathered is what folded cells have of objects that are no more.
func (c *cell) gathered() (x float64, known bool) {
	rest := c.rest()
	if rest == nil {
		return 0, false
	}
	return rest.level, rest.levelKnown
}

// gatherCounts makes the values of other, and of cells of which it has a part, when all cells are settled.
func (r *Rank) gatherCounts() {
	if !r.limits.active {
		return
	}
	var waiting map[*variable]bool
	if len(r.returning) > 0 {
		waiting = r.waiting()
	}
	for _, v := range r.order {
		if v.other == nil || v.mode != modeCount {
			continue
		}
		f := v.other
		rest := f.rest()
		value, events, ready, unselected := 0.0, 0.0, true, f.unselected || waiting[v]
		if f.count.has {
			value = f.count.value
		} else {
			ready = f.want == 0 || !r.again
		}
		if _, ok := waiting[v]; ok {
			ready = false
		}
		if n, _, known := f.companionCount(); known {
			events = n
		}
		for _, c := range v.list {
			if c == f {
				continue
			}
			if !c.count.has {
				if !c.folded {
					value += c.seldom().value.part
				}
				ready = ready && (!c.folded || c.want == 0 || !r.again)
				unselected = unselected || c.folded && c.unselected
				continue
			}
			if c.pending {
				c.pending = false
				c.flip(r)
			}
			p := c.rarely()
			if c.count.restarted {
				rest.value.kept += p.value.reset(c.folded)
				r.dirty = true
			}
			value += p.value.other(c.folded, c.count.value)
			p.value.last = c.count.value
			if n, fresh, known := c.companionCount(); known {
				if fresh >= 0 {
					rest.events.kept += p.events.reset(c.folded)
					r.dirty = true
				}
				events += p.events.other(c.folded, n)
				p.events.last = n
			}
			if c.series != nil && p.value.part > 0 {
				c.series.Value = c.amount() * v.scale
			}
		}
		if !ready && !rest.value.has && (unselected || rest.waited < maxWait) {
			// An earlier exporter has shown the sum with the part that could not be read now, or is not yet read again.
			if !unselected {
				rest.waited++
			}
			if f.series != nil {
				f.series.Valid = false
			}
			continue
		}
		r.dirty = rest.value.settle(value) || r.dirty
		r.dirty = rest.events.settle(events) || r.dirty
		if f.series != nil {
			f.series.Value, f.series.Valid = rest.value.total*v.scale, true
		}
	}
}

// settle makes the total of what there is and what was kept; it never falls, not even by a digit. It says whether more had to
// be kept for that.
func (s *sum) settle(parts float64) (more bool) {
	total := s.kept + parts
	if s.has && total < s.total {
		digit := math.Nextafter(s.total, math.Inf(1)) - s.total
		for range 4 {
			if total >= s.total {
				break
			}
			s.kept += max(s.total-total, digit)
			total = s.kept + parts
		}
		total, more = max(total, s.total), true
	}
	s.total, s.has = total, true
	return more
}

// leave keeps in other what a cell that is taken out had there.
func (c *cell) leave(r *Rank) {
	f := c.v.other
	if f == nil || c == f || c.v.mode != modeCount {
		return
	}
	c.leaveBuckets(f)
	p := c.seldom()
	value := p.value.other(c.folded, c.count.value)
	events := 0.0
	if n, _, known := c.companionCount(); known {
		events = p.events.other(c.folded, n)
	}
	if value > 0 || events > 0 {
		rest := f.rest()
		rest.value.kept += value
		rest.events.kept += events
		r.dirty = true
	}
}
