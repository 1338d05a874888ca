package series

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// explained is what rules of a file say of a variable.
func explained(t *testing.T, text string, lib mapping.Library, v mpit.Variable) rules.Explanation {
	t.Helper()
	f, err := rules.Parse("f.yaml", []byte(text))
	require.NoError(t, err)
	m, err := variables.New(variables.Config{Rules: append(f.Rules, rules.Defaults()...), Rank: f.Rank})
	require.NoError(t, err)
	return m.Explain(lib, v)
}

func TestExplainSaysWhoDecided(t *testing.T) {
	e := explained(t, `rules:
- match: {regexp: 'x_(?P<function>[a-z]+)_calls'}
  name: x_calls
- match: {class: size}
  class: counter
  unit: "{call}"
  help: Calls.
`, mapping.Library{Name: mapping.MPICH, Version: "4.1"}, mpit.Variable{Name: "x_bcast_calls", Class: mpit.ClassSize, Datatype: tULong, Bind: mpit.BindComm})
	got := map[string]string{}
	for _, d := range e.Decisions {
		by := "default"
		if d.Rule != nil {
			by = "line " + strconv.Itoa(d.Rule.Source.Line)
		}
		got[d.Property] = d.Value + " (" + by + ")"
	}
	assert.Equal(t, map[string]string{
		"drop": "false (default)", "class": "counter (line 4)", "unit": "{call} (line 4)", "scale": "1 (default)",
		"name": "x_calls (line 2)",
		"help": "Calls. (line 4)", "labels": `function="bcast" (line 2)`, "merge": "sum (default)",
		"elements": "sum (default)",
		"nonzero":  "false (default)", "object": "true (default)", "companion": "none (default)",
		"buckets": "[1e-06, 4e-06, 1.6e-05, 6.4e-05, 0.000256, 0.001024, 0.004096, 0.016384, 0.065536, 0.262144, " +
			"1.048576, 4.194304, 16.777216, 67.108864] (default)",
		"offset": "false (default)", "rank": "keep (default)", "open": "false (default)",
	}, got)
	assert.Equal(t, "class", e.Decisions[1].Property, "in the order of properties")
	require.NotNil(t, e.Metric)
	checkMetric(t, e.Metric)
	assert.Equal(t, "mpit_x_calls_total", e.Metric.Name)
	assert.Equal(t, "mpit.x_calls.total", e.Metric.OTelName)
	assert.Contains(t, e.Metric.Help, "class SIZE (really COUNTER), unit {call}")
	assert.Empty(t, e.Drop)
	assert.Empty(t, e.Unsure)
	assert.Equal(t, []string{`mpit_x_calls_total{jobid="…",world="…",user="…",rank="0",comm="MPI_COMM_WORLD",function="bcast"}`}, e.Series)
}

