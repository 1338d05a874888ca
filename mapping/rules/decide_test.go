package rules

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// decidedBy is who has set each property, by its name.
func decidedBy(rules map[string]*compiledRule) (by [propertyCount]*compiledRule) {
	for i, p := range properties {
		by[i] = rules[p.name]
	}
	return by
}

// compiled reads rules of a file.
func compiled(t *testing.T, text string) []*compiledRule {
	t.Helper()
	p, problems := parseFile("f.yaml", []byte(text))
	if len(problems) > 0 {
		t.Fatalf("%v", problems)
	}
	var rules []*compiledRule
	for _, r := range p.Rules {
		c, _ := compileRule(r)
		rules = append(rules, c)
	}
	return rules
}

func TestWhatARuleMatches(t *testing.T) {
	v := mpit.Variable{Name: "coll_bcast_time", Class: mpit.ClassTimer, Bind: mpit.BindComm,
		Verbosity: mpit.VerbosityTunerBasic}
	lib := mapping.Library{Name: mapping.MPICH, Version: "4.1.2"}
	for match, want := range map[string]bool{
		"{}":                                         true,
		"{library: mpich}":                           true,
		"{library: [openmpi, mpich]}":                true,
		"{library: openmpi}":                         false,
		"{version: '>=4 <4.2'}":                      true,
		"{version: '>=4.2'}":                         false,
		"{name: coll_bcast_time}":                    true,
		"{name: coll_bcast}":                         false,
		"{name: coll_bcast_time2}":                   false,
		"{name: coll_*_time}":                        true,
		"{name: '*bcast*'}":                          true,
		"{name: 'coll_bcast_tim?'}":                  true,
		"{name: 'coll_bcast_time?'}":                 false,
		"{regexp: 'coll_[a-z]+_time'}":               true,
		"{regexp: 'bcast'}":                          false, // the whole name
		"{regexp: 'coll|coll_bcast_time'}":           true,
		"{regexp: '^coll_.*$'}":                      true,
		"{regexp: '(?i)COLL_.*'}":                    true,
		"{class: timer}":                             true,
		"{class: [counter, timer]}":                  true,
		"{class: counter}":                           false,
		"{bind: comm}":                               true,
		"{bind: [none, comm]}":                       true,
		"{bind: none}":                               false,
		"{verbosity: tuner_basic}":                   true,
		"{verbosity: tuner_all}":                     false,
		"{verbosity: [user_all, tuner_basic]}":       true,
		"{library: mpich, class: timer, bind: comm}": true,
		"{library: mpich, class: timer, bind: win}":  false,
	} {
		rules := (&Set{compiled(t, "rules: [{match: "+match+", drop: true}]")}).ForLibrary(lib).rules
		assert.Equal(t, want, decide(rules, &v).Drop, match)
	}
	s := decide((&Set{compiled(t, "rules: [{match: {verbosity: user_basic}, drop: true}]")}).ForLibrary(lib).rules, &mpit.Variable{})
	assert.False(t, s.Drop, "one that isn't known")
}

func TestWhatRulesSet(t *testing.T) {
	rules := compiled(t, `
rules:
  - match: {regexp: 'x_(?P<function>[a-z]*)_(?P<what>time|calls)'}
    name: x_${what}
    companion: x_$1_calls$$
    buckets: [1, 2]
  - match: {name: x_*_time}
    class: timer
    unit: us
    scale: 2
    name: other
    help: From the second rule.
    merge: sum
    elements: peer
    nonzero: true
    object: false
    offset: true
    open: true
`)
	s := decide(rules, &mpit.Variable{Name: "x_bcast_time", Class: mpit.ClassSize})
	first, second := rules[0], rules[1]
	assert.Equal(t, decided{
		by: decidedBy(map[string]*compiledRule{
			"class": second, "unit": second, "scale": second, "name": first, "help": second, "labels": first,
			"merge":    second,
			"elements": second, "nonzero": second, "object": second, "companion": first, "buckets": first,
			"offset": second,
			"open":   second,
		}),
		Properties: mapping.Properties{
			Class: mpit.ClassTimer, Unit: mapping.Unit{Base: "s", Scale: 1e-6}, Scale: 2, Name: "x_time",
			Help:   "From the second rule.",
			Labels: []mapping.Label{{Name: "function", Value: "bcast"}}, Variables: "x_…, one for each function",
			Merge:    mapping.MergeSum,
			Elements: mapping.MergePeer, Nonzero: true, Object: false,
			Companion: "x_bcast_calls$", Buckets: []float64{1, 2}, Offset: true, Open: true,
		},
	}, s)

	s = decide(rules, &mpit.Variable{Name: "x__calls", Class: mpit.ClassSize})
	assert.Equal(t, "x_calls", s.Name)
	assert.Empty(t, s.Labels, "a group that stands for nothing gives no label")
	assert.True(t, s.Object)

	s = decide(nil, &mpit.Variable{Class: mpit.ClassLevel})
	assert.Equal(t, decided{Properties: mapping.Properties{Class: mpit.ClassLevel, Unit: mapping.Unit{Scale: 1},
		Scale: 1, Object: true}}, s, "without rules")
}

func TestLabelsAreCleanAndSorted(t *testing.T) {
	rules := compiled(t, "rules: [{match: {regexp: '(?s)(?P<b>.)(?P<a>.*)'}}, {match: {regexp: '.*(?P<c>.)'}}]")
	s := decide(rules, &mpit.Variable{Name: "\xe9\x1bx" + strings.Repeat("é", 100)})
	assert.Equal(t, []mapping.Label{{Name: "a", Value: "\uFFFDx" + strings.Repeat("é", 62)},
		{Name: "b", Value: "é"}}, s.Labels)
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"*", "", true}, {"*", "anything", true}, {"a*c", "abc", true},
		{"a*c", "abcd", false},
		{"a*b*c", "a_b_bc", true}, {"?", "é", true}, {"?", "", false}, {"**a**", "bab", true}, {"", "", true},
		{"", "a", false}, {"a?", "a", false},
		{"[a]", "a", false},
	} {
		assert.Equal(t, c.want, Glob(c.pattern).MatchString(c.name), "%q %q", c.pattern, c.name)
	}
}
