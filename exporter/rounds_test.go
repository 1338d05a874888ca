package exporter

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

func TestNewRefusesNonsense(t *testing.T) {
	for _, cfg := range []Config{
		{},
		{Mapper: newMapper(t), Retention: -1},
		{Mapper: newMapper(t), MaxRanks: -1},
	} {
		_, err := New(cfg)
		assert.Error(t, err)
	}
}

func TestNobodyIsAskedUntilSomebodyReads(t *testing.T) {
	n := startNode(t, Config{})
	r := mpittest.New(small("1", 0))
	n.connect(r)
	require.Equal(t, "new", n.Ranks()[0].State)

	page := n.scrape()
	assert.Equal(t, 1.0, page[of("mpit_rank_agent_samples_total", "1", 0)], "the first scrape is the first sample")
	assert.Equal(t, 1.0, page[of("mpit_rank_up", "1", 0)])
	assert.Equal(t, 10.0, page[of("mpit_calls_total", "1", 0)])
	assert.Equal(t, 5.0, page[of("mpit_depth", "1", 0)])
	assert.Equal(t, "up", n.Ranks()[0].State)

	require.NoError(t, r.Set("depth", mpit.ClassLevel, 0, 6))
	assert.Equal(t, 6.0, n.scrape()[of("mpit_depth", "1", 0)])
}

func TestLateRankHoldsNobodyUp(t *testing.T) {
	n := startNode(t, Config{})
	prompt, late := mpittest.New(small("1", 0)), mpittest.New(small("1", 1))
	n.connect(prompt, late)
	n.scrape()

	late.Stall(true)
	require.NoError(t, prompt.Set("depth", mpit.ClassLevel, 0, 6))
	page := n.scrapeWithin(time.Second)
	assert.Equal(t, 1.0, page[of("mpit_rank_up", "1", 0)])
	assert.Equal(t, 6.0, page[of("mpit_depth", "1", 0)])
	assert.Equal(t, 0.0, page[of("mpit_rank_up", "1", 1)])
	assert.Equal(t, 11.0, page[of("mpit_calls_total", "1", 1)], "what lasts, stays")
	assert.Equal(t, 7.0, page[of("mpit_peak_highwatermark", "1", 1)])
	assert.Equal(t, 1.5, page[of("mpit_waiting_time_seconds_sum", "1", 1)])
	assert.NotContains(t, page, of("mpit_depth", "1", 1), "what doesn't, leaves")
	assert.Equal(t, 1.0, page[`mpit_exporter_samples_total{result="late"}`])
	assert.Equal(t, 1.0, page[`mpit_exporter_ranks{state="late"}`])
	assert.Equal(t, 1.0, page[`mpit_exporter_ranks{state="up"}`])

	// It is known to be late now, so nobody waits for it until the deadline: with this one the test would never end.
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	assert.Equal(t, 0.0, n.scrapeUntil(ctx)[of("mpit_rank_up", "1", 1)])

	// It has answered the old question when it answers the next one.
	late.Stall(false)
	require.Eventually(t, func() bool { return n.scrape()[of("mpit_rank_up", "1", 1)] == 1 }, 30*time.Second, time.Millisecond)
	assert.Equal(t, 5.0, n.scrape()[of("mpit_depth", "1", 1)])
}

func TestSimultaneousScrapesShareOneRound(t *testing.T) {
	n := startNode(t, Config{})
	r := mpittest.New(small("1", 0))
	n.connect(r)
	r.Stall(true)

	const scrapers = 8
	var wg sync.WaitGroup
	pages := make([]map[string]float64, scrapers)
	for i := range scrapers {
		wg.Go(func() { pages[i] = n.scrapeWithin(time.Hour) })
	}
	require.Eventually(t, func() bool { return n.waiting() == scrapers }, 30*time.Second, time.Millisecond)
	r.Stall(false)
	wg.Wait()
	for _, page := range pages {
		assert.Equal(t, 1.0, page["mpit_exporter_rounds_total"])
		assert.Equal(t, 1.0, page[of("mpit_rank_agent_samples_total", "1", 0)], "the rank was asked once")
	}
}

// waiting is how many scrapers wait for the round that is under way.
func (n *node) waiting() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.round == nil {
		return 0
	}
	return n.round.waiting
}

