package exporter

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/board"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
)

// attributesOf are the labels that a series of that family can have, with what they are called in OpenTelemetry:
// common ones, and those of one of the exporter's own.
func attributesOf(family string) []exposition.Label {
	labels := slices.Clone(exposition.CommonLabels())
	if f := board.ByName()[family]; f != nil {
		for _, l := range f.Labels {
			if l.Attribute != "" {
				labels = append(labels, l)
			}
		}
	}
	return labels
}

func TestNoTwoLabelsAreOneAttribute(t *testing.T) {
	for _, f := range Families() {
		seen := map[string]string{}
		for _, l := range attributesOf(f.Name) {
			assert.Empty(t, seen[l.Attribute], "%s: %s and %s are both %s", f.Name, seen[l.Attribute], l.Name,
				l.Attribute)
			seen[l.Attribute] = l.Name
			assert.Contains(t, l.Attribute, ".", "else it could be a label that a rule gives")
		}
	}
}

// Backends make trees of dots: what is an attribute can't be where others stand. And all attributes of a name are of
// one type.
func TestAttributesFormATree(t *testing.T) {
	integer := map[string]bool{}
	for _, f := range Families() {
		for _, l := range attributesOf(f.Name) {
			before, known := integer[l.Attribute]
			assert.True(t, !known || before == l.Integer, l.Attribute)
			integer[l.Attribute] = l.Integer
		}
	}
	for name := range integer {
		for other := range integer {
			assert.False(t, strings.HasPrefix(other, name+"."), "%s and %s", name, other)
		}
	}
}

func TestAttributesOfTheSemanticConventions(t *testing.T) {
	for _, want := range []attribute.KeyValue{
		semconv.ProcessPID(7), semconv.ProcessUserID(7), semconv.ProcessUserName("7"), semconv.HostName("7"),
		semconv.ProcessExecutablePath("7"),
	} {
		labels := attributesOf("mpit_process_info")
		i := slices.IndexFunc(labels, func(l exposition.Label) bool { return l.Attribute == string(want.Key) })
		require.GreaterOrEqual(t, i, 0, want.Key)
		assert.Equal(t, want.Value.Type() == attribute.INT64, labels[i].Integer, want.Key)
	}
}

// What any series may have can't be a label that a rule gives, of whatever meaning, but for a peer, which is one
// whoever names it.
func TestNoRuleGivesALabelOfTheTable(t *testing.T) {
	for _, l := range exposition.CommonLabels() {
		_, err := variables.New(variables.Config{Rules: []rules.Rule{{Match: rules.Match{Regexp: "(?P<" + l.Name + ">x)"}}}})
		assert.Equal(t, l.Name == "peer", err == nil, l.Name)
	}
}

const docAttributesBegin = "<!-- begin attributes: written by `go test ./exporter -update` -->\n"

// docs/otlp.md has the table that the code has.
func TestAttributesAreDocumented(t *testing.T) {
	var want strings.Builder
	want.WriteString("| label | attribute | type | on |\n|---|---|---|---|\n")
	row := func(l exposition.Label, on string) {
		kind := "string"
		if l.Integer {
			kind = "int"
		}
		fmt.Fprintf(&want, "| `%s` | `%s` | %s | %s |\n", l.Name, l.Attribute, kind, on)
	}
	for _, l := range exposition.CommonLabels() {
		row(l, "all")
	}
	families := map[exposition.Label][]string{}
	var labels []exposition.Label // in the order of the families
	for _, f := range Families() {
		for _, l := range f.Labels {
			if l.Attribute == "" {
				continue
			}
			if families[l] == nil {
				labels = append(labels, l)
			}
			name, _ := f.OTel()
			families[l] = append(families[l], "`"+name+"`")
		}
	}
	for _, l := range labels {
		row(l, strings.Join(families[l], ", "))
	}
	checkWritten(t, "otlp.md", docAttributesBegin, want.String())
}
