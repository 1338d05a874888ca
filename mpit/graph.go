package mpit

import (
	"cmp"
	"container/heap"
	"slices"
)

// CategoryGraph is the directed acyclic graph that MPI_T's categories form: a category has subcategories, and may be
// one of several others (MPI-4.1 §15.3.9). Categories are named by MPI_T's index, as Category.Index has it. A graph
// doesn't change; it is safe for concurrent use.
type CategoryGraph struct {
	order   []Category     // parents before their children
	place   map[int]int    // in order, by index
	parents [][]int        // places, rising, by place
	kids    [][]int        // the same the other way
	pvars   map[int][]int  // places of the categories of a performance variable, rising
	cvars   map[int][]int  // of a control variable
	cut     []CategoryEdge // what would have closed a circle
	dropped int            // what can't be followed
}

// CategoryEdge says that one category stands in another.
type CategoryEdge struct {
	Parent, Child int // Category.Index
}

// NewCategoryGraph makes a graph of categories, whatever a library says of them. Where they go round in a circle,
// which the standard forbids, the circle is cut: see Cut. Subcategories that are not in the list, and of categories
// with the same index all but the first, are left out: see Dropped.
func NewCategoryGraph(categories []Category) *CategoryGraph {
	g := &CategoryGraph{pvars: make(map[int][]int), cvars: make(map[int][]int)}
	nodes := g.distinct(categories)
	kids := g.edges(nodes)
	g.cutCircles(nodes, kids)
	g.arrange(nodes, kids)
	for at := range g.order {
		c := &g.order[at]
		for _, list := range []struct {
			of      map[int][]int
			indices []int
		}{{g.pvars, c.Variables}, {g.cvars, c.ControlVariables}} {
			for _, v := range list.indices {
				if have := list.of[v]; len(have) == 0 || have[len(have)-1] != at { // once, however often it is named
					list.of[v] = append(have, at)
				}
			}
		}
	}
	return g
}

// distinct returns the categories sorted by name, then index, each index once.
func (g *CategoryGraph) distinct(categories []Category) []Category {
	nodes := make([]Category, 0, len(categories))
	seen := make(map[int]struct{}, len(categories))
	for i := range categories {
		if _, twice := seen[categories[i].Index]; twice {
			g.dropped++
			continue
		}
		seen[categories[i].Index] = struct{}{}
		nodes = append(nodes, categories[i])
	}
	slices.SortFunc(nodes, func(a, b Category) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Index, b.Index))
	})
	return nodes
}

