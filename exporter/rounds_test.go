package exporter

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
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
	assert.Equal(t, 5.0, page[of("mpit_depth_level", "1", 0)])
	assert.Equal(t, "up", n.Ranks()[0].State)

	require.NoError(t, r.Set("depth", mpit.ClassLevel, 0, 6))
	assert.Equal(t, 6.0, n.scrape()[of("mpit_depth_level", "1", 0)])
}

// oneRound lets all readers of a test share a round, however slow the machine is.
func oneRound(e *Exporter) { e.shareable = time.Hour }

// impatient makes whoever owes an answer since an earlier round one that nobody waits for.
func impatient(e *Exporter) { e.overdue, e.patience, e.welcome = 1, 1, usual().welcome }

func TestLateRankHoldsNobodyUp(t *testing.T) {
	n := startNode(t, Config{}, impatient)
	prompt, late := mpittest.New(small("1", 0)), mpittest.New(small("1", 1))
	n.connect(prompt, late)
	n.scrape()

	late.Stall(true)
	require.NoError(t, prompt.Set("depth", mpit.ClassLevel, 0, 6))
	page := n.scrapeFor(prompt)
	assert.Equal(t, 1.0, page[of("mpit_rank_up", "1", 0)])
	assert.Equal(t, 6.0, page[of("mpit_depth_level", "1", 0)])
	assert.Equal(t, 0.0, page[of("mpit_rank_up", "1", 1)])
	assert.Equal(t, 11.0, page[of("mpit_calls_total", "1", 1)], "what lasts, stays")
	assert.Equal(t, 7.0, page[of("mpit_peak_highwatermark", "1", 1)])
	assert.Equal(t, 1.5, page[of("mpit_waiting_time_seconds_sum", "1", 1)])
	assert.NotContains(t, page, of("mpit_depth_level", "1", 1), "what doesn't, leaves")
	assert.Equal(t, 1.0, page[`mpit_exporter_samples_total{result="late"}`])
	assert.Equal(t, 1.0, page[`mpit_exporter_ranks{state="late"}`])
	assert.Equal(t, 1.0, page[`mpit_exporter_ranks{state="up"}`])

	// It is known to be late now, so nobody waits for it until the deadline: with this one the test would never end.
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	assert.Equal(t, 0.0, n.scrapeUntil(ctx)[of("mpit_rank_up", "1", 1)])

	// It has answered the old question when it answers the next one.
	late.Stall(false)
	require.Eventually(t, func() bool { return n.scrape()[of("mpit_rank_up", "1", 1)] == 1 }, longest,
		time.Millisecond)
	assert.Equal(t, 5.0, n.scrape()[of("mpit_depth_level", "1", 1)])
}

func TestSimultaneousScrapesShareOneRound(t *testing.T) {
	n := startNode(t, Config{}, oneRound)
	r := mpittest.New(small("1", 0))
	n.connect(r)
	r.Stall(true)

	const scrapers = 8
	var wg sync.WaitGroup
	pages := make([]map[string]float64, scrapers)
	for i := range scrapers {
		wg.Go(func() { pages[i] = n.scrapeWithin(time.Hour) })
	}
	require.Eventually(t, func() bool { return n.waiting() == scrapers }, longest, time.Millisecond)
	r.Stall(false)
	wg.Wait()
	for _, page := range pages {
		assert.Equal(t, 1.0, page["mpit_exporter_rounds_total"])
		assert.Equal(t, 1.0, page[of("mpit_rank_agent_samples_total", "1", 0)], "the rank was asked once")
	}
}

// A round holds no sample that has been taken in: those of a thousand ranks are much.
func TestRoundHoldsNoSamples(t *testing.T) {
	n := startNode(t, Config{})
	n.connect(mpittest.New(small("1", 0)))
	asked := n.rounds.ask()
	require.Eventually(t, func() bool {
		g := n.rounds.lock()
		defer g.unlock()
		return asked[fresh].list[0].taken
	}, longest, time.Millisecond)
	assert.Nil(t, asked[fresh].list[0].pending.Load())
}

