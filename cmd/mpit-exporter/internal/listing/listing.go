// Package listing shows what MPI_T offers in a rank, an api.Catalogue, as tables: variables, control variables,
// categories as a tree, and objects.
//
// Begin with Write; Selection is what is left out. WriteValues shows an exporter's values, and Compare how a catalogue
// differs from one that was saved. RunProgram makes one of a program, which it runs to its end.
package listing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// maxObjects is how many objects of a kind a table shows; JSON has all.
const maxObjects = 50

// Write writes the parts of a catalogue that are selected. A description stands last in its line, whole.
func Write(t *strings.Builder, c *api.Catalogue, s Selection) {
	fmt.Fprintf(t, "%s\n", mapping.OneLine(title(&c.Rank, fmt.Sprintf("as in rank %d of %d", c.Rank.Rank,
		c.Rank.WorldSize))))
	if s.Short() {
		var rows [][]string
		for i := range c.Variables {
			v := &c.Variables[i]
			rows = append(rows, table.Clean(v.Name, bindCell(v.Bind), metricCell(v), v.Description))
		}
		_ = table.Write(t, []string{"NAME", "BIND", "METRIC", "DESCRIPTION"}, rows)
	}
	if s.variables() {
		writeVariables(t, c.Variables)
	}
	if s.controlVariables() {
		writeControlVariables(t, c.ControlVariables, s.ControlVariables && !s.All)
	}
	if s.categories() {
		stamp := ""
		if c.CategoryStamp != nil {
			stamp = fmt.Sprintf(", stamp %d", *c.CategoryStamp)
		}
		fmt.Fprintf(t, "\nCATEGORIES (%d)%s\n", len(c.Categories), stamp)
		_ = table.Write(t, []string{"NAME", "VARIABLES", "CVARS", "SUBCATEGORIES", "DESCRIPTION"}, treeOf(c.Categories))
	}
	if s.objects() {
		writeObjects(t, c)
	}
	t.WriteString("\n")
}

func writeVariables(t *strings.Builder, all []api.VariableStatus) {
	fmt.Fprintf(t, "\nPERFORMANCE VARIABLES (%d)\n", len(all))
	var rows [][]string
	for i := range all {
		v := &all[i]
		rows = append(rows, table.Clean(v.Name, classCell(v), v.Verbosity.String(), v.Bind.String(), v.Datatype.String(),
			stateCell(v), metricCell(v), listCell(v.Categories), v.Description))
	}
	_ = table.Write(t, []string{"NAME", "CLASS", "VERBOSITY", "BIND", "DATATYPE", "STATE", "METRIC", "CATEGORIES",
		"DESCRIPTION"}, rows)
	if slices.ContainsFunc(all, func(v api.VariableStatus) bool { return v.OnRequest }) {
		fmt.Fprintln(t, "on request: opened by exec --monitoring or a rule with open: true; counts from then on, and "+
			"each message costs more")
	}
}

// writeControlVariables writes all, or shortly those that aren't constants: in Open MPI these are mostly versions of
// its parts.
func writeControlVariables(t *strings.Builder, all []api.ControlVariableStatus, short bool) {
	heads := []string{"NAME", "VALUE", "SCOPE", "VERBOSITY", "BIND", "DATATYPE", "ENUMERATION", "CATEGORIES"}
	if short {
		heads = heads[:3]
	} else {
		fmt.Fprintf(t, "\nCONTROL VARIABLES (%d)\n", len(all))
	}
	constants := 0
	var rows [][]string
	for i := range all {
		v := &all[i]
		if short && v.Scope == mpit.ScopeConstant {
			constants++
			continue
		}
		cells := []string{v.Name, valueCell(v.Value, v.Code), v.Scope.String(), v.Verbosity.String(), v.Bind.String(),
			v.Datatype.String(), enumCell(v.Enum), listCell(v.Categories)}[:len(heads)]
		rows = append(rows, table.Clean(append(cells, v.Description)...))
		for _, o := range v.Objects { // a line for the value on each, with its name and value alone
			cells := make([]string, len(heads)+1)
			cells[0] = "└ " + cmp.Or(mapping.OneLine(o.Name), fmt.Sprintf("object %d", o.ID))
			cells[1] = valueCell(o.Value, o.Code)
			rows = append(rows, cells)
		}
	}
	_ = table.Write(t, append(heads, "DESCRIPTION"), rows)
	if constants > 0 {
		fmt.Fprintf(t, "%s left out (--all)\n", units.Count(constants, "constant"))
	}
}

