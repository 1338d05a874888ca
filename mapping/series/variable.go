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

// shown is how an object is called in the variable's cells.
func (v *variable) shown(name string) string {
	if v.Label == "" {
		return ""
	}
	return name
}