func TestShorterDeadlineShortensTheRound(t *testing.T) {
	n := startNode(t, Config{})
	r := mpittest.New(small("1", 0))
	n.connect(r)
	r.Stall(true)
	defer r.Stall(false)

	first := make(chan map[string]float64, 1)
	go func() { first <- n.scrapeWithin(time.Hour) }()
	require.Eventually(t, func() bool { return n.waiting() == 1 }, 30*time.Second, time.Millisecond)
	second := n.scrapeWithin(10 * time.Millisecond)
	assert.Equal(t, 1.0, second["mpit_exporter_rounds_total"])
	assert.Equal(t, second, <-first)
}

func TestReaderThatGoesAwayTakesItsRoundAlong(t *testing.T) {
	n := startNode(t, Config{})
	r := mpittest.New(small("1", 0))
	n.connect(r)
	r.Stall(true)

	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, done, err := n.Gather(ctx)
		done()
		gone <- err
	}()
	require.Eventually(t, func() bool { return n.waiting() == 1 }, 30*time.Second, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	r.Stall(false)
	assert.Equal(t, 1.0, n.scrape()["mpit_exporter_rounds_total"], "nobody has seen the other one")
}

func TestBusyKeepsTheLastValues(t *testing.T) {
	n := startNode(t, Config{})
	r := mpittest.New(small("1", 0))
	n.connect(r)
	n.scrape()
	require.NoError(t, r.Set("depth", mpit.ClassLevel, 0, 6))
	r.Busy(1)

	page := n.scrape()
	assert.Equal(t, 1.0, page[of("mpit_rank_up", "1", 0)])
	assert.Equal(t, 5.0, page[of("mpit_depth", "1", 0)])
	assert.Equal(t, 1.0, page[`mpit_exporter_samples_total{result="busy"}`])
	assert.Equal(t, 1.0, page[`mpit_exporter_ranks{state="busy"}`])
	assert.Equal(t, 6.0, n.scrape()[of("mpit_depth", "1", 0)])
}

func TestPassiveRank(t *testing.T) {
	n := startNode(t, Config{})
	cfg := small("1", 0)
	cfg.Hello.Passive = true
	n.connect(mpittest.New(cfg))

	page := n.scrape()
	assert.Equal(t, 1.0, page[of("mpit_rank_up", "1", 0)])
	assert.Equal(t, 10.0, page[of("mpit_calls_total", "1", 0)])
	assert.Equal(t, 1.0, page[`mpit_exporter_samples_total{result="passive"}`])
}

func TestRanksNeverOverwriteOneAnother(t *testing.T) {
	n := startNode(t, Config{})
	for _, world := range []struct{ job, step string }{{"1", "0"}, {"2", "0"}, {"2", "1"}} {
		for number := range 2 {
			cfg := small(world.job, number)
			cfg.Hello.Attributes["SLURM_STEP_ID"] = world.step
			n.connect(mpittest.New(cfg))
		}
	}
	page := n.scrape()
	for _, labels := range []string{
		`{jobid="1",rank="0",world="0"}`, `{jobid="1",rank="1",world="0"}`,
		`{jobid="2",rank="0",world="0"}`, `{jobid="2",rank="1",world="0"}`,
		`{jobid="2",rank="0",world="1"}`, `{jobid="2",rank="1",world="1"}`,
	} {
		assert.Contains(t, page, "mpit_calls_total"+labels)
	}
	assert.Equal(t, 0.0, page["mpit_exporter_label_clashes_total"])
}

func TestEqualLabelsGetDup(t *testing.T) {
	n := startNode(t, Config{})
	a, b, c := mpittest.New(small("1", 0)), mpittest.New(small("1", 0)), mpittest.New(small("1", 0))
	n.connect(a, b, c)
	const twin, third = `mpit_calls_total{dup="1",jobid="1",rank="0",world="0"}`, `mpit_calls_total{dup="2",jobid="1",rank="0",world="0"}`
	require.NoError(t, b.Set("calls", mpit.ClassCounter, 0, 20))
	require.NoError(t, c.Set("calls", mpit.ClassCounter, 0, 30))

	page := n.scrape()
	assert.Equal(t, 10.0, page[of("mpit_calls_total", "1", 0)])
	assert.Equal(t, 20.0, page[twin])
	assert.Equal(t, 30.0, page[third])
	assert.Equal(t, 2.0, page["mpit_exporter_label_clashes_total"])

	// It keeps its label when the first one ends, and when it connects anew.
	n.finish(a, mpit.EndFinalize)
	n.kill(b)
	n.connect(b)
	page = n.scrape()
	assert.Equal(t, 10.0, page[of("mpit_calls_total", "1", 0)])
	assert.Equal(t, 20.0, page[twin])
	assert.Equal(t, 2.0, page["mpit_exporter_label_clashes_total"])
}

