package series

import (
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// maxSlab is how many things of a kind are made at once. A thing that is still in use keeps its neighbours' memory,
// so it is few: however a rank's objects come and go, it can't hold more than so many times what it is allowed.
const maxSlab = 64

// slabs make what a plan consists of. They are thrown away when the plan stands.
type slabs struct {
	handles slab[handle]
	elems   slab[element]
	cells   slab[cell]
	series  slab[mapping.Series]
	labels  slab[mapping.Label]
}

// expect says how many handles are to come, most of which have an element, a cell, a series and a label.
func (s *slabs) expect(n int) {
	s.handles.expected, s.elems.expected, s.cells.expected, s.series.expected, s.labels.expected = n, n, n, n, n
}

// slab is things of one kind that have been made and are not in use yet.
type slab[T any] struct {
	left     []T
	expected int // so many will be wanted
}

// take returns n new things side by side.
func (s *slab[T]) take(n int) []T {
	if len(s.left) < n {
		made := slices.Grow([]T(nil), max(n, min(maxSlab, s.expected)))
		s.left = made[:cap(made)] // as many as the memory for these has room for
	}
	out := s.left[:n:n]
	s.left, s.expected = s.left[n:], s.expected-n
	return out
}

// one returns one new thing.
func (s *slab[T]) one() *T { return &s.take(1)[0] }
