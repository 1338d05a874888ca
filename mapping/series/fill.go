package series

import (
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// fill takes the values of a sample into the cells of the plan, and makes the values of series out of them.
func (p *plan) fill(s *mpit.Sample) {
	in := &intake{values: s.Values, at: p.at, dropped: p.dropped}
	for i := range s.Failed {
		if h := p.index()[s.Failed[i].Handle]; h != nil {
			h.failed = true
			p.dropped[mapping.ReasonReadFailed]++
		}
	}
	for _, h := range p.reading {
		h.read(in)
	}
	for i := range p.companions {
		p.companions[i].read()
	}
	for i := range s.Failed {
		if h := p.index()[s.Failed[i].Handle]; h != nil {
			h.failed = false
		}
	}
	for _, v := range p.all {
		for _, c := range v.list {
			c.publish(in)
			c.begin()
		}
	}
	p.relist = p.relist || in.relist
}

// observe ends an interval of the timers whose observations are estimated.
func (p *plan) observe(last bool) {
	for _, v := range p.all {
		if !v.estimates() {
			continue
		}
		for _, c := range v.list {
			c.observe(last)
		}
	}
}
