package series

import (
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// maxSlab is how many things of a kind are made at once. A thing that is still in use keeps its neighbours' memory,
// so it is few: however a rank's objects come and go, it can't hold more than so many times what it is allowed.
const maxSlab = 64

// seriesSlabs make series.
type seriesSlabs struct {
	series slab[mapping.Series]
	labels slab[mapping.Label]
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
