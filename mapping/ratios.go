package mapping

import (
	"fmt"

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
		if h.v.real == mpit.ClassSize {
			sizes[place{h.v.info.Name, mpit.ClassSize, h.of.Object}] = h
		}
	}
	for _, h := range r.plan {
		key := variableKey{h.v.info.Name, levelRatio}
		switch h.v.real {
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
		if p.cell.v.mode != modeWatermark || !p.ok || p.part.seen == r.generation && p.cell.v.shown(p.part.name) == p.cell.id.object {
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
		scale := part.v.scale / size.v.scale
		one := func(a, b float64) {
			if b > 0 {
				if x := a / b * scale; finite(x) && (!p.ok || x > p.value) {
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
				one(part.v.number.float(parts[i]), size.v.number.float(sizes[i]))
			}
		} else if len(size.cells()) == 1 && len(part.cells()) == 1 {
			one(part.value, size.value)
		}
		if p.ok {
			p.cell.want++
			p.cell.merge(MergeMax, p.value)
		}
	}
}

// findRatio makes the ratio of a variable that shares its name with a SIZE, or is that SIZE.
func (r *Rank) findRatio(v *variable) {
	if v.metric == nil || v.info.Name == "" || v.real != mpit.ClassSize && v.real != mpit.ClassLevel && v.real != mpit.ClassHighWatermark {
		return
	}
	find := func(really mpit.Class) *variable {
		for class := range mpit.Class(len(classWords)) {
			if o := r.named(variableKey{v.info.Name, class}); o != nil && o.metric != nil && o.real == really {
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
		mode := modeGauge
		if class == mpit.ClassHighWatermark {
			key.class, mode = highRatio, modeWatermark
		}
		if part == nil || part.info.Bind != size.info.Bind || part.unit != size.unit || r.ratios[key] != nil || r.refused[key] != "" {
			continue
		}
		metric, reason := r.mapper.ratioMetric(v.info.Name, class == mpit.ClassHighWatermark, r.process.User)
		if reason != "" {
			if r.refused == nil {
				r.refused = map[variableKey]Reason{}
			}
			r.refused[key] = reason
			r.dropped[reason]++
			continue
		}
		ratio := &variable{info: &mpit.Variable{Name: key.name, Class: key.class}, wanted: true}
		ratio.spec = r.mapper.share(spec{labels: part.labels, plain: plain{
			metric: metric, mode: mode, scale: 1, objects: MergeMax, structure: structure{label: part.label},
			ranks: part.ranks, across: MergeMax,
		}}, nil)
		ratio.meaning = ratio.means()
		labels := ratio.labelKey()
		if r.families.part(metric, labels) != nil {
			r.mapper.release(metric)
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
	case v.metric == nil:
		return nil
	case v.real == mpit.ClassLevel:
		return r.ratios[variableKey{v.info.Name, levelRatio}]
	case v.real == mpit.ClassHighWatermark:
		return r.ratios[variableKey{v.info.Name, highRatio}]
	}
	return nil
}

// ratioMetric acquires the family of a level's or a watermark's share of the SIZE of the same name.
func (m *Mapper) ratioMetric(name string, high bool, user uint32) (*Metric, Reason) {
	sh := shape{otel: OTelGauge, unit: "1", ratio: true}
	class, word := mpit.ClassLevel, "level"
	if high {
		class, word = mpit.ClassHighWatermark, "high watermark"
		sh.word = classWords[class]
	}
	full := Prefix + name + sh.tail()
	n := familyNames{full, sh.otelName(name, sh.word, "")}
	if len(name) > maxPlainName || !plainWords(name) || !sh.owns(full, name) || !sh.allowed(name, full) {
		n = sh.escaped(name, class)
	}
	return m.acquire(Metric{Name: n.prometheus, OTelName: n.otel, Unit: "1", OTelKind: OTelGauge, measure: "1"}, user, func() string {
		return fmt.Sprintf("Share of the %s in the size, the largest of all objects. MPI_T variables %s.", word, fold(name, 200))
	})
}
