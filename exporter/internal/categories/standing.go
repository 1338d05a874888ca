// Package categories finds out in which of MPI_T's categories variables stand, and what the page says of it. Whatever
// a rank says of its categories, it costs little.
package categories

import (
	"slices"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Bounds of what is kept of one world's categories for rules that match by category: Open MPI's variables stand in
// some hundred.
const (
	maxNames = 1 << 14 // of categories, in all lists
	maxSteps = maxEntries
)

// Standing says in which categories the variables of a world stand, directly or through others, sorted by name. It
// never changes; lists may be shared.
type Standing map[variable][]string

// variable is what a variable is known by in all ranks of a world, as the library has it.
type variable struct {
	name  string
	class mpit.Class
}

// Of is a mapping.Categories.
func (s Standing) Of(name string, class mpit.Class) []string { return s[variable{name, class}] }

// StandingOf finds the categories of all variables; over is for how many of them they are not known whole, for there
// are too many. Categories that go round in a circle stand in each other.
func StandingOf(list []mpit.Category, variables *mpit.Variables) (s Standing, over int) {
	s = Standing{}
	if variables == nil {
		return s, 0
	}
	g := newGraph(list)
	cut := g.steps > maxSteps
	shared := map[int]ancestry{} // by place: of variables that stand in one category directly, which is usual
	kept := 0
	for i := range variables.ByID {
		v := &variables.ByID[i]
		from := g.direct[v.Index]
		if len(from) == 0 {
			continue
		}
		a, known := shared[from[0]]
		if !known || len(from) > 1 {
			a = g.above(from)
			if kept += len(a.names); kept > maxNames {
				a = ancestry{}
			}
			if len(from) == 1 {
				shared[from[0]] = a
			}
		}
		if !a.whole {
			over++
		}
		if len(a.names) > 0 {
			s[variable{v.Name, v.Class}] = a.names
		}
	}
	if cut && over == 0 {
		over = 1 // at least
	}
	return s, over
}

// graph is categories by their places in a list, as far as it has been looked at.
type graph struct {
	names   []string      // "": none
	parents map[int][]int // places, by place
	direct  map[int][]int // places, by a variable's index
	steps   int
}

// ancestry is the names of categories and of all that they stand in.
type ancestry struct {
	names []string
	whole bool
}

func newGraph(list []mpit.Category) *graph {
	g := &graph{names: make([]string, len(list)), parents: map[int][]int{}, direct: map[int][]int{}}
	places := make(map[int]int, len(list)) // by MPI_T's index
	for i := range list {
		g.names[i] = clean.Label(list[i].Name)
		if _, twice := places[list[i].Index]; !twice {
			places[list[i].Index] = i
		}
	}
	for i, c := range list {
		for _, index := range c.Subcategories {
			if child, known := places[index]; known && g.step() {
				g.parents[child] = append(g.parents[child], i)
			}
		}
		for _, index := range c.Variables {
			if g.step() {
				g.direct[index] = append(g.direct[index], i)
			}
		}
	}
	return g
}

// step reports whether one more may be made, and makes it.
func (g *graph) step() bool {
	g.steps++
	return g.steps <= maxSteps
}

// above finds the ancestry of categories.
func (g *graph) above(from []int) (a ancestry) {
	seen := map[int]bool{}
	next := slices.Clone(from)
	for len(next) > 0 {
		at := next[0]
		next = next[1:]
		if seen[at] {
			continue
		}
		if !g.step() || len(a.names) == maxNames {
			return a
		}
		seen[at] = true
		if g.names[at] != "" {
			a.names = append(a.names, g.names[at])
		}
		next = append(next, g.parents[at]...)
		g.steps += len(g.parents[at])
	}
	slices.Sort(a.names)
	return ancestry{slices.Compact(a.names), true}
}
