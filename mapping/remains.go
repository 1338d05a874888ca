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
		if v.metric != nil {
			r.takeRemain(v, rm, v)
		}
		for _, t := range r.timers[v] {
			if t.metric != nil && t.metric.Kind == KindHistogram {
				r.takeRemain(v, rm, t)
			}
		}
	}
}

// takeRemain adds what is left of a variable to its own cells, or to those of a timer whose companion it is.
func (r *Rank) takeRemain(v *variable, rm *mpit.Remain, to *variable) {
	id := cellID{elem: -1}
	if to.label != "" {
		id.object = CleanName(rm.Name)
	}
	if v.mode == modeWatermark {
		r.takeWatermarks(v, rm, id)
		return
	}
	gained := rm.Gained
	if v.exact {
		if !v.hasElements(len(gained)) {
			r.dropped[ReasonDistribution]++
			return
		}
		gained = gained[:1]
	}
	for k, gained := range gained {
		if to.each != "" {
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
		if _, decided := r.lookup(to, id); to.nonzero && x == 0 && !decided {
			continue
		}
		c := r.cell(to, id)
		switch {
		case c == nil:
		case to == v:
			c.fixed, c.fixedKnown = c.fixed+x, true
			c.since(unixNano(rm.Created))
			if v.exact {
				c.timer.exact.remains = append(c.timer.exact.remains, rm)
			}
		default:
			e := c.timer.estimate
			e.fixed, e.fixedKnown = e.fixed+x, true
		}
	}
}

func (r *Rank) takeWatermarks(v *variable, rm *mpit.Remain, id cellID) {
	values := rm.Max
	if v.among() == MergeMin {
		values = rm.Min
	}
	take := func(x float64) {
		if _, decided := r.lookup(v, id); v.nonzero && x == 0 && !decided {
			return
		}
		c := r.cell(v, id)
		if c == nil {
			return
		}
		if c.fixedKnown {
			x = combine(v.among(), c.fixed, x)
		}
		c.fixed, c.fixedKnown = x, true
		c.since(unixNano(rm.Created))
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