// waiting is how many scrapers wait for the round that is under way.
func (n *node) waiting() int {
	s := n.rounds.shared.Lock()
	defer n.rounds.shared.Unlock()
	return s.readers()
}

func (s *sharedRound) readers() int {
	if s.round == nil {
		return 0
	}
	all := 0
	for _, readers := range s.waiting {
		all += readers
	}
	return all
}

// begin begins a scrape with all the time in the world, and returns once it waits.
func (n *node) begin() <-chan map[string]float64 {
	n.t.Helper()
	before := n.waiting()
	page := make(chan map[string]float64, 1)
	go func() { page <- n.scrapeWithin(time.Hour) }()
	require.Eventually(n.t, func() bool { return n.waiting() == before+1 }, longest, time.Millisecond)
	return page
}

func TestReaderInAHurryEndsNobodysRound(t *testing.T) {
	up, samples, depth := of("mpit_rank_up", "1", 0), of("mpit_rank_agent_samples_total", "1", 0),
		of("mpit_depth_level", "1", 0)
	n := startNode(t, Config{}, oneRound)
	r := mpittest.New(small("1", 0))
	n.connect(r)
	r.Stall(true)

	before := n.begin()
	hurried := n.scrapeFor()
	assert.Equal(t, 0.0, hurried[up])
	assert.Equal(t, 1.0, hurried[`mpit_exporter_samples_total{result="late"}`])
	after := n.begin() // there is nothing to inherit from who was in a hurry

	r.Stall(false)
	for _, patient := range []<-chan map[string]float64{before, after} {
		page := <-patient
		assert.Equal(t, 1.0, page[up])
		assert.Equal(t, 5.0, page[depth])
		assert.Equal(t, 1.0, page[samples], "the rank was asked once")
		assert.Equal(t, 1.0, page[`mpit_exporter_samples_total{result="fresh"}`], "and its answer counts once")
		assert.Equal(t, 1.0, page["mpit_exporter_rounds_total"])
	}
}

// A scraper that asks all the time and waits for nobody does not make others give up on a rank that is only slow.
func TestReaderInAHurryMakesNobodyTardy(t *testing.T) {
	n := startNode(t, Config{}, func(e *Exporter) { e.patience, e.overdue = 1, time.Hour })
	r := mpittest.New(small("1", 0))
	n.connect(r)
	r.Stall(true)
	for range 3 {
		assert.Equal(t, 0.0, n.scrapeFor()[of("mpit_rank_up", "1", 0)])
	}
	page := n.begin()
	r.Stall(false)
	assert.Equal(t, 1.0, (<-page)[of("mpit_rank_up", "1", 0)])
}

// A round that one rank draws out doesn't hand its old answers to whoever comes later.
func TestOverlappingRounds(t *testing.T) {
	n := startNode(t, Config{}, func(e *Exporter) { e.shareable = 0 })
	prompt, slow := mpittest.New(small("1", 0)), mpittest.New(small("1", 1))
	n.connect(prompt, slow)
	slow.Stall(true)
	first := make(chan map[string]float64, 1)
	go func() { first <- n.scrapeWithin(time.Hour) }()
	n.wait(prompt, func(r *rank) bool { return r.last == stateUp && r.line.asked.Load() == nil })
	require.NoError(t, prompt.Set("depth", mpit.ClassLevel, 0, 6))

	second := n.scrapeFor(prompt)
	assert.Equal(t, 6.0, second[of("mpit_depth_level", "1", 0)], "asked anew")
	assert.Equal(t, 2.0, second[of("mpit_rank_agent_samples_total", "1", 0)])
	assert.Equal(t, 0.0, second[of("mpit_rank_up", "1", 1)])

	slow.Stall(false)
	page := <-first
	assert.Equal(t, 1.0, page[of("mpit_rank_up", "1", 0)])
	assert.Equal(t, 1.0, page[of("mpit_rank_up", "1", 1)])
	assert.Equal(t, 1.0, page[of("mpit_rank_agent_samples_total", "1", 1)], "its question was still open")
	assert.Equal(t, 3.0, page[`mpit_exporter_samples_total{result="fresh"}`])
}

