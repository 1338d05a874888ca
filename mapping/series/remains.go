package series

import (
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
	merge, values := mapping.MergeSum, []float64(nil)
	switch {
	case v.Mode == mapping.ModeWatermark:
		merge, values = v.Among(), v.watermarks(rm)
	case v.Exact && !v.hasElements(len(rm.Gained)):
		p.dropped[mapping.ReasonDistribution]++
	case v.Exact:
		values = v.amounts(rm, 1)
	default:
		values = v.amounts(rm, len(rm.Gained))
	}
	for k, x := range values {
		if !mapping.Finite(x) {
			if v.Mode == mapping.ModeCount {
				p.dropped[mapping.ReasonNotANumber]++
			}
			continue
		}
		id := cellID{elem: -1}
		if to.Label != "" {
			id.object = mapping.CleanName(rm.Name)
		}
		if to.Each != "" {
			id.elem = int32(k)
		}
		c, at := p.lookup(to, id)
		if at >= 0 && !(to.Nonzero && x == 0) {
			c = p.findRoom(to, id, at)
		}
		switch {
		case c == nil:
		case to == v:
			c.addFixed(merge, x)
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

// amounts is what n elements had counted.
func (v *variable) amounts(rm *mpit.Remain, n int) []float64 {
	amounts, number := make([]float64, n), v.Number
	if number != mapping.Floating {
		number = mapping.Signed // gained and first are, of all integers
	}
	for k := range amounts {
		amounts[k] = number.Float(rm.Gained[k])
		if !v.Offset && k < len(rm.First) {
			amounts[k] += number.Float(rm.First[k])
		}
	}
	return amounts
}

// watermarks is the highest or lowest value of each element, or one of all, where they are merged.
func (v *variable) watermarks(rm *mpit.Remain) []float64 {
	words := rm.Max
	if v.Among() == mapping.MergeMin {
		words = rm.Min
	}
	var marks []float64
	for _, w := range words {
		x := v.Number.Float(w)
		switch last := len(marks) - 1; {
		case v.Each != "":
			marks = append(marks, x)
		case !mapping.Finite(x):
		case last < 0:
			marks = append(marks, x)
		default:
			marks[last] = v.Elements.Combine(marks[last], x)
		}
	}
	return marks
}
