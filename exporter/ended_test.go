package exporter

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

func withClock(c *testClock) func(*Exporter) { return func(e *Exporter) { e.now = c.Now } }

func ended(reason string) string {
	return `mpit_rank_end_info{jobid="1",rank="0",reason="` + reason + `",user="alice",world="0"}`
}

func TestEndedRank(t *testing.T) {
	for reason, name := range map[mpit.EndReason]string{
		mpit.EndFinalize: "finalize", mpit.EndExit: "exit", mpit.EndAbort: "abort",
	} {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, Config{})
			r := mpittest.New(small("1", 0))
			n.connect(r)
			n.scrape()
			require.NoError(t, r.Set("calls", mpit.ClassCounter, 0, 99))
			n.finish(r, reason)

			page := n.scrape()
			assert.Equal(t, 1.0, page[ended(name)])
			assert.Equal(t, 0.0, page[of("mpit_rank_up", "1", 0)])
			assert.Equal(t, 99.0, page[of("mpit_calls_total", "1", 0)], "the last value")
			assert.Equal(t, 7.0, page[of("mpit_peak_highwatermark", "1", 0)])
			assert.NotContains(t, page, of("mpit_depth_level", "1", 0))
			assert.Equal(t, 1.0, page[`mpit_exporter_samples_total{result="final"}`])
			assert.Equal(t, 1.0, page[`mpit_exporter_ranks{state="ended"}`])
		})
	}
}

func TestProcessTooShortToBeAsked(t *testing.T) {
	n := startNode(t, Config{})
	r := mpittest.New(small("1", 0))
	n.finish(r, mpit.EndFinalize)
	page := n.scrape()
	assert.Equal(t, 10.0, page[of("mpit_calls_total", "1", 0)])
	assert.Equal(t, 1.0, page[ended("finalize")])
}

func TestLastSampleAfterTheConnectionsEnd(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{}, withClock(clock))
	r := mpittest.New(small("1", 0))
	n.connect(r)
	n.scrape()
	n.kill(r)
	page := n.scrape()
	assert.Equal(t, 0.0, page[of("mpit_rank_up", "1", 0)])
	assert.NotContains(t, page, ended("lost"), "its last sample may be on its way")

	require.NoError(t, r.Set("calls", mpit.ClassCounter, 0, 99))
	n.finish(r, mpit.EndExit)
	clock.advance(usual().grace)
	page = n.scrape()
	assert.Equal(t, 99.0, page[of("mpit_calls_total", "1", 0)])
	assert.Equal(t, 1.0, page[ended("exit")])
	assert.NotContains(t, page, ended("lost"))
}

func TestKilledRank(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{}, withClock(clock))
	r := mpittest.New(small("1", 0))
	n.connect(r)
	n.scrape()
	n.kill(r)
	clock.advance(usual().grace)

	page := n.scrape()
	assert.Equal(t, 1.0, page[ended("lost")])
	assert.Equal(t, 0.0, page[of("mpit_rank_up", "1", 0)])
	assert.Equal(t, 10.0, page[of("mpit_calls_total", "1", 0)], "what was known of it")
	assert.NotContains(t, page, of("mpit_depth_level", "1", 0))

	// It was only the connection that was lost.
	n.connect(r)
	page = n.scrape()
	assert.Equal(t, 1.0, page[of("mpit_rank_up", "1", 0)])
	assert.NotContains(t, page, ended("lost"))
	assert.Equal(t, 5.0, page[of("mpit_depth_level", "1", 0)])
}

func TestEndedRankStaysUntilScrapedAndRetention(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{Retention: time.Minute}, withClock(clock))
	r := mpittest.New(small("1", 0))
	n.connect(r)
	n.finish(r, mpit.EndFinalize)

	clock.advance(time.Hour)
	assert.Contains(t, n.scrape(), ended("finalize"), "never scraped since its end, however long ago")
	assert.NotContains(t, n.scrape(), ended("finalize"), "scraped, and the time is over")
	assert.False(t, n.known(r))

	r = mpittest.New(small("1", 0))
	n.connect(r)
	n.finish(r, mpit.EndFinalize)
	n.scrape()
	clock.advance(time.Minute - 1)
	assert.Contains(t, n.scrape(), ended("finalize"), "scraped, but the time is not over")
	clock.advance(1)
	page := n.scrape()
	assert.NotContains(t, page, ended("finalize"))
	assert.NotContains(t, page, of("mpit_calls_total", "1", 0))
	for key := range page {
		assert.NotContains(t, key, "mpit_pvar_info", "no rank has a variable")
	}
}

