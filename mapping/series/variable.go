package series

import (
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
)

// variable is a variable of the catalogue, with what becomes of its values in this rank.
type variable struct {
	*mapping.Spec                     // of's, as of the plan
	of            *variables.Variable // in the catalogue
	ratio         *variable           // that it is a part of; nil: none

	list     []*cell          // cells, sorted
	cells    map[cellID]*cell // of list, once find needs it
	overflow *overflow        // nil: everything has found room
	next     int32            // in list, where find looks first
	start    *timersStart     // of a TIMER with an offset; nil: its handles count from their first value
	meaning  uint32           // of its series

	bucketCount int32 // of a distribution; 0: not known yet

	enter    admission // whether there was room for it
	asked    bool      // the agent has been asked to read what it left out
	unsorted bool      // list is
	unread   bool      // the agent has been told not to read it
}

// variableSet is those of a rank, in the catalogue's order.
type variableSet struct {
	all    []*variable
	byID   []*variable               // by mpit.Variable.ID
	timers map[*variable][]*variable // of companions, whose they are
}

// follow makes the variables those of the catalogue. gone has those that left it and those whose values are now
// read differently: their handles must be made anew. A variable whose meaning has changed loses its cells. With again,
// a variable that found no room is tried again.
func (vs *variableSet) follow(c *variables.Catalogue, again bool) (gone map[*variable]bool) {
	known := make(map[*variables.Variable]*variable, len(c.All()))
	gone = map[*variable]bool{}
	for _, v := range vs.all {
		known[v.of], gone[v] = v, true
	}
	fresh := make([]variable, max(0, len(c.All())-len(vs.all)))
	vs.all = make([]*variable, 0, len(c.All()))
	for _, of := range c.All() {
		v := known[of]
		if v == nil {
			if len(fresh) == 0 {
				fresh = make([]variable, 1)
			}
			v, fresh = &fresh[0], fresh[1:]
			v.of, v.Spec, v.meaning = of, of.Spec, of.Meaning
			known[of] = v
		}
		if !v.follow() {
			delete(gone, v)
		}
		if again && v.enter == refused {
			v.empty() // there may be room now
		}
		v.ratio = nil
		vs.all = append(vs.all, v)
	}
	vs.timers = map[*variable][]*variable{}
	for _, v := range vs.all {
		if with := known[v.of.With]; with != nil {
			vs.timers[with] = append(vs.timers[with], v)
		}
		v.ratio = known[c.Ratio(v.of)]
	}
	vs.byID = vs.byID[:0]
	for _, of := range c.ByID() {
		vs.byID = append(vs.byID, known[of])
	}
	return gone
}

// follow takes over what the variable has become, and says whether its values are now read differently. A meaning that
// is the same under other rules gets new series: who holds the old ones may still read them.
func (v *variable) follow() bool {
	if v.Spec == v.of.Spec {
		return false
	}
	was := v.Spec
	v.Spec = v.of.Spec
	if v.meaning != v.of.Meaning {
		v.empty()
	}
	v.meaning = v.of.Meaning
	v.renew()
	return was.Mode != v.Mode || was.Exact != v.Exact || was.Number != v.Number || was.Bits != v.Bits
}

// renew makes new series of the variable's cells, which mean the same.
func (v *variable) renew() {
	of := func(old *mapping.Series) *mapping.Series {
		if old == nil {
			return nil
		}
		s := *old
		s.Metric, s.Together = v.Metric, mapping.NewTogether(v.Ranks, v.Across)
		return &s
	}
	for _, c := range v.list {
		c.series = of(c.series)
		if t := c.state; t != nil {
			for i := range t.series {
				t.series[i] = of(t.series[i])
			}
			t.outside = of(t.outside)
		}
	}
}

// empty takes all cells from the variable.
func (v *variable) empty() {
	v.list, v.cells, v.overflow, v.enter, v.unsorted = nil, nil, nil, undecided, false
}

// counts says whether the variable counts the events of a timer that is shown.
func (vs *variableSet) counts(v *variable) bool {
	for _, t := range vs.timers[v] {
		if t.Metric != nil && t.enter != refused {
			return true
		}
	}
	return false
}

// reads says whether a variable's values are needed: it is shown, or counts the events of a timer that is.
func (vs *variableSet) reads(v *variable) bool {
	return v.of.Wanted && (v.enter != refused || vs.counts(v))
}
