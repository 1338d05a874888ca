package main

import (
	"slices"

	"github.com/mpit-exporter/mpit-exporter/exporter"
)

// What a listing can be asked for.
const (
	listAll        = "all"
	listVariables  = "variables"
	listControls   = "cvars"
	listCategories = "categories"
	listObjects    = "objects"
)

// selection is what of a catalogue is listed.
type selection struct {
	what     string // one of the constants
	category string // only this one and what is in it; empty: all
}

// shows says whether one of the parts of a catalogue is listed.
func (s selection) shows(what string) bool {
	return s.what == what || s.what == listAll && (what != listObjects || s.category == "")
}

// apply takes away what was not asked for. It returns false if the catalogue has no such category.
func (s selection) apply(c *exporter.Catalogue) (found bool) {
	found = s.category == "" || keepCategory(c, s.category)
	if !s.shows(listVariables) {
		c.Variables = []exporter.VariableStatus{}
	}
	if !s.shows(listControls) {
		c.ControlVariables = []exporter.ControlVariableStatus{}
	}
	if !s.shows(listCategories) {
		c.Categories = []exporter.CategoryStatus{}
	}
	if !s.shows(listObjects) {
		c.Objects = []exporter.ObjectStatus{}
	}
	return found
}

// keepCategory leaves of a catalogue what is in one category, and the categories below it. It returns false if there is
// none of that name.
func keepCategory(catalogue *exporter.Catalogue, name string) bool {
	byName := map[string]*exporter.CategoryStatus{}
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
	catalogue.Categories = slices.DeleteFunc(catalogue.Categories, func(g exporter.CategoryStatus) bool {
		return !below[g.Name]
	})
	catalogue.Variables = slices.DeleteFunc(catalogue.Variables, func(v exporter.VariableStatus) bool {
		return !slices.Contains(v.Categories, name)
	})
	catalogue.ControlVariables = slices.DeleteFunc(catalogue.ControlVariables, func(v exporter.ControlVariableStatus) bool {
		return !slices.Contains(v.Categories, name)
	})
	return below[name]
}
