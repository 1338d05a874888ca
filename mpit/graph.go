package mpit

import (
	"cmp"
	"slices"
)

// CategoryGraph is the directed acyclic graph that MPI_T's categories form: a category has subcategories, and may be
// one of several others (MPI-4.1 §15.3.9). Categories are named by MPI_T's index, as Category.Index has it. A graph
// doesn't change; it is safe for concurrent use.
type CategoryGraph struct {
	order   []Category  // parents before their children
	place   map[int]int // in order, by index
	parents [][]int     // places, rising, by place
	kids    [][]int     // the same the other way
}

// NewCategoryGraph makes a graph of categories, whatever a library says of them. Where they go round in a circle,
// which the standard forbids, the circle is cut. Subcategories that are not in the list, and of categories with the
// same index all but the first, are left out.
func NewCategoryGraph(categories []Category) *CategoryGraph {
	nodes := distinct(categories)
	kids := children(nodes)
	cutCircles(kids)
	return arrange(nodes, kids)
}

// distinct returns the categories sorted by name, then index, each index once.
func distinct(categories []Category) []Category {
	nodes := make([]Category, 0, len(categories))
	seen := make(map[int]struct{}, len(categories))
	for i := range categories {
		if _, twice := seen[categories[i].Index]; !twice {
			seen[categories[i].Index] = struct{}{}
			nodes = append(nodes, categories[i])
		}
	}
	slices.SortFunc(nodes, func(a, b Category) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Index, b.Index))
	})
	return nodes
}

// children returns the children of each node, sorted and each once.
func children(nodes []Category) [][]int {
	number := make(map[int]int, len(nodes))
	for n := range nodes {
		number[nodes[n].Index] = n
	}
	kids := make([][]int, len(nodes))
	for n := range nodes {
		for _, index := range nodes[n].Subcategories {
			if child, ok := number[index]; ok {
				kids[n] = append(kids[n], child)
			}
		}
		slices.Sort(kids[n])
		kids[n] = slices.Compact(kids[n])
	}
	return kids
}

// cutCircles takes edges away until no circle is left: those that lead back to a node from which they were reached.
// It begins at the roots, so that what hangs on a root keeps hanging there; what no root leads to begins with its
// first name.
func cutCircles(kids [][]int) {
	const (
		fresh = iota
		open  // on the way to the present node
		done
	)
	state := make([]byte, len(kids))
	// A chain of all the categories that a rank may have takes 8 MiB of stack for a moment.
	var walk func(node int)
	walk = func(node int) {
		state[node] = open
		kept := kids[node][:0]
		for _, child := range kids[node] {
			if state[child] == fresh {
				walk(child)
			}
			if state[child] == done {
				kept = append(kept, child)
			}
		}
		kids[node], state[node] = kept, done
	}
	isChild := make([]bool, len(kids))
	for n := range kids {
		for _, child := range kids[n] {
			isChild[child] = isChild[child] || child != n
		}
	}
	for _, rootsOnly := range []bool{true, false} {
		for n := range kids {
			if state[n] == fresh && (!rootsOnly || !isChild[n]) {
				walk(n)
			}
		}
	}
}

// arrange puts parents before their children; of those that may come next, the first by name.
func arrange(nodes []Category, kids [][]int) *CategoryGraph {
	waits := make([]int, len(nodes)) // parents that have no place yet
	for _, list := range kids {
		for _, child := range list {
			waits[child]++
		}
	}
	var ready []int // sorted
	for n := range nodes {
		if waits[n] == 0 {
			ready = append(ready, n)
		}
	}
	g := &CategoryGraph{place: make(map[int]int, len(nodes)), kids: make([][]int, len(nodes))}
	parents := make([][]int, len(nodes)) // places, by node: they rise, for nodes get theirs in that order
	for len(ready) > 0 {
		n, at := ready[0], len(g.order)
		ready = ready[1:]
		g.place[nodes[n].Index] = at
		g.order = append(g.order, nodes[n])
		g.parents = append(g.parents, parents[n])
		for _, parent := range parents[n] {
			g.kids[parent] = append(g.kids[parent], at)
		}
		for _, child := range kids[n] {
			parents[child] = append(parents[child], at)
			if waits[child]--; waits[child] == 0 {
				turn, _ := slices.BinarySearch(ready, child)
				ready = slices.Insert(ready, turn, child)
			}
		}
	}
	return g
}

// Topological returns all categories, each one behind all that it stands in, and as near to the order of their names as
// that allows. All other lists have the same order. The categories' own lists are as the library gave them.
func (g *CategoryGraph) Topological() []Category { return slices.Clone(g.order) }

// Roots returns the categories that stand in no other.
func (g *CategoryGraph) Roots() []Category {
	return g.that(func(at int) bool { return len(g.parents[at]) == 0 })
}

// Parents returns the categories that a category stands in.
func (g *CategoryGraph) Parents(index int) []Category { return g.neighbors(index, g.parents) }

// Children returns the subcategories of a category.
func (g *CategoryGraph) Children(index int) []Category { return g.neighbors(index, g.kids) }

func (g *CategoryGraph) neighbors(index int, of [][]int) (list []Category) {
	if at, ok := g.place[index]; ok {
		for _, place := range of[at] {
			list = append(list, g.order[place])
		}
	}
	return list
}

// OfVariable returns the categories that name a performance variable, by MPI_T's index (Variable.Index).
func (g *CategoryGraph) OfVariable(index int) []Category {
	return g.that(func(at int) bool { return slices.Contains(g.order[at].Variables, index) })
}

// OfControlVariable returns the categories that name a control variable, by MPI_T's index (ControlVariable.Index).
func (g *CategoryGraph) OfControlVariable(index int) []Category {
	return g.that(func(at int) bool { return slices.Contains(g.order[at].ControlVariables, index) })
}

// that returns the categories whose place fits.
func (g *CategoryGraph) that(fits func(at int) bool) (list []Category) {
	for at := range g.order {
		if fits(at) {
			list = append(list, g.order[at])
		}
	}
	return list
}
