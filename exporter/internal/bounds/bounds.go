// Package bounds leaves out what is too much of what a rank sends.
//
// Begin reading at Trimmed.
package bounds

import (
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

// trim is a part of the catalogue and what is taken in of it; the zero value is of nil.
type trim[T any] struct{ whole, rest *T }

func (p *trim[T]) of(whole *T, shorten func(T) *T) *T {
	if p.whole != whole {
		*p = trim[T]{whole, shorten(*whole)}
	}
	return p.rest
}

// Cut returns a sample with no more than is taken in. What is left out is counted as if the agent had left it
// out; of variables, which agents don't leave out, drop is told how many.
func (t *Trimmed) Cut(s *mpit.Sample, drop func(variables int)) *mpit.Sample {
	v, l, m := s.Variables, s.Layout, s.Remains
	over := struct{ variables, layout, remains bool }{
		v != nil && len(v.ByID) > maxVariables,
		l != nil && (len(l.Objects) > maxObjects || len(l.Handles) > maxHandles),
		m != nil && len(m.List) > maxRemains,
	}
	if !over.variables && !over.layout && !over.remains {
		*t = Trimmed{}
		return s
	}
	short := *s
	if over.variables {
		short.Variables = t.variables.of(v, func(v mpit.Variables) *mpit.Variables {
			drop(len(v.ByID) - maxVariables)
			v.ByID = append([]mpit.Variable(nil), v.ByID[:maxVariables]...)
			return &v
		})
	}
	if over.layout {
		short.Layout = t.layout.of(l, shortLayout)
	}
	if over.remains {
		short.Remains = t.remains.of(m, func(m mpit.Remains) *mpit.Remains {
			m.Lost += uint64(len(m.List) - maxRemains)
			m.List = append([]mpit.Remain(nil), m.List[:maxRemains]...)
			return &m
		})
	}
	return &short
}

// shortLayout leaves out the last objects, with the handles that are bound to them, then the last handles.
func shortLayout(l mpit.Layout) *mpit.Layout {
	gone := map[uint32]bool{}
	if n := len(l.Objects); n > maxObjects {
		for i := maxObjects; i < n; i++ {
			gone[l.Objects[i].ID] = true
		}
		l.ObjectsOverflow += uint64(n - maxObjects)
		l.Objects = append([]mpit.Object(nil), l.Objects[:maxObjects]...)
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
