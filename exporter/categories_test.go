package exporter

import (
	"fmt"
	"strconv"
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

// curious is figures that note what they are told of categories.
type curious struct {
	figures
	told *[]mapping.Categories
}

func (c curious) SetCategories(categories mapping.Categories) {
	*c.told = append(*c.told, categories)
}

// matchingByCategory makes an exporter behave as one whose rules match by category, for as long as on says so; told gathers what
// figures are told.
func matchingByCategory(on *bool, told *[]mapping.Categories) func(*Exporter) {
	return func(e *Exporter) {
		e.grouped = func() bool { return *on }
		sound := e.newRank
		e.newRank = func(m *mapping.Mapper, p mapping.Process) figures {
			f := sound(m, p)
			return curious{f, told}
		}
	}
}

func TestFiguresAreToldCategories(t *testing.T) {
	on, told := true, []mapping.Categories(nil)
	n := startNode(t, Config{}, matchingByCategory(&on, &told))
	first, second := mpittest.New(grouped("1", 0)), mpittest.New(grouped("1", 1))
	n.connect(first, second)
	n.with()
	n.mu.Lock()
	require.Len(t, told, 2, "one has been asked, and all of its world are told")
	for _, categories := range told {
		assert.Equal(t, []string{"all", `café "1"�`}, categories("calls", mpit.ClassCounter))
		assert.Equal(t, []string{"all"}, categories("depth", mpit.ClassLevel))
		assert.Nil(t, categories("peak", mpit.ClassHighWatermark))
	}
	n.mu.Unlock()

	third := mpittest.New(grouped("1", 2))
	n.connect(third)
	n.scrape()
	n.mu.Lock()
	assert.Len(t, told, 3, "who comes later need not wait")
	n.mu.Unlock()

	cfg := grouped("1", 0)
	cfg.Categories[0].Name = "everything"
	first.SetCategories(cfg.Categories)
	n.scrape() // which tells that they have changed
	n.with()
	n.mu.Lock()
	require.Len(t, told, 6)
	assert.Equal(t, []string{"everything"}, told[5]("depth", mpit.ClassLevel), "they are told again")
	n.mu.Unlock()

	require.NoError(t, n.Reload(withRules(t)))
	n.scrape()
	n.mu.Lock()
	defer n.mu.Unlock()
	assert.Len(t, told, 9, "new figures as well")
}

// TestReloadWantsCategories: that the world has been asked already is no use where nobody wanted to know.
func TestReloadWantsCategories(t *testing.T) {
	on, told := false, []mapping.Categories(nil)
	n := startNode(t, Config{}, matchingByCategory(&on, &told))
	n.connect(mpittest.New(grouped("1", 0)))
	n.with()
	n.mu.Lock()
	assert.Empty(t, told)
	on = true
	n.mu.Unlock()
	require.NoError(t, n.Reload(withRules(t)))
	n.with()
	n.mu.Lock()
	defer n.mu.Unlock()
	require.Len(t, told, 1)
	assert.Equal(t, []string{"all"}, told[0]("depth", mpit.ClassLevel))
}

// TestNobodyKnowsTheCategories: what waits for them is not to wait for ever.
func TestNobodyKnowsTheCategories(t *testing.T) {
	t.Parallel() // a rank is asked again and again
	t.Run("a rank that can't say", func(t *testing.T) {
		on, told := true, []mapping.Categories(nil)
		clock := newTestClock()
		n := startNode(t, Config{}, withClock(clock), matchingByCategory(&on, &told))
		r := mpittest.New(grouped("1", 0))
		n.connect(r)
		r.NotNow(1000)
		n.with()
		r.NotNow(0)
		n.mu.Lock()
		require.Len(t, told, 1)
		assert.Nil(t, told[0])
		n.mu.Unlock()
		clock.advance(inquiryRetry)
		n.with()
		n.mu.Lock()
		defer n.mu.Unlock()
		require.Len(t, told, 2, "it could, later")
		assert.NotNil(t, told[1])
	})
	t.Run("a rank that is only seen at its end", func(t *testing.T) {
		on, told := true, []mapping.Categories(nil)
		n := startNode(t, Config{}, matchingByCategory(&on, &told))
		r := mpittest.New(grouped("1", 0))
		require.NoError(t, r.Finish(t.Context(), n.path, mpit.EndFinalize))
		n.wait(r, func(r *rank) bool { return r.end == mpit.EndFinalize })
		n.mu.Lock()
		defer n.mu.Unlock()
		require.Len(t, told, 1)
		assert.Nil(t, told[0])
	})
	t.Run("a connection that ends in between is no answer", func(t *testing.T) {
		on, told := true, []mapping.Categories(nil)
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
		n.mu.Lock()
		defer n.mu.Unlock()
		assert.Empty(t, told)
	})
}
