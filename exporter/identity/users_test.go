package identity

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A rank's user is never "other", however many there are: that is for the exporter's figures of itself.
func TestNamesOfUsers(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lookups, fails := map[uint32]int{}, true
	u := NewUsers(func(uid uint32) string {
		lookups[uid]++
		if uid < 1000 || fails {
			return ""
		}
		return fmt.Sprint("user", uid)
	})
	u.now = func() time.Time { return at }

	assert.Equal(t, "1000", u.Name(1000), "the directory service does not answer")
	fails = false
	assert.Equal(t, "1000", u.Name(1000), "it isn't asked again so soon")
	assert.Equal(t, 1, lookups[1000])
	at = at.Add(namelessFor)
	assert.Equal(t, "user1000", u.Name(1000))
	at = at.Add(time.Hour)
	assert.Equal(t, "user1000", u.Name(1000))
	assert.Equal(t, 2, lookups[1000], "a name stays")

	for uid := range uint32(maxUsers) {
		assert.Equal(t, fmt.Sprint(uid), u.Name(uid))
	}
	assert.Equal(t, "999", u.Name(999), "one of too many")
	assert.Equal(t, "user1000", u.Name(1000))
	assert.Zero(t, lookups[999])
	at = at.Add(namelessFor)
	assert.Equal(t, "user1001", u.Name(1001))
	assert.LessOrEqual(t, len(u.nameless), maxUsers)

	for i := range maxUsers {
		assert.Equal(t, fmt.Sprint(i), u.Bounded(fmt.Sprint(i)))
	}
	assert.Equal(t, "other", u.Bounded("one more"))
	assert.Equal(t, "7", u.Bounded("7"))
}
