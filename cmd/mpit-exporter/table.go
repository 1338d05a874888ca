package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/mpit-exporter/mpit-exporter/exporter"
)

// maxCell is how many characters of a control variable's value a table shows; JSON has all.
const maxCell = 40

// writeTables writes the sections of a catalogue that shows says true to. A description stands last in its line, whole.
func writeTables(w io.Writer, c *exporter.Catalogue, shows func(what string) bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s\n", clean(title(&c.Rank)))
	if shows(listVariables) {
		fmt.Fprintf(t, "\nPERFORMANCE VARIABLES (%d)\n", len(c.Variables))
		row(t, len(c.Variables) > 0, "NAME", "CLASS", "VERBOSITY", "BIND", "DATATYPE", "STATE", "METRIC", "DESCRIPTION")
		for i := range c.Variables {
			v := &c.Variables[i]
			row(t, true, v.Name, v.Class.String(), v.Verbosity.String(), v.Bind.String(), v.Datatype.String(), withCode(v.State.String(), v.Code),
				metricCell(v), v.Description)
		}
	}
	if shows(listControls) {
		fmt.Fprintf(t, "\nCONTROL VARIABLES (%d)\n", len(c.ControlVariables))
		row(t, len(c.ControlVariables) > 0, "NAME", "VALUE", "SCOPE", "VERBOSITY", "BIND", "DATATYPE", "DESCRIPTION")
		for i := range c.ControlVariables {
			v := &c.ControlVariables[i]
			value := withCode("", v.Code)
			if v.Value != nil {
				value = shorten(clean(*v.Value), maxCell)
			}
			row(t, true, v.Name, value, v.Scope.String(), v.Verbosity.String(), v.Bind.String(), v.Datatype.String(), v.Description)
		}
	}
	if shows(listCategories) {
		fmt.Fprintf(t, "\nCATEGORIES (%d)\n", len(c.Categories))
		row(t, len(c.Categories) > 0, "NAME", "VARIABLES", "CVARS", "SUBCATEGORIES", "DESCRIPTION")
		for i := range c.Categories {
			g := &c.Categories[i]
			row(t, true, g.Name, strconv.Itoa(len(g.Variables)), strconv.Itoa(len(g.ControlVariables)), strconv.Itoa(len(g.Subcategories)), g.Description)
		}
	}
	fmt.Fprintln(t)
	return t.Flush()
}

func title(r *exporter.RankStatus) string {
	s := strings.TrimSpace(r.Library + " " + r.LibraryVersion)
	if s == "" {
		s = "unknown MPI library"
	}
	s += fmt.Sprintf(", as in rank %d of %d", r.Rank, r.WorldSize)
	if r.JobID != "" {
		s += " of job " + r.JobID
	}
	if r.World != "" {
		s += ", world " + r.World
	}
	if r.Executable != "" {
		s += ": " + r.Executable
	}
	return s
}

// metricCell is the metric's name, or why there is none.
func metricCell(v *exporter.VariableStatus) string {
	switch {
	case v.Metric != "":
		return v.Metric
	case v.Dropped != "":
		return "none (" + v.Dropped + ")"
	}
	return "none"
}

func withCode(text, code string) string {
	if code == "" {
		return text
	}
	return strings.TrimSpace(text + " (" + code + ")")
}

// row writes a line of a table. Its cells end with tabs, except for the last: that one does not widen a column.
func row(w io.Writer, wanted bool, cells ...string) {
	if !wanted {
		return
	}
	for i, cell := range cells {
		cells[i] = cmp.Or(clean(cell), "-")
	}
	fmt.Fprintln(w, strings.Join(cells, "\t"))
}

// clean makes one line of a text that came from a rank, with nothing in it that a terminal would obey.
func clean(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))), " ")
}

// shorten cuts a text after so many characters.
func shorten(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:n-1]) + "…"
}
