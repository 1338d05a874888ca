package mapping

import (
	"math"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// A TIMER that is a distribution (docs/protocol.md) has, besides its accumulated time, the numbers of single durations in buckets of
// powers of two. The time goes the way of all that only grows (count.go), as the one element of its handle. The buckets go beside it:
// the agent has their totals at any time, so that a cell's histogram is those, and needs no memory of its own; only a cell that has
// folded, begun anew or been reset knows what its series has besides them (corrected).

const (
	minDistribution = 2 // elements: the time, and a bucket
	maxDistribution = 128

	// exactNote is what HELP says of a distribution.
	exactNote = "The durations are single ones, measured by the agent and counted in buckets of powers of two."

	// secondBucket is the bucket that ends at a second: bucket k ends at 2^(k-secondBucket) s.
	secondBucket = 30
)

// distributionBounds are the upper bounds of distributions' histograms in seconds, if no rule says otherwise: every second power of two
// from about a microsecond to 16 s.
func distributionBounds() []float64 {
	var bounds []float64
	for exponent := -20; exponent <= 4; exponent += 2 {
		bounds = append(bounds, math.Ldexp(1, exponent))
	}
	return bounds
}

// checkDistribution says why a variable can't be the distribution that it says it is; "": it can.
func checkDistribution(v *mpit.Variable) Reason {
	if v.Class != mpit.ClassTimer || v.Datatype != mpit.DatatypeUint64 {
		return ReasonDistribution
	}
	return ""
}

// fixedByAgent says whether a property of a distribution is what its agent measures, whatever a rule says.
func fixedByAgent(p property) bool {
	switch p {
	case propClass, propUnit, propScale, propElements, propNonzero, propCompanion, propOffset:
		return true
	}
	return false
}

// fix takes out of settings what rules can't say of a distribution.
func (s *settings) fix() {
	for p := range properties {
		if fixedByAgent(p) {
			s.by[p] = nil
		}
	}
	s.class, s.unit, s.scale = mpit.ClassTimer, units["s"], mpit.DistributionUnit
	s.elements, s.nonzero, s.companion, s.offset = "", false, NoCompanion, false
}

// hasElements says whether a distribution has so many: as many as the first handle that could be one, or an earlier exporter's.
func (v *variable) hasElements(n int) bool {
	if v.bucketCount == 0 && n >= minDistribution && n <= maxDistribution {
		v.bucketCount = int32(n - 1)
	}
	return v.bucketCount > 0 && int(v.bucketCount) == n-1
}

// exact is what a cell of a distribution keeps besides its timer's histogram.
type exact struct {
	// What the totals are made of, in this plan.
	handles []*handle
	remains []*mpit.Remain
	whole   bool // all of it has been read since the plan was made

	turn turn
	more *corrected // nil: the histogram has what the totals have
}

// turn is what the first value of a cell does to its buckets (change).
type turn uint8

const (
	turnNone turn = iota
	turnAnew      // they begin at 0 again
	turnHand      // what they have goes to the series of the object's name
)

// corrected is what a histogram has besides the totals, by buckets. A vector that is nil has nothing.
type corrected struct {
	value  []uint64 // the totals with adjust, at the last Update: they never fall
	adjust []int64  // what is added to the totals
	base   []int64  // of adjust, what the blob has of finer cells, and keeps
	part   []uint64 // portion.part
	kept   []uint64 // of other: sum.kept
}

// exactly is what the cell has as one of a distribution; nil: it isn't.
func (c *cell) exactly() *exact {
	if c.timer == nil {
		return nil
	}
	return c.timer.exact
}

// correct is the cell's corrections, to be changed.
func (c *cell) correct() *corrected {
	d := c.timer.exact
	if d.more == nil {
		d.more = &corrected{value: make([]uint64, c.v.bucketCount)}
		c.timer.hist.spread(d.more.value)
	}
	d.more.value = extend(d.more.value, int(c.v.bucketCount))
	return d.more
}

// hasCorrections says whether the exporter itself has something to add to the buckets.
func (d *exact) hasCorrections() bool {
	m := d.more
	return m != nil && (nonzero(m.value) || nonzero(m.adjust) || nonzero(m.part) || nonzero(m.kept))
}

func nonzero[T int64 | uint64](x []T) bool {
	return slices.ContainsFunc(x, func(n T) bool { return n != 0 })
}

// extend makes a vector as long as it has to be.
func extend[T int64 | uint64](x []T, n int) []T {
	if len(x) >= n {
		return x
	}
	return append(x, make([]T, n-len(x))...)
}

// at is an element of a vector.
func at[T int64 | uint64](x []T, k int) T {
	if k < len(x) {
		return x[k]
	}
	return 0
}

// bounded keeps an amount from ever overflowing, whatever ranks claim.
func bounded(n int64) int64 { return max(-maxEvents, min(n, maxEvents)) }

// plusAll adds one vector to another.
func plusAll[T int64 | uint64](to, x []T) []T {
	to = extend(to, len(x))
	for k, n := range x {
		to[k] = T(bounded(int64(to[k]) + int64(n)))
	}
	return to
}

// expectParts forgets what the cell's totals are made of, before a plan says it anew.
func (d *exact) expectParts() {
	d.handles, d.remains, d.whole = d.handles[:0], d.remains[:0], false
}

// totals sums what the agent has counted, in to. It is whole unless something could not be read.
func (d *exact) totals(r *Rank, values, to []uint64) (whole bool) {
	whole = true
	for _, h := range d.handles {
		words, ok := h.words(values)
		if !ok || !h.ok {
			whole = false
			continue
		}
		wrong := false
		for k := range to {
			w, base, excluded := words[k+1], uint64(0), int64(0)
			if w == 0 && !h.based && !h.gaps {
				continue
			}
			if h.based {
				base = h.base(k + 1)
			}
			if h.gaps {
				excluded = int64(h.of.Excluded[k+1])
			}
			n, good := countOf(w, base, excluded)
			wrong = wrong || !good
			to[k] = min(to[k]+n, maxEvents)
		}
		if wrong {
			r.dropped[ReasonNegative]++
		}
	}
	for _, rm := range d.remains {
		for k := range to {
			to[k] = min(to[k]+remainOf(rm, k+1), maxEvents)
		}
	}
	return whole
}

// countOf is w-base-excluded, from 0 to maxEvents. Whatever lies outside is nothing that an agent counts.
func countOf(w, base uint64, excluded int64) (n uint64, good bool) {
	if w < base {
		return 0, false
	}
	switch n = w - base; {
	case excluded > 0 && n < uint64(excluded):
		return 0, false
	case excluded > 0:
		n -= uint64(excluded)
	case excluded < 0: // it can't have been reset
		return min(n, maxEvents), false
	}
	return min(n, maxEvents), true
}

// remainOf is what freed objects have counted in an element, from 0 to maxEvents.
func remainOf(rm *mpit.Remain, i int) uint64 {
	n := int64(0)
	for _, part := range [][]uint64{rm.Gained, rm.First} {
		if i < len(part) {
			n += min(max(0, int64(part[i])), maxEvents)
		}
	}
	return uint64(min(n, maxEvents))
}

// tally brings the buckets of a cell up to date that has been settled.
func (c *cell) tally(r *Rank, values []uint64) {
	d := c.exactly()
	if d == nil || !c.count.has {
		return
	}
	var totals, had [maxDistribution]uint64
	n := int(c.v.bucketCount)
	total, was := totals[:n], had[:n]
	whole := d.totals(r, values, total)
	if d.more != nil || c.folded || c.pending || c.rest() != nil || d.turn != turnNone || c.count.restarted {
		c.correct()
	}
	if d.more == nil {
		c.timer.hist.spread(was)
	} else {
		copy(was, d.more.value)
	}
	switch {
	case d.turn != turnNone:
		c.turnBuckets(total)
		r.dirty = true
		clear(total)
		clear(was)
	case c.count.restarted:
		c.resetBuckets(total, was)
		r.dirty = true
		clear(was)
	case d.more != nil:
		for k := range total {
			total[k] = uint64(min(max(0, int64(total[k])+at(d.more.adjust, k)), maxEvents))
		}
	}
	for k := range total {
		if total[k] >= was[k] {
			continue
		}
		if whole && !d.whole {
			// Something is missing among the remains: what has been shown does not fall, and goes on from there.
			m := c.correct()
			m.adjust = extend(m.adjust, n)
			m.adjust[k] = bounded(m.adjust[k] + int64(was[k]-total[k]))
			r.dirty = true
		}
		total[k] = was[k]
	}
	d.whole = d.whole || whole
	if d.more == nil {
		c.timer.hist.rise(was, total)
		return
	}
	copy(d.more.value, total)
}

// turnBuckets puts a change of what the series means into effect: it begins at 0.
func (c *cell) turnBuckets(total []uint64) {
	d := c.timer.exact
	m := c.correct()
	if all := c.v.find(cellID{object: c.id.object, elem: c.id.elem}); d.turn == turnHand && all != nil && all != c && all.exactly() != nil {
		to := all.correct()
		to.adjust = extend(to.adjust, len(total))
		for k, n := range total {
			to.adjust[k] = bounded(to.adjust[k] + int64(n) + at(m.adjust, k))
		}
	}
	d.turn = turnNone
	m.adjust = extend(m.adjust, len(total))
	for k, n := range total {
		m.adjust[k] = -int64(n)
	}
	m.part, m.base = nil, nil
	c.timer.hist.clear()
}

// resetBuckets lets the buckets of a cell begin anew whose sum does, with what has been counted since. Of several handles nobody knows
// which part was reset: what is more than before is new for certain. What other had stays there.
func (c *cell) resetBuckets(total, was []uint64) {
	d, m := c.timer.exact, c.correct()
	if other := c.v.other; other != nil && other != c && other.exactly() != nil {
		to := other.correct()
		to.kept = plusAll(to.kept, m.otherBuckets(c.folded, was))
	}
	m.part = nil
	alone := len(d.handles) == 1 && len(d.remains) == 0
	m.adjust = extend(m.adjust, len(total))
	for k, n := range total {
		fresh := uint64(0)
		switch before := int64(was[k]) - m.adjust[k]; {
		case c.count.reset == nil: // it begins at 0 for another reason
		case alone:
			fresh = n
		default:
			fresh = uint64(max(0, int64(n)-before))
		}
		m.adjust[k] = int64(fresh) - int64(n)
		total[k] = fresh
	}
	if c.rest() == nil {
		c.timer.hist.clear()
	}
}

// split divides n of a bucket between the cell's own series and other.
func (m *corrected) split(folded bool, k int, n uint64) (own, other uint64) {
	part := at(m.part, k)
	rest := n - min(n, part)
	if folded {
		return part, rest
	}
	return rest, part
}

// otherBuckets is the part that belongs to other, of a value.
func (m *corrected) otherBuckets(folded bool, value []uint64) []uint64 {
	out := make([]uint64, len(value))
	for k, n := range value {
		_, out[k] = m.split(folded, k, n)
	}
	return out
}

// turn notes what the cell's first value does to its buckets, if it has any.
func (c *cell) turn(t turn) {
	if d := c.exactly(); d != nil {
		d.turn = t
	}
}

// takeBuckets takes what the blob has of a cell's buckets, of a finer cell or the same.
func (c *cell) takeBuckets(list []int64, finer bool) {
	if list == nil {
		return
	}
	c.v.hasElements(1 + len(list))
	m := c.correct()
	if m.adjust = plusAll(m.adjust, list); finer {
		m.base = plusAll(m.base, list)
	}
}

// keptBuckets is what the blob is to have of them; nil: nothing.
func (c *cell) keptBuckets() []int64 {
	d := c.exactly()
	if d == nil || d.more == nil {
		return nil
	}
	list := extend(slices.Clone(d.more.adjust), int(c.v.bucketCount))
	for k := range list {
		list[k] = bounded(list[k] - at(d.more.base, k))
	}
	if !nonzero(list) {
		return nil
	}
	return list
}

// partBuckets is corrected.part; nil: it has nothing.
func (c *cell) partBuckets() []uint64 {
	if d := c.exactly(); d != nil && d.more != nil && nonzero(d.more.part) {
		return extend(d.more.part, int(c.v.bucketCount))
	}
	return nil
}

// keptOfOther is corrected.kept; nil: it has nothing.
func (c *cell) keptOfOther() []uint64 {
	if d := c.exactly(); d != nil && d.more != nil && nonzero(d.more.kept) {
		return extend(d.more.kept, int(c.v.bucketCount))
	}
	return nil
}

// flipBuckets is portion.flip.
func (c *cell) flipBuckets() {
	m := c.correct()
	m.part = extend(m.part, len(m.value))
	for k, n := range m.value {
		m.part[k] = n - min(n, m.part[k])
	}
}

// showBuckets makes the histograms of a distribution's cells, when all of them have been tallied and it is known which of them count
// for other.
func (r *Rank) showBuckets(v *variable) {
	n := int(v.bucketCount)
	var wanted, had [maxDistribution]uint64
	want, was := wanted[:n], had[:n]
	for _, c := range v.list {
		d := c.exactly()
		if d == nil || c == v.other || !c.count.has {
			continue
		}
		if m := d.more; m != nil {
			for k := range want {
				want[k], _ = m.split(c.folded, k, m.value[k])
			}
			c.timer.hist.spread(was)
			c.timer.hist.rise(was, want)
		}
		c.timer.hist.Sum = c.amount() * v.scale
	}
	f := v.other
	if f == nil || f.exactly() == nil || !f.rest().value.has {
		return
	}
	m := f.correct()
	for k := range want {
		want[k] = min(at(m.kept, k)+m.value[k], maxEvents)
	}
	for _, c := range v.list {
		d := c.exactly()
		if c == f || d == nil || d.more == nil || c.folded && !c.count.has {
			continue
		}
		for k := range want {
			_, x := d.more.split(c.folded, k, d.more.value[k])
			want[k] = min(want[k]+x, maxEvents)
		}
	}
	f.timer.hist.spread(was)
	for k := range want {
		if want[k] < was[k] {
			m.kept = extend(m.kept, n)
			m.kept[k] = min(m.kept[k]+was[k]-want[k], maxEvents)
			want[k], r.dirty = was[k], true
		}
	}
	f.timer.hist.rise(was, want)
	f.timer.hist.Sum = f.amount() * v.scale
}

// leaveBuckets keeps in other what a cell that is taken out had there.
func (c *cell) leaveBuckets(other *cell) {
	d := c.exactly()
	if d == nil || d.more == nil || other.exactly() == nil {
		return
	}
	to := other.correct()
	to.kept = plusAll(to.kept, d.more.otherBuckets(c.folded, d.more.value))
}

// joinBuckets hands what a cell knows of an object that is no more to that of its name, whose totals have the object's from now on.
func (c *cell) joinBuckets(to *cell) {
	d := c.exactly()
	if d == nil || d.more == nil || to.exactly() == nil {
		return
	}
	m := to.correct()
	m.adjust, m.base = plusAll(m.adjust, d.more.adjust), plusAll(m.base, d.more.base)
}

// spread writes an exact histogram's counts into buckets as agents have them.
func (h *Histogram) spread(to []uint64) {
	clear(to)
	if len(to) > 0 {
		to[0] = h.NativeZero
	}
	for _, b := range h.Native {
		if k := int(b.Index) + secondBucket; k >= 0 && k < len(to) {
			to[k] += b.Count
		}
	}
}

// rise adds to an exact histogram what buckets have more than before. The last one has no upper end.
func (h *Histogram) rise(was, now []uint64) {
	place, last := 0, len(now)-1
	for k, n := range now {
		if n <= was[k] {
			continue
		}
		n -= was[k]
		h.Count += n
		upper := upperEnd(k)
		for place < len(h.Bounds) && (k == last || h.Bounds[place] < upper) {
			place++
		}
		h.Counts[place] += n
		if k < last && upper <= NativeZeroThreshold {
			h.NativeZero += n
			continue
		}
		h.addNative(int32(k-secondBucket), n)
	}
}

// upperEnd is where bucket k ends, in seconds: what math.Ldexp says, without the cases that it has to tell apart.
func upperEnd(k int) float64 { return math.Float64frombits(uint64(1023+k-secondBucket) << 52) }
