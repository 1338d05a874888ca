package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/cvar"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// maxCatalogueBytes bounds the size of one catalogue as JSON, roughly: ten times what a library has.
const maxCatalogueBytes = 8 << 20

// CatalogueOfSample returns the part of a catalogue that a sample has: the performance variables. Of a rank that has
// ended there is no more. mapper says what they become.
func CatalogueOfSample(s *mpit.Session, sample *mpit.Sample, mapper *variables.Mapper) Catalogue {
	hello := s.Hello()
	library := mapping.ParseLibrary(hello.LibraryVersion)
	c := Catalogue{
		Rank:             StatusOf(&hello, s.Peer(), identity.FromHello(&hello)),
		Variables:        []VariableStatus{},
		ControlVariables: []ControlVariableStatus{},
		Categories:       []CategoryStatus{},
		Objects:          []ObjectStatus{},
	}
	if stamp := sample.Stats.CategoryStamp; stamp > 0 {
		c.CategoryStamp = new(stamp - 1) // as MPI_T numbers them
	}
	if sample.Layout != nil {
		c.Objects = objectStatus(sample.Layout.Objects)
		c.ObjectsMissing = sample.Layout.ObjectsOverflow
	}
	if sample.Variables == nil {
		return c
	}
	for i := range sample.Variables.ByID {
		c.Variables = append(c.Variables, variableStatus(library, &sample.Variables.ByID[i], mapper))
	}
	slices.SortStableFunc(c.Variables, func(a, b VariableStatus) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Class, b.Class))
	})
	return c
}

// CatalogueOf asks a rank for everything that MPI_T offers in it. mapper says what the variables become.
func CatalogueOf(ctx context.Context, s *mpit.Session, mapper *variables.Mapper) (Catalogue, error) {
	rank := s.Hello().Rank
	sample, err := s.Read(ctx)
	if err != nil {
		return Catalogue{}, fmt.Errorf("exporter: reading the variables of rank %d: %w", rank, err)
	}
	controls, err := s.ControlVariables(ctx)
	if err != nil {
		return Catalogue{}, fmt.Errorf("exporter: reading the control variables of rank %d: %w", rank, err)
	}
	categories, _, err := s.Categories(ctx)
	if err != nil {
		return Catalogue{}, fmt.Errorf("exporter: reading the categories of rank %d: %w", rank, err)
	}
	c := CatalogueOfSample(s, &sample, mapper)
	objects := make(map[uint32]string, len(c.Objects)) // names by id
	for i := range c.Objects {
		objects[c.Objects[i].ID] = c.Objects[i].Name
	}
	size := 0
	for i := range controls {
		status := controlVariableStatus(&controls[i], objects)
		if size += sizeOf(status, maxCatalogueBytes); size > maxCatalogueBytes {
			return Catalogue{}, tooLarge(rank)
		}
		c.ControlVariables = append(c.ControlVariables, status)
	}
	c.addCategories(categories)
	if sizeOf(c, maxCatalogueBytes) > maxCatalogueBytes {
		return Catalogue{}, tooLarge(rank)
	}
	return c, nil
}

// addCategories adds categories, each behind those that have it, and notes which variables are in which.
func (c *Catalogue) addCategories(list []mpit.Category) {
	variables, controls, categories := map[int]string{}, map[int]string{}, map[int]string{} // names by MPI_T's index
	for i := range c.Variables {
		variables[c.Variables[i].index] = c.Variables[i].Name
	}
	for i := range c.ControlVariables {
		controls[c.ControlVariables[i].index] = c.ControlVariables[i].Name
	}
	parents := map[int][]int{}
	for i := range list {
		categories[list[i].Index] = list[i].Name
		for _, child := range list[i].Subcategories {
			parents[child] = append(parents[child], list[i].Index)
		}
	}
	depths := map[int]int{}
	for i := range list {
		g := &list[i]
		above := namesOf(parents[g.Index], categories)
		slices.Sort(above)
		c.Categories = append(c.Categories, CategoryStatus{
			Name:             g.Name,
			Description:      g.Description,
			Depth:            depth(g.Index, parents, depths),
			Parents:          slices.Compact(above),
			Variables:        namesOf(g.Variables, variables),
			ControlVariables: namesOf(g.ControlVariables, controls),
			Subcategories:    namesOf(g.Subcategories, categories),
			variables:        g.Variables,
			controls:         g.ControlVariables,
		})
	}
	slices.SortFunc(c.Categories, func(a, b CategoryStatus) int {
		return cmp.Or(cmp.Compare(a.Depth, b.Depth), cmp.Compare(a.Name, b.Name))
	})
	c.categorize()
}

