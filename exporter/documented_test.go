package exporter

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest/catalogue"
)

const docVariablesBegin = "<!-- begin variables: written by `go test ./exporter -update` -->\n"

// libraryTitles are the libraries in the order in which docs/metrics.md has them.
var libraryTitles = []struct{ name, title string }{
	{mapping.OpenMPI, "Open MPI"}, {mapping.MPICH, "MPICH"}, {mapping.MVAPICH, "MVAPICH"},
	{mapping.IntelMPI, "Intel MPI"}, {mapping.CrayMPICH, "HPE Cray MPICH"}, {"", "Call profile and events"},
}

// outcome is a family that variables of one declared class become, or none of them does.
type outcome struct {
	declared mpit.Class
	name     string // of the family; empty: left out
	kind     string
	unit     string
	labels   string
	dropped  mapping.Reason
	variables,
	what []string
	versions []string // of variables that are left out
}

// docs/metrics.md lists every family that the shipped rules can make of the variables that are known, and nothing else.
func TestVariablesAreDocumented(t *testing.T) {
	t.Parallel() // it computes while others wait
	var want strings.Builder
	known := catalogues(t)
	for _, l := range libraryTitles {
		documentLibrary(t, &want, l.title, slices.DeleteFunc(slices.Clone(known),
			func(c *catalogue.Catalogue) bool { return c.Library != l.name }))
	}
	documentClasses(t, &want)
	checkWritten(t, "metrics.md", docVariablesBegin, want.String())
}

func documentLibrary(t *testing.T, b *strings.Builder, title string, of []*catalogue.Catalogue) {
	t.Helper()
	require.NotEmpty(t, of, title)
	fmt.Fprintf(b, "### %s\n\n", title)
	for _, c := range of {
		fmt.Fprintf(b, "- %s: %s\n", c.Name, strings.TrimSpace(c.Source))
	}
	b.WriteByte('\n')
	if of[0].Like != "" {
		fmt.Fprintf(b, "Where it has a variable of MPICH's, that becomes what it becomes there.\n\n")
		checkLikeness(t, of)
		return
	}
	b.WriteString("| variable | class | family | type | unit | labels | is |\n|---|---|---|---|---|---|---|\n")
	for _, o := range outcomes(t, of) {
		family, kind := "`"+o.name+"`", o.kind
		if o.dropped != "" {
			family, kind = "left out ("+string(o.dropped)+")", ""
			if len(o.versions) < len(of) {
				family += ": " + strings.Join(o.versions, ", ")
			}
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s |\n", pattern(o.variables), o.declared, family, kind,
			o.unit, o.labels, common(o.what))
	}
	b.WriteByte('\n')
}

// outcomes is what all variables of a library become, in the order of the families.
func outcomes(t *testing.T, of []*catalogue.Catalogue) []*outcome {
	t.Helper()
	byKey := map[string]*outcome{}
	for _, c := range of {
		n, _ := startLibrary(t, c)
		labels := map[string]string{}
		for _, f := range decoded(t, n.Handler()) {
			if Reserved(f.GetName()) {
				continue
			}
			var names []string
			for _, m := range f.Metric {
				for _, l := range m.Label {
					if !slices.Contains([]string{"jobid", "world", "user", "rank"}, l.GetName()) {
						names = append(names, "`"+l.GetName()+"`")
					}
				}
			}
			slices.Sort(names)
			labels[f.GetName()] = strings.Join(slices.Compact(names), ", ")
		}
		n.stop()

		documented := map[string]bool{}
		mapper := newMapper(t)
		for _, v := range c.MPIT() {
			metric, reason, ok := mapper.Metric(mapping.ParseLibrary(c.Version), v)
			o := &outcome{declared: v.Class, dropped: reason}
			if ok {
				require.Contains(t, labels, metric.Name, "%s: %s is not on the page", c.Name, v.Name)
				o.name, o.kind, o.unit, o.labels, o.dropped = metric.Name, metric.Kind.String(),
					unitWord(metric.Unit), labels[metric.Name], ""
				documented[metric.Name] = true
			}
			key := fmt.Sprint(o.declared, o.name, o.dropped)
			if !ok {
				key += v.Name
			}
			if have := byKey[key]; have != nil {
				o = have
			}
			byKey[key] = o
			if !slices.Contains(o.variables, v.Name) {
				o.variables = append(o.variables, v.Name)
				o.what = append(o.what, v.Description)
			}
			if !slices.Contains(o.versions, c.Name) {
				o.versions = append(o.versions, c.Name)
			}
		}
		for name := range labels {
			assert.True(t, documented[name], "%s: no variable of the catalogue becomes %s", c.Name, name)
		}
	}
	return slices.SortedFunc(maps.Values(byKey), func(a, b *outcome) int {
		return cmp.Or(cmp.Compare(a.dropped, b.dropped), cmp.Compare(a.name, b.name),
			cmp.Compare(a.declared, b.declared), cmp.Compare(a.variables[0], b.variables[0]))
	})
}

