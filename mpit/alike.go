package mpit

import (
	"hash/maphash"
	"runtime"
	"slices"
	"sync"
	"weak"
)

// alike finds the variables of another connection that are the same. Ranks of one job have the same catalogue, which is most of what they
// send: it is held once, for as long as one of these connections is open or somebody has what it brought. A rank can't change what others
// share, for only what is equal in everything is, and none of it is ever changed. What a connection is charged for is as if it were alone.
// It is safe for concurrent use; nil finds nothing.
type alike struct {
	seed maphash.Seed

	mu    sync.Mutex
	lists map[uint64]weak.Pointer[variableList] // by hash; as many as there are lists in use
}

// variableList is a Variables.ByID that others may find.
type variableList struct{ byID []Variable }

func newAlike() *alike {
	return &alike{seed: maphash.MakeSeed(), lists: map[uint64]weak.Pointer[variableList]{}}
}

// find returns a list that is equal to byID: that of another connection, or its own, which others can find as long as it is in use.
func (a *alike) find(byID []Variable) *variableList {
	own := &variableList{byID}
	if a == nil || len(byID) == 0 {
		return own
	}
	hash := a.hash(byID)
	a.mu.Lock()
	other := a.lists[hash].Value()
	a.mu.Unlock()
	if other != nil && slices.EqualFunc(byID, other.byID, Variable.equal) {
		return other
	}
	a.mu.Lock()
	a.lists[hash] = weak.Make(own)
	a.mu.Unlock()
	runtime.AddCleanup(own, a.forget, hash)
	return own
}

func (a *alike) forget(hash uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lists[hash].Value() == nil { // else another one has taken its place
		delete(a.lists, hash)
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