// depth is how many categories are above one, by MPI_T's index. Where they go round in a circle, which the standard
// forbids, it is that at which the circle was first entered.
func depth(index int, parents map[int][]int, known map[int]int) int {
	if d, ok := known[index]; ok {
		return d
	}
	known[index] = 0
	d := 0
	for _, parent := range parents[index] {
		d = max(d, depth(parent, parents, known)+1)
	}
	known[index] = d
	return d
}

func tooLarge(rank int) error {
	return fmt.Errorf("exporter: what rank %d says of MPI_T would be more than %d MiB", rank, maxCatalogueBytes>>20)
}

func objectStatus(objects []mpit.Object) []ObjectStatus {
	list := make([]ObjectStatus, len(objects))
	names := make(map[uint32]string, len(objects))
	for i := range objects {
		names[objects[i].ID] = objects[i].Name
	}
	for i := range objects {
		o := &objects[i]
		s := ObjectStatus{
			ID: o.ID, Kind: cmp.Or(o.Kind.Label(), "unknown"), Name: o.Name, Predefined: o.Predefined, Inter: o.Inter,
			On: names[o.On], OnID: o.On,
		}
		if o.Size >= 0 {
			s.Size = &o.Size
		}
		if o.Rank >= 0 {
			s.Rank = &o.Rank
		}
		if !o.Created.IsZero() {
			s.Created = &o.Created
		}
		for _, d := range o.Details {
			if s.Details == nil {
				s.Details = make(map[string]string, len(o.Details))
			}
			s.Details[d.Key] = d.Value
		}
		list[i] = s
	}
	return list
}

func variableStatus(library mapping.Library, v *mpit.Variable, mapper *variables.Mapper) VariableStatus {
	s := VariableStatus{
		Name:         v.Name,
		Class:        v.Class,
		Description:  v.Description,
		Verbosity:    v.Verbosity,
		Bind:         v.Bind,
		Datatype:     v.Datatype,
		ReadOnly:     v.ReadOnly,
		Continuous:   v.Continuous,
		Atomic:       v.Atomic,
		Distribution: v.Distribution,
		OnRequest:    v.OnRequest,
		State:        v.State,
		index:        v.Index,
	}
	if v.Code != mpit.Success {
		s.Code = v.Code.String()
	}
	s.Enum = items(v.Enum)
	if metric, reason, ok := mapper.Metric(library, *v); ok {
		s.Metric, s.Kind, s.Unit = metric.Name, metric.Kind.String(), metric.Unit
	} else {
		s.Dropped = string(reason)
	}
	return s
}

func controlVariableStatus(v *mpit.ControlVariable, objects map[uint32]string) ControlVariableStatus {
	s := ControlVariableStatus{
		Name:        v.Name,
		Description: v.Description,
		Scope:       v.Scope,
		Verbosity:   v.Verbosity,
		Datatype:    v.Datatype,
		Bind:        v.Bind,
		Enum:        items(v.Enum),
		index:       v.Index,
	}
	if v.Code != mpit.Success {
		s.Code = v.Code.String()
	}
	if v.HasValue {
		s.Value = new(cvar.Text(v))
	}
	for i := range v.Objects {
		on := &v.Objects[i]
		o := ObjectValueStatus{ID: on.Object, Name: objects[on.Object]}
		if on.Code != mpit.Success {
			o.Code = on.Code.String()
		}
		if on.HasValue {
			value := mpit.CvarValue{Values: on.Values, Text: on.Text, IsText: v.Datatype == mpit.DatatypeChar}
			o.Value = new(cvar.Format(v.Datatype, v.Enum, value))
		}
		s.Objects = append(s.Objects, o)
	}
	return s
}

// items returns the items of an enumeration, none if there is no enumeration.
func items(e *mpit.Enum) []mpit.EnumItem {
	if e == nil {
		return nil
	}
	return e.Items
}

// namesOf turns MPI_T's indices into names; what has none (a variable that can't be described) is left out.
func namesOf(indices []int, names map[int]string) []string {
	list := make([]string, 0, len(indices))
	for _, i := range indices {
		if name := names[i]; name != "" {
			list = append(list, name)
		}
	}
	return list
}
