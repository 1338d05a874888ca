package exporter

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// TestFinalTaken: a rank that waits in MPI_Finalize is let go when whoever has been told of its last sample says so,
// and not before.
func TestFinalTaken(t *testing.T) {
	for name, finish := range map[string]func(r *mpittest.Rank, path string) error{
		"a connection of its own": func(r *mpittest.Rank,
			path string) error {
			return r.FinishAwaited(t.Context(), path, mpit.EndFinalize)
		},
		"the connection that stood": func(r *mpittest.Rank,
			_ string) error {
			return r.FinishConnected(t.Context(), mpit.EndFinalize, true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			told, let := make(chan int), make(chan struct{})
			var n *node
			n = startNodeWith(t, socketPath(t), []mpit.ListenOption{mpit.WithHeldFinals()},
				Config{FinalTaken: func(context.Context) {
					_, untaken := n.Remaining()
					told <- untaken
					<-let
				}})
			r := mpittest.New(small("1", 0))
			n.connect(r)
			finished := make(chan error, 1)
			go func() { finished <- finish(r, n.path) }()
			assert.Equal(t, 1, <-told, "it has ended, for whoever looks now")
			living, _ := n.Remaining()
			assert.Equal(t, 1, living, "while it waits")
			select {
			case err := <-finished:
				t.Fatal("not let go yet", err)
			case <-time.After(10 * time.Millisecond):
			}
			close(let)
			require.NoError(t, <-finished)
			n.wait(r, func(r *rank) bool {
				return r.end == mpit.EndFinalize && r.line == nil &&
					r.state == stateEnded
			})
		})
	}
}

// TestAskedWhileItEnds: a round that asks a rank whose last sample is being taken is over when that has been, not when
// the rank is let go from MPI_Finalize: it may be waiting for this round.
func TestAskedWhileItEnds(t *testing.T) {
	told, let := make(chan bool), make(chan struct{})
	n := startNodeWith(t, socketPath(t), []mpit.ListenOption{mpit.WithHeldFinals()},
		Config{FinalTaken: func(context.Context) {
			told <- true
			<-let
		}})
	agent := mpittest.New(small("1", 0))
	n.connect(agent)
	n.scrape() // who has never answered is not waited for for long
	var r *rank
	n.ranks.with(func(g *registry) { r = g.table.ordered[0] })
	r.contents.Lock()
	finished := make(chan error, 1)
	go func() { finished <- agent.FinishConnected(t.Context(), mpit.EndFinalize, true) }()
	require.Eventually(t, func() (begun bool) {
		n.ranks.with(func(g *registry) { begun = g.finals[ownUID] > 0 })
		return begun
	}, longest, time.Millisecond)
	asked := make(chan error, 1)
	patient, cancel := context.WithTimeout(t.Context(), 2*longest) // at its deadline a round is over in any case
	defer cancel()
	go func() {
		_, err := n.Values(patient, api.Selector{}, true)
		asked <- err
	}()
	require.Eventually(t, func() bool { return r.line.asked.Load() != nil }, longest, time.Millisecond)
	r.contents.Unlock()
	<-told
	select {
	case err := <-asked:
		require.NoError(t, err)
	case <-time.After(longest):
		t.Error("the round waits for a rank that waits")
	}
	close(let)
	require.NoError(t, <-finished)
}

// TestRemaining: what there is left to do before an exporter of one job may end.
func TestRemaining(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{Retention: time.Hour}, withClock(clock))
	is := func(living, untaken int, why string) {
		t.Helper()
		l, u := n.Remaining()
		assert.Equal(t, [2]int{living, untaken}, [2]int{l, u}, why)
	}
	is(0, 0, "nobody has come")
	first, second := mpittest.New(small("1", 0)), mpittest.New(small("1", 1))
	n.connect(first, second)
	is(2, 0, "two are there")
	n.finish(first, mpit.EndFinalize)
	require.Eventually(t, func() bool { l, _ := n.Remaining(); return l == 1 }, longest, time.Millisecond)
	is(1, 1, "one has ended")
	n.scrape()
	is(1, 0, "and been scraped")
	n.kill(second)
	is(1, 0, "it may come back")
	clock.advance(usual().grace)
	is(0, 1, "it is lost, and what was known of it has not been scraped since")
	n.scrape()
	is(0, 0, "nothing is left")

	reader := n.OTelReader(OTelConfig{})
	defer reader.Close()
	third := mpittest.New(small("1", 2))
	n.finish(third, mpit.EndFinalize)
	require.Eventually(t, func() bool { l, _ := n.Remaining(); return l == 0 }, longest, time.Millisecond)
	n.scrape()
	_, untaken := n.Remaining()
	assert.NotZero(t, untaken, "scraped, but not pushed")
	_, delivered, err := reader.Read(t.Context())
	require.NoError(t, err)
	delivered()
	is(0, 0, "pushed as well")
}
