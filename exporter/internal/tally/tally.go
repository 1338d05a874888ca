// Package tally counts who holds a row that any number of ranks hold together.
package tally

import (
	"slices"
	"sync"
)

// Tally is rows that any number of ranks hold together, so that each stands on the page once. Of one user's there are
// at most limit: nobody uses up another's place. It is safe for concurrent use.
type Tally[K comparable] struct {
	limit int

	mu         sync.Mutex
	rows       map[owned[K]]*Held[K]
	used       map[uint32]int // rows, by user
	generation uint64         // changes with the rows; never 0
}

type owned[K comparable] struct {
	uid uint32
	key K
}

// Held is one row and how many hold it.
type Held[K comparable] struct {
	owned[K]
	holders int
}

// New returns a Tally without rows.
func New[K comparable](limit int) *Tally[K] {
	return &Tally[K]{limit: limit, rows: map[owned[K]]*Held[K]{}, used: map[uint32]int{}, generation: 1}
}

// Replace gives back what one holder had, for rows of which none stands twice. It returns what the holder has now,
// which is for the next call, and for how many there was no place.
func (t *Tally[K]) Replace(uid uint32, old []*Held[K], rows []K) (now []*Held[K], over int) {
	if slices.EqualFunc(old, rows, func(h *Held[K], key K) bool { return h.key == key }) {
		return old, 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
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
			h = &Held[K]{owned: owned[K]{uid, key}}
			t.rows[h.owned] = h
			t.used[uid]++
		}
		h.holders++
		now = append(now, h)
	}
	return now, over
}

// Since returns how many hold each row, of all users together, and the tally's generation. If that is the one that
// the caller knows, there is nothing new, and sums is nil. Generations begin at 1.
func (t *Tally[K]) Since(known uint64) (sums map[K]int, generation uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known == t.generation {
		return nil, known
	}
	sums = make(map[K]int, len(t.rows))
	for _, h := range t.rows {
		sums[h.key] += h.holders
	}
	return sums, t.generation
}
