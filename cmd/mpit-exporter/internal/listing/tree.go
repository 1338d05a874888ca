package listing

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// Bounds of a tree: categories come from ranks, and may be anything.
const (
	maxTreeRows  = 10_000
	maxTreeDepth = 32
)

// categoryTree shows categories under their parents. One with several parents stands under each of them, and what is
// in it under the first.
type categoryTree struct {
	byName map[string]*api.CategoryStatus
	shown  map[string]bool
	rows   [][]string
	left   int // rows over the bound
}

func treeOf(categories []api.CategoryStatus) (rows [][]string) {
	t := &categoryTree{byName: map[string]*api.CategoryStatus{}, shown: map[string]bool{}}
	for i := range categories {
		if c := &categories[i]; t.byName[c.Name] == nil {
			t.byName[c.Name] = c
		}
	}
	for i := range categories {
		c := &categories[i]
		if !slices.ContainsFunc(c.Parents, func(parent string) bool { return t.byName[parent] != nil }) &&
			!t.shown[c.Name] {
			t.show(c, nil, "", "")
		}
	}
	// Categories on a cycle have no root.
	for i := range categories {
		if c := &categories[i]; !t.shown[c.Name] {
			t.show(c, nil, "", "")
		}
	}
	if t.left > 0 {
		t.rows = append(t.rows, []string{fmt.Sprintf("and %d more lines", t.left)})
	}
	return t.rows
}

// show writes a category and, the first time, what is in it. first stands before its own line, rest before those of
// its subcategories.
func (t *categoryTree) show(c, parent *api.CategoryStatus, first, rest string) {
	again := t.shown[c.Name]
	t.shown[c.Name] = true
	if len(t.rows) >= maxTreeRows {
		t.left++
		return
	}
	name := cmp.Or(mapping.OneLine(c.Name), "-")
	var others []string
	for _, p := range c.Parents {
		if parent == nil || p != parent.Name {
			others = append(others, p)
		}
	}
	switch {
	case again:
		name += " (see above)"
	case parent == nil && len(others) > 0:
		name += " (under " + listCell(others) + ")"
	case len(others) > 0:
		name += " (also under " + listCell(others) + ")"
	}
	t.rows = append(t.rows, []string{first + name, strconv.Itoa(len(c.Variables)), strconv.Itoa(len(c.ControlVariables)),
		strconv.Itoa(len(c.Subcategories)), mapping.OneLine(c.Description)})
	if again {
		return
	}
	var children []*api.CategoryStatus
	for _, child := range c.Subcategories {
		if sub := t.byName[child]; sub != nil && sub != c {
			children = append(children, sub)
		}
	}
	if len(children) > 0 && utf8.RuneCountInString(rest) >= 2*maxTreeDepth {
		t.rows = append(t.rows, []string{rest + "└ …"})
		return
	}
	for i, child := range children {
		if i < len(children)-1 {
			t.show(child, c, rest+"├ ", rest+"│ ")
		} else {
			t.show(child, c, rest+"└ ", rest+"  ")
		}
	}
}
