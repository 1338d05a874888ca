package series

import (
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// maxSlab is how many things of a kind are made at once. A thing that is still in use keeps its neighbours' memory,
// so it is few: however a rank's objects come and go, it can't hold more than so many times what it is allowed.
const maxSlab = 64

// slabs make what a plan consists of. They are thrown away with what is left of them when the plan stands.
type slabs struct {
	handles slab[handle]
	cells   slab[cell]
	series  slab[mapping.Series]
	timers  slab[timer]
	names   slab[mapping.Label]
}

// expect says about how many handles, each with its cell and series, are to come: of these none is made in vain.
func (s *slabs) expect(n int) { s.handles.expected, s.cells.expected, s.series.expected = n, n, n }

// slab is things of one kind that have been made and are not in use yet.
type slab[T any] struct {
	left     []T
	expected int // so many will be wanted
	made     int // so far; of what nobody expected, a quarter of that at a time
}

// take returns n new things side by side.
func (s *slab[T]) take(n int) []T {
	if n > maxSlab {
		return make([]T, n)
	}
	if len(s.left) < n {
		// as many as the memory for these has room for
		made := slices.Grow([]T(nil), max(n, min(maxSlab, max(s.expected, s.made/4))))
		s.left = made[:cap(made)]
		s.made += len(s.left)
	}
	out := s.left[:n:n]
	s.left, s.expected = s.left[n:], s.expected-n
	return out
}

func (s *slabs) handle() *handle            { return &s.handles.take(1)[0] }
func (s *slabs) cell() *cell                { return &s.cells.take(1)[0] }
func (s *slabs) timer() *timer              { return &s.timers.take(1)[0] }
func (s *slabs) newSeries() *mapping.Series { return &s.series.take(1)[0] }

// labels is an empty slice with room for n labels.
func (s *slabs) labels(n int) []mapping.Label { return s.names.take(n)[:0] }
