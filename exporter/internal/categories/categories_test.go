package categories

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
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
	s, over := StandingOf([]mpit.Category{
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
		assert.Equal(t, want, s.Of(name, mpit.ClassCounter), name)
	}
	assert.Nil(t, s.Of("a", mpit.ClassTimer), "a variable is known by its class as well")
	s, over = StandingOf([]mpit.Category{{Name: "x", Variables: []int{0}}}, nil)
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
				list = append(list, mpit.Category{Index: i, Name: strconv.Itoa(i), Variables: []int{i % 600},
					Subcategories: []int{i + 1}})
			}
			return list
		},
		"all in each other": func() (list []mpit.Category) {
			for i := range 600 {
				list = append(list, mpit.Category{Index: i, Name: strconv.Itoa(i), Variables: []int{i},
					Subcategories: numbers(600)})
			}
			return list
		},
	} {
		names := make([]string, 600)
		for i := range names {
			names[i] = fmt.Sprint("v", i)
		}
		s, over := StandingOf(categories(), variablesNamed(names...))
		kept := 0
		for _, list := range s {
			kept += len(list)
		}
		assert.LessOrEqual(t, kept, maxNames, name)
		assert.NotZero(t, over, name)
	}
}

func TestRowsAreBounded(t *testing.T) {
	vars, infos := variablesNamed("a"), []variables.Info{{Name: "a", Class: mpit.ClassCounter}}
	var list []mpit.Category
	for i := range MaxRows + 5 {
		list = append(list, mpit.Category{Index: i, Name: fmt.Sprintf("%d %s", i, strings.Repeat("x", 1000)),
			Variables: []int{0}})
	}
	rows, over := Rows(list, vars, infos)
	assert.Len(t, rows, MaxRows)
	assert.Equal(t, 5, over)
	assert.Len(t, rows[0].Category, clean.MaxLabel)

	rows, over = Rows([]mpit.Category{{Name: "all", Variables: make([]int, maxEntries+3)}}, vars, infos)
	assert.Len(t, rows, 1)
	assert.Equal(t, 3, over, "the same again and again")
}
