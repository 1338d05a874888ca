package mpit

import (
	"cmp"
	"sync"

	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

// Room is how much more a user may have, below zero if too much, who has own of what is used of limit. No user may have
// more than is left, and of the last eighth no more than 1/32 of what is left: a user that takes all there is to get
// leaves room for the next one, the fiftieth of them still some, and an ordinary user never notices.
func Room(limit, used, own int) int {
	left := limit - used
	return max(min((left-own)/2, left-limit/8), (left-32*own)/33)
}

// Shares divides what there is only so much of among users, by Room. It is safe for concurrent use.
type Shares struct {
	limit int
	each  int // what one user may have at most, whatever is left

	mu    sync.Mutex
	used  int
	users map[uint32]int
}

// NewShares returns Shares of which no user has anything. One user may have each of it at
// most, if that is not 0, and no more than Room.
func NewShares(limit, each int) *Shares {
	return &Shares{limit: limit, each: cmp.Or(each, limit), users: map[uint32]int{}}
}

// Take takes n for a user, or nothing.
func (s *Shares) Take(uid uint32, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[uid]+n > s.each || n > Room(s.limit, s.used, s.users[uid]) {
		return false
	}
	s.used += n
	s.users[uid] += n
	return true
}

// Give gives n of what a user has taken back.
func (s *Shares) Give(uid uint32, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= n
	if s.users[uid] -= n; s.users[uid] == 0 {
		delete(s.users, uid)
	}
}

// memory is what one connection holds of its user's share of the listener's memory, in bytes. It belongs to the
// goroutine that reads the connection.
type memory struct {
	of    *Shares
	uid   uint32
	bytes int
}

// grow takes so many bytes more, or gives them back where they are below zero.
func (m *memory) grow(bytes int) error {
	switch {
	case bytes == 0: // as with most samples
		return nil
	case bytes < 0:
		m.of.Give(m.uid, -bytes)
	case !m.of.Take(m.uid, bytes):
		return wire.Errorf(wire.ReasonMemory, "%d bytes more than the %d of this connection: user %d holds too much "+
			"of the memory for ranks",
			bytes, m.bytes, m.uid)
	}
	m.bytes += bytes
	return nil
}

// end gives everything back.
func (m *memory) end() {
	m.of.Give(m.uid, m.bytes)
	m.bytes = 0
}