func TestEndedRankOutlivesReadersThatFail(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{Retention: time.Minute}, withClock(clock))
	r := mpittest.New(small("1", 0))
	n.finish(r, mpit.EndFinalize)
	clock.advance(time.Hour)
	handler := n.Handler()
	for range 2 {
		handler.ServeHTTP(brokenWriter{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		assert.True(t, n.known(r))
	}
	assert.Contains(t, get(handler, "/metrics").Body.String(), ended("finalize"))
	n.scrape()
	assert.False(t, n.known(r))
}

// brokenWriter is a client that has gone.
type brokenWriter struct{ http.ResponseWriter }

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestTooManyEndedRanks(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{MaxEnded: 2}, withClock(clock))
	var ranks []*mpittest.Rank
	for i := range 3 {
		r := mpittest.New(small("1", i))
		n.finish(r, mpit.EndFinalize)
		clock.advance(time.Second)
		ranks = append(ranks, r)
	}
	assert.False(t, n.known(ranks[0]), "the oldest goes")
	page := n.scrape()
	assert.Equal(t, 2.0, page[`mpit_exporter_ranks{state="ended"}`])
	assert.Equal(t, 1.0, page["mpit_exporter_ranks_evicted_total"])
	assert.Equal(t, 4.0, page[`mpit_exporter_series_dropped_total{reason="ended_evicted"}`],
		"a counter, a level, a watermark, a timer")
}

func TestForgottenRanksFiguresAreClosed(t *testing.T) {
	clock := newTestClock()
	var made *unsound
	n := startNode(t, Config{Retention: time.Minute}, withClock(clock), func(e *Exporter) {
		sound := e.newRank
		e.newRank = func(m *variables.Mapper, p variables.Process) figures {
			f := sound(m, p)
			made = &unsound{figures: f}
			return made
		}
	})
	r := mpittest.New(small("1", 0))
	n.finish(r, mpit.EndFinalize)
	n.scrape()
	assert.EqualValues(t, 0, made.closed.Load(), "it still stands on the page")
	clock.advance(time.Minute)
	n.scrape()
	assert.False(t, n.known(r))
	assert.EqualValues(t, 1, made.closed.Load())
}

// Somebody who ends thousands of processes pushes out his own only.
func TestEvictionIsFair(t *testing.T) {
	table := newTable()
	add := func(id byte, uid uint32, at time.Duration) {
		r := table.add(nil, mpit.Hello{ID: mpit.RankID{id}}, mpit.Peer{UID: uid},
			identity.Process{ID: Identity{User: "alice", Rank: int(id)}})
		r.finish(mpit.EndExit, testTime.Add(at))
		table.enter(r)
	}
	add(1, 100, 0) // the oldest of all
	add(2, 200, 1)
	add(3, 200, 2)
	add(4, 200, 3)
	require.Nil(t, table.surplus(4, usual().endedBytes))
	assert.Equal(t, 2, table.surplus(3, usual().endedBytes).ID.Rank, "the oldest of who has most")
}

// After a restart, counters show what their agents have counted in all, with the time from which they have. What only
// the exporter can know begins at zero, and with the restart.
func TestExporterRestart(t *testing.T) {
	path := socketPath(t)
	clock := newTestClock()
	cfg := small("1", 0)
	cfg.Clock = clock.Now
	r := mpittest.New(cfg)

	first := startNodeAt(t, path, Config{}, withClock(clock))
	first.connect(r)
	first.scrape()
	clock.advance(10 * time.Second)
	require.NoError(t, r.Add("waiting", mpit.ClassTimer, 0, 2.5))
	before := first.scrape()
	require.Equal(t, 4.0, before[of("mpit_waiting_time_seconds_sum", "1", 0)])
	require.NotZero(t, before[of("mpit_waiting_time_seconds_count", "1", 0)])
	first.stop()
	<-r.Disconnected()

	clock.advance(10 * time.Second)
	second := startNodeAt(t, path, Config{}, withClock(clock), startedAt(clock.Now()))
	second.connect(r)
	after := second.scrape()
	for _, name := range []string{"mpit_calls_total", "mpit_depth_level", "mpit_rank_start_time_seconds"} {
		assert.Equal(t, before[of(name, "1", 0)], after[of(name, "1", 0)], name)
	}
	count := of("mpit_waiting_time_seconds_count", "1", 0)
	assert.Less(t, after[count], before[count])
	require.NoError(t, r.Add("calls", mpit.ClassCounter, 0, 5))
	require.NoError(t, r.Add("waiting", mpit.ClassTimer, 0, 1))
	clock.advance(10 * time.Second)
	page := second.scrape()
	assert.Equal(t, before[of("mpit_calls_total", "1", 0)]+5, page[of("mpit_calls_total", "1", 0)])
	assert.Equal(t, after[count]+1, page[count])
}

