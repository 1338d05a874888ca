package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

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

// fataler is *testing.T and *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// compiled reads rules of a file.
func compiled(t fataler, text string) []*compiledRule {
	t.Helper()
	p, problems := parseFile("f.yaml", []byte(text))
	if len(problems) > 0 {
		t.Fatalf("%v", problems)
	}
	return p.compiled
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
		"{verbosity: <=tuner_all}":                   true,
		"{verbosity: <tuner_basic}":                  false,
		"{verbosity: '>user_all <mpidev_basic'}":     true,
		"{library: mpich, class: timer, bind: comm}": true,
		"{library: mpich, class: timer, bind: win}":  false,
	} {
		rules := forLibrary(compiled(t, "rules: [{match: "+match+", drop: true}]"), lib)
		assert.Equal(t, want, decide(rules, &v).Drop, match)
	}
	s := decide(forLibrary(compiled(t, "rules: [{match: {verbosity: '<=mpidev_all'}, drop: true}]"), lib),
		&mpit.Variable{})
	assert.False(t, s.Drop, "a verbosity that isn't known lies in no range")
}

func TestWhatRulesSet(t *testing.T) {
	rules := compiled(t, `
rules:
  - match: {regexp: 'x_(?P<function>[a-z]*)_(?P<what>time|calls)'}
    name: x_${what}
    companion: x_$1_calls$$
    buckets: [1, 2]
    rank: both
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
    rank: node
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
			"rank":   first, "open": second,
		}),
		Properties: mapping.Properties{
			Class: mpit.ClassTimer, Unit: mapping.Unit{Base: "s", Scale: 1e-6}, Scale: 2, Name: "x_time",
			Help:   "From the second rule.",
			Labels: []mapping.Label{{Name: "function", Value: "bcast"}}, Variables: "x_…, one for each function",
			Merge:    mapping.MergeSum,
			Elements: mapping.ElementsPeer, Nonzero: true, Object: false,
			Companion: "x_bcast_calls$", Buckets: []float64{1, 2}, Offset: true, Rank: mapping.RankBoth, Open: true,
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

// Drawn from few words, so that rules have to do with one another.
var (
	drawnGlobs = []string{"", "*", "a", "b", "ab", "a*", "*b", "?", "a?", "??", "a*b", "*a*", "**", "*?"}
	drawnNames = []string{"", "a", "b", "ab", "ba", "aa", "bb", "aab", "abb", "é", "aéb", "a*", "?", "*"}
)

func drawRule(t *rapid.T, i int) string {
	var match, sets []string
	draw := func(key string, words ...string) string {
		if w := rapid.SampledFrom(words).Draw(t, key); w != "" {
			return key + ": " + w
		}
		return ""
	}
	quoted := func(words []string) []string {
		var q []string
		for _, w := range words {
			if w != "" {
				w = "'" + w + "'"
			}
			q = append(q, w)
		}
		return q
	}
	seldom := func(key string, words ...string) string {
		if rapid.IntRange(0, 4).Draw(t, "asks for "+key) > 0 {
			return ""
		}
		return draw(key, words...)
	}
	match = append(match,
		seldom("library", "mpich", "[mpich, openmpi]"),
		seldom("version", "'>=4'", "'>=4 <5'", "'>4 <=5'", "'=4.1'", "'<5'"),
		seldom("class", "counter", "[counter, level]"),
		seldom("bind", "comm", "[comm, none]"),
		seldom("verbosity", "user_basic", "<=user_all", "'>user_basic'"),
	)
	if rapid.Bool().Draw(t, "by regexp") {
		match = append(match, draw("regexp", "a", "a.*", "'(?P<x>.*)'", "'a|b'"))
	} else {
		match = append(match, draw("name", quoted(drawnGlobs)...))
	}
	sets = append(sets, draw("unit", "", "s"), draw("help", "", "x"), draw("drop", "", "", "true", "false"),
		draw("name", "", "", "y"))
	full := slices.DeleteFunc(append([]string{"match: {" + strings.Join(slices.DeleteFunc(match,
		func(s string) bool { return s == "" }), ", ") + "}"}, sets...),
		func(s string) bool { return s == "" })
	if len(full) == 1 {
		full = append(full, fmt.Sprintf("scale: %d", i+1))
	}
	return "- {" + strings.Join(full, ", ") + "}\n"
}

// What is called a rule without effect never decides anything, whatever the variable.
func TestShadowedRulesHaveNoEffect(t *testing.T) {
	shadowed := 0
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		text.WriteString("rules:\n")
		for i := range rapid.IntRange(2, 6).Draw(t, "rules") {
			text.WriteString(drawRule(t, i))
		}
		all := together{rules: compiled(t, text.String())}
		problems := all.checkShadowed()
		shadowed += len(problems)
		for range 100 {
			lib := mapping.Library{Name: rapid.SampledFrom([]string{mapping.MPICH, mapping.OpenMPI, mapping.MVAPICH,
				""}).Draw(t, "library"), Version: rapid.SampledFrom([]string{"", "3.9", "4", "4.1", "5", "5.1"}).
				Draw(t, "version")}
			v := mpit.Variable{
				Name: rapid.SampledFrom(drawnNames).Draw(t, "name"),
				Class: rapid.SampledFrom([]mpit.Class{mpit.ClassCounter, mpit.ClassLevel,
					mpit.ClassTimer}).Draw(t, "class"),
				Bind:      rapid.SampledFrom([]mpit.Bind{mpit.BindNone, mpit.BindComm, mpit.BindWin}).Draw(t, "bind"),
				Verbosity: mpit.Verbosity(rapid.IntRange(0, 9).Draw(t, "verbosity")),
			}
			s := decide(forLibrary(all.rules, lib), &v)
			for _, p := range problems {
				for property, by := range s.by {
					if by == nil || by.Source.Line != p.Line || s.Drop && !properties[property].kept {
						continue
					}
					t.Fatalf("%s\n%v: it sets %s of %+v", text.String(), p, properties[property].name, v)
				}
			}
		}
	})
	if !testing.Short() { // which draws too few
		assert.Positive(t, shadowed, "some rules have to be found")
	}
}

func TestShadowedRules(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"the same": {"rules:\n- {match: {name: a}, unit: s}\n- {match: {name: a}, unit: By}\n",
			"3: unit by f.yaml:2"},
		"by a glob": {"rules:\n- {match: {name: a*}, unit: s}\n" +
			"- {match: {name: a_*_b, class: level}, unit: By}\n", "3: unit by f.yaml:2"},
		"by several": {"rules:\n- {match: {name: a*}, unit: s}\n- {help: x}\n- {match: {name: ab}, unit: By, help: " +
			"y}\n", "4: unit by f.yaml:2; help by f.yaml:3"},
		"by a dropped one": {"rules:\n- {match: {name: a*}, drop: true}\n- {match: {name: ab}, name: y}\n",
			"3: drop by f.yaml:2"},
		"labels": {"rules:\n- {match: {regexp: '(?P<a>.*)'}}\n- {match: {regexp: '(?P<a>.*)'}}\n",
			"3: labels by f.yaml:2"},
		"versions": {"rules:\n- {match: {version: '>=4'}, unit: s}\n" +
			"- {match: {version: '>4.1 <5'}, unit: By}\n", "3: unit by f.yaml:2"},
		"regexp of one name": {"rules:\n- {match: {regexp: 'a.'}, unit: s}\n- {match: {name: ab}, unit: By}\n",
			"3: unit by f.yaml:2"},
		"narrower":         {"rules:\n- {match: {name: ab*}, unit: s}\n- {match: {name: a*}, unit: By}\n", ""},
		"another property": {"rules:\n- {match: {name: a*}, unit: s}\n- {match: {name: a*}, help: x}\n", ""},
		"another library":  {"rules:\n- {match: {library: mpich}, unit: s}\n- {unit: By}\n", ""},
		"another version": {"rules:\n- {match: {version: '>=4'}, unit: s}\n" +
			"- {match: {version: '>=3'}, unit: By}\n", ""},
		"another class": {"rules:\n- {match: {class: level}, unit: s}\n" +
			"- {match: {class: [level, size]}, unit: By}\n", ""},
		"a name and without":  {"rules:\n- {match: {name: a*}, unit: s}\n- {unit: By}\n", ""},
		"a name and a regexp": {"rules:\n- {match: {name: a*}, unit: s}\n- {match: {regexp: a.*}, unit: By}\n", ""},
		"a star is no ?":      {"rules:\n- {match: {name: 'a?'}, unit: s}\n- {match: {name: a*}, unit: By}\n", ""},
		"kept before": {"rules:\n- {match: {name: abc}, drop: false}\n- {match: {name: a*}, drop: true}\n- {match: " +
			"{name: ab*}, name: y}\n", ""},
		// it may be a companion
		"the dropped one's": {"rules:\n- {match: {name: a*}, drop: true}\n- {match: {name: ab}, class: counter}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			all := together{rules: compiled(t, c.text)}
			problems := all.checkShadowed()
			if c.want == "" {
				assert.Empty(t, problems)
				return
			}
			require.Len(t, problems, 1)
			line, by, _ := strings.Cut(c.want, ": ")
			assert.Equal(t, line, fmt.Sprint(problems[0].Line))
			assert.Contains(t, problems[0].What, "("+by+")")
		})
	}
	// Another file may keep what this one drops: then it is not sure.
	_, err := Parse("f.yaml", []byte("rules:\n- {match: {name: a*}, drop: true}\n- {match: {name: ab}, name: y}\n"))
	assert.NoError(t, err)
}

func TestGlobContainment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		globs := rapid.StringOfN(rapid.SampledFrom([]rune("ab*?é")), 0, 6, -1)
		a, b, name := globs.Draw(t, "a"), globs.Draw(t, "b"),
			rapid.StringOfN(rapid.SampledFrom([]rune("ab*?é")), 0, 6, -1).Draw(t, "name")
		if globContains(a, b) && GlobMatches(b, name) && !GlobMatches(a, name) {
			t.Fatalf("%q isn't matched by %q, which contains %q", name, a, b)
		}
		if !globContains(a, a) {
			t.Fatalf("%q contains itself", a)
		}
	})
	assert.True(t, globContains("a*", "a*b"))
	assert.True(t, globContains("*_time", "*_*_time"))
	assert.False(t, globContains("a*b", "a*"))
	assert.False(t, globContains("?", "*"))
}

func TestVersionContainment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranges := rapid.Custom(func(t *rapid.T) string {
			var bounds []string
			for range rapid.IntRange(0, 2).Draw(t, "bounds") {
				bounds = append(bounds, rapid.SampledFrom([]string{"<", "<=", ">", ">=", "="}).Draw(t,
					"op")+rapid.SampledFrom([]string{"0", "4", "4.0", "4.1", "5"}).Draw(t, "bound"))
			}
			return strings.Join(bounds, " ")
		})
		versions := rapid.SampledFrom([]string{"", "0", "3.9", "4", "4.0.0.1", "4.1", "4.1.1", "5", "5.0.1"})
		a, errA := parseRange(ranges.Draw(t, "a"))
		b, errB := parseRange(ranges.Draw(t, "b"))
		if errA != nil || errB != nil {
			return
		}
		v := versions.Draw(t, "version")
		if a.contains(b) && b.holds(v) && !a.holds(v) {
			t.Fatalf("%v contains %v, but not %s", a, b, v)
		}
	})
	for _, c := range []struct {
		a, b string
		want bool
	}{{"", ">4", true}, {">4", "", false}, {">=4", ">4", true}, {">4", ">=4", false}, {"<=5", "<5", true},
		{"<5", "<=5", false}, {">4", ">4.0", true}, {">=4 <5", "=4.1", true}} {
		a, err := parseRange(c.a)
		require.NoError(t, err)
		b, err := parseRange(c.b)
		require.NoError(t, err)
		assert.Equal(t, c.want, a.contains(b), c)
	}
	for s, empty := range map[string]bool{
		">=5 <4": true, ">4 <4": true, ">=4 <4": true, ">=4 <=4.0": false, ">4 <4.0.1": false, "=4 =4.0": false,
		"=4 =5": true, "<0": true, "<=0": false, ">5": false,
	} {
		_, err := parseRange(s)
		assert.Equal(t, empty, err != nil, s)
	}
}

func TestNearestWords(t *testing.T) {
	keys := []string{"series", "series_per_job", "series_per_rank", "highwatermark", "lowwatermark", "counter",
		"comm", "errhandler"}
	for word, want := range map[string]string{
		"series_per_jobs": "series_per_job", "COUNTER": "counter", "conuter": "counter", "high": "highwatermark",
		"Low-Watermark": "lowwatermark",
		"communicator":  "comm", "xyzzy": "", "": "", "zz": "",
	} {
		assert.Equal(t, want, nearest(word, keys), word)
	}
}

func TestGlobMatches(t *testing.T) {
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
		assert.Equal(t, c.want, GlobMatches(c.pattern, c.name), "%q %q", c.pattern, c.name)
	}
}
