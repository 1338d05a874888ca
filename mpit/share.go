package mpit

import (
	"sync"

	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

// shares divides what there is only so much of among users. Nobody may have more than is left: a user that takes all
// there is to get leaves room for the next one, however many do so, and an ordinary user never notices. It is safe for
// concurrent use.
type shares struct {
	limit int
	each  int // what one user may have at most, whatever is left

	mu    sync.Mutex
	used  int
	users map[uint32]int
}

func newShares(limit int) *shares {
	return &shares{limit: limit, each: limit, users: map[uint32]int{}}
}

// take takes n for a user, or nothing.
func (s *shares) take(uid uint32, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.limit - s.used - n
	if left < 0 || s.users[uid]+n > min(left, s.each) {
		return false
	}
	s.used += n
	s.users[uid] += n
	return true
}

// give gives n of what a user has taken back.
func (s *shares) give(uid uint32, n int) {
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
	of    *shares
	uid   uint32
	bytes int
}

// grow takes so many bytes more, or gives them back where they are below zero.
func (m *memory) grow(bytes int) error {
	switch {
	case bytes == 0: // as with most samples
		return nil
	case bytes < 0:
		m.of.give(m.uid, -bytes)
	case !m.of.take(m.uid, bytes):
		return wire.Errorf(wire.ReasonMemory, "%d bytes more than the %d of this connection: user %d holds too much "+
			"of the memory for ranks",
			bytes, m.bytes, m.uid)
	}
	m.bytes += bytes
	return nil
}

// end gives everything back.
func (m *memory) end() {
	m.of.give(m.uid, m.bytes)
	m.bytes = 0
}
