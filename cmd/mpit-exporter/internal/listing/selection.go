package listing

import (
	"slices"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// Selection is what of a catalogue is listed. Without any of these it is the short list of variables, with their
// values.
type Selection struct {
	All              bool
	ControlVariables bool
	Categories       bool
	Objects          bool
	Category         string // only this one and what is in it; empty: all
}

// Short says whether only variables are listed, a line each.
func (s Selection) Short() bool { return s == Selection{} }

// whole says whether all parts of a category are listed.
func (s Selection) whole() bool { return s == Selection{Category: s.Category} && s.Category != "" }

func (s Selection) variables() bool        { return s.All || s.whole() }
func (s Selection) controlVariables() bool { return s.All || s.ControlVariables || s.whole() }
func (s Selection) categories() bool       { return s.All || s.Categories || s.whole() }
func (s Selection) objects() bool          { return s.All || s.Objects }

// Apply takes away what was not asked for. It returns false if the catalogue has no such category.
func (s Selection) Apply(c *api.Catalogue) (found bool) {
	found = s.Category == "" || keepCategory(c, s.Category)
	if !s.variables() && !s.Short() {
		c.Variables = []api.VariableStatus{}
	}
	if !s.controlVariables() {
		c.ControlVariables = []api.ControlVariableStatus{}
	}
	if !s.categories() {
		c.Categories = []api.CategoryStatus{}
	}
	if !s.objects() {
		c.Objects = []api.ObjectStatus{}
	}
	return found
}

// keepCategory leaves of a catalogue what is in one category, and the categories below it. It returns false if there
// is none of that name.
func keepCategory(catalogue *api.Catalogue, name string) bool {
	byName := map[string]*api.CategoryStatus{}
	for i := range catalogue.Categories {
		byName[catalogue.Categories[i].Name] = &catalogue.Categories[i]
	}
	below := map[string]bool{}
	next := []string{name}
	for len(next) > 0 {
		g := byName[next[0]]
		if g != nil && !below[g.Name] {
			below[g.Name] = true
			next = append(next, g.Subcategories...)
		}
		next = next[1:]
	}
	catalogue.Categories = slices.DeleteFunc(catalogue.Categories, func(g api.CategoryStatus) bool {
		return !below[g.Name]
	})
	catalogue.Variables = slices.DeleteFunc(catalogue.Variables, func(v api.VariableStatus) bool {
		return !slices.Contains(v.Categories, name)
	})
	catalogue.ControlVariables = slices.DeleteFunc(catalogue.ControlVariables, func(v api.ControlVariableStatus) bool {
		return !slices.Contains(v.Categories, name)
	})
	return below[name]
}
