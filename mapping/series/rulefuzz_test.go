package series

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// FuzzParse gives Parse files that are none. What it refuses has a place; what it takes can be used.
func FuzzParse(f *testing.F) {
	f.Add("limits: {series: 5}\nidentity: [{source_labels: [env_X], regex: (.*), target_label: jobid, " +
		"replacement: $1}]\n")
	f.Add("rules:\n- match: {library: [mpich], version: '>=4 <5', name: a*?, class: timer, bind: none, verbosity: " +
		"user_all}\n  name: x_$1\n  unit: '{x}'\n")
	f.Add("rules:\n- match: {regexp: '(?P<a>x)(.*)'}\n  name: ${a}\n  companion: $2\n  buckets: [1, 2]\n  drop: " +
		"false\n  scale: 1e3\n")
	f.Add("rules: [{match: {name: !!binary /w==}, help: !!binary /w==, name: x_$1, class: &a level, unit: *a}]\n")
	f.Add("rules: [{name: a}, {name: a}]\n---\n")
	f.Add("a: &a [x]\nb: *a\n<<: *b\n? [c]\n: !!binary d\n")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := rules.Parse("f.yaml", []byte(text))
		if err != nil {
			var problems rules.Problems
			if !errors.As(err, &problems) || len(problems) == 0 || parsed != nil {
				t.Fatalf("%v, %v", parsed, err)
			}
			lines := 1 + strings.Count(text, "\n") + strings.Count(text, "\r") + strings.Count(text,
				"\u0085") + strings.Count(text, "\u2028") + strings.Count(text, "\u2029")
			for _, p := range problems { // what is missing at the end stands in the line behind it
				if p.Line < 0 || p.Line > lines+1 || p.Column < 0 || p.What == "" {
					t.Fatalf("%#v of %d lines", p, lines)
				}
			}
			return
		}
		for _, r := range parsed.Rules {
			if r.Source.File != "f.yaml" || r.Source.Line < 1 {
				t.Fatalf("a rule at %v", r.Source)
			}
		}
		m, err := variables.New(variables.Config{Rules: append(parsed.Rules, rules.Defaults()...)})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"", "a", "xy", "\xff"} {
			lib := mapping.Library{Name: mapping.MPICH, Version: "4.1"}
			v := mpit.Variable{Name: name, Class: mpit.ClassTimer, Datatype: tDouble, Bind: mpit.BindComm}
			if metric, _, ok := m.Metric(lib, v); ok {
				checkMetric(t, metric)
			}
			decisions, _ := m.Explain(lib, v)
			for _, d := range decisions {
				if d.Property == "labels" && !utf8.ValidString(d.Value) {
					t.Fatalf("labels %q", d.Value)
				}
			}
		}
	})
}