// A page that is made while a newer round has asked a rank again does not take that rank for a late one.
func TestRankThatIsAskedAgainIsNotLate(t *testing.T) {
	n := startNode(t, Config{}, func(e *Exporter) { e.shareable = 0 })
	both, slow := mpittest.New(small("1", 0)), mpittest.New(small("1", 1))
	n.connect(both, slow)
	slow.Stall(true)
	first := make(chan map[string]float64, 1)
	go func() { first <- n.scrapeWithin(time.Hour) }()
	n.wait(both, func(r *rank) bool { return r.last == stateUp && r.line.asked.Load() == nil })
	both.Stall(true)
	second := make(chan map[string]float64, 1)
	go func() { second <- n.scrapeWithin(time.Hour) }()
	n.wait(both, func(r *rank) bool { return r.line.asked.Load() != nil })

	slow.Stall(false)
	assert.Equal(t, 1.0, (<-first)[of("mpit_rank_up", "1", 0)])
	both.Stall(false)
	assert.Equal(t, 1.0, (<-second)[of("mpit_rank_up", "1", 0)])
}

// Who has missed one round, and answered since, is waited for like anybody else.
func TestAnswerBetweenRounds(t *testing.T) {
	n := startNode(t, Config{}, impatient)
	r := mpittest.New(small("1", 0))
	n.connect(r)
	r.Stall(true)
	assert.Equal(t, 0.0, n.scrapeFor()[of("mpit_rank_up", "1", 0)])
	r.Stall(false)
	n.wait(r, func(r *rank) bool { return r.facts.Load().Sampled }) // what came late is as good

	r.Stall(true)
	page := n.begin()
	r.Stall(false)
	last := <-page
	assert.Equal(t, 1.0, last[of("mpit_rank_up", "1", 0)])
	assert.Equal(t, 2.0, last[of("mpit_rank_agent_samples_total", "1", 0)])
	assert.Equal(t, 2.0, last[`mpit_exporter_samples_total{result="fresh"}`])
}

// What an agent counts of itself never falls, not even where it leaves things out of an answer.
func TestAgentsFiguresNeverFall(t *testing.T) {
	n := startNode(t, Config{})
	r := mpittest.New(small("1", 0))
	n.connect(r)
	r.SetStats(mpit.AgentStats{
		Samples: 99, Busy: 20, ReadErrors: 30, GateWaits: 40, GateWaitTime: 5 * time.Second,
		GateWaitMax: time.Second, CPUTime: 2 * time.Second,
	})
	figures := func() map[string]float64 {
		page := n.scrape()
		maps.DeleteFunc(page, func(key string, _ float64) bool { return !strings.HasPrefix(key, "mpit_rank_agent_") })
		return page
	}
	before := figures()
	require.Equal(t, 100.0, before[of("mpit_rank_agent_samples_total", "1", 0)])
	require.Len(t, before, 6)
	forget := func() { r.SetStats(mpit.AgentStats{}) }

	for _, step := range []struct {
		name string
		do   func()
	}{
		{"a busy answer", func() { forget(); r.Busy(1) }},
		{"a fresh answer", forget},
		{"the last sample", func() { forget(); n.finish(r, mpit.EndFinalize) }},
	} {
		step.do()
		assert.Equal(t, before, figures(), step.name)
	}
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
	require.Eventually(t, func() bool { return n.waiting() == 1 }, longest, time.Millisecond)
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
	assert.Equal(t, 5.0, page[of("mpit_depth_level", "1", 0)])
	assert.Equal(t, 1.0, page[`mpit_exporter_samples_total{result="busy"}`])
	assert.Equal(t, 1.0, page[`mpit_exporter_ranks{state="busy"}`])
	assert.Equal(t, 6.0, n.scrape()[of("mpit_depth_level", "1", 0)])
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
		`{jobid="1",rank="0",user="alice",world="0"}`, `{jobid="1",rank="1",user="alice",world="0"}`,
		`{jobid="2",rank="0",user="alice",world="0"}`, `{jobid="2",rank="1",user="alice",world="0"}`,
		`{jobid="2",rank="0",user="alice",world="1"}`, `{jobid="2",rank="1",user="alice",world="1"}`,
	} {
		assert.Contains(t, page, "mpit_calls_total"+labels)
	}
	assert.Equal(t, 0.0, page["mpit_exporter_label_clashes_total"])
}

