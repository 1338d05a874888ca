// Package bounds leaves out what is too much of what a rank sends.
//
// Begin reading at Trimmed.
package bounds

import (
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Bounds of what is taken in of one rank, far above what libraries have: the largest known has 1,100 variables, an
// agent tracks 1,024 objects of each kind unless its job says otherwise. The protocol's own bounds, which are those
// of memory, are too much to map (BenchmarkHold).
const (
	maxVariables = 4096
	maxObjects   = 16384
	maxHandles   = 32768
	maxRemains   = 32768
)

// Trimmed is what has been left out of a rank's catalogue: parts never change, so that each is cut once.
type Trimmed struct {
	variables trim[mpit.Variables]
	layout    trim[mpit.Layout]
	remains   trim[mpit.Remains]
}

// trim is a part of the catalogue and what is taken in of it; the zero value is of none that is too large.
type trim[T any] struct{ whole, rest *T }

func (p *trim[T]) of(whole *T, over bool, shorten func(T) *T) *T {
	switch {
	case !over:
		*p = trim[T]{}
		return whole
	case p.whole != whole:
		*p = trim[T]{whole, shorten(*whole)}
	}
	return p.rest
}

// Cut leaves out of a sample what is more than is taken in. It is counted as if the agent had left it out; of
// variables, which agents don't leave out, drop is told how many.
func (t *Trimmed) Cut(s *mpit.Sample, drop func(variables int)) {
	v, l, m := s.Variables, s.Layout, s.Remains
	s.Variables = t.variables.of(v, v != nil && len(v.ByID) > maxVariables, func(v mpit.Variables) *mpit.Variables {
		drop(len(v.ByID) - maxVariables)
		v.ByID = slices.Clone(v.ByID[:maxVariables])
		return &v
	})
	s.Layout = t.layout.of(l, l != nil && (len(l.Objects) > maxObjects || len(l.Handles) > maxHandles), shortLayout)
	s.Remains = t.remains.of(m, m != nil && len(m.List) > maxRemains, func(m mpit.Remains) *mpit.Remains {
		m.Lost += uint64(len(m.List) - maxRemains)
		m.List = slices.Clone(m.List[:maxRemains])
		return &m
	})
}

// shortLayout leaves out the last objects, with the handles that are bound to them, then the last handles.
func shortLayout(l mpit.Layout) *mpit.Layout {
	gone := map[uint32]bool{}
	if n := len(l.Objects); n > maxObjects {
		for _, o := range l.Objects[maxObjects:] {
			gone[o.ID] = true
		}
		l.ObjectsOverflow += uint64(n - maxObjects)
		l.Objects = slices.Clone(l.Objects[:maxObjects])
	}
	handles := make([]mpit.Handle, 0, min(len(l.Handles), maxHandles))
	for i := range l.Handles {
		if h := &l.Handles[i]; len(handles) < maxHandles && !gone[h.Object] {
			handles = append(handles, *h)
		}
	}
	l.HandlesOverflow += uint64(len(l.Handles) - len(handles))
	l.Handles = handles
	return &l
}
