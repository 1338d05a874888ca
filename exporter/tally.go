package exporter

import "slices"

// tally is rows that any number of ranks hold together, so that each stands on the page once. Of one user's there are at most
// limit: nobody uses up another's place. It belongs to Exporter.mu.
type tally[K comparable] struct {
	limit      int
	rows       map[owned[K]]*held[K]
	used       map[uint32]int // rows, by user
	generation uint64         // changes with the rows; never 0
}

type owned[K comparable] struct {
	uid uint32
	key K
}

// held is one row and how many hold it.
type held[K comparable] struct {
	owned[K]
	holders int
}

func newTally[K comparable](limit int) tally[K] {
	return tally[K]{limit: limit, rows: map[owned[K]]*held[K]{}, used: map[uint32]int{}, generation: 1}
}

// replace gives back what one holder had, for rows of which none stands twice. It returns what he has now, which is for the next
// call, and for how many there was no place.
func (t *tally[K]) replace(uid uint32, old []*held[K], rows []K) (now []*held[K], over int) {
	if slices.EqualFunc(old, rows, func(h *held[K], key K) bool { return h.key == key }) {
		return old, 0
	}
	t.generation++
	for _, h := range old {
		if h.holders--; h.holders > 0 {
			continue
		}
		delete(t.rows, h.owned)
		if t.used[uid]--; t.used[uid] == 0 {
			delete(t.used, uid)
		}
	}
	for _, key := range rows {
		h := t.rows[owned[K]{uid, key}]
		if h == nil {
			if t.used[uid] >= t.limit {
				over++
				continue
			}
			h = &held[K]{owned: owned[K]{uid, key}}
			t.rows[h.owned] = h
			t.used[uid]++
		}
		h.holders++
		now = append(now, h)
	}
	return now, over
}

// sums returns how many hold each row, of all users together.
func (t *tally[K]) sums() map[K]int {
	sums := make(map[K]int, len(t.rows))
	for _, h := range t.rows {
		sums[h.key] += h.holders
	}
	return sums
}