func TestEqualLabelsGetDup(t *testing.T) {
	n := startNode(t, Config{})
	a, b, c := mpittest.New(small("1", 0)), mpittest.New(small("1", 0)), mpittest.New(small("1", 0))
	n.connect(a, b, c)
	const twin, third = `mpit_calls_total{dup="1",jobid="1",rank="0",user="alice",world="0"}`,
		`mpit_calls_total{dup="2",jobid="1",rank="0",user="alice",world="0"}`
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
	g := n.lock()
	g.table.byID[mine.Hello().ID].UID++ // it is somebody else's
	g.table.users[ownUID+1] = g.table.users[ownUID]
	g.unlock()

	t.Run("a connection with another user's id", func(t *testing.T) {
		require.NoError(t, mine.Connect(t.Context(), n.path))
		defer mine.Kill()
		require.Eventually(t, func() bool {
			return n.scrape()[`mpit_exporter_connections_refused_total{reason="other_uid"}`] == 1
		}, longest, time.Millisecond)
	})
	t.Run("a last sample with another user's id", func(t *testing.T) {
		require.NoError(t, mine.Finish(t.Context(), n.path, mpit.EndFinalize))
		require.Eventually(t, func() bool {
			return n.scrape()[`mpit_exporter_connections_refused_total{reason="other_uid"}`] == 2
		}, longest, time.Millisecond)
		assert.NotContains(t, n.scrape(), `mpit_rank_end_info{jobid="1",rank="0",reason="finalize",user="alice",world="0"}`)
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
	assert.Equal(t, 1.0, page[`mpit_exporter_connections_accepted_total{user="alice"}`])

	require.NoError(t, r.SendRaw([]byte("GET / HTTP/1.1\r\n\r\n")))
	require.Eventually(t, func() bool {
		page := n.scrape()
		return page[`mpit_exporter_protocol_errors_total{reason="bad_magic"}`] == 1 &&
			page[`mpit_exporter_connections{user="alice"}`] == 0
	}, longest, time.Millisecond)
}

// unsound is a rank's figures that panic when they are told to.
type unsound struct {
	figures
	inUpdate, inSeries bool
	closed             atomic.Int32
}

func (u *unsound) Close() {
	u.closed.Add(1)
	u.figures.Close()
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

// nodeWithUnsound has rank 0, which is well, and rank 1, whose first figures can be made to panic.
func nodeWithUnsound(t *testing.T, cfg Config, options ...func(*Exporter)) (*node, *unsound) {
	t.Helper()
	broken := &unsound{} // its figures come with the first answer
	n := startNode(t, cfg, append(options, func(e *Exporter) {
		sound := e.newRank
		e.newRank = func(m *variables.Mapper, p variables.Process) figures {
			f := sound(m, p)
			if p.Library.Name == "mpich" && broken.figures == nil {
				broken.figures = f
				return broken
			}
			return f
		}
	})...)
	good, bad := small("1", 0), small("1", 1)
	bad.Hello.LibraryVersion = "MPICH Version: 4.0.2"
	n.connect(mpittest.New(good), mpittest.New(bad))
	return n, broken
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
			n, broken := nodeWithUnsound(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			require.Equal(t, 11.0, n.scrape()[of("mpit_calls_total", "1", 1)])
			test.sabotage(broken)

			page := n.scrape()
			assert.Equal(t, 1.0, page["mpit_exporter_rank_panics_total"])
			assert.Equal(t, 10.0, page[of("mpit_calls_total", "1", 0)])
			assert.Equal(t, 1.0, page[of("mpit_rank_up", "1", 0)])
			assert.Equal(t, 0.0, page[of("mpit_rank_up", "1", 1)])
			assert.NotContains(t, page, of("mpit_calls_total", "1", 1))
			assert.Contains(t, log.String(), "goroutine", "the log says where")
			assert.EqualValues(t, 1, broken.closed.Load(), "what is thrown away is closed")

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
	cfg.Objects = []mpit.Object{{Kind: mpit.BindComm, Name: "MPI_COMM_WORLD", Size: 4, Predefined: true,
		Created: testTime}}
	cfg.Variables = append(cfg.Variables, mpit.Variable{
		Name: "queue", Class: mpit.ClassLevel, Datatype: mpit.DatatypeInt, DatatypeBytes: 4, Bind: mpit.BindComm,
		Continuous: true,
	})
	r := mpittest.New(cfg)
	n.connect(r)
	const world, halo = `mpit_queue_level{comm="MPI_COMM_WORLD",jobid="1",rank="0",user="alice",world="0"}`,
		`mpit_queue_level{comm="halo",jobid="1",rank="0",user="alice",world="0"}`
	page := n.scrape()
	assert.Contains(t, page, world)
	assert.NotContains(t, page, halo)
	assert.Equal(t, 1.0, page[`mpit_object_info{jobid="1",kind="comm",name="MPI_COMM_WORLD",object_rank="0",predefined="true",rank="0",size="4",user="alice",world="0"}`])

	id := r.AddObject(mpit.Object{Kind: mpit.BindComm, Name: "halo", Size: 2, Rank: 1, Created: testTime})
	r.AddVariable(mpit.Variable{Name: "late", Class: mpit.ClassCounter, Datatype: mpit.DatatypeInt, DatatypeBytes: 4,
		State: mpit.VariableDenied}, 1)
	page = n.scrape()
	assert.Contains(t, page, world)
	assert.Contains(t, page, halo)
	assert.Equal(t, 1.0, page[`mpit_object_info{jobid="1",kind="comm",name="halo",object_rank="1",rank="0",size="2",user="alice",world="0"}`])
	assert.Equal(t, 1.0, page[`mpit_objects{jobid="1",kind="comm",name="halo",rank="0",user="alice",world="0"}`])
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

func TestWhatDescribesOneRankIsBounded(t *testing.T) {
	cfg := small("1", 0)
	cfg.Objects = []mpit.Object{
		{Kind: mpit.BindComm, Name: "MPI_COMM_WORLD", Size: 4, Predefined: true, Created: testTime},
		{Kind: mpit.BindComm, Name: "halo", Size: 4, Created: testTime},
	}
	// Two series of each object, four that describe the variables.
	for _, test := range []struct{ bound, objects, infos int }{
		{8, 4, 4},
		{7, 4, 3},
		{5, 4, 1},
		{4, 4, 0},
		{2, 2, 0},
		{0, 0, 0},
	} {
		n := startNode(t, Config{}, func(e *Exporter) { e.describing = test.bound })
		n.connect(mpittest.New(cfg))
		var page map[string]float64
		for range 3 { // what is built anew is not counted anew
			page = n.scrape()
		}
		count := func(prefixes ...string) (found int) {
			for key := range page {
				for _, p := range prefixes {
					if strings.HasPrefix(key, p) {
						found++
					}
				}
			}
			return found
		}
		assert.Equal(t, 4, count("mpit_calls_total", "mpit_depth_level", "mpit_peak",
			"mpit_waiting_time_seconds_sum"), test)
		assert.Equal(t, test.objects, count("mpit_object_info", "mpit_objects"), test)
		assert.Equal(t, test.infos, count("mpit_pvar_info"), test)
		assert.Equal(t, 1.0, page[of("mpit_rank_up", "1", 0)])
		// An object is dropped with both of its series.
		dropped := (4-test.objects)/2 + 4 - test.infos
		assert.Equal(t, float64(dropped), page[`mpit_exporter_series_dropped_total{reason="series_over_bound"}`], test)
	}
}

// Each rank has talked to others: what describes its other variables is shared all the same, and peers aren't
// described.
func TestVariablesByPeerAreNotDescribed(t *testing.T) {
	own := len(small("1", 0).Variables)
	n := startNode(t, Config{}, func(e *Exporter) { e.describing = own }) // enough for what both have
	for rank := range 2 {
		cfg := small("1", rank)
		for peer := range 2 {
			name := "mpit_call_peer_messages_" + strconv.Itoa(10*rank+peer)
			cfg.Variables = append(cfg.Variables, mpit.Variable{Name: name, Class: mpit.ClassCounter,
				Datatype: mpit.DatatypeUint64, DatatypeBytes: 8, Continuous: true})
			cfg.Values = append(cfg.Values, mpittest.Value{Name: name, Class: mpit.ClassCounter, Values: []any{7}})
		}
		n.connect(mpittest.New(cfg))
	}
	described, shown := 0, 0
	page := n.scrape()
	for key := range page {
		if strings.HasPrefix(key, "mpit_pvar_info{") {
			described++
			assert.NotContains(t, key, "peer")
		}
		if strings.HasPrefix(key, "mpit_call_peer_messages_total{") {
			shown++
		}
	}
	assert.Equal(t, 4, shown)
	assert.Equal(t, own, described)
	assert.Zero(t, page[`mpit_exporter_series_dropped_total{reason="series_over_bound"}`])
}

// lastWords is what a rank says when it ends: HELLO and the last sample.
func lastWords(t *testing.T, r *mpittest.Rank) []byte {
	t.Helper()
	l, err := net.Listen("unix", socketPath(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	heard := make(chan []byte, 1)
	go func() {
		defer close(heard)
		if c, err := l.Accept(); err == nil {
			b, _ := io.ReadAll(c)
			_ = c.Close()
			heard <- b
		}
	}()
	require.NoError(t, r.Finish(t.Context(), l.Addr().String(), mpit.EndFinalize))
	return <-heard
}

func TestLastSamplesInFlightAreBounded(t *testing.T) {
	const refused = `mpit_exporter_connections_refused_total{reason="too_many_finals"}`
	inFlight := func(n *node) (total int) {
		g := n.lock()
		defer g.unlock()
		for _, count := range g.finals {
			total += count
		}
		return total
	}
	words := lastWords(t, mpittest.New(small("1", 0)))
	var silent []net.Conn
	begin := func(n *node) net.Conn {
		c, err := net.Dial("unix", n.path)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, err = c.Write(words[:len(words)-1])
		require.NoError(t, err)
		return c
	}
	n := startNode(t, Config{})
	for range maxFinals {
		silent = append(silent, begin(n))
	}
	require.Eventually(t, func() bool { return inFlight(n) == maxFinals }, longest, time.Millisecond)
	over := begin(n)
	_, err := over.Read(make([]byte, 1))
	assert.Error(t, err, "closed")
	assert.Equal(t, 1.0, n.scrape()[refused])

	// Living ranks may all end at the same moment.
	live := mpittest.New(small("1", 1))
	n.connect(live)
	n.finish(live, mpit.EndFinalize)

	// There is room again.
	_, err = silent[0].Write(words[len(words)-1:])
	require.NoError(t, err)
	require.Eventually(t, func() bool { return inFlight(n) < maxFinals }, longest, time.Millisecond)
	page := n.scrape()
	assert.Equal(t, 2.0, page[`mpit_exporter_samples_total{result="final"}`])
	assert.Equal(t, 1.0, page[refused])
	for _, c := range silent {
		require.NoError(t, c.Close())
	}
	require.Eventually(t, func() bool { return inFlight(n) == 0 }, longest, time.Millisecond)
}

// A page that could not be made is made anew.
func TestPanicWhileThePageIsMade(t *testing.T) {
	n := startNode(t, Config{})
	n.connect(mpittest.New(small("1", 0)), mpittest.New(small("1", 1)))
	want, used := n.calls(), n.budgets.Used(nil)
	n.page().board.Page = nil
	_, done, err := n.Gather(t.Context())
	done()
	require.ErrorContains(t, err, "exporter: making the page: panic")
	assert.Equal(t, want, n.calls())
	assert.Equal(t, used, n.budgets.Used(nil))
}
