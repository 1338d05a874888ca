package series

import (
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
)

// variable is a variable of the catalogue, with what becomes of its values in this rank.
type variable struct {
	*mapping.Spec                     // of's, as of the plan
	of            *variables.Variable // in the catalogue

	list     []*cell      // sorted
	overflow *overflow    // nil: everything has found room
	start    *timersStart // of a TIMER with an offset; nil: its handles count from their first value
	meaning  uint32       // of its series

	bucketCount int32 // of a distribution; 0: not known yet

	enter  admission // whether there was room for it
	asked  bool      // the agent has been asked to read what it left out
	reread bool      // values are read differently: handles must be made anew
	unread bool      // the agent has been told not to read it
}

// find looks for a cell, and says where it is in list, or would be.
func (v *variable) find(id cellID) (*cell, int) {
	if n := len(v.list); n == 0 || id.compare(v.list[n-1].id) > 0 { // objects are often named as they are numbered
		return nil, n
	}
	i, found := slices.BinarySearchFunc(v.list, id, func(c *cell, id cellID) int { return c.id.compare(id) })
	if !found {
		return nil, i
	}
	return v.list[i], i
}

// empty takes all cells from the variable.
func (v *variable) empty() {
	for _, c := range v.list {
		c.removed = true
	}
	v.list, v.overflow, v.enter = nil, nil, undecided
}

// restart lets the cells of an object begin at zero, of any element.
func (v *variable) restart(id cellID, at int64) {
	for _, c := range v.list {
		if id.elem = c.id.elem; c.id == id {
			c.restart(at)
		}
	}
}

// follow takes over what the variable has become. One whose meaning has changed loses its cells. A meaning that is the
// same under other rules gets new series: who holds the old ones may still read them.
func (v *variable) follow() {
	was := v.Spec
	if was == v.of.Spec {
		return
	}
	if v.Spec = v.of.Spec; v.meaning != v.of.Meaning {
		v.empty()
	}
	v.meaning = v.of.Meaning
	again := func(old *mapping.Series) *mapping.Series {
		if old == nil {
			return nil
		}
		s := *old
		s.Metric = v.Metric
		return &s
	}
	for _, c := range v.list {
		c.series = again(c.series)
		if t := c.state; t != nil {
			for i := range t.series {
				t.series[i] = again(t.series[i])
			}
			t.outside = again(t.outside)
		}
	}
	v.reread = was != nil && (was.Mode != v.Mode || was.Exact != v.Exact || was.Number != v.Number || was.Bits != v.Bits)
}

// renew makes the plan's variables those of the catalogue. With again, a variable that found no room is tried again.
func (p *plan) renew(c *variables.Catalogue, again bool) {
	known := make(map[*variables.Variable]*variable, len(c.All()))
	for _, v := range p.all {
		known[v.of] = v
	}
	fresh := make([]variable, 0, max(0, len(c.All())-len(p.all)))
	p.all = make([]*variable, 0, len(c.All()))
	for _, of := range c.All() {
		v := known[of]
		if v == nil {
			fresh = append(fresh, variable{of: of})
			v = &fresh[len(fresh)-1]
			known[of] = v
		}
		v.follow()
		if again && v.enter == refused {
			v.empty() // there may be room now
		}
		p.all = append(p.all, v)
	}
	p.timers = map[*variable][]*variable{}
	p.room.used, p.room.reserved = 0, 0
	for _, v := range p.all {
		if with := known[v.of.With]; with != nil {
			p.timers[with] = append(p.timers[with], v)
		}
		if v.Metric != nil {
			p.room.used += len(v.list) * v.lines()
			p.room.reserved += v.reserve()
		}
	}
	p.byID = p.byID[:0]
	for _, of := range c.ByID() {
		p.byID = append(p.byID, known[of])
	}
}

// counts says whether the variable counts the events of a timer that is shown.
func (p *plan) counts(v *variable) bool {
	for _, t := range p.timers[v] {
		if t.Metric != nil && t.enter != refused {
			return true
		}
	}
	return false
}

// reads says whether a variable's values are needed: it is shown, or counts the events of a timer that is.
func (p *plan) reads(v *variable) bool { return v.of.Wanted && (v.enter != refused || p.counts(v)) }

// shown is how an object is called in the variable's cells.
func (v *variable) shown(name string) string {
	if v.Label == "" {
		return ""
	}
	return name
}
