package exporter

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/board"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/tally"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// with returns what of a page begins with one of these names, which a scrape shows once all inquiries are over.
func (n *node) with(prefixes ...string) map[string]float64 {
	n.t.Helper()
	n.scrape()
	n.settle()
	found := map[string]float64{}
	for key, value := range n.scrape() {
		for _, p := range prefixes {
			if strings.HasPrefix(key, p) {
				found[key] = value
			}
		}
	}
	return found
}

// grouped is a small rank with categories; the third holds a variable that is not there yet.
func grouped(job string, number int) mpittest.Config {
	cfg := small(job, number)
	for i := range cfg.Variables {
		cfg.Variables[i].Index = 10 * i
	}
	cfg.Categories = []mpit.Category{
		{Index: 0, Name: "all", Variables: []int{0, 10, 77}, ControlVariables: []int{1},
			Subcategories: []int{1, 2, 0}},
		{Index: 1, Name: "caf\xe9 \"1\"\r", Variables: []int{0, 0}},
		{Index: 2, Name: "late", Variables: []int{40}},
		{Index: 3, Name: "", Variables: []int{0}, Subcategories: []int{2}},
	}
	return cfg
}

const (
	inCafe   = `mpit_pvar_category_info{category="café \"1\"�",class="COUNTER",name="calls"}`
	inLate   = `mpit_pvar_category_info{category="late",class="LEVEL",name="new"}`
	category = "mpit_pvar_category_info"
)

func groupedPage() map[string]float64 {
	return map[string]float64{
		`mpit_pvar_category_info{category="all",class="COUNTER",name="calls"}`: 1,
		`mpit_pvar_category_info{category="all",class="LEVEL",name="depth"}`:   1,
		inCafe: 1,
	}
}

func TestCategories(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{Retention: time.Minute}, withClock(clock))
	var ranks []*mpittest.Rank
	for i := range 3 {
		ranks = append(ranks, mpittest.New(grouped("1", i)))
	}
	n.connect(ranks...)
	page := n.scrape()
	for key := range page {
		assert.False(t, strings.HasPrefix(key, category), "no scrape waits for %s", key)
	}
	assert.Equal(t, groupedPage(), n.with(category), "all ranks together, once")
	w := func() *world {
		g := n.lock()
		defer g.unlock()
		require.Len(t, g.worlds.byID, 1)
		for _, w := range g.worlds.byID {
			return w
		}
		return nil
	}()
	source := func() int {
		g := n.lock()
		defer g.unlock()
		require.NotNil(t, w.source)
		return w.source.ID.Rank
	}
	assert.Equal(t, 0, source(), "the lowest is asked")

	t.Run("a new variable", func(t *testing.T) {
		want := groupedPage()
		want[inLate] = 1
		for _, r := range ranks {
			r.AddVariable(mpit.Variable{Index: 40, Name: "new", Class: mpit.ClassLevel, Datatype: mpit.DatatypeInt,
				DatatypeBytes: 4}, 1)
		}
		assert.Equal(t, want, n.with(category))
	})
	t.Run("a new stamp", func(t *testing.T) {
		g := n.lock()
		w.stamp += 9 // it was asked at another one
		g.unlock()
		n.with()
		g = n.lock()
		defer g.unlock()
		assert.Equal(t, g.table.byID[ranks[0].Hello().ID].facts.Load().Stats.CategoryStamp, w.stamp)
	})
	t.Run("the one that was asked leaves", func(t *testing.T) {
		n.finish(ranks[0], mpit.EndFinalize)
		n.with()
		assert.Equal(t, 1, source())
	})
	t.Run("the one that is asked leaves without an answer", func(t *testing.T) {
		n.finish(ranks[1], mpit.EndFinalize)
		ranks = append(ranks, mpittest.New(grouped("1", 3)))
		n.connect(ranks[3])
		g := n.lock()
		g.inquiries[ownUID] += maxInquiries // nobody is asked yet
		g.unlock()
		n.scrape()
		ranks[2].Stall(true)
		g = n.lock()
		g.inquiries[ownUID] -= maxInquiries
		g.inquire()
		asking := g.inquiries[ownUID]
		g.unlock()
		assert.Equal(t, 1, asking)
		n.kill(ranks[2])
		require.Eventually(t, func() bool {
			g := n.lock()
			defer g.unlock()
			return w.source != nil && w.source.ID.Rank == 3 && !w.asking
		},
			longest, time.Millisecond)
	})
	t.Run("all have gone", func(t *testing.T) {
		n.finish(ranks[3], mpit.EndFinalize)
		assert.NotEmpty(t, n.with(category), "as long as its ranks are on the page")
		clock.advance(time.Hour)
		n.scrape()
		clock.advance(time.Hour)
		assert.Empty(t, n.with(category))
		g := n.lock()
		defer g.unlock()
		assert.Empty(t, g.worlds.byID)
		assert.Empty(t, sums(n.categories))
	})
}

