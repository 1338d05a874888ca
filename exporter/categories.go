package exporter

import (
	"errors"
	"io"
	"net"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Bounds of what is kept of one world's categories for rules that match by category: Open MPI's variables stand in some hundred.
const (
	maxStandings     = 1 << 14 // names of categories in all lists
	maxStandingSteps = maxCategoryEntries
)

// standing says in which categories the variables of a world stand, directly or through others, sorted by name. It never
// changes; lists may be shared.
type standing map[variableName][]string

// variableName is what a variable is known by in all ranks of a world, as the library has it.
type variableName struct {
	name  string
	class mpit.Class
}

// of is a mapping.Categories.
func (s standing) of(name string, class mpit.Class) []string { return s[variableName{name, class}] }

// standingOf finds the categories of all variables; over is for how many of them they are not known whole, for there are too many.
// Categories that go round in a circle stand in each other.
func standingOf(list []mpit.Category, variables *mpit.Variables) (s standing, over int) {
	s = standing{}
	if variables == nil {
		return s, 0
	}
	steps := 0
	within := func() bool { steps++; return steps <= maxStandingSteps }
	place := make(map[int]int, len(list)) // in list, by MPI_T's index
	called := make([]string, len(list))
	for i := range list {
		called[i] = clean.Label(list[i].Name)
		if _, twice := place[list[i].Index]; !twice {
			place[list[i].Index] = i
		}
	}
	parents, direct := map[int][]int{}, map[int][]int{} // places, by place and by a variable's index
	for i, c := range list {
		for _, index := range c.Subcategories {
			if child, known := place[index]; known && within() {
				parents[child] = append(parents[child], i)
			}
		}
		for _, index := range c.Variables {
			if within() {
				direct[index] = append(direct[index], i)
			}
		}
	}
	cut := steps > maxStandingSteps

	// above is the names of a category and of all that it stands in.
	above := func(from []int) (names []string, whole bool) {
		seen := map[int]bool{}
		next := slices.Clone(from)
		for len(next) > 0 {
			at := next[0]
			next = next[1:]
			if seen[at] {
				continue
			}
			if !within() || len(names) == maxStandings {
				return names, false
			}
			seen[at] = true
			if called[at] != "" {
				names = append(names, called[at])
			}
			next = append(next, parents[at]...)
			steps += len(parents[at])
		}
		slices.Sort(names)
		return slices.Compact(names), true
	}
	type known struct {
		names []string
		whole bool
	}
	shared := map[int]known{} // by place: of variables that stand in one category directly, which is usual
	kept := 0
	for i := range variables.ByID {
		v := &variables.ByID[i]
		from := direct[v.Index]
		if len(from) == 0 {
			continue
		}
		k, have := shared[from[0]]
		if !have || len(from) > 1 {
			k.names, k.whole = above(from)
			if kept += len(k.names); kept > maxStandings {
				k = known{}
			}
			if len(from) == 1 {
				shared[from[0]] = k
			}
		}
		if !k.whole {
			over++
		}
		if len(k.names) > 0 {
			s[variableName{v.Name, v.Class}] = k.names
		}
	}
	if cut && over == 0 {
		over = 1 // at least
	}
	return s, over
}

// learnCategories tells all ranks of a world its categories, as they are known now: figures that are made meanwhile find out themselves.
func (e *Exporter) learnCategories(w *world) {
	var ranks []*rank
	func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, r := range e.table.ordered {
			if r.world == w {
				ranks = append(ranks, r)
			}
		}
	}()
	for _, r := range ranks {
		func() {
			c := r.contents.Lock()
			defer r.contents.Unlock()
			if c.figures != nil {
				e.guard(r, c, "telling it its categories", func() { e.tellCategories(r, c) })
			}
		}()
	}
}

// standingOfWorld returns what is known of the categories of a rank's world; false: nothing yet, or no rule wants to know.
func (e *Exporter) standingOfWorld(r *rank) (standing, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return r.world.standing, r.world.told && e.grouped()
}

// tellCategories tells a rank's figures the world's categories, if rules want to know and the world does.
func (e *Exporter) tellCategories(r *rank, c *contents) {
	s, told := e.standingOfWorld(r)
	switch {
	case !told:
		return
	case s == nil:
		c.figures.SetCategories(nil)
	default:
		c.figures.SetCategories(s.of)
	}
	c.anew = true
}

// categoriesAtLast tells figures that are to take a rank's last sample that nobody can say what its categories are, if nobody has
// said by now: what waits for them would never be shown.
func (e *Exporter) categoriesAtLast(r *rank, c *contents) {
	if _, told := e.standingOfWorld(r); !told && e.grouped() {
		c.figures.SetCategories(nil)
		c.anew = true
	}
}

// connectionEnded says whether a question failed only because its connection ended.
func connectionEnded(err error) bool {
	return errors.Is(err, mpit.ErrFinal) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}
