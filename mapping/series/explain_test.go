package series

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// mapperOf has the rules of a file, and the shipped ones.
func mapperOf(t *testing.T, text string) *variables.Mapper {
	t.Helper()
	f, err := rules.Parse("f.yaml", []byte(text))
	require.NoError(t, err)
	m, err := variables.New(variables.Config{Rules: append(f.Rules, rules.Defaults()...)})
	require.NoError(t, err)
	return m
}

func TestExplainSaysWhoDecided(t *testing.T) {
	m := mapperOf(t, `rules:
- match: {regexp: 'x_(?P<function>[a-z]+)_calls'}
  name: x_calls
- match: {class: size}
  class: counter
  unit: "{call}"
  help: Calls.
- drop: false
  unit: s
  scale: 0.001
  merge: sum
  elements: peer
  nonzero: true
  object: false
  companion: none
  buckets: [0.001, 1]
  offset: true
  open: true
`)
	decisions, unsure := m.Explain(mapping.Library{Name: mapping.MPICH, Version: "4.1"}, mpit.Variable{
		Name: "x_bcast_calls", Class: mpit.ClassSize, Datatype: tULong, Bind: mpit.BindComm,
		Verbosity: mpit.VerbosityUserBasic})
	assert.Equal(t, []rules.Decision{
		{Property: "drop", By: "f.yaml:8", Value: "false"},
		{Property: "class", By: "f.yaml:4", Value: "counter"},
		{Property: "unit", By: "f.yaml:4", Value: "{call}"},
		{Property: "scale", By: "f.yaml:8", Value: "0.001"},
		{Property: "name", By: "f.yaml:2", Value: "x_calls"},
		{Property: "help", By: "f.yaml:4", Value: "Calls."},
		{Property: "labels", By: "f.yaml:2", Value: `function="bcast"`},
		{Property: "merge", By: "f.yaml:8", Value: "sum"},
		{Property: "elements", By: "f.yaml:8", Value: "peer"},
		{Property: "nonzero", By: "f.yaml:8", Value: "true"},
		{Property: "object", By: "f.yaml:8", Value: "false"},
		{Property: "companion", By: "f.yaml:8", Value: "none"},
		{Property: "buckets", By: "f.yaml:8", Value: "[0.001, 1]"},
		{Property: "offset", By: "f.yaml:8", Value: "true"},
		{Property: "open", By: "f.yaml:8", Value: "true"},
	}, decisions)
	assert.Empty(t, unsure)
}

func TestUnitsAreExplainedAsRulesWriteThem(t *testing.T) {
	for _, unit := range []string{"KiBy", "us", "%", "{message}", "none"} {
		m := newMapper(t, rules.Rule{Unit: unit})
		decisions, _ := m.Explain(mapping.Library{}, mpit.Variable{Name: "v", Class: mpit.ClassLevel, Datatype: tInt})
		assert.Equal(t, []rules.Decision{{Property: "unit", By: "a rule", Value: unit}}, decisions)
	}
}

// What is not known may let other rules match; they are named if that would change something.
func TestExplainWhatIsNotKnown(t *testing.T) {
	m := mapperOf(t, `rules:
- match: {library: openmpi, version: '>=5'}
  unit: By
- match: {class: counter}
  scale: 2
- match: {verbosity: user_basic}
  offset: true
- match: {library: mpich}
  object: false
- match: {name: other}
  name: y
- match: {name: v}
  unit: s
`)
	unsure := func(m *variables.Mapper, version string, verbosity mpit.Verbosity) []string {
		lib := mapping.Library{Name: mapping.OpenMPI, Version: version}
		if version == "any library" {
			lib = mapping.Library{}
		}
		_, unsure := m.Explain(lib, mpit.Variable{Name: "v", Class: mpit.ClassLevel, Verbosity: verbosity, Datatype: tInt})
		return unsure
	}
	assert.Empty(t, unsure(m, "4.1", mpit.VerbosityUserAll))
	assert.Equal(t, []string{"f.yaml:2"}, unsure(m, "", mpit.VerbosityUserAll))
	assert.Equal(t, []string{"f.yaml:2", "f.yaml:8"}, unsure(m, "any library", mpit.VerbosityUserAll))
	assert.Equal(t, []string{"f.yaml:6"}, unsure(m, "4.1", mpit.VerbosityUnknown))
	// A rule behind the one that has decided changes nothing.
	m = newMapper(t, rules.Rule{Unit: "s"}, rules.Rule{Source: rules.Source{File: "f.yaml", Line: 2},
		Match: rules.Match{Version: ">4"}, Unit: "By"})
	assert.Empty(t, unsure(m, "", mpit.VerbosityUserAll))
}

// A companion that a rule names is believed.
func TestNamedCompanion(t *testing.T) {
	m := mapperOf(t, "rules: [{match: {name: '*_time'}, companion: $1_calls}]")
	v := mpit.Variable{Name: "x_time", Class: mpit.ClassTimer, Datatype: tDouble}
	metric, _, _ := m.Metric(mapping.Library{}, v)
	assert.Contains(t, metric.Help, "COUNTER x_calls")
	decisions, _ := m.Explain(mapping.Library{}, v)
	assert.Equal(t, []rules.Decision{{Property: "companion", By: "f.yaml:1", Value: "x_calls"}}, decisions)
}