// A rank that is older than the exporter is asked once when it connects: what it counts from then on is on the page, be
// it before the first scrape, or at its end.
func TestRestartLosesNothingAfterTheRankIsBack(t *testing.T) {
	cfg := small("1", 0)
	cfg.Variables = append(cfg.Variables, mpit.Variable{Index: 90, Name: "narrow", Class: mpit.ClassCounter,
		Datatype: mpit.DatatypeUnsigned, DatatypeBytes: 4, Continuous: true})
	cfg.Values = append(cfg.Values, mpittest.Value{Name: "narrow", Class: mpit.ClassCounter, Values: []any{1000}})
	sum, narrow := of("mpit_waiting_time_seconds_sum", "1", 0), of("mpit_narrow_total", "1", 0)
	for _, ends := range []bool{false, true} {
		r := mpittest.New(cfg)
		n := startNode(t, Config{}, startedAt(testTime.AddDate(1, 0, 0)))
		n.connect(r)
		n.wait(r, func(r *rank) bool { return r.state == stateUp })
		assert.Equal(t, "up", n.Ranks()[0].State)
		require.NoError(t, r.Add("waiting", mpit.ClassTimer, 0, 2.5))
		require.NoError(t, r.Add("narrow", mpit.ClassCounter, 0, uint32(0xf0000000)))
		if ends {
			n.finish(r, mpit.EndFinalize)
		} else {
			n.scrape()
			n.kill(r)
			n.connect(r) // it is no news
			require.NoError(t, r.Add("narrow", mpit.ClassCounter, 0, 5))
			n.finish(r, mpit.EndFinalize)
		}
		page := n.scrape()
		assert.Equal(t, 2.5, page[sum])
		assert.Equal(t, float64(0xf0000000)+map[bool]float64{false: 5}[ends], page[narrow])
		assert.Equal(t, map[bool]float64{false: 2, true: 1}[ends],
			page[`mpit_exporter_samples_total{result="fresh"}`], "a question more than the scrapes'")
	}
}

// However many ranks of a user come back at once, they are taken in as those of a round are: a few at a time, and
// without holding a round up.
func TestReturningRanksHoldNobodyUp(t *testing.T) {
	var mu sync.Mutex
	var busy, most atomic.Int32
	old := testTime.AddDate(0, 0, -1)
	n := startNode(t, Config{}, withSlow("mpich", func() {
		most.Store(max(most.Load(), busy.Add(1)))
		defer busy.Add(-1)
		mu.Lock()
		defer mu.Unlock()
	}), startedAt(old.Add(time.Second)), func(e *Exporter) { e.welcome = time.Millisecond })
	prompt := mpittest.New(small("1", 0))
	n.connect(prompt)
	require.Eventually(t, func() bool { return n.scrape()[of("mpit_rank_up", "1", 0)] == 1 }, longest,
		time.Millisecond)

	mu.Lock()
	var back []*mpittest.Rank
	for i := range 2 * maxTaking {
		cfg := small("2", i)
		cfg.Hello.LibraryVersion, cfg.Hello.InitTime, cfg.Hello.Size = "MPICH Version: 4.0.2", old, 2*maxTaking
		back = append(back, mpittest.New(cfg))
	}
	n.connect(back[:maxTaking-1]...)
	require.Eventually(t, func() bool { return busy.Load() == maxTaking-1 }, longest, time.Millisecond)
	page := n.scrapeWithin(time.Hour)
	assert.Equal(t, 1.0, page[of("mpit_rank_up", "1", 0)])
	assert.NotContains(t, page, of("mpit_rank_up", "2", 0), "nobody has waited for it")
	n.connect(back[maxTaking-1:]...)
	mu.Unlock()
	for _, r := range back {
		n.wait(r, func(r *rank) bool { return r.state == stateUp })
	}
	assert.LessOrEqual(t, most.Load(), int32(maxTaking))
	assert.Equal(t, float64(2*maxTaking+1), n.scrape()[`mpit_exporter_ranks{state="up"}`])
}

