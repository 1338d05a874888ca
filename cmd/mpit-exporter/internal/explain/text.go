package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// fewExplained is the number of explanations that are shown whole; if there are more, each is a line.
const fewExplained = 4

// writeExplained writes all explanations, and says so if others were left out.
func writeExplained(w io.Writer, name string, list []Explained, others int) error {
	if others > 0 {
		defer func() {
			fmt.Fprintf(w, "\nNo rule asks for this name in other libraries and classes; --library and --class show "+
				"what it would become there.\n")
		}()
	}
	if len(list) > fewExplained {
		return writeBriefly(w, name, list)
	}
	for i := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := list[i].write(w, name, list[i].in(list[0].Library != "")); err != nil {
			return err
		}
	}
	return nil
}

// in names the library of an explanation; others: of another library there is one before it.
func (e *Explained) in(others bool) string {
	switch {
	case e.Library == "" && others:
		return "any other library"
	case e.Library == "":
		return "any library"
	case e.Version == "":
		return e.Library + ", whatever version"
	}
	return e.Library + " " + e.Version
}

// write shows an explanation whole. Series come one in a line, as they stand on the page.
func (e *Explained) write(w io.Writer, name, library string) error {
	fmt.Fprintf(w, "%s of class %s, %s, in %s\n\n", mapping.OneLine(name), strings.ToUpper(e.Class), e.Datatype, library)
	if e.Metric == nil {
		fmt.Fprintf(w, "It is left out (%s).\n", cmp.Or(e.Dropped, "not known why"))
	} else {
		fmt.Fprintf(w, "%s, a %s. %s\n", e.Metric.Name, e.Metric.Type, mapping.OneLine(e.Metric.Help))
		for _, series := range e.Series {
			fmt.Fprintf(w, "    %s\n", mapping.OneLine(series))
		}
	}
	fmt.Fprintln(w)
	t := table.New(w)
	table.Row(t, "PROPERTY", "DECIDED BY", "VALUE")
	for _, d := range e.Decisions {
		// Properties of histograms are shown only for histograms, or if a rule sets them. For a variable that is left
		// out, only the class and what rules set is shown.
		meant := d.Rule != "" || e.Metric != nil && e.Metric.Type == mapping.KindHistogram.String() ||
			e.Metric != nil && d.Property != "buckets" && d.Property != "companion"
		by := "default"
		if d.Agent {
			by = "the agent"
		}
		if meant || d.Property == "class" {
			table.Row(t, d.Property, cmp.Or(d.Rule, by), d.Value)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(e.Unsure) > 0 {
		fmt.Fprintf(w, "\nThese rules may decide something, too; it depends on version or verbosity%s:\n",
			e.orLibrary())
		for _, source := range e.Unsure {
			fmt.Fprintf(w, "    %s\n", source)
		}
	}
	return nil
}

func (e *Explained) orLibrary() string {
	if e.Library == "" {
		return ", or on the library"
	}
	return ""
}

// writeBriefly shows a line for each explanation.
func writeBriefly(w io.Writer, name string, list []Explained) error {
	fmt.Fprintf(w, "%s becomes (more with --class and --library):\n\n", mapping.OneLine(name))
	t := table.New(w)
	table.Row(t, "LIBRARY", "CLASS", "METRIC", "TYPE", "DECIDED BY")
	for i := range list {
		e := &list[i]
		metric, kind := "none ("+e.Dropped+")", ""
		if e.Metric != nil {
			metric, kind = e.Metric.Name, e.Metric.Type
		}
		var rules []string
		for _, d := range e.Decisions {
			if d.Rule != "" && !slices.Contains(rules, d.Rule) {
				rules = append(rules, d.Rule)
			}
		}
		if e.Library != "" {
			for _, source := range e.Unsure {
				if !slices.Contains(rules, source) {
					rules = append(rules, source+" (unsure)")
				}
			}
		}
		table.Row(t, cmp.Or(e.Library, "any other"), e.Class, metric, kind,
			cmp.Or(strings.Join(rules, " "), "defaults"))
	}
	return t.Flush()
}