// unitWord is a unit of UCUM as a reader knows it.
func unitWord(unit string) string {
	switch unit {
	case "By":
		return "bytes"
	case "s":
		return "seconds"
	case "1":
		return "ratio"
	}
	return strings.Trim(unit, "{}")
}

// pattern names some variables: up to three by their names, more by what their names have in common.
func pattern(names []string) string {
	if len(names) <= 3 {
		return "`" + strings.Join(names, "`, `") + "`"
	}
	before, after := names[0], names[0]
	for _, n := range names[1:] {
		for !strings.HasPrefix(n, before) {
			before = before[:len(before)-1]
		}
		for !strings.HasSuffix(n, after) {
			after = after[1:]
		}
	}
	before = before[:strings.LastIndexByte(before, '_')+1] // whole words
	if at := strings.IndexByte(after, '_'); at >= 0 {
		after = after[at:]
	} else {
		after = ""
	}
	return fmt.Sprintf("%d: `%s*%s`", len(names), before, after)
}

// common is the words with which all texts begin.
func common(texts []string) string {
	words := strings.Fields(texts[0])
	for _, text := range texts[1:] {
		other := strings.Fields(text)
		n := 0
		for n < min(len(words), len(other)) && words[n] == other[n] {
			n++
		}
		words = words[:n]
	}
	s := strings.Join(words, " ")
	if s != "" && len(texts) > 1 && s != texts[0] {
		s = strings.TrimRight(s, ",:;") + " …"
	}
	return strings.ReplaceAll(s, "|", "\\|")
}

// checkLikeness checks that what is said of a library that is like another is true.
func checkLikeness(t *testing.T, of []*catalogue.Catalogue) {
	t.Helper()
	known, mapper := catalogues(t), newMapper(t)
	for _, c := range of {
		for _, other := range known {
			if other.Name != c.Like {
				continue
			}
			for _, v := range c.MPIT() {
				mine, _, ok := mapper.Metric(mapping.ParseLibrary(c.Version), v)
				theirs, _, also := mapper.Metric(mapping.ParseLibrary(other.Version), v)
				if assert.Equal(t, also, ok, v.Name) && ok {
					assert.Equal(t, theirs.Name, mine.Name)
					assert.Equal(t, theirs.Kind, mine.Kind)
				}
			}
		}
	}
}

// documentClasses says what becomes of a variable that no rule knows.
func documentClasses(t *testing.T, b *strings.Builder) {
	t.Helper()
	b.WriteString("### Unknown variables\n\nOf a variable `foo` for which there is no rule:\n\n")
	b.WriteString("| class | datatype | family | type | unit |\n|---|---|---|---|---|\n")
	mapper := newMapper(t)
	for class := mpit.ClassState; class <= mpit.ClassGeneric; class++ {
		types := []mpit.Datatype{mpit.DatatypeUnsignedLongLong}
		switch class {
		case mpit.ClassState:
			types[0] = mpit.DatatypeInt
		case mpit.ClassPercentage:
			types[0] = mpit.DatatypeDouble
		case mpit.ClassTimer:
			types = append(types, mpit.DatatypeDouble)
		case mpit.ClassGeneric:
			types = append(types, mpit.DatatypeChar)
		}
		for _, datatype := range types {
			family, kind, unit := "", "", ""
			metric, reason, ok := mapper.Metric(mapping.Library{},
				mpit.Variable{Name: "foo", Class: class, Datatype: datatype, DatatypeBytes: 8})
			if ok {
				family, kind, unit = "`"+metric.Name+"`", metric.Kind.String(), unitWord(metric.Unit)
			} else {
				family = "left out (" + string(reason) + ")"
			}
			word := "any number"
			if len(types) > 1 || class == mpit.ClassState || class == mpit.ClassPercentage {
				word = map[mpit.Datatype]string{
					mpit.DatatypeInt: "an integer", mpit.DatatypeUnsignedLongLong: "an integer",
					mpit.DatatypeDouble: "a floating-point number", mpit.DatatypeChar: "a string",
				}[datatype]
				if class == mpit.ClassGeneric && datatype != mpit.DatatypeChar {
					word = "any number"
				}
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", class, word, family, kind, unit)
		}
	}
	b.WriteByte('\n')
}
