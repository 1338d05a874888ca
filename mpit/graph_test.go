package mpit_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// named returns the names of categories.
func named(list []mpit.Category) []string {
	names := make([]string, 0, len(list))
	for _, c := range list {
		names = append(names, c.Name)
	}
	return names
}

// Point-to-point and collectives share a category of buffers.
func diamond() []mpit.Category {
	return []mpit.Category{
		{Index: 3, Name: "buffers", Variables: []int{7, 8, 7}},
		{Index: 1, Name: "pml", Subcategories: []int{3, 3}, Variables: []int{7}},
		{Index: 2, Name: "coll", Subcategories: []int{3}, ControlVariables: []int{5}},
		{Index: 0, Name: "mpi", Subcategories: []int{2, 1}, ControlVariables: []int{5, 6}},
		{Index: 9, Name: "lone"},
	}
}

func TestCategoryGraph(t *testing.T) {
	g := mpit.NewCategoryGraph(diamond())
	assert.Equal(t, []string{"lone", "mpi", "coll", "pml", "buffers"}, named(g.Topological()))
	assert.Equal(t, []string{"lone", "mpi"}, named(g.Roots()))
	assert.Equal(t, []string{"coll", "pml"}, named(g.Children(0)))
	assert.Equal(t, []string{"coll", "pml"}, named(g.Parents(3)))
	assert.Equal(t, []string{"pml", "buffers"}, named(g.OfVariable(7)))
	assert.Equal(t, []string{"mpi", "coll"}, named(g.OfControlVariable(5)))
	for _, none := range [][]mpit.Category{g.Parents(77), g.Children(77), g.OfVariable(77), g.OfControlVariable(77),
		g.Parents(0)} {
		assert.Nil(t, none)
	}
	assert.Empty(t, mpit.NewCategoryGraph(nil).Topological())
}

// edge says that one category stands in another.
type edge struct{ parent, child int }

// edges returns all edges of a graph.
func edges(g *mpit.CategoryGraph) map[edge]bool {
	all := map[edge]bool{}
	for _, c := range g.Topological() {
		for _, child := range g.Children(c.Index) {
			all[edge{c.Index, child.Index}] = true
		}
	}
	return all
}

// What the standard forbids is cut, and no reason to go without the rest.
func TestBrokenCategories(t *testing.T) {
	for name, c := range map[string]struct {
		list  []mpit.Category
		order []string
		edges map[edge]bool
	}{
		"itself": {
			[]mpit.Category{{Index: 4, Name: "a", Subcategories: []int{4}}}, []string{"a"}, map[edge]bool{},
		},
		"a circle": {
			[]mpit.Category{{Index: 1, Name: "b", Subcategories: []int{2}},
				{Index: 2, Name: "a", Subcategories: []int{1}}},
			[]string{"a", "b"}, map[edge]bool{{2, 1}: true},
		},
		"a circle below a root": {
			[]mpit.Category{
				{Index: 1, Name: "a", Subcategories: []int{2}}, {Index: 2, Name: "b", Subcategories: []int{1}},
				{Index: 3, Name: "root", Subcategories: []int{2}},
			},
			[]string{"root", "b", "a"}, map[edge]bool{{3, 2}: true, {2, 1}: true},
		},
		"unknown subcategories": {
			[]mpit.Category{{Name: "a", Subcategories: []int{5, -1, 1 << 40}}}, []string{"a"}, map[edge]bool{},
		},
		"an index twice": {[]mpit.Category{{Name: "b"}, {Name: "a"}}, []string{"b"}, map[edge]bool{}},
		"a name twice": {
			[]mpit.Category{{Index: 2, Name: "a"}, {Index: 1, Name: "a", Subcategories: []int{2}}},
			[]string{"a", "a"}, map[edge]bool{{1, 2}: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := mpit.NewCategoryGraph(c.list)
			assert.Equal(t, c.order, named(g.Topological()))
			assert.Equal(t, c.edges, edges(g))
		})
	}
}

// A chain as long as there may be categories is no deeper than memory.
func TestDeepCategories(t *testing.T) {
	list := make([]mpit.Category, 65536)
	for i := range list {
		list[i] = mpit.Category{Index: i, Name: "same", Subcategories: []int{i + 1}}
	}
	list[len(list)-1].Subcategories = []int{0}
	g := mpit.NewCategoryGraph(list)
	assert.Equal(t, list, g.Topological())
	assert.Empty(t, g.Children(65535))
	assert.Empty(t, g.Parents(0))
}

// Whatever a library says, the graph is one, has all that can be had, and doesn't depend on the order of the list.
func TestCategoryGraphs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "categories")
		list := make([]mpit.Category, n)
		for i := range list {
			list[i] = mpit.Category{
				Index:         i,
				Name:          rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name"),
				Subcategories: rapid.SliceOfN(rapid.IntRange(0, n+1), 0, 4).Draw(t, "subcategories"),
				Variables:     rapid.SliceOfN(rapid.IntRange(0, 5), 0, 4).Draw(t, "variables"),
			}
		}
		g := mpit.NewCategoryGraph(list)
		order := g.Topological()
		require.Len(t, order, n)
		place := make(map[int]int)
		for at, c := range order {
			place[c.Index] = at
			require.Equal(t, list[c.Index], c)
		}
		require.Len(t, place, n, "each once")

		got := edges(g)
		for e := range got {
			require.Less(t, place[e.parent], place[e.child], "parents stand before their children")
			require.Contains(t, g.Parents(e.child), list[e.parent])
			require.Contains(t, list[e.parent].Subcategories, e.child)
		}
		for _, c := range list {
			for _, sub := range c.Subcategories {
				if sub < n && !got[edge{c.Index, sub}] {
					require.True(t, leads(g, sub, c.Index), "only what would close a circle is cut")
				}
			}
		}
		for v := range 6 {
			for _, c := range list {
				require.Equal(t, slices.Contains(c.Variables, v),
					slices.ContainsFunc(g.OfVariable(v), func(of mpit.Category) bool { return of.Index == c.Index }))
			}
		}

		shuffled := rapid.Permutation(list).Draw(t, "order")
		again := mpit.NewCategoryGraph(shuffled)
		require.Equal(t, order, again.Topological())
		require.Equal(t, got, edges(again))
	})
}

// leads reports whether one category is another or stands above it.
func leads(g *mpit.CategoryGraph, from, to int) bool {
	if from == to {
		return true
	}
	return slices.ContainsFunc(g.Children(from), func(c mpit.Category) bool { return leads(g, c.Index, to) })
}
