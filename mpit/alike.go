package mpit

import (
	"hash/maphash"
	"slices"
	"sync"
)

// alike finds the variables of another connection of the same user that are the same. Ranks of one job have the same
// catalogue, which is most of what they send: it is held once, and charged once, for as long as one of these
// connections has it. A rank can't change what others share, for only what is equal in everything is, and none of it
// is ever changed. It is safe for concurrent use.
type alike struct {
	seed maphash.Seed

	mu    sync.Mutex
	lists map[listKey]*variableList
}

type listKey struct {
	uid  uint32
	hash uint64
}

// variableList is a Variables.ByID that others may find.
type variableList struct {
	byID  []Variable
	key   listKey
	held  memory // what it takes of the user's share, for all of them
	users int    // connections that have it; guarded by alike.mu
}

func newAlike() *alike {
	return &alike{seed: maphash.MakeSeed(), lists: map[listKey]*variableList{}}
}

// find returns a list that is equal to byID, for which the connection has taken so many bytes: that of another
// connection, in which case they are given back, or its own, to which they go. It is to be left.
func (a *alike) find(byID []Variable, held *memory, bytes int) *variableList {
	own := &variableList{
		byID: byID, key: listKey{held.uid, a.hash(byID)}, held: memory{of: held.of, uid: held.uid, bytes: bytes},
		users: 1,
	}
	held.bytes -= bytes
	a.mu.Lock()
	defer a.mu.Unlock()
	other := a.lists[own.key]
	if other == nil {
		a.lists[own.key] = own
		return own
	}
	if !slices.EqualFunc(byID, other.byID, Variable.equal) {
		return own
	}
	own.held.end()
	other.users++
	return other
}

// leave says that a connection has a list no longer.
func (a *alike) leave(l *variableList) {
	if l == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if l.users--; l.users > 0 {
		return
	}
	l.held.end()
	if a.lists[l.key] == l {
		delete(a.lists, l.key)
	}
}

// hash is of everything that equal compares.
func (a *alike) hash(byID []Variable) uint64 {
	var h maphash.Hash
	h.SetSeed(a.seed)
	for _, v := range byID {
		enum := v.Enum
		v.Enum = nil
		maphash.WriteComparable(&h, v)
		if enum == nil {
			continue
		}
		maphash.WriteComparable(&h, enum.ID)
		_, _ = h.WriteString(enum.Name)
		for _, item := range enum.Items {
			maphash.WriteComparable(&h, item)
		}
	}
	return h.Sum64()
}

// equal compares everything, and enumerations by what they have.
func (v Variable) equal(o Variable) bool {
	if !v.Enum.equal(o.Enum) {
		return false
	}
	v.Enum, o.Enum = nil, nil
	return v == o
}

func (e *Enum) equal(o *Enum) bool {
	if e == nil || o == nil || e == o {
		return e == o
	}
	return e.ID == o.ID && e.Name == o.Name && slices.Equal(e.Items, o.Items)
}
