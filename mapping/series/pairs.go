package series

import (
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// pairUp finds the objects that have both a SIZE and a LEVEL or watermark of one name.
func (p *plan) pairUp() {
	old := p.pairs
	p.pairs = nil
	if !slices.ContainsFunc(p.all, func(v *variable) bool { return v.ratio != nil }) {
		return
	}
	type place struct {
		name   string
		object uint32
	}
	of := func(h *handle) place { return place{h.v.of.Info.Name, h.of.Object} }
	sizes := map[place]*handle{}
	for _, h := range p.reading {
		if h.v.Real == mpit.ClassSize {
			sizes[of(h)] = h
		}
	}
	for _, h := range p.reading {
		ratio, size := h.v.ratio, sizes[of(h)]
		if ratio == nil || size == nil {
			continue
		}
		c := p.cell(ratio, cellID{object: ratio.shown(h.name), elem: -1})
		if c == nil {
			continue
		}
		c.since(max(mapping.UnixNano(h.of.Created), mapping.UnixNano(size.of.Created)))
		p.pairs = append(p.pairs, pair{size: size, part: h, cell: c})
	}
	// The highest share of an object that is no more stays, as its watermark does.
	for _, was := range old {
		c := was.cell
		if c.v.Mode != mapping.ModeWatermark || !was.ok || was.part.seen == p.generation &&
			c.v.shown(was.part.name) == c.id.object {
			continue
		}
		if !c.fixedKnown || was.value > c.fixed {
			c.fixed, c.fixedKnown = was.value, true
		}
	}
}

// pair is an object's SIZE, and its LEVEL or watermark of the same name.
type pair struct {
	size, part *handle
	cell       *cell
	value      float64
	ok         bool
}

// readPairs takes each object's ratio before any merging: merged sizes and maxima can't be divided.
func (p *plan) readPairs(values []uint64) {
	for i := range p.pairs {
		pair := &p.pairs[i]
		pair.ok = false
		if !pair.size.ok || !pair.part.ok {
			continue
		}
		size, part := pair.size, pair.part
		scale := part.v.Scale / size.v.Scale
		one := func(a, b float64) {
			if b > 0 {
				if x := a / b * scale; mapping.Finite(x) && (!pair.ok || x > pair.value) {
					pair.value, pair.ok = x, true
				}
			}
		}
		if size.n == part.n && size.n > 1 {
			sizes, inSample := size.words(values)
			parts, both := part.words(values)
			if !inSample || !both || size.failed || part.failed {
				continue // a watermark that could not be read is what it was, but its elements are not in the sample
			}
			for i := range sizes {
				one(part.v.Number.Float(parts[i]), size.v.Number.Float(sizes[i]))
			}
		} else if len(size.cells()) == 1 && len(part.cells()) == 1 {
			one(part.value, size.value)
		}
		if pair.ok {
			pair.cell.want++
			pair.cell.merge(mapping.MergeMax, pair.value)
		}
	}
}