// bindCell is what kind of object a variable is of.
func bindCell(b mpit.Bind) string {
	if b == mpit.BindNone {
		return ""
	}
	return mapping.BindLabel(b)
}

// writeObjects writes the objects of each kind, the first ones of many.
func writeObjects(t *strings.Builder, c *api.Catalogue) {
	byKind := map[string][]*api.ObjectStatus{}
	for i := range c.Objects {
		o := &c.Objects[i]
		byKind[o.Kind] = append(byKind[o.Kind], o)
	}
	fmt.Fprintf(t, "\nOBJECTS (%d)\n", len(c.Objects))
	var rows [][]string
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		list := byKind[kind]
		for _, o := range list[:min(len(list), maxObjects)] {
			on := o.On
			if on == "" && o.OnID != 0 {
				on = fmt.Sprintf("object %d", o.OnID)
			}
			rows = append(rows, table.Clean(kind, o.Name, numberCell(o.Size), numberCell(o.Rank), on, detailCell(o)))
		}
		if more := len(list) - maxObjects; more > 0 {
			rows = append(rows, table.Clean(kind, fmt.Sprintf("and %d more", more), "", "", "", ""))
		}
	}
	_ = table.Write(t, []string{"KIND", "NAME", "SIZE", "RANK", "ON", "DETAILS"}, rows)
	if c.ObjectsMissing > 0 {
		fmt.Fprintf(t, "%d more were not tracked: MPIT_AGENT_MAX_OBJECTS lived at the time\n", c.ObjectsMissing)
	}
}

func numberCell(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

// detailCell is what is known of an object beyond its name and size.
func detailCell(o *api.ObjectStatus) string {
	var parts []string
	if o.Predefined {
		parts = append(parts, "predefined")
	}
	if o.Inter {
		parts = append(parts, "intercommunicator")
	}
	for _, key := range slices.Sorted(maps.Keys(o.Details)) {
		parts = append(parts, key+"="+o.Details[key])
	}
	return strings.Join(parts, " ")
}

// valueCell is a control variable's value, or why it has none.
func valueCell(value *string, code string) string {
	if value == nil {
		return withCode("", code)
	}
	return table.Shorten(mapping.OneLine(*value), table.MaxCell)
}

// listCell joins as many names as a cell may show; each has two characters at least.
func listCell(names []string) string {
	return table.Shorten(mapping.OneLine(strings.Join(names[:min(len(names), table.MaxCell)], ", ")), table.MaxCell)
}

func enumCell(items []mpit.EnumItem) string {
	words := make([]string, len(items))
	for i, item := range items {
		words[i] = fmt.Sprintf("%d=%s", item.Value, item.Name)
	}
	return listCell(words)
}

func libraryTitle(name, version string) string {
	return cmp.Or(strings.TrimSpace(name+" "+version), "unknown MPI library")
}

// title is of whom a list is; who says which ranks.
func title(r *api.RankStatus, who string) string {
	s := libraryTitle(r.Library, r.LibraryVersion) + ", " + who
	if r.JobID != "" {
		s += " of job " + r.JobID
	}
	if r.World != "" {
		s += ", world " + r.World
	}
	if r.User != "" {
		s += ", user " + r.User
	}
	if r.Executable != "" {
		s += ": " + r.Executable
	}
	return s
}

// classCell says of a variable that is the agent's own distribution that it is one.
func classCell(v *api.VariableStatus) string {
	if v.Distribution {
		return v.Class.String() + " (distribution)"
	}
	return v.Class.String()
}

// metricCell is the metric's name, or why there is none.
func metricCell(v *api.VariableStatus) string {
	switch {
	case v.Metric != "":
		return v.Metric
	case v.Dropped != "":
		return "none (" + v.Dropped + ")"
	}
	return "none"
}

// stateCell says of a variable that is opened on request only that it is one.
func stateCell(v *api.VariableStatus) string {
	switch {
	case v.State == mpit.VariableOnRequest:
		return "on request"
	case v.State == mpit.VariableOpen && v.OnRequest:
		return "open, on request"
	}
	return withCode(v.State.String(), v.Code)
}

func withCode(text, code string) string {
	if code == "" {
		return text
	}
	return strings.TrimSpace(text + " (" + code + ")")
}
