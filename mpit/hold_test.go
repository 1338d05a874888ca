package mpit_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// TestHeldFinals: a rank that waits for it is let go with Close, and where finals are not held as soon as its sample
// has come.
func TestHeldFinals(t *testing.T) {
	for _, held := range []bool{false, true} {
		var opts []mpit.ListenOption
		if held {
			opts = append(opts, mpit.WithHeldFinals(), mpit.WithLimits(mpit.Limits{Connections: 3}))
		}
		l := listen(t, opts...)
		for range 5 { // each gives back what it has of its user's share
			finished := make(chan error, 1)
			go func() { finished <- mpittest.New(small()).FinishAwaited(testContext(t), l.Path(), mpit.EndFinalize) }()
			s, err := l.Accept(testContext(t))
			require.NoError(t, err)
			await(t, "the sample", s.Done())
			_, ok := s.Final()
			assert.True(t, ok)
			if held {
				select {
				case err := <-finished:
					t.Fatal("it was let go before Close", err)
				case <-time.After(10 * time.Millisecond):
				}
				require.NoError(t, s.Close())
			}
			require.NoError(t, <-finished)
			require.NoError(t, s.Close(), "once more")
		}
	}
}

// TestHeldFinalOverTheConnectionThatStands: the same.
func TestHeldFinalOverTheConnectionThatStands(t *testing.T) {
	l := listen(t, mpit.WithHeldFinals())
	r := mpittest.New(small())
	s := connect(t, l, r)
	finished := make(chan error, 1)
	go func() { finished <- r.FinishConnected(testContext(t), mpit.EndFinalize, true) }()
	await(t, "the sample", s.Done())
	_, ok := s.Final()
	assert.True(t, ok)
	select {
	case err := <-finished:
		t.Fatal("it was let go before Close", err)
	case <-time.After(10 * time.Millisecond):
	}
	require.NoError(t, s.Close())
	require.NoError(t, <-finished)
}

// TestHeldFinalOfAnImpatientRank: one that doesn't wait, or no longer, is nobody's problem.
func TestHeldFinalOfAnImpatientRank(t *testing.T) {
	l := listen(t, mpit.WithHeldFinals())
	ctx, cancel := context.WithCancel(t.Context())
	finished := make(chan error, 1)
	go func() { finished <- mpittest.New(small()).FinishAwaited(ctx, l.Path(), mpit.EndExit) }()
	s, err := l.Accept(testContext(t))
	require.NoError(t, err)
	await(t, "the sample", s.Done())
	cancel()
	require.NoError(t, <-finished)
	require.NoError(t, s.Close())
}
