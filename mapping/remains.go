package mapping

import (
	"math"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// takeRemains adds what freed and renamed objects have counted. Their levels, sizes and states are no more.
func (r *Rank) takeRemains() {
	if r.remains == nil {
		return
	}
	for i := range r.remains.List {
		rm := &r.remains.List[i]
		v := r.variable(rm.Variable)
		if v == nil || !v.lasts() {
			continue
		}
		id := cellID{elem: -1}
		if v.label != "" {
			id.object = CleanName(rm.Name)
		}
		created := unixNano(rm.Created)
		if v.mode == modeWatermark {
			r.takeWatermarks(v, rm, id, created)
			continue
		}
		gained := rm.Gained
		if v.exact {
			if !v.hasElements(len(gained)) {
				r.dropped[ReasonDistribution]++
				continue
			}
			gained = gained[:1]
			d := r.cell(v, id).exactly()
			d.remains = append(d.remains, rm)
		}
		for k, gained := range gained {
			if v.each != "" {
				id.elem = int32(k)
			}
			x := remainFloat(v.number, gained)
			if !v.offset && k < len(rm.First) {
				x += remainFloat(v.number, rm.First[k])
			}
			if !finite(x) {
				r.dropped[ReasonNotANumber]++
				continue
			}
			if v.nonzero && x == 0 && v.find(id) == nil {
				continue
			}
			c := r.cell(v, id)
			p := c.rarely()
			p.fixed += x
			p.fixedKnown = true
			c.since(created)
		}
	}
}

func (r *Rank) takeWatermarks(v *variable, rm *mpit.Remain, id cellID, created int64) {
	values := rm.Max
	if v.among() == MergeMin {
		values = rm.Min
	}
	take := func(x float64) {
		if v.nonzero && x == 0 && v.find(id) == nil {
			return
		}
		c := r.cell(v, id)
		p := c.rarely()
		if p.fixedKnown {
			x = combine(v.among(), p.fixed, x)
		}
		p.fixed, p.fixedKnown = x, true
		c.since(created)
	}
	all, n := 0.0, 0
	for k, w := range values {
		x := v.number.float(w)
		if !finite(x) {
			continue
		}
		if v.each != "" {
			id.elem = int32(k)
			take(x)
			continue
		}
		if n++; n == 1 {
			all = x
		} else {
			all = combine(v.elements, all, x)
		}
	}
	if n > 0 {
		if v.elements == MergeMean {
			all /= float64(n)
		}
		take(all)
	}
}

// among is how watermarks of freed objects become one.
func (s *spec) among() Merge {
	switch {
	case s.objects != MergeEach && s.objects != MergeMean:
		return s.objects
	case s.real == mpit.ClassLowWatermark:
		return MergeMin
	}
	return MergeMax
}

// remainFloat reads gained and first, which are signed for all integers.
func remainFloat(n number, w uint64) float64 {
	if n == floating {
		return math.Float64frombits(w)
	}
	return float64(int64(w))
}
