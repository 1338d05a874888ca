package work

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A user has no more done than most at once, then so much a second; another user's share is whole.
func TestWork(t *testing.T) {
	now := time.Unix(1, 0)
	w := New(100, 10, func() time.Time { return now })
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	waits := func(uid uint32, cells int) (waits bool) {
		assert.Equal(t, w.Take(canceled, uid, cells, func() { waits = true }) != nil, waits)
		return waits
	}
	assert.False(t, waits(1, 60))
	assert.False(t, waits(1, 40))
	assert.True(t, waits(1, 1))
	assert.False(t, waits(2, 1000), "another user, however much it is")
	now = now.Add(9 * time.Second)
	assert.True(t, waits(1, 91))
	assert.False(t, waits(1, 90))
	assert.True(t, waits(2, 100), "as much as may be had at once was had")
	now = now.Add(time.Second)
	assert.False(t, waits(2, 100))
}

func TestTakeWaits(t *testing.T) {
	w := New(1, 1, func() time.Time { return time.Unix(1, 0) })
	never := func() { t.Error("there is nothing to wait for") }
	require.NoError(t, w.Take(t.Context(), 1, 5, never))
	require.NoError(t, w.Take(t.Context(), 1, 0, never), "nothing is to be done")
	require.NoError(t, w.Take(t.Context(), 2, 5, never), "another user")
	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, w.Take(ctx, 1, 1, cancel), context.Canceled)
}

// Users who may have all at once again are forgotten.
func TestUsersAreForgotten(t *testing.T) {
	now := time.Unix(1, 0)
	w := New(1, 1, func() time.Time { return now })
	for uid := range uint32(10 * mostUsers) {
		require.NoError(t, w.Take(t.Context(), uid, 1, func() {}))
		now = now.Add(time.Second)
	}
	assert.LessOrEqual(t, len(w.users), mostUsers)
}
