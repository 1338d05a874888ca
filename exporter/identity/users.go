package identity

import (
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
)

const (
	// maxUsers bounds the values of the label `user` of self metrics: a user with a range of subordinate uids has
	// 65,536 of them.
	maxUsers = 256
	// maxUserNames bounds the users whose names are known.
	maxUserNames = 4096
	// namelessFor is how long a user without a name is not looked up again. A directory service may have failed, and
	// the user's series on this node would stay apart from those on others.
	namelessFor = time.Minute
)

// Users names the users of the node. It is safe for concurrent use.
type Users struct {
	lookup func(uid uint32) string
	now    func() time.Time

	mu       sync.Mutex
	names    map[uint32]string    // of those who have one
	nameless map[uint32]time.Time // when they were looked up; at most maxUsers
	shown    map[string]bool      // values of the label of self metrics
}

// NewUsers returns Users. lookup returns a user's name, or "" if there is none; it may block. nil: users are called by
// their numbers.
func NewUsers(lookup func(uid uint32) string) *Users {
	return &Users{
		lookup: lookup, now: time.Now,
		names: map[uint32]string{}, nameless: map[uint32]time.Time{}, shown: map[string]bool{},
	}
}

// Name returns the user's name, or the number where there is none. It may block, as lookups do.
func (u *Users) Name(uid uint32) string {
	number := strconv.FormatUint(uint64(uid), 10)
	now := u.now()
	u.mu.Lock()
	name := u.names[uid]
	at, nameless := u.nameless[uid]
	if len(u.nameless) >= maxUsers {
		maps.DeleteFunc(u.nameless, func(_ uint32, at time.Time) bool { return now.Sub(at) >= namelessFor })
	}
	full := len(u.nameless) >= maxUsers || len(u.names) >= maxUserNames
	u.mu.Unlock()
	switch {
	case name != "":
		return name
	case full, u.lookup == nil, nameless && now.Sub(at) < namelessFor:
		return number
	}
	name = clean.Label(u.lookup(uid))
	u.mu.Lock()
	defer u.mu.Unlock()
	if name == "" {
		u.nameless[uid] = now
		return number
	}
	u.names[uid] = name
	delete(u.nameless, uid)
	return name
}

// Bounded returns the name as a label of the exporter's self metrics, of which there are only so many: else "other".
func (u *Users) Bounded(name string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.shown[name] {
		if len(u.shown) >= maxUsers {
			return "other"
		}
		u.shown[name] = true
	}
	return name
}
