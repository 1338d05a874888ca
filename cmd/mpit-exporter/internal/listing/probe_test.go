package listing

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// patience bounds failures on a loaded machine; no test measures time.
const patience = 2 * time.Minute

// TestListedRanks: the first rank that answers is listed, with the variables and objects that it got later, and no other's.
func TestListedRanks(t *testing.T) {
	socket := filepath.Join(mpittest.ShortDir(t), "agent.sock")
	listener, err := mpit.Listen(socket)
	require.NoError(t, err)
	defer func() { assert.NoError(t, listener.Close()) }()
	mapper, err := variables.New(variables.Config{})
	require.NoError(t, err)
	ranks := newListedRanks(mapper)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- listener.Serve(ctx, ranks.handle, nil) }()
	defer func() {
		stop()
		assert.NoError(t, <-served)
	}()

	stalled := mpittest.New(rankConfig(7, "stalled"))
	stalled.Stall(true)
	first := mpittest.New(rankConfig(0, "first"))
	second := mpittest.New(rankConfig(1, "second"))
	require.NoError(t, first.Connect(ctx, socket))
	defer func() { _ = first.Close() }()
	require.Eventually(t, func() bool {
		_, _, ok := ranks.catalogue()
		return ok
	}, patience, 10*time.Millisecond)
	for _, r := range []*mpittest.Rank{stalled, second} {
		require.NoError(t, r.Connect(ctx, socket))
		defer func() { _ = r.Close() }()
	}

	first.AddObject(mpit.Object{Kind: mpit.BindComm, Name: "halo", Size: 8})
	first.AddVariable(mpit.Variable{Name: "late", Class: mpit.ClassCounter, Datatype: mpit.DatatypeUnsignedLong,
		DatatypeBytes: 8}, 1)
	require.NoError(t, second.Finish(ctx, socket, mpit.EndFinalize))
	require.NoError(t, first.Finish(ctx, socket, mpit.EndFinalize))
	ranks.awaitLastWords(ctx)

	c, missing, ok := ranks.catalogue()
	assert.True(t, ok)
	assert.Empty(t, missing)
	assert.Equal(t, 0, c.Rank.Rank)
	var names []string
	for i := range c.Variables {
		names = append(names, c.Variables[i].Name)
	}
	assert.Equal(t, []string{"first", "late"}, names)
	assert.Len(t, c.ControlVariables, 1)
	require.Len(t, c.Objects, 1)
	assert.Equal(t, "halo", c.Objects[0].Name)
}

// rankConfig is a rank with one variable.
func rankConfig(rank int, variable string) mpittest.Config {
	return mpittest.Config{
		Hello: mpit.Hello{Rank: rank, Size: 8, LibraryVersion: "Open MPI v4.1.4"},
		Variables: []mpit.Variable{{Name: variable, Class: mpit.ClassCounter,
			Datatype: mpit.DatatypeUnsignedLong, DatatypeBytes: 8}},
		ControlVariables: []mpit.ControlVariable{{Name: "control", Datatype: mpit.DatatypeInt, HasValue: true,
			Values: []uint64{1}}},
	}
}
