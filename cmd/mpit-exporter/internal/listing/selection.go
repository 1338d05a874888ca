package listing

import (
	"slices"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// What a listing can be asked for.
const (
	All              = "all"
	Variables        = "variables"
	ControlVariables = "cvars"
	Categories       = "categories"
	Objects          = "objects"
)

// Selection is what of a catalogue is listed.
type Selection struct {
	What     string // one of the constants
	Category string // only this one and what is in it; empty: all
}

// shows says whether one of the parts of a catalogue is listed.
func (s Selection) shows(what string) bool {
	return s.What == what || s.What == All && (what != Objects || s.Category == "")
}

// Apply takes away what was not asked for. It returns false if the catalogue has no such category.
func (s Selection) Apply(c *api.Catalogue) (found bool) {
	found = s.Category == "" || keepCategory(c, s.Category)
	if !s.shows(Variables) {
		c.Variables = []api.VariableStatus{}
	}
	if !s.shows(ControlVariables) {
		c.ControlVariables = []api.ControlVariableStatus{}
	}
	if !s.shows(Categories) {
		c.Categories = []api.CategoryStatus{}
	}
	if !s.shows(Objects) {
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
	catalogue.ControlVariables = slices.DeleteFunc(catalogue.ControlVariables,
		func(v api.ControlVariableStatus) bool {
			return !slices.Contains(v.Categories, name)
		})
	return below[name]
}
