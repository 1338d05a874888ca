package exporter

import (
	"cmp"
	"slices"
	"sort"

	"golang.org/x/sync/semaphore"

	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// table holds all ranks that are on the page or may come onto it, and keeps books of them, so that nothing that a
// connection does takes longer the more there are. It belongs to the registry.
type table struct {
	byID    map[mpit.RankID]*rank
	ordered []*rank // by Identity
	arrived uint64  // ranks so far
	users   map[uint32]*userBooks
	ended   int // ranks
	held    int // bytes that ranks without a connection hold
}

// userBooks is what one user's ranks are.
type userBooks struct {
	ranks int
	alive int     // have not ended
	ended int     // have, and have no connection
	held  int     // bytes that those without a connection hold
	away  []*rank // those without a connection, by when they left

	taking *semaphore.Weighted // held by who takes one of them in; safe for concurrent use
}

func newTable() table {
	return table{byID: map[mpit.RankID]*rank{}, users: map[uint32]*userBooks{}}
}

// add puts a new rank into the table, with the lowest dup that is free for its labels.
func (t *table) add(b *base, h mpit.Hello, peer mpit.Peer, w identity.Process) *rank {
	i, _ := t.find(w.ID)
	w.ID.Dup = sort.Search(len(t.ordered)-i, func(dup int) bool { // those with the same labels follow one another
		id := t.ordered[i+dup].ID
		return id.WithoutDup() != w.ID || id.Dup > dup
	})
	r := newRank(b, h, peer, w, len(t.ordered))
	t.arrived++
	r.arrived = t.arrived
	t.byID[h.ID] = r
	t.ordered = slices.Insert(t.ordered, i+r.ID.Dup, r)
	books := t.users[peer.UID]
	if books == nil {
		books = &userBooks{taking: semaphore.NewWeighted(maxTaking)}
		t.users[peer.UID] = books
	}
	books.ranks++
	books.alive++
	r.taking = books.taking
	r.entered.alive = true
	t.enter(r)
	return r
}

func (t *table) remove(r *rank) {
	delete(t.byID, r.Key)
	if i, found := t.find(r.ID); found {
		t.ordered = slices.Delete(t.ordered, i, i+1)
	}
	books := t.users[r.UID]
	t.withdraw(r, books)
	if books.ranks--; books.ranks == 0 {
		delete(t.users, r.UID)
	}
}

// find returns a rank's place in ordered, or where it would be.
func (t *table) find(id Identity) (int, bool) {
	return slices.BinarySearchFunc(t.ordered, id, func(r *rank, id Identity) int { return r.ID.Compare(id) })
}

// connected is the ranks that can be asked.
func (t *table) connected() []*rank {
	list := make([]*rank, 0, len(t.ordered))
	for _, r := range t.ordered {
		if r.line != nil && r.end == mpit.EndNone {
			list = append(list, r)
		}
	}
	return list
}

// alive counts the ranks of one user that have not ended.
func (t *table) alive(uid uint32) int {
	if books := t.users[uid]; books != nil {
		return books.alive
	}
	return 0
}

// enter brings the books up to date after a change of a rank's end, connection or size, if it stands in the table.
func (t *table) enter(r *rank) {
	if t.byID[r.Key] != r {
		return
	}
	now := account{alive: r.end == mpit.EndNone, away: r.line == nil}
	if now.away {
		now.at, now.size = r.leftAt().UnixNano(), r.facts.Load().Size
	}
	if now == r.entered {
		return
	}
	books := t.users[r.UID]
	t.withdraw(r, books)
	r.entered = now
	if now.alive {
		books.alive++
	} else {
		t.ended++
	}
	if now.away {
		if !now.alive {
			books.ended++
		}
		books.held += now.size
		t.held += now.size
		i, _ := books.find(r)
		books.away = slices.Insert(books.away, i, r)
	}
}

// withdraw takes a rank out of the books.
func (t *table) withdraw(r *rank, books *userBooks) {
	was := r.entered
	if was.alive {
		books.alive--
	} else {
		t.ended--
	}
	if was.away {
		if !was.alive {
			books.ended--
		}
		books.held -= was.size
		t.held -= was.size
		if i, found := books.find(r); found {
			books.away = slices.Delete(books.away, i, i+1)
		}
	}
}

// find returns the place of a rank among those that are away, or where it would be.
func (b *userBooks) find(r *rank) (int, bool) {
	return slices.BinarySearchFunc(b.away, r, func(a, b *rank) int {
		return cmp.Or(cmp.Compare(a.entered.at, b.entered.at), cmp.Compare(a.arrived, b.arrived))
	})
}

// surplus returns the rank to be given up when there are more ended ones than limit, or they and those that have lost
// their connection hold more than so many bytes: the oldest of the user who has most of it, so that nobody pushes out
// somebody else's. nil: not too many.
func (t *table) surplus(limit, bytes int) *rank {
	large := t.held > bytes
	if !large && t.ended <= limit {
		return nil
	}
	of := func(b *userBooks) int {
		if large {
			return b.held
		}
		return b.ended
	}
	var most *userBooks
	var uid uint32
	for id, b := range t.users {
		if of(b) > 0 && (most == nil || cmp.Or(cmp.Compare(of(b), of(most)), cmp.Compare(uid, id)) > 0) {
			most, uid = b, id
		}
	}
	if most == nil {
		return nil
	}
	i := slices.IndexFunc(most.away, func(r *rank) bool {
		return large && r.entered.size > 0 || !large && !r.entered.alive
	})
	return most.away[i]
}
