package series

import (
	"math"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// takeRemains adds what freed and renamed objects have counted. Their levels, sizes and states are no more.
func (p *plan) takeRemains() {
	if p.remains == nil {
		return
	}
	for i := range p.remains.List {
		rm := &p.remains.List[i]
		v := p.variable(rm.Variable)
		if v == nil || !v.Lasts() {
			continue
		}
		if v.Metric != nil {
			p.takeRemain(v, rm, v)
		}
		for _, t := range p.timers[v] {
			if t.estimates() {
				p.takeRemain(v, rm, t)
			}
		}
	}
}

// takeRemain adds what is left of a variable to its own cells, or to those of a timer whose companion it is.
func (p *plan) takeRemain(v *variable, rm *mpit.Remain, to *variable) {
	id := cellID{elem: -1}
	if to.Label != "" {
		id.object = mapping.CleanName(rm.Name)
	}
	if v.Mode == mapping.ModeWatermark {
		p.takeWatermarks(v, rm, id)
		return
	}
	gained := rm.Gained
	if v.Exact {
		if !v.hasElements(len(gained)) {
			p.dropped[mapping.ReasonDistribution]++
			return
		}
		gained = gained[:1]
	}
	for k, gained := range gained {
		if to.Each != "" {
			id.elem = int32(k)
		}
		x := remainFloat(v.Number, gained)
		if !v.Offset && k < len(rm.First) {
			x += remainFloat(v.Number, rm.First[k])
		}
		if !mapping.Finite(x) {
			p.dropped[mapping.ReasonNotANumber]++
			continue
		}
		if _, decided := p.lookup(to, id); to.Nonzero && x == 0 && !decided {
			continue
		}
		c := p.cell(to, id)
		switch {
		case c == nil:
		case to == v:
			c.fixed, c.fixedKnown = c.fixed+x, true
			c.since(mapping.UnixNano(rm.Created))
			if v.Exact {
				c.timer.exact.remains = append(c.timer.exact.remains, rm)
			}
		default:
			e := c.timer.estimate
			e.fixed, e.fixedKnown = e.fixed+x, true
		}
	}
}

func (p *plan) takeWatermarks(v *variable, rm *mpit.Remain, id cellID) {
	values := rm.Max
	if v.Among() == mapping.MergeMin {
		values = rm.Min
	}
	take := func(x float64) {
		if _, decided := p.lookup(v, id); v.Nonzero && x == 0 && !decided {
			return
		}
		c := p.cell(v, id)
		if c == nil {
			return
		}
		if c.fixedKnown {
			x = combine(v.Among(), c.fixed, x)
		}
		c.fixed, c.fixedKnown = x, true
		c.since(mapping.UnixNano(rm.Created))
	}
	all, n := 0.0, 0
	for k, w := range values {
		x := v.Number.Float(w)
		if !mapping.Finite(x) {
			continue
		}
		if v.Each != "" {
			id.elem = int32(k)
			take(x)
			continue
		}
		if n++; n == 1 {
			all = x
		} else {
			all = combine(v.Elements, all, x)
		}
	}
	if n > 0 {
		if v.Elements == mapping.MergeMean {
			all /= float64(n)
		}
		take(all)
	}
}

// remainFloat reads gained and first, which are signed for all integers.
func remainFloat(n mapping.Number, w uint64) float64 {
	if n == mapping.Floating {
		return math.Float64frombits(w)
	}
	return float64(int64(w))
}