func TestReconnectGoesOn(t *testing.T) {
	n := startNode(t, Config{})
	r := mpittest.New(small("1", 0))
	n.connect(r)
	n.scrape()
	require.NoError(t, r.Add("calls", mpit.ClassCounter, 0, 1))
	n.kill(r)
	n.connect(r)
	page := n.scrape()
	assert.Equal(t, 11.0, page[of("mpit_calls_total", "1", 0)])
	assert.Equal(t, 1.0, page[of("mpit_rank_up", "1", 0)])
	assert.Len(t, n.Ranks(), 1)

	// A connection that the exporter has not seen end is replaced.
	again := small("1", 0)
	again.Hello.ID = r.Hello().ID
	twin := mpittest.New(again)
	require.NoError(t, twin.Connect(t.Context(), n.path))
	defer twin.Kill()
	<-r.Disconnected()
	assert.Equal(t, 11.0, n.scrape()[of("mpit_calls_total", "1", 0)], "it counts less, and the total does not fall")
	assert.Len(t, n.Ranks(), 1)
}

// A rank that has ended waits in MPI_Finalize or is gone, while others of its world run; where it waits, it stays.
func TestTimeSinceTheEnd(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{Retention: time.Minute}, withClock(clock))
	ranks := make([]*mpittest.Rank, 4)
	for i := range ranks {
		cfg := small("1", i)
		cfg.UnderWay = &mpit.UnderWay{Observed: 6 * time.Second}
		ranks[i] = mpittest.New(cfg)
		n.connect(ranks[i])
	}
	n.scrape()
	waits, exits, killed, runs := ranks[0], ranks[1], ranks[2], ranks[3]
	times := func(what string, want ...float64) {
		t.Helper()
		page := n.scrape()
		var got []float64
		for rank := range ranks {
			for _, state := range []string{"outside", "finalize", "ended"} {
				name := of("mpit_rank_seconds_total", "1", rank)
				at := strings.Index(name, `user=`)
				got = append(got, page[name[:at]+`state="`+state+`",`+name[at:]])
			}
		}
		assert.Equal(t, want, got, what)
		for i, r := range n.Ranks() {
			assert.Equal(t, want[3*i+1:3*i+3], r.Calls.State[api.Finalize:], "the API says the same")
		}
	}
	n.finish(waits, mpit.EndFinalize)
	n.finish(exits, mpit.EndExit)
	n.kill(killed)
	clock.advance(40 * time.Second)
	times("one runs", 6, 40, 0, 6, 0, 40, 6, 0, 0, 6, 0, 0) // the killed one's process is this test's
	g := n.lock()
	g.table.byID[waits.Hello().ID].left, g.table.byID[killed.Hello().ID].left = clock.Now(), clock.Now()
	g.unlock()
	clock.advance(2 * time.Second)
	times("processes have gone", 6, 40, 2, 6, 0, 42, 6, 0, 42, 6, 0, 0)
	n.finish(runs, mpit.EndFinalize)
	clock.advance(time.Second)
	times("all have ended", 6, 40, 2, 6, 0, 42, 6, 0, 42, 6, 0, 0)
}

func TestRankInFinalizeStays(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{Retention: time.Minute}, withClock(clock))
	waits, runs := mpittest.New(small("1", 0)), mpittest.New(small("1", 1))
	n.connect(waits, runs)
	n.finish(waits, mpit.EndFinalize)
	clock.advance(time.Hour)
	n.scrape()
	n.scrape()
	assert.True(t, n.known(waits))
	n.finish(runs, mpit.EndFinalize)
	clock.advance(time.Minute)
	n.scrape()
	n.scrape()
	assert.False(t, n.known(waits))
}