// edges returns the children of each node, sorted and each once.
func (g *CategoryGraph) edges(nodes []Category) [][]int {
	number := make(map[int]int, len(nodes))
	for n := range nodes {
		number[nodes[n].Index] = n
	}
	kids := make([][]int, len(nodes))
	for n := range nodes {
		for _, index := range nodes[n].Subcategories {
			if child, ok := number[index]; ok {
				kids[n] = append(kids[n], child)
			} else {
				g.dropped++
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
func (g *CategoryGraph) cutCircles(nodes []Category, kids [][]int) {
	const (
		fresh = iota
		open  // on the way to the present node
		done
	)
	state := make([]int, len(nodes))
	type step struct{ node, next, kept int } // the next child to look at, and how many have been kept
	walk := func(start int) {
		if state[start] != fresh {
			return
		}
		state[start] = open
		path := []step{{node: start}} // not recursion: the graph is as deep as a stranger makes it
		for len(path) > 0 {
			at := &path[len(path)-1]
			list := kids[at.node]
			if at.next == len(list) {
				state[at.node] = done
				kids[at.node] = list[:at.kept]
				path = path[:len(path)-1]
				continue
			}
			child := list[at.next]
			at.next++
			if state[child] == open {
				g.cut = append(g.cut, CategoryEdge{Parent: nodes[at.node].Index, Child: nodes[child].Index})
				continue
			}
			list[at.kept] = child
			at.kept++
			if state[child] == fresh {
				state[child] = open
				path = append(path, step{node: child})
			}
		}
	}
	isChild := make([]bool, len(nodes))
	for n := range kids {
		for _, child := range kids[n] {
			isChild[child] = isChild[child] || child != n
		}
	}
	for n := range nodes {
		if !isChild[n] {
			walk(n)
		}
	}
	for n := range nodes {
		walk(n)
	}
}

// arrange puts parents before their children; of those that may come next, the first by name.
func (g *CategoryGraph) arrange(nodes []Category, kids [][]int) {
	waits := make([]int, len(nodes)) // parents that have no place yet
	for n := range kids {
		for _, child := range kids[n] {
			waits[child]++
		}
	}
	ready := &numbers{}
	for n := range nodes {
		if waits[n] == 0 {
			heap.Push(ready, n)
		}
	}
	place := make([]int, len(nodes))
	g.place = make(map[int]int, len(nodes))
	g.order = make([]Category, 0, len(nodes))
	for ready.Len() > 0 {
		n := heap.Pop(ready).(int)
		place[n] = len(g.order)
		g.place[nodes[n].Index] = len(g.order)
		g.order = append(g.order, nodes[n])
		for _, child := range kids[n] {
			if waits[child]--; waits[child] == 0 {
				heap.Push(ready, child)
			}
		}
	}
	g.parents = make([][]int, len(nodes))
	g.kids = make([][]int, len(nodes))
	for n := range nodes {
		for _, child := range kids[n] {
			g.kids[place[n]] = append(g.kids[place[n]], place[child])
			g.parents[place[child]] = append(g.parents[place[child]], place[n])
		}
	}
	for at := range g.order {
		slices.Sort(g.kids[at])
		slices.Sort(g.parents[at])
	}
}

// numbers is a heap of ints, the smallest first.
type numbers []int

func (n numbers) Len() int           { return len(n) }
func (n numbers) Less(i, j int) bool { return n[i] < n[j] }
func (n numbers) Swap(i, j int)      { n[i], n[j] = n[j], n[i] }

// Push is container/heap's.
func (n *numbers) Push(x any) { *n = append(*n, x.(int)) }

// Pop is container/heap's.
func (n *numbers) Pop() any {
	last := (*n)[len(*n)-1]
	*n = (*n)[:len(*n)-1]
	return last
}

// at returns the categories at places.
func (g *CategoryGraph) at(places []int) []Category {
	if len(places) == 0 {
		return nil
	}
	list := make([]Category, len(places))
	for i, p := range places {
		list[i] = g.order[p]
	}
	return list
}

// Topological returns all categories, each one behind all that it stands in, and as near to the order of their names as
// that allows. All other lists have the same order. The categories' own lists are as the library gave them.
func (g *CategoryGraph) Topological() []Category { return slices.Clone(g.order) }

// Category returns the category with an index.
func (g *CategoryGraph) Category(index int) (Category, bool) {
	if p, ok := g.place[index]; ok {
		return g.order[p], true
	}
	return Category{}, false
}

// Roots returns the categories that stand in no other.
func (g *CategoryGraph) Roots() []Category {
	var places []int
	for p := range g.order {
		if len(g.parents[p]) == 0 {
			places = append(places, p)
		}
	}
	return g.at(places)
}

// Parents returns the categories that a category stands in.
func (g *CategoryGraph) Parents(index int) []Category { return g.neighbors(index, g.parents) }

// Children returns the subcategories of a category.
func (g *CategoryGraph) Children(index int) []Category { return g.neighbors(index, g.kids) }

func (g *CategoryGraph) neighbors(index int, of [][]int) []Category {
	if p, ok := g.place[index]; ok {
		return g.at(of[p])
	}
	return nil
}

// Path returns one way from a root to a category, both included: of several parents always the first. It is nil where
// there is no such category.
func (g *CategoryGraph) Path(index int) []Category {
	p, ok := g.place[index]
	if !ok {
		return nil
	}
	places := []int{p}
	for len(g.parents[p]) > 0 {
		p = g.parents[p][0]
		places = append(places, p)
	}
	slices.Reverse(places)
	return g.at(places)
}

// OfVariable returns the categories that name a performance variable, by MPI_T's index (Variable.Index).
func (g *CategoryGraph) OfVariable(index int) []Category { return g.at(g.pvars[index]) }

// OfControlVariable returns the categories that name a control variable, by MPI_T's index (ControlVariable.Index).
func (g *CategoryGraph) OfControlVariable(index int) []Category { return g.at(g.cvars[index]) }

// Cut returns what was taken away because it would have closed a circle; nil in a graph as the standard wants it.
func (g *CategoryGraph) Cut() []CategoryEdge { return slices.Clone(g.cut) }

// Dropped returns how many subcategories name no category of the list, and how many categories had the index of
// another.
func (g *CategoryGraph) Dropped() int { return g.dropped }
