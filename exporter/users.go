package exporter

import (
	"strconv"
	"sync"
	"time"
)

const (
	// maxUsers bounds the values of the label `user` on the exporter's figures of itself: a user with a range of subordinate
	// uids has 65,536 of them.
	maxUsers = 256
	// maxUserNames bounds the users whose names are known.
	maxUserNames = 4096
	// namelessFor is how long a user without a name is not looked up again. A directory service may have failed, and the
	// user's series on this node would stay apart from those on others.
	namelessFor = time.Minute
)

// users names the users of the node.
type users struct {
	lookup func(uid uint32) string
	now    func() time.Time

	mu       sync.Mutex
	names    map[uint32]string    // of those who have one
	nameless map[uint32]time.Time // when they were looked up; at most maxUsers
	shown    map[string]bool      // values of the label on figures of the exporter itself
}

func newUsers(lookup func(uid uint32) string) users {
	return users{
		lookup: lookup, now: time.Now,
		names: map[uint32]string{}, nameless: map[uint32]time.Time{}, shown: map[string]bool{},
	}
}

// name returns the user's name, or its number where it has none. It may block, as lookups do.
func (u *users) name(uid uint32) string {
	number := strconv.FormatUint(uint64(uid), 10)
	now := u.now()
	u.mu.Lock()
	name := u.names[uid]
	at, nameless := u.nameless[uid]
	if len(u.nameless) >= maxUsers {
		for uid, at := range u.nameless {
			if now.Sub(at) >= namelessFor {
				delete(u.nameless, uid)
			}
		}
	}
	full := len(u.nameless) >= maxUsers || len(u.names) >= maxUserNames
	u.mu.Unlock()
	switch {
	case name != "":
		return name
	case full, u.lookup == nil, nameless && now.Sub(at) < namelessFor:
		return number
	}
	name = cleanValue(u.lookup(uid))
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

// own is the user as figures of the exporter itself have it: "other" behind the bound.
func (u *users) own(name string) string {
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
