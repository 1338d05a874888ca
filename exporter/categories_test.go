package exporter

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// toldCategories is what figures were told of categories, in order. Ranks are taken in beside each other, so it has a
// lock of its own.
type toldCategories struct {
	mu   sync.Mutex
	told []variables.Categories
}

func (c *toldCategories) note(categories variables.Categories) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, categories)
}

// all is what has been told until now.
func (c *toldCategories) all() []variables.Categories {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.told)
}

// curious is figures that note what they are told of categories.
type curious struct {
	figures
	told *toldCategories
}

func (c curious) SetCategories(categories variables.Categories) { c.told.note(categories) }

// matchingByCategory makes an exporter behave as one whose rules match by category, for as long as on says so; told
// gathers what figures are told.
func matchingByCategory(on *atomic.Bool, told *toldCategories) func(*Exporter) {
	return func(e *Exporter) {
		e.grouped = on.Load
		sound := e.newRank
		e.newRank = func(m *variables.Mapper, p variables.Process) figures {
			return curious{sound(m, p), told}
		}
	}
}

func TestFiguresAreToldCategories(t *testing.T) {
	on, told := atomic.Bool{}, toldCategories{}
	on.Store(true)
	n := startNode(t, Config{}, matchingByCategory(&on, &told))
	first, second := mpittest.New(grouped("1", 0)), mpittest.New(grouped("1", 1))
	n.connect(first, second)
	n.with()
	require.Len(t, told.all(), 2, "one has been asked, and all of its world are told")
	for _, categories := range told.all() {
		assert.Equal(t, []string{"all", `café "1"�`}, categories("calls", mpit.ClassCounter))
		assert.Equal(t, []string{"all"}, categories("depth", mpit.ClassLevel))
		assert.Nil(t, categories("peak", mpit.ClassHighWatermark))
	}

	third := mpittest.New(grouped("1", 2))
	n.connect(third)
	n.scrape()
	assert.Len(t, told.all(), 3, "who comes later need not wait")

	cfg := grouped("1", 0)
	cfg.Categories[0].Name = "everything"
	first.SetCategories(cfg.Categories)
	n.scrape() // which tells that they have changed
	n.with()
	require.Len(t, told.all(), 6)
	assert.Equal(t, []string{"everything"}, told.all()[5]("depth", mpit.ClassLevel), "they are told again")

	require.NoError(t, n.Reload(withRules(t)))
	n.scrape()
	assert.Len(t, told.all(), 9, "new figures as well")
}

// TestReloadWantsCategories: that the world has been asked already is no use where nobody wanted to know.
func TestReloadWantsCategories(t *testing.T) {
	on, told := atomic.Bool{}, toldCategories{}
	n := startNode(t, Config{}, matchingByCategory(&on, &told))
	n.connect(mpittest.New(grouped("1", 0)))
	n.with()
	assert.Empty(t, told.all())
	on.Store(true)
	require.NoError(t, n.Reload(withRules(t)))
	n.with()
	require.Len(t, told.all(), 1)
	assert.Equal(t, []string{"all"}, told.all()[0]("depth", mpit.ClassLevel))
}

// TestNobodyKnowsTheCategories: what waits for them is not to wait for ever.
func TestNobodyKnowsTheCategories(t *testing.T) {
	t.Parallel() // a rank is asked again and again
	t.Run("a rank that can't say", func(t *testing.T) {
		on, told := atomic.Bool{}, toldCategories{}
		on.Store(true)
		clock := newTestClock()
		n := startNode(t, Config{}, withClock(clock), matchingByCategory(&on, &told))
		r := mpittest.New(grouped("1", 0))
		n.connect(r)
		r.NotNow(1000)
		n.with()
		r.NotNow(0)
		require.Len(t, told.all(), 1)
		assert.Nil(t, told.all()[0])
		clock.advance(inquiryRetry)
		n.with()
		require.Len(t, told.all(), 2, "it could, later")
		assert.NotNil(t, told.all()[1])
	})
	t.Run("a rank that is only seen at its end", func(t *testing.T) {
		on, told := atomic.Bool{}, toldCategories{}
		on.Store(true)
		n := startNode(t, Config{}, matchingByCategory(&on, &told))
		r := mpittest.New(grouped("1", 0))
		require.NoError(t, r.Finish(t.Context(), n.path, mpit.EndFinalize))
		n.wait(r, func(r *rank) bool { return r.end == mpit.EndFinalize })
		require.Len(t, told.all(), 1)
		assert.Nil(t, told.all()[0])
	})
	t.Run("a connection that ends in between is no answer", func(t *testing.T) {
		on, told := atomic.Bool{}, toldCategories{}
		on.Store(true)
		n := startNode(t, Config{}, matchingByCategory(&on, &told))
		r := mpittest.New(grouped("1", 0))
		n.connect(r)
		g := n.lock()
		g.inquiries[ownUID] += maxInquiries // nobody is asked yet
		g.unlock()
		n.scrape()
		r.Stall(true)
		g = n.lock()
		g.inquiries[ownUID] -= maxInquiries
		g.inquire()
		g.unlock()
		n.kill(r)
		n.settle()
		assert.Empty(t, told.all())
	})
}
