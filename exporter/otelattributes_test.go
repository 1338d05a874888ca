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

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// labelsOfOwn are the labels that families of the exporter's own have.
func labelsOfOwn(f Family) []string {
	labels := slices.Clone(f.Labels)
	if slices.Contains(labels, "jobid") {
		labels = append(labels, "dup")
	}
	return labels
}

func TestNoTwoLabelsAreOneAttribute(t *testing.T) {
	for _, f := range Families() {
		seen := map[attribute.Key]string{}
		for _, label := range labelsOfOwn(f) {
			key := keyValue(f.Name, label, "1").Key
			assert.Empty(t, seen[key], "%s: %s and %s are both %s", f.Name, seen[key], label, key)
			seen[key] = label
		}
	}
	names := map[string]string{}
	for _, a := range otelAttributes {
		if a.in == nil { // what a performance variable can have
			assert.Empty(t, names[a.name], "%s and %s", a.label, names[a.name])
			names[a.name] = a.label
		}
		assert.Contains(t, a.name, ".", "else it could be a label that a rule gives")
	}
}

// Backends make trees of dots: what is an attribute can't be where others stand. And all attributes of a name are of one type.
func TestAttributesFormATree(t *testing.T) {
	integer := map[string]bool{}
	for _, a := range otelAttributes {
		before, known := integer[a.name]
		assert.True(t, !known || before == a.integer, a.name)
		integer[a.name] = a.integer
	}
	for name := range integer {
		for other := range integer {
			assert.False(t, strings.HasPrefix(other, name+"."), "%s and %s", name, other)
		}
	}
}

// Each row of the table is of a label that there is.
func TestAttributesAreOfLabels(t *testing.T) {
	for _, a := range otelAttributes {
		assert.True(t, a.in == nil || len(a.in) > 0, "%s: no family has it", a.label)
		for _, f := range a.in {
			assert.Contains(t, f.Labels, a.label, f.Name)
		}
	}
}

func TestAttributesOfTheSemanticConventions(t *testing.T) {
	for _, want := range []attribute.KeyValue{
		semconv.ProcessPID(7), semconv.ProcessUserID(7), semconv.ProcessUserName("7"), semconv.HostName("7"), semconv.ProcessExecutablePath("7"),
	} {
		i := slices.IndexFunc(otelAttributes, func(a otelAttribute) bool { return a.name == string(want.Key) })
		require.GreaterOrEqual(t, i, 0, want.Key)
		assert.Equal(t, want, keyValue(familyProcessInfo.Name, otelAttributes[i].label, "7"))
	}
}

func TestAttributes(t *testing.T) {
	for _, test := range []struct {
		family, label, value string
		want                 attribute.KeyValue
	}{
		{"", "jobid", "100_3", attribute.String("mpi.job.id", "100_3")},
		{"", "rank", "12", attribute.Int("mpi.rank", 12)},
		{"", "dup", "1", attribute.Int("mpi.dup", 1)},
		{"", "comm", "MPI_COMM_WORLD", attribute.String("mpi.comm.name", "MPI_COMM_WORLD")},
		{"", "session", "x", attribute.String("mpi.session.name", "x")},
		{"", "bound", "x", attribute.String("mpi.bound.name", "x")},
		{"", "object", "3", attribute.Int("mpi.object.number", 3)},
		{"", "peer", "12", attribute.String("mpi.peer", "12")}, // for it may be
		{"", "peer", "other", attribute.String("mpi.peer", "other")},
		{"", "state", "idle", attribute.String("state", "idle")},
		{"", "host", "given by a rule", attribute.String("host", "given by a rule")},
		{"", "name", "given by a rule", attribute.String("name", "given by a rule")},
		{familyPvarInfo.Name, "name", "x", attribute.String("mpi.pvar.name", "x")},
		{familyControlRanks.Name, "name", "x", attribute.String("mpi.cvar.name", "x")},
		{familyObjects.Name, "name", "x", attribute.String("mpi.object.name", "x")},
		{familyObjectInfo.Name, "rank", "3", attribute.Int("mpi.rank", 3)},
		{familyObjectInfo.Name, "object_rank", "3", attribute.Int("mpi.object.rank", 3)},
		{familyObjectInfo.Name, "dims", "2x2", attribute.String("mpi.object.dims", "2x2")},
		{familySamples.Name, "result", "late", attribute.String("result", "late")},
		{"", "rank", "what is no number", attribute.String("mpi.rank", "what is no number")},
	} {
		assert.Equal(t, test.want, keyValue(test.family, test.label, test.value), "%s %s", test.family, test.label)
	}
}

// What stands in the table for all families can't be a label that a rule gives, of whatever meaning.
func TestNoRuleGivesALabelOfTheTable(t *testing.T) {
	for _, a := range otelAttributes {
		_, err := mapping.New(mapping.Config{Rules: []mapping.Rule{{Match: mapping.Match{Regexp: "(?P<" + a.label + ">x)"}}}})
		if a.in == nil {
			assert.Error(t, err, a.label)
		}
	}
}

// Series with the same labels share a set, even in different families: those of a rank mostly have none of their own.
func TestSetsAreShared(t *testing.T) {
	n := everything(t, Config{})
	n.mu.Lock()
	defer n.mu.Unlock()
	sets, entries := attributeSets{}, 0
	distinct := map[attribute.Set]bool{}
	for _, f := range n.pages.page.families {
		for _, b := range f.blocks {
			for i := b.from; i < b.to; i++ {
				entries++
				distinct[sets.of(f, b.sheet, int(i))] = true
			}
		}
	}
	f := n.pages.page.byName["mpit_rank_up"]
	assert.Zero(t, testing.AllocsPerRun(10, func() { sets.of(f, f.blocks[0].sheet, int(f.blocks[0].from)) }), "none is made again")
	assert.Len(t, sets.made, len(distinct))
	assert.Less(t, len(distinct), entries-30)
}

const docAttributesBegin = "<!-- begin attributes: written by `go test ./exporter -update` -->\n"

// docs/otlp.md has the table that the code has.
func TestAttributesAreDocumented(t *testing.T) {
	var want strings.Builder
	want.WriteString("| label | attribute | type | on |\n|---|---|---|---|\n")
	for _, a := range otelAttributes {
		kind, on := "string", "all"
		if a.integer {
			kind = "int"
		}
		if a.in != nil {
			var names []string
			for _, f := range a.in {
				names = append(names, "`"+otelOfOwn(f.Name, f.Type).name+"`")
			}
			on = strings.Join(names, ", ")
		}
		fmt.Fprintf(&want, "| `%s` | `%s` | %s | %s |\n", a.label, a.name, kind, on)
	}
	checkWritten(t, "otlp.md", docAttributesBegin, want.String())
}
