package work

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A user has had no more done than most and one more, then so much a second; another user's share is whole.
func TestWork(t *testing.T) {
	now := time.Unix(1, 0)
	w := New(100, 10, func() time.Time { return now })
	assert.Zero(t, w.take(1, 60))
	assert.Zero(t, w.take(1, 1000), "however much it is")
	assert.Positive(t, w.take(1, 1))
	assert.Zero(t, w.take(2, 1), "another user")
	now = now.Add(95 * time.Second)
	assert.Positive(t, w.take(1, 1), "110 are left")
	now = now.Add(2 * time.Second)
	assert.Zero(t, w.take(1, 1))
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

// Users whose work is forgotten are forgotten.
func TestUsersAreForgotten(t *testing.T) {
	now := time.Unix(1, 0)
	w := New(1, 1, func() time.Time { return now })
	for uid := range uint32(10 * mostDone) {
		w.take(uid, 1)
		now = now.Add(time.Second)
	}
	assert.LessOrEqual(t, len(w.done), mostDone)
}