// A rank that can't say its categories does not keep others from it, and is not asked all the time.
func TestCategoriesThatCannotBeRead(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{}, withClock(clock))
	bad, good := mpittest.New(small("1", 0)), mpittest.New(grouped("1", 1))
	n.connect(bad, good)
	id := bad.Hello().ID
	fail := func() {
		g := n.lock()
		defer g.unlock()
		r := g.table.byID[id]
		r.world.begin(r)
		g.failed(r, askCategories, mpit.ErrCongested)
	}
	fail()
	assert.Equal(t, groupedPage(), n.with(category))
	n.finish(good, mpit.EndFinalize)
	assert.Equal(t, groupedPage(), n.with(category))
	g := n.lock()
	source := g.table.byID[id].world.source
	g.unlock()
	assert.Equal(t, 1, source.ID.Rank, "not asked again yet")
	clock.advance(inquiryRetry)
	assert.Empty(t, n.with(category))
}

// tuned is a small rank with control variables.
func tuned(job string, number int, limit uint64) mpittest.Config {
	cfg := small(job, number)
	cfg.ControlVariables = []mpit.ControlVariable{
		{Name: "eager_limit", Datatype: mpit.DatatypeInt, HasValue: true, Values: []uint64{limit}},
		{Name: "eager_list", Datatype: mpit.DatatypeDouble, HasValue: true, Values: []uint64{0x3ff8000000000000, 0}},
		{Name: "eager_text", Datatype: mpit.DatatypeChar, HasValue: true, Text: "a\x1bb" + strings.Repeat("x", 200)},
		{Name: "eager_empty", Datatype: mpit.DatatypeChar, HasValue: true},
		{Name: "eager_bound", Datatype: mpit.DatatypeInt, Bind: mpit.BindWin, Code: mpit.ErrNotSupported},
		{Name: "mode", Datatype: mpit.DatatypeInt, HasValue: true, Values: []uint64{1, 2, 3}},
		{Name: "other", Datatype: mpit.DatatypeInt, HasValue: true, Values: []uint64{7}},
	}
	for i := range cfg.ControlVariables {
		cfg.ControlVariables[i].Index = i
	}
	return cfg
}

func cvarRanks(job, name, value string) string {
	return fmt.Sprintf(`mpit_cvar_ranks{jobid=%q,name=%q,user="alice",value=%q,world="0"}`, job, name, value)
}

