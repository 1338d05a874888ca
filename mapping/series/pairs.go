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

// read takes an object's ratio before any merging: merged sizes and maxima can't be divided.
func (p *pair) read(in *intake) {
	p.ok = false
	size, part := p.size, p.part
	if !size.ok || !part.ok {
		return
	}
	scale := part.v.Scale / size.v.Scale
	take := func(a, b float64) {
		if x := a / b * scale; b > 0 && mapping.Finite(x) && (!p.ok || x > p.value) {
			p.value, p.ok = x, true
		}
	}
	switch {
	case len(size.elems) == len(part.elems) && len(size.elems) > 1:
		sizes, inSample := size.words(in.values)
		parts, both := part.words(in.values)
		if !inSample || !both || size.failed || part.failed {
			return // a watermark that could not be read is what it was, but its elements are not in the sample
		}
		for i := range sizes {
			take(part.v.Number.Float(parts[i]), size.v.Number.Float(sizes[i]))
		}
	case size.distinct(size.v) == 1 && part.distinct(part.v) == 1:
		take(part.value, size.value)
	}
	if p.ok {
		p.cell.want++
		p.cell.merge(mapping.MergeMax, p.value)
	}
}