func TestAnotherUsersID(t *testing.T) {
	n := startNode(t, Config{})
	mine, other := mpittest.New(small("1", 0)), mpittest.New(small("1", 1))
	n.connect(mine, other)
	n.mu.Lock()
	n.table.byID[mine.Hello().ID].peer.UID++ // it is somebody else's
	n.mu.Unlock()

	t.Run("a connection with another user's id", func(t *testing.T) {
		require.NoError(t, mine.Connect(t.Context(), n.path))
		defer mine.Kill()
		require.Eventually(t, func() bool {
			return n.scrape()[`mpit_exporter_connections_refused_total{reason="other_uid"}`] == 1
		}, 30*time.Second, time.Millisecond)
	})
	t.Run("a last sample with another user's id", func(t *testing.T) {
		require.NoError(t, mine.Finish(t.Context(), n.path, mpit.EndFinalize))
		require.Eventually(t, func() bool {
			return n.scrape()[`mpit_exporter_connections_refused_total{reason="other_uid"}`] == 2
		}, 30*time.Second, time.Millisecond)
		assert.NotContains(t, n.scrape(), `mpit_rank_end_info{jobid="1",rank="0",reason="finalize",world="0"}`)
	})
	assert.Equal(t, 1.0, n.scrape()[of("mpit_rank_up", "1", 1)])
}

func TestTooManyRanksOfOneUser(t *testing.T) {
	n := startNode(t, Config{MaxRanks: 1})
	first, second := mpittest.New(small("1", 0)), mpittest.New(small("1", 1))
	n.connect(first)
	require.NoError(t, second.Connect(t.Context(), n.path))
	defer second.Kill()
	<-second.Disconnected()
	page := n.scrape()
	assert.Equal(t, 1.0, page[`mpit_exporter_connections_refused_total{reason="too_many_ranks"}`])
	assert.NotContains(t, page, of("mpit_rank_up", "1", 1))

	// An ended rank takes up no place, and a known one may connect anew.
	n.finish(first, mpit.EndFinalize)
	n.connect(second)
	n.kill(second)
	n.connect(second)
	assert.Equal(t, 1.0, n.scrape()[of("mpit_rank_up", "1", 1)])
}

func TestPeerThatBreaksTheProtocol(t *testing.T) {
	n := startNode(t, Config{UserName: func(uint32) string { return "alice" }})
	r := mpittest.New(small("1", 0))
	n.connect(r)
	page := n.scrape()
	assert.Equal(t, 1.0, page[`mpit_exporter_connections{user="alice"}`])
	assert.Equal(t, 1.0, page[`mpit_exporter_connections_total{user="alice"}`])

	require.NoError(t, r.SendRaw([]byte("GET / HTTP/1.1\r\n\r\n")))
	require.Eventually(t, func() bool {
		page := n.scrape()
		return page[`mpit_exporter_protocol_errors_total{reason="bad_magic"}`] == 1 && page[`mpit_exporter_connections{user="alice"}`] == 0
	}, 30*time.Second, time.Millisecond)
}

// unsound is a rank's figures that panic when they are told to.
type unsound struct {
	figures
	inUpdate, inSeries bool
}

func (u *unsound) Update(s *mpit.Sample) {
	if u.inUpdate {
		panic("update")
	}
	u.figures.Update(s)
}

func (u *unsound) Structure() uint64 {
	if u.inSeries {
		panic("series")
	}
	return u.figures.Structure()
}

func TestPanicCostsItsRankOnly(t *testing.T) {
	for _, test := range []struct {
		name     string
		sabotage func(*unsound)
	}{
		{"while taking a sample in", func(u *unsound) { u.inUpdate = true }},
		{"while making series", func(u *unsound) { u.inSeries = true }},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log logs
			var broken *unsound
			n := startNode(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(e *Exporter) {
				sound := e.newRank
				e.newRank = func(lib mapping.Library, blob []byte) (figures, error) {
					f, err := sound(lib, blob)
					if lib.Name == "mpich" && broken == nil {
						broken = &unsound{figures: f}
						return broken, err
					}
					return f, err
				}
			})
			good, bad := small("1", 0), small("1", 1)
			bad.Hello.LibraryVersion = "MPICH Version: 4.0.2"
			n.connect(mpittest.New(good), mpittest.New(bad))
			require.Equal(t, 11.0, n.scrape()[of("mpit_calls_total", "1", 1)])
			test.sabotage(broken)

			page := n.scrape()
			assert.Equal(t, 1.0, page["mpit_exporter_rank_panics_total"])
			assert.Equal(t, 10.0, page[of("mpit_calls_total", "1", 0)])
			assert.Equal(t, 1.0, page[of("mpit_rank_up", "1", 0)])
			assert.Equal(t, 0.0, page[of("mpit_rank_up", "1", 1)])
			assert.NotContains(t, page, of("mpit_calls_total", "1", 1))
			assert.Contains(t, log.String(), "goroutine", "the log says where")

			// Its figures are made anew.
			assert.Equal(t, 11.0, n.scrape()[of("mpit_calls_total", "1", 1)])
		})
	}
}