func TestControlVariables(t *testing.T) {
	const family = "mpit_cvar_ranks"
	clock := newTestClock()
	n := startNode(t, Config{ControlVariables: []string{"eager_*", "m?de"}}, withClock(clock))
	var ranks []*mpittest.Rank
	for i, limit := range []uint64{4096, 4096, 65536} {
		ranks = append(ranks, mpittest.New(tuned("1", i, limit)))
	}
	ranks = append(ranks, mpittest.New(tuned("2", 0, 1)))
	n.connect(ranks...)
	for key := range n.scrape() {
		assert.False(t, strings.HasPrefix(key, family), "no scrape waits for them")
	}
	others := func(ranks1, ranks2 float64) map[string]float64 {
		page := map[string]float64{}
		for job, ranks := range map[string]float64{"1": ranks1, "2": ranks2} {
			for name, value := range map[string]string{
				"eager_list": "1.5,0", "eager_text": "a�b" + strings.Repeat("x", 128-5), "eager_empty": "",
				"mode": "1,2,3",
			} {
				if ranks > 0 {
					page[cvarRanks(job, name, value)] = ranks
				}
			}
		}
		return page
	}
	want := others(3, 1)
	want[cvarRanks("1", "eager_limit", "4096")] = 2
	want[cvarRanks("1", "eager_limit", "65536")] = 1
	want[cvarRanks("2", "eager_limit", "1")] = 1
	assert.Equal(t, want, n.with(family))
	assert.Equal(t, 4.0, n.scrape()[`mpit_exporter_series_dropped_total{reason="cvar_unreadable"}`])

	read := func(i int) time.Time {
		g := n.lock()
		defer g.unlock()
		return g.table.byID[ranks[i].Hello().ID].controls.at
	}
	clock.advance(DefaultControlVariableInterval - 1)
	n.with()
	assert.Equal(t, testTime, read(0), "not yet")
	n.written(Identity{JobID: "1", World: "0", User: "alice", Rank: 0})
	n.settle()
	assert.Equal(t, clock.Now(), read(0), "told to")
	assert.Equal(t, testTime, read(1))
	clock.advance(1)
	n.with()
	assert.Equal(t, clock.Now(), read(1), "it is time")
	assert.Equal(t, 4.0, n.scrape()[`mpit_exporter_series_dropped_total{reason="cvar_unreadable"}`], "counted once")
	n.written(Identity{JobID: "nobody's"})

	n.finish(ranks[0], mpit.EndFinalize)
	n.finish(ranks[3], mpit.EndFinalize)
	want = others(2, 0)
	want[cvarRanks("1", "eager_limit", "4096")] = 1
	want[cvarRanks("1", "eager_limit", "65536")] = 1
	assert.Equal(t, want, n.with(family), "ended ranks leave")
	n.kill(ranks[1])
	n.kill(ranks[2])
	clock.advance(usual().grace)
	n.scrape()
	assert.Empty(t, n.with(family))
	g := n.lock()
	assert.Empty(t, sums(n.controls))
	g.unlock()
	n.connect(ranks[1])
	assert.NotEmpty(t, n.with(family), "it was only the connection that was lost")
}

func TestControlVariablesAreAskedForOnlyWhereChosen(t *testing.T) {
	n := startNode(t, Config{})
	r := mpittest.New(tuned("1", 0, 1))
	n.connect(r)
	assert.Empty(t, n.with("mpit_cvar_ranks"))
	n.written(Identity{JobID: "1", World: "0"})
	n.settle()
	g := n.lock()
	defer g.unlock()
	assert.True(t, g.table.byID[r.Hello().ID].controls.at.IsZero())
}

func TestControlVariablesOfOneRankAreBounded(t *testing.T) {
	cfg := small("1", 0)
	for i := range board.MaxControlRows + 3 {
		cfg.ControlVariables = append(cfg.ControlVariables,
			mpit.ControlVariable{Index: i, Name: "v" + strconv.Itoa(i), Datatype: mpit.DatatypeInt, HasValue: true,
				Values: []uint64{0}})
	}
	n := startNode(t, Config{ControlVariables: []string{"*"}})
	n.connect(mpittest.New(cfg))
	assert.Len(t, n.with("mpit_cvar_ranks"), board.MaxControlRows)
	assert.Equal(t, 3.0, n.scrape()[`mpit_exporter_series_dropped_total{reason="series_over_bound"}`])
}

