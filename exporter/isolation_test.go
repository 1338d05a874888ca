package exporter

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// slow is figures whose samples take as long as somebody says.
type slow struct {
	figures
	update func()
}

func (s slow) Update(sample *mpit.Sample) {
	s.update()
	s.figures.Update(sample)
}

// withSlow has the ranks of a library take as long as update.
func withSlow(library string, update func()) func(*Exporter) {
	return func(e *Exporter) {
		sound := e.newRank
		e.newRank = func(m *variables.Mapper, p variables.Process) figures {
			f := sound(m, p)
			if p.Library.Name != library {
				return f
			}
			return slow{f, update}
		}
	}
}

// A rank whose sample is just being taken in, which may take as long as it likes, is late: what was copied last
// stands, and others don't wait.
func TestRankThatIsTakenInHoldsNobodyUp(t *testing.T) {
	t.Parallel()      // it waits
	var mu sync.Mutex // held while a sample may not be taken in
	n := startNode(t, Config{}, withSlow("mpich", func() {
		mu.Lock()
		defer mu.Unlock()
	}))
	cfg := small("1", 1)
	cfg.Hello.LibraryVersion = "MPICH Version: 4.0.2"
	prompt, busy := mpittest.New(small("1", 0)), mpittest.New(cfg)
	n.connect(prompt, busy)
	require.Equal(t, 11.0, n.scrape()[of("mpit_calls_total", "1", 1)])

	mu.Lock()
	for i := range 3 {
		require.NoError(t, prompt.Set("calls", mpit.ClassCounter, 0, 20+i))
		require.NoError(t, busy.Set("calls", mpit.ClassCounter, 0, 20+i))
		page := n.scrapeFor(prompt)
		assert.Equal(t, []float64{1, float64(20 + i)},
			[]float64{page[of("mpit_rank_up", "1", 0)], page[of("mpit_calls_total", "1", 0)]})
		assert.Equal(t, []float64{0, 11}, []float64{page[of("mpit_rank_up", "1", 1)],
			page[of("mpit_calls_total", "1", 1)]})
		assert.NotContains(t, page, of("mpit_depth_level", "1", 1))
		assert.Len(t, n.Ranks(), 2+i)
		late := mpittest.New(small("2", i))
		n.connect(late) // nor does who comes and goes
		n.finish(late, mpit.EndFinalize)
	}
	mu.Unlock()
	require.Eventually(t, func() bool { return n.scrape()[of("mpit_calls_total", "1", 1)] == 22 }, longest,
		time.Millisecond)
	assert.Equal(t, 1.0, n.scrape()[of("mpit_rank_up", "1", 1)])
}

// A busy machine takes its time, whoever else is there: all ranks are on every page.
func TestManyRanksBesideAnIdleOneOfAnother(t *testing.T) {
	t.Parallel() // it waits
	n := startNode(t, Config{}, withSlow("openmpi", func() { time.Sleep(20 * time.Millisecond) }))
	const ranks = 80
	for i := range ranks {
		cfg := small("1", i)
		cfg.Hello.Size = ranks
		n.connect(mpittest.New(cfg))
	}
	g := n.lock()
	h := mpit.Hello{ID: mpit.RankID{9}, InitTime: testTime, Attributes: map[string]string{"SLURM_JOB_ID": "9"}}
	other := g.add(h, mpit.Peer{UID: ownUID + 1}, identity.FromHello(&h))
	other.gone = n.now().AddDate(1, 0, 0) // not lost yet
	g.unlock()
	for range 3 {
		assert.Equal(t, float64(ranks), n.scrape()[`mpit_exporter_ranks{state="up"}`])
	}
}