// Examples are what would stand on the page.
func TestExampleSeries(t *testing.T) {
	enum := &mpit.Enum{Items: []mpit.EnumItem{{Value: 0, Name: "idle"}, {Value: 1, Name: `"busy"`}}}
	for name, c := range map[string]struct {
		sets  string
		class mpit.Class
		bind  mpit.Bind
		want  []string
	}{
		"unbound": {"help: x", mpit.ClassLevel, mpit.BindNone,
			[]string{`mpit_v_level{jobid="…",world="…",user="…",rank="0"}`}},
		"a file": {"help: x", mpit.ClassLevel, mpit.BindFile,
			[]string{`mpit_v_level{jobid="…",world="…",user="…",rank="0",file="output.dat"}`}},
		"a window": {"help: x", mpit.ClassLevel, mpit.BindWin,
			[]string{`mpit_v_level{jobid="…",world="…",user="…",rank="0",win="unnamed"}`}},
		"no object": {"object: false", mpit.ClassLevel, mpit.BindComm,
			[]string{`mpit_v_level{jobid="…",world="…",user="…",rank="0"}`}},
		"peers": {"elements: peer", mpit.ClassCounter, mpit.BindComm,
			[]string{`mpit_v_total{jobid="…",world="…",user="…",rank="0",comm="MPI_COMM_WORLD",peer="0"}`}},
		"each": {"merge: each", mpit.ClassCounter, mpit.BindComm,
			[]string{`mpit_v_total{jobid="…",world="…",user="…",rank="0",comm="MPI_COMM_WORLD",object="1"}`}},
		"node": {"rank: node", mpit.ClassLevel, mpit.BindNone,
			[]string{`mpit_v_level{jobid="…",world="…",user="…"}`}},
		"both": {"rank: both", mpit.ClassLevel, mpit.BindNone,
			[]string{`mpit_v_level{jobid="…",world="…",user="…",rank="0"}`,
				`mpit_node_v_level{jobid="…",world="…",user="…"}`}},
		"watermark": {"rank: node", mpit.ClassHighWatermark, mpit.BindComm,
			[]string{`mpit_v_highwatermark{jobid="…",world="…",user="…",comm="MPI_COMM_WORLD"}`,
				`mpit_node_extreme_rank{jobid="…",world="…",user="…",metric="mpit_v_highwatermark",comm="MPI_COMM_WORLD"}`}},
		"state": {"rank: node", mpit.ClassState, mpit.BindNone,
			[]string{`mpit_v_state{jobid="…",world="…",user="…",rank="0",state="idle"}`,
				`mpit_v_state{jobid="…",world="…",user="…",rank="0",state="\"busy\""}`}},
		"a timer": {"buckets: [0.5, 1]", mpit.ClassTimer, mpit.BindNone,
			[]string{`mpit_v_time_seconds_bucket{jobid="…",world="…",user="…",rank="0",le="0.5"}`,
				`mpit_v_time_seconds_bucket{jobid="…",world="…",user="…",rank="0",le="+Inf"}`,
				`mpit_v_time_seconds_sum{jobid="…",world="…",user="…",rank="0"}`,
				`mpit_v_time_seconds_count{jobid="…",world="…",user="…",rank="0"}`}},
		"a name": {"name: other", mpit.ClassSize, mpit.BindNone,
			[]string{`mpit_other{jobid="…",world="…",user="…",rank="0"}`}},
		"percentage": {"help: x", mpit.ClassPercentage, mpit.BindNone,
			[]string{`mpit_v_ratio{jobid="…",world="…",user="…",rank="0"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			e := explained(t, "rules: [{"+c.sets+"}]", mapping.Library{},
				mpit.Variable{Name: "v", Class: c.class, Bind: c.bind, Datatype: tDouble, Enum: enum})
			assert.Equal(t, c.want, e.Series)
		})
	}
	e := explained(t, "rank: node\nrules: [{help: x}]", mapping.Library{},
		mpit.Variable{Name: "v", Class: mpit.ClassLevel, Datatype: tInt})
	assert.Equal(t, []string{`mpit_v_level{jobid="…",world="…",user="…"}`}, e.Series, "by the file's own word")
}

func TestExplainWhatIsLeftOut(t *testing.T) {
	e := explained(t, "rules: [{match: {name: v}, drop: true}]", mapping.Library{},
		mpit.Variable{Name: "v", Datatype: tInt})
	assert.Equal(t, mapping.ReasonRule, e.Drop)
	assert.Nil(t, e.Metric)
	assert.Empty(t, e.Series)
	assert.Equal(t, rules.Source{File: "f.yaml", Line: 1}, e.Decisions[0].Rule.Source)
	e = explained(t, "rules: [{help: x}]", mapping.Library{},
		mpit.Variable{Name: "v", Class: mpit.ClassGeneric, Datatype: mpit.DatatypeChar})
	assert.Equal(t, mapping.ReasonGenericString, e.Drop)
}

// What is not known may let other rules match; they are named if that would change something.
func TestExplainWhatIsNotKnown(t *testing.T) {
	const text = `rules:
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
`
	all := mpit.Variable{Name: "v", Class: mpit.ClassLevel, Verbosity: mpit.VerbosityUserAll, Datatype: tInt}
	lines := func(e rules.Explanation) (lines []int) {
		for _, s := range e.Unsure {
			if s.File == "f.yaml" {
				lines = append(lines, s.Line)
			}
		}
		return lines
	}
	assert.Empty(t, lines(explained(t, text, mapping.Library{Name: mapping.OpenMPI, Version: "4.1"}, all)))
	assert.Equal(t, []int{2}, lines(explained(t, text, mapping.Library{Name: mapping.OpenMPI, Version: ""}, all)))
	assert.Equal(t, []int{2, 8}, lines(explained(t, text, mapping.Library{}, all)))
	noClass, noVerbosity := all, all
	noClass.Class, noVerbosity.Verbosity = mpit.ClassUnknown, mpit.VerbosityUnknown
	assert.Equal(t, []int{4}, lines(explained(t, text, mapping.Library{Name: mapping.OpenMPI, Version: "4.1"},
		noClass)))
	assert.Equal(t, []int{6}, lines(explained(t, text, mapping.Library{Name: mapping.OpenMPI, Version: "4.1"},
		noVerbosity)))
	// A rule behind the one that has decided changes nothing.
	m := newMapper(t, rules.Rule{Unit: "s"}, rules.Rule{Source: rules.Source{File: "f.yaml", Line: 2},
		Match: rules.Match{Version: ">4"}, Unit: "By"})
	assert.Empty(t, m.Explain(mapping.Library{Name: mapping.OpenMPI, Version: ""}, all).Unsure)
}

// A companion that a rule names is believed.
func TestExplainCompanion(t *testing.T) {
	e := explained(t, "rules: [{match: {name: '*_time'}, companion: $1_calls}]", mapping.Library{},
		mpit.Variable{Name: "x_time", Class: mpit.ClassTimer, Datatype: tDouble})
	assert.Contains(t, e.Metric.Help, "COUNTER x_calls")
	i := slices.IndexFunc(e.Decisions, func(d rules.Decision) bool { return d.Property == "companion" })
	assert.Equal(t, rules.Decision{Property: "companion", Value: "x_calls", Rule: e.Decisions[i].Rule, Agent: false},
		e.Decisions[i])
}