func TestLeasedPageIsNeverChanged(t *testing.T) {
	n := startNode(t, Config{})
	r := mpittest.New(small("1", 0))
	n.connect(r)
	families, done, err := n.Gather(t.Context())
	require.NoError(t, err)
	before := valuesOf(families)

	require.NoError(t, r.Set("calls", mpit.ClassCounter, 0, 50))
	n.connect(mpittest.New(small("1", 1)))
	after := n.scrape() // does not wait for the slow reader
	assert.Equal(t, 50.0, after[of("mpit_calls_total", "1", 0)])
	assert.Equal(t, 11.0, after[of("mpit_calls_total", "1", 1)])
	assert.Equal(t, before, valuesOf(families))
	done()
	done()
	assert.Equal(t, 50.0, n.scrape()[of("mpit_calls_total", "1", 0)])
}

func TestVariablesThatComeAndGo(t *testing.T) {
	n := startNode(t, Config{})
	cfg := small("1", 0)
	cfg.Objects = []mpit.Object{{Kind: mpit.BindComm, Name: "MPI_COMM_WORLD", Size: 4, Predefined: true, Created: testTime}}
	cfg.Variables = append(cfg.Variables, mpit.Variable{
		Name: "queue", Class: mpit.ClassLevel, Datatype: mpit.DatatypeInt, DatatypeBytes: 4, Bind: mpit.BindComm, Continuous: true,
	})
	r := mpittest.New(cfg)
	n.connect(r)
	const world, halo = `mpit_queue{comm="MPI_COMM_WORLD",jobid="1",rank="0",world="0"}`, `mpit_queue{comm="halo",jobid="1",rank="0",world="0"}`
	page := n.scrape()
	assert.Contains(t, page, world)
	assert.NotContains(t, page, halo)
	assert.Equal(t, 1.0, page[`mpit_object_info{jobid="1",kind="comm",name="MPI_COMM_WORLD",object_rank="0",rank="0",size="4",world="0"}`])

	id := r.AddObject(mpit.Object{Kind: mpit.BindComm, Name: "halo", Size: 2, Rank: 1, Created: testTime})
	r.AddVariable(mpit.Variable{Name: "late", Class: mpit.ClassCounter, Datatype: mpit.DatatypeInt, DatatypeBytes: 4, State: mpit.VariableDenied}, 1)
	page = n.scrape()
	assert.Contains(t, page, world)
	assert.Contains(t, page, halo)
	assert.Equal(t, 1.0, page[`mpit_object_info{jobid="1",kind="comm",name="halo",object_rank="1",rank="0",size="2",world="0"}`])
	assert.Equal(t, 1.0, page[`mpit_objects{jobid="1",kind="comm",name="halo",rank="0",world="0"}`])
	assert.Equal(t, 1.0, page[`mpit_exporter_variables{state="denied"}`])
	assert.Equal(t, 1.0, page[`mpit_exporter_series_dropped_total{reason="denied"}`])

	require.NoError(t, r.FreeObject(id))
	page = n.scrape()
	assert.Contains(t, page, world)
	assert.NotContains(t, page, halo)
	for key := range page {
		assert.False(t, strings.Contains(key, `"halo"`), key)
	}
}

func TestSeriesOfOneRankAreBounded(t *testing.T) {
	n := startNode(t, Config{MaxSeries: 2})
	n.connect(mpittest.New(small("1", 0)))
	page := n.scrape()
	assert.Equal(t, 2.0, page[`mpit_exporter_series_dropped_total{reason="series_over_bound"}`])
	assert.Equal(t, 1.0, page[of("mpit_rank_up", "1", 0)])
}