// Who connects and never answers is waited for a moment, once: a round is over before anybody's deadline comes.
func TestNewSilentRanksHoldNobodyUp(t *testing.T) {
	n := startNode(t, Config{}, func(e *Exporter) { e.welcome = time.Millisecond })
	prompt := mpittest.New(small("1", 0))
	n.connect(prompt)
	require.Eventually(t, func() bool { return n.scrape()[of("mpit_rank_up", "1", 0)] == 1 }, longest,
		time.Millisecond)
	for i := range 4 {
		silent := mpittest.New(small("2", i))
		silent.Stall(true)
		n.connect(silent)
		page := n.scrapeWithin(time.Hour)
		assert.Equal(t, 1.0, page[of("mpit_rank_up", "1", 0)])
		silent.Stall(false)
	}
}

// New ranks that answer one after the other are waited for as long as some of them do.
func TestNewRanksAreWaitedForWhileSomeAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := New(Config{Mapper: newMapper(t)})
		require.NoError(t, err)
		const ranks = 20
		fresh := asking{open: newCountdown()}
		for range ranks {
			fresh.list = append(fresh.list, &question{awaiting: awaiting{awaited: []*countdown{fresh.open}}})
		}
		fresh.open.left.Store(ranks)
		began := time.Now()
		go func() {
			for _, q := range fresh.list[1:] {
				time.Sleep(900 * time.Millisecond)
				g := e.lock()
				q.settle()
				g.unlock()
			}
		}()
		e.rounds.awaitUntil(&round{ctx: t.Context()}, &fresh, time.Second, time.Second)
		waited := func(q *question) bool { return q.waited && !q.taken }
		assert.Equal(t, 0, slices.IndexFunc(fresh.list, waited), "the one that never answers is given up")
		assert.False(t, slices.ContainsFunc(fresh.list[1:], waited))
		assert.Equal(t, 19*time.Second, time.Since(began), "17.1 s, and then a second in which nothing came")
	})
}

// Ranks that have been stopped cost one round the patience that others have with them, and then none.
func TestStoppedRanksCostPatienceOnce(t *testing.T) {
	n := startNode(t, Config{}, func(e *Exporter) { e.overdue, e.patience = 1, time.Millisecond })
	var ranks []*mpittest.Rank
	for i := range 10 {
		cfg := small("1", i)
		cfg.Hello.Size = 10
		ranks = append(ranks, mpittest.New(cfg))
	}
	n.connect(ranks...)
	n.scrape()
	ranks[3].Stall(true)
	up := func(page map[string]float64) float64 { return page[`mpit_exporter_ranks{state="up"}`] }
	assert.Equal(t, 9.0, up(n.scrapeFor(slices.Delete(slices.Clone(ranks), 3, 4)...)), "to the deadline")
	assert.Equal(t, 9.0, up(n.scrapeWithin(time.Hour)), "a moment")
	n.patience = time.Hour
	assert.Equal(t, 9.0, up(n.scrapeWithin(2*time.Hour)), "not at all")
	n.patience = time.Millisecond
	ranks[3].Stall(false)
	require.Eventually(t, func() bool { return up(n.scrape()) == 10 }, longest, time.Millisecond)
}

// A last sample that a page could not copy, for somebody had the rank's lock, has not been delivered with it.
func TestLastSampleThatCouldNotBeCopiedIsNotDelivered(t *testing.T) {
	n := startNode(t, Config{})
	r := mpittest.New(small("1", 0))
	n.connect(r)
	n.scrape()
	require.NoError(t, r.Set("calls", mpit.ClassCounter, 0, 30))
	n.finish(r, mpit.EndFinalize)
	n.contentsOf(r, func(*contents) {
		assert.Equal(t, 10.0, n.scrape()[of("mpit_calls_total", "1", 0)], "what was copied last")
	})
	g := n.lock()
	assert.False(t, g.table.byID[r.Hello().ID].scraped)
	g.unlock()
	assert.Equal(t, 30.0, n.scrape()[of("mpit_calls_total", "1", 0)])
	g = n.lock()
	assert.True(t, g.table.byID[r.Hello().ID].scraped)
	g.unlock()
}
