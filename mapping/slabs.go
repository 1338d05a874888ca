package mapping

// slab is how many things of a kind are made at once. A thing that is still in use keeps its neighbours' memory, so it is few:
// however a rank's objects come and go, it can't hold more than so many times what it is allowed.
const slab = 64

// slabs make what a plan consists of. They are thrown away with what is left of them when the plan stands.
type slabs struct {
	handles []handle
	cells   []cell
	series  []Series
	elems   []element
	timers  []timer
	names   []Label
}

// part cuts n things off *from; of many it makes more than are asked for.
func part[T any](from *[]T, n int) []T {
	if n > slab {
		return make([]T, n)
	}
	if len(*from) < n {
		*from = make([]T, slab)
	}
	out := (*from)[:n:n]
	*from = (*from)[n:]
	return out
}

func (s *slabs) handle() *handle          { return &part(&s.handles, 1)[0] }
func (s *slabs) cell() *cell              { return &part(&s.cells, 1)[0] }
func (s *slabs) timer() *timer            { return &part(&s.timers, 1)[0] }
func (s *slabs) newSeries() *Series       { return &part(&s.series, 1)[0] }
func (s *slabs) elements(n int) []element { return part(&s.elems, n) }

// labels is an empty slice with room for n labels.
func (s *slabs) labels(n int) []Label { return part(&s.names, n)[:0] }
