package exporter

import (
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// categoryPlace is where a category stands in the graph.
type categoryPlace struct {
	at      int   // in the list that was given
	parents []int // the same
	depth   int   // 0: it has no parent; else one more than its deepest parent's
}

// topological orders categories so that each stands behind all its parents, and otherwise as they were. The standard promises a graph without
// cycles (MPI-4.1 §15.3.8); a rank may say anything: what stands on a cycle comes last, as if nothing led to it.
func topological(list []mpit.Category) []categoryPlace {
	at := make(map[int]int, len(list)) // by MPI_T index
	for i := range list {
		if _, twice := at[list[i].Index]; !twice {
			at[list[i].Index] = i
		}
	}
	places := make([]categoryPlace, len(list))
	children := make([][]int, len(list))
	open := make([]int, len(list)) // parents that have no place yet
	for i := range list {
		places[i].at = i
		for _, index := range list[i].Subcategories {
			child, known := at[index]
			if !known || child == i || slices.Contains(children[i], child) {
				continue
			}
			children[i] = append(children[i], child)
			places[child].parents = append(places[child].parents, i)
			open[child]++
		}
	}
	var ready []int
	for i := range list {
		if open[i] == 0 {
			ready = append(ready, i)
		}
	}
	order := make([]categoryPlace, 0, len(list))
	placed := make([]bool, len(list))
	for len(ready) > 0 {
		next := ready[0]
		ready = ready[1:]
		placed[next] = true
		order = append(order, places[next])
		for _, child := range children[next] {
			places[child].depth = max(places[child].depth, places[next].depth+1)
			if open[child]--; open[child] == 0 {
				ready = append(ready, child)
			}
		}
	}
	for i := range list {
		if !placed[i] {
			order = append(order, places[i])
		}
	}
	return order
}
