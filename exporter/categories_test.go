package exporter

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// variablesNamed is a catalogue of counters whose MPI_T indices are their places.
func variablesNamed(names ...string) *mpit.Variables {
	v := &mpit.Variables{}
	for i, name := range names {
		v.ByID = append(v.ByID, mpit.Variable{ID: uint32(i), Index: i, Name: name, Class: mpit.ClassCounter})
	}
	return v
}

func TestStanding(t *testing.T) {
	s, over := standingOf([]mpit.Category{
		{Index: 10, Name: "all", Subcategories: []int{20, 30, 99}},
		{Index: 20, Name: "coll", Variables: []int{0, 0}, Subcategories: []int{40}},
		{Index: 30, Name: "p2p", Variables: []int{1, 2}},
		{Index: 40, Name: "barrier", Variables: []int{1}},
		{Index: 50, Name: "round", Variables: []int{3}, Subcategories: []int{60, 50}},
		{Index: 60, Name: "about", Subcategories: []int{50}},
		{Index: 70, Name: "", Variables: []int{0, 77}, Subcategories: []int{30}},
		{Index: 20, Name: "again", Variables: []int{2}}, // of one index the first counts as a parent's child
	}, variablesNamed("a", "b", "c", "d", "e"))
	assert.Zero(t, over)
	for name, want := range map[string][]string{
		"a": {"all", "coll"},
		"b": {"all", "barrier", "coll", "p2p"},
		"c": {"again", "all", "p2p"},
		"d": {"about", "round"}, // round a circle
		"e": nil,
		"f": nil,
	} {
		assert.Equal(t, want, s.of(name, mpit.ClassCounter), name)
	}
	assert.Nil(t, s.of("a", mpit.ClassTimer), "a variable is known by its class as well")
	s, over = standingOf([]mpit.Category{{Name: "x", Variables: []int{0}}}, nil)
	assert.Empty(t, s)
	assert.Zero(t, over)
}

// TestStandingIsBounded: whatever a rank says, it costs little, and what is not known whole is counted.
func TestStandingIsBounded(t *testing.T) {
	numbers := func(n int) (list []int) {
		for i := range n {
			list = append(list, i)
		}
		return list
	}
	for name, categories := range map[string]func() []mpit.Category{
		"each in all": func() (list []mpit.Category) {
			for i := range 600 {
				list = append(list, mpit.Category{Index: i, Name: strconv.Itoa(i), Variables: numbers(600)})
			}
			return list
		},
		"a deep chain": func() (list []mpit.Category) {
			for i := range 20_000 {
				list = append(list, mpit.Category{Index: i, Name: strconv.Itoa(i), Variables: []int{i % 600}, Subcategories: []int{i + 1}})
			}
			return list
		},
		"all in each other": func() (list []mpit.Category) {
			for i := range 600 {
				list = append(list, mpit.Category{Index: i, Name: strconv.Itoa(i), Variables: []int{i}, Subcategories: numbers(600)})
			}
			return list
		},
	} {
		names := make([]string, 600)
		for i := range names {
			names[i] = fmt.Sprint("v", i)
		}
		s, over := standingOf(categories(), variablesNamed(names...))
		kept := 0
		for _, list := range s {
			kept += len(list)
		}
		assert.LessOrEqual(t, kept, maxStandings, name)
		assert.NotZero(t, over, name)
	}
}

// toldCategories is what figures were told of categories, in order. Ranks are taken in beside each other, so it has a lock of its own.
type toldCategories struct {
	mu   sync.Mutex
	told []mapping.Categories
}

func (c *toldCategories) note(categories mapping.Categories) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, categories)
}

// all is what has been told until now.
func (c *toldCategories) all() []mapping.Categories {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.told)
}

// curious is figures that note what they are told of categories.
type curious struct {
	figures
	told *toldCategories
}

func (c curious) SetCategories(categories mapping.Categories) { c.told.note(categories) }

// matchingByCategory makes an exporter behave as one whose rules match by category, for as long as on says so; told gathers what
// figures are told.
func matchingByCategory(on *atomic.Bool, told *toldCategories) func(*Exporter) {
	return func(e *Exporter) {
		e.grouped = on.Load
		sound := e.newRank
		e.newRank = func(m *mapping.Mapper, p mapping.Process) figures {
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
		n.mu.Lock()
		n.inquiries[ownUID] += maxInquiries // nobody is asked yet
		n.mu.Unlock()
		n.scrape()
		r.Stall(true)
		n.mu.Lock()
		n.inquiries[ownUID] -= maxInquiries
		n.inquire()
		n.mu.Unlock()
		n.kill(r)
		n.settle()
		assert.Empty(t, told.all())
	})
}
