package turns

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTurns(t *testing.T) {
	var turns Turns[string]
	leave, err := turns.Take(t.Context(), "a")
	require.NoError(t, err)
	other, err := turns.Take(t.Context(), "b")
	require.NoError(t, err, "it has a turn of its own")
	other()

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = turns.Take(gone, "a")
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 1, turns.Users("a"))

	in := make(chan struct{})
	go func() {
		leave, err := turns.Take(context.Background(), "a")
		if assert.NoError(t, err) {
			leave()
		}
		close(in)
	}()
	for turns.Users("a") < 2 {
	}
	select {
	case <-in:
		t.Error("two have the turn")
	default:
	}
	leave()
	<-in
	assert.Zero(t, turns.Users("a"))
	assert.Empty(t, turns.now, "nothing is kept")
}
