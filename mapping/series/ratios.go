package series

import (
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// pairUp finds the objects that have both a SIZE and a LEVEL or watermark of one name.
func (r *Rank) pairUp() {
	old := r.pairs
	r.pairs = nil
	if len(r.ratios) == 0 {
		return
	}
	type place struct {
		name   string
		class  mpit.Class // the real one
		object uint32
	}
	sizes := map[place]*handle{}
	for _, h := range r.plan {
		if h.v.Real == mpit.ClassSize {
			sizes[place{h.v.info.Name, mpit.ClassSize, h.of.Object}] = h
		}
	}
	for _, h := range r.plan {
		key := variableKey{h.v.info.Name, levelRatio}
		switch h.v.Real {
		case mpit.ClassLevel:
		case mpit.ClassHighWatermark:
			key.class = highRatio
		default:
			continue
		}
		ratio, size := r.ratios[key], sizes[place{h.v.info.Name, mpit.ClassSize, h.of.Object}]
		if ratio == nil || size == nil {
			continue
		}
		c := r.cell(ratio, cellID{object: ratio.shown(h.name), elem: -1})
		if c == nil {
			continue
		}
		c.since(max(unixNano(h.of.Created), unixNano(size.of.Created)))
		r.pairs = append(r.pairs, pair{size: size, part: h, cell: c})
	}
	// The highest share of an object that is no more stays, as its watermark does.
	for _, p := range old {
		if p.cell.v.Mode != mapping.ModeWatermark || !p.ok || p.part.seen == r.generation && p.cell.v.shown(p.part.name) == p.cell.id.object {
			continue
		}
		if c := p.cell; !c.fixedKnown || p.value > c.fixed {
			c.fixed, c.fixedKnown = p.value, true
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
func (r *Rank) readPairs(values []uint64) {
	for i := range r.pairs {
		p := &r.pairs[i]
		p.ok = false
		if !p.size.ok || !p.part.ok {
			continue
		}
		size, part := p.size, p.part
		scale := part.v.Scale / size.v.Scale
		one := func(a, b float64) {
			if b > 0 {
				if x := a / b * scale; mapping.Finite(x) && (!p.ok || x > p.value) {
					p.value, p.ok = x, true
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
		if p.ok {
			p.cell.want++
			p.cell.merge(mapping.MergeMax, p.value)
		}
	}
}

// findRatio makes the ratio of a variable that shares its name with a SIZE, or is that SIZE.
func (r *Rank) findRatio(v *variable) {
	if v.Metric == nil || v.info.Name == "" || v.Real != mpit.ClassSize && v.Real != mpit.ClassLevel && v.Real != mpit.ClassHighWatermark {
		return
	}
	find := func(really mpit.Class) *variable {
		for class := mpit.ClassState; class <= mpit.ClassGeneric; class++ {
			if o := r.named(variableKey{v.info.Name, class}); o != nil && o.Metric != nil && o.Real == really {
				return o
			}
		}
		return nil
	}
	size := find(mpit.ClassSize)
	if size == nil {
		return
	}
	for _, class := range []mpit.Class{mpit.ClassLevel, mpit.ClassHighWatermark} {
		part := find(class)
		key := variableKey{v.info.Name, levelRatio}
		if class == mpit.ClassHighWatermark {
			key.class = highRatio
		}
		if part == nil || part.info.Bind != size.info.Bind || part.Unit != size.Unit || r.ratios[key] != nil || r.refused[key] != "" {
			continue
		}
		want := mapping.RatioFamily(v.info.Name, class == mpit.ClassHighWatermark)
		metric, reason := r.mapper.families.acquire(want.Metric, r.process.User, func() string { return want.Help })
		if reason != "" {
			if r.refused == nil {
				r.refused = map[variableKey]mapping.Reason{}
			}
			r.refused[key] = reason
			r.dropped[reason]++
			continue
		}
		ratio := &variable{info: &mpit.Variable{Name: key.name, Class: key.class}, wanted: true}
		ratio.Spec = r.mapper.specs.share(mapping.RatioOf(part.Spec, metric), nil)
		ratio.meaning = ratio.means()
		labels := ratio.labelKey()
		if r.families.part(metric, labels) != nil {
			r.mapper.families.release(metric)
			continue // the library has a PERCENTAGE of that name itself
		}
		r.families.hold(ratio, labels)
		r.ratios[key] = ratio
		r.order = append(r.order, ratio)
	}
}

// ratioOf returns the ratio of a LEVEL or watermark; nil: it has none.
func (r *Rank) ratioOf(v *variable) *variable {
	switch {
	case v.Metric == nil:
		return nil
	case v.Real == mpit.ClassLevel:
		return r.ratios[variableKey{v.info.Name, levelRatio}]
	case v.Real == mpit.ClassHighWatermark:
		return r.ratios[variableKey{v.info.Name, highRatio}]
	}
	return nil
}