func TestControlVariablesThatCannotBeReadStand(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{ControlVariables: []string{"*"}, ControlVariableInterval: time.Hour}, withClock(clock))
	r := mpittest.New(tuned("1", 0, 1))
	n.connect(r)
	before := n.with("mpit_cvar_ranks")
	g := n.lock()
	known := g.table.byID[r.Hello().ID]
	assert.False(t, g.controlsDue(known, clock.Now()))
	g.failed(known, askControls, mpit.ErrCongested)
	assert.True(t, g.controlsDue(known, clock.Now()))
	g.inquire()
	assert.Zero(t, known.inquiry, "not at once")
	clock.advance(inquiryRetry)
	g.inquire()
	assert.Equal(t, askControls, known.inquiry)
	g.unlock()
	assert.Equal(t, before, n.with("mpit_cvar_ranks"))
}

func TestNewRefusesPatternsAndIntervals(t *testing.T) {
	for _, cfg := range []Config{{ControlVariables: []string{""}}, {ControlVariableInterval: -1}} {
		cfg.Mapper = newMapper(t)
		_, err := New(cfg)
		assert.Error(t, err)
	}
}

// A thousand ranks that begin at the same moment are asked a few at a time.
func TestInquiriesAreFewAtATime(t *testing.T) {
	n := startNode(t, Config{ControlVariables: []string{"*"}})
	const total = 3 * maxInquiries
	var ranks []*mpittest.Rank
	for i := range total {
		cfg := tuned("1", i, 1)
		cfg.Hello.Size = total
		ranks = append(ranks, mpittest.New(cfg))
	}
	n.connect(ranks...)
	g := n.lock()
	g.inquiries[ownUID] += maxInquiries
	g.unlock()
	n.scrape()
	for _, r := range ranks {
		r.Stall(true)
	}
	g = n.lock()
	g.inquiries[ownUID] -= maxInquiries
	g.inquire()
	assert.Equal(t, maxInquiries, g.inquiries[ownUID])
	g.inquire()
	assert.Equal(t, maxInquiries, g.inquiries[ownUID])
	g.unlock()
	n.kill(ranks[0]) // makes room
	require.Eventually(t, func() bool {
		g := n.lock()
		defer g.unlock()
		return g.table.byID[ranks[maxInquiries].Hello().ID].inquiry != 0
	},
		longest, time.Millisecond)
	for _, r := range ranks[1:] {
		r.Stall(false)
	}
	n.settle()
	assert.Equal(t, float64(total-1), n.with("mpit_cvar_ranks")[cvarRanks("1", "other", "7")])
}

// Ranks of one user that never answer keep nobody else's from being asked.
func TestInquiriesOfOthersGoOn(t *testing.T) {
	n := startNode(t, Config{})
	g := n.lock()
	g.inquiries[otherUID] = maxInquiries
	g.unlock()
	n.connect(mpittest.New(grouped("1", 0)))
	n.scrape()
	require.Eventually(t, func() bool { return len(sums(n.categories)) == len(groupedPage()) }, longest,
		time.Millisecond)
}

// A rank that is forgotten while it is being asked for its world's categories lets another one be asked.
func TestForgottenWhileAsked(t *testing.T) {
	n := startNode(t, Config{})
	asked, other := mpittest.New(grouped("1", 0)), mpittest.New(grouped("1", 1))
	n.connect(asked, other)
	g := n.lock()
	g.inquiries[ownUID] += maxInquiries // nobody is asked yet
	g.unlock()
	n.scrape()
	asked.Stall(true)
	g = n.lock()
	g.inquiries[ownUID] -= maxInquiries
	g.inquire()
	r := g.table.byID[asked.Hello().ID]
	assert.True(t, r.world.asking)
	g.finish(r, mpit.EndExit, n.now())
	g.remove(r) // as where too many have ended at once
	g.unlock()
	n.scrape()
	require.Eventually(t, func() bool { return len(sums(n.categories)) == len(groupedPage()) }, longest,
		time.Millisecond)
	asked.Stall(false)
}

// sums is how many hold each row.
func sums[K comparable](all *tally.Tally[K]) map[K]int {
	sums, _ := all.Since(0)
	return sums
}
