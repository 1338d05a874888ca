package mapping

import (
	"bytes"
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// fuzzRules are ways to show the same variables.
var fuzzRules = [][]Rule{
	nil,
	{{Merge: MergeEach, Elements: ElementsPeer, Nonzero: &yes}},
	{{Object: &no, Elements: ElementsMean, Merge: MergeMean, Buckets: []float64{1, 2}}},
	{{Drop: &yes}},
	{{Match: Match{Class: List{"counter", "timer", "size"}}, Class: "level"}},
	{{Match: Match{Regexp: "(?P<letter>.).*"}, Name: "x"}},
}

func FuzzCleanName(f *testing.F) {
	f.Add("é\x00\xff")
	f.Fuzz(func(t *testing.T, s string) {
		n := CleanName(s)
		if n == "" || len(n) > maxObjectName || !utf8.ValidString(n) || bytes.IndexByte([]byte(n), 0) >= 0 {
			t.Errorf("%q becomes %q", s, n)
		}
		if CleanName(n) != n {
			t.Errorf("%q isn't clean", n)
		}
	})
}

func FuzzRuleGlob(f *testing.F) {
	f.Add("a*b?", "axxby")
	f.Fuzz(func(t *testing.T, glob, name string) {
		m, err := New(Config{Rules: []Rule{{Match: Match{Name: glob}, Name: "x"}}})
		if err == nil {
			if got, _, ok := m.Metric(Library{}, mpit.Variable{Name: name, Datatype: tInt}); ok {
				checkMetric(t, got)
			}
		}
	})
}

// FuzzParse gives Parse files that are none. What it refuses has a place; what it takes can be used.
func FuzzParse(f *testing.F) {
	f.Add("rank: node\nlimits: {series: 5}\nidentity: [{source_labels: [env_X], regex: (.*), target_label: jobid, replacement: $1}]\n")
	f.Add("rules:\n- match: {library: [mpich], version: '>=4 <5', name: a*?, class: timer, bind: none, verbosity: <=user_all, category: c*}\n  name: x_$1\n  unit: '{x}'\n")
	f.Add("rules:\n- match: {regexp: '(?P<a>x)(.*)'}\n  name: ${a}\n  companion: $2\n  buckets: [1, 2]\n  drop: false\n  scale: 1e3\n")
	f.Add("rules: [{name: a}, {name: a}]\n---\n")
	f.Add("a: &a [x]\nb: *a\n<<: *b\n? [c]\n: !!binary d\n")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := Parse("f.yaml", []byte(text))
		if err != nil {
			var problems Problems
			if !errors.As(err, &problems) || len(problems) == 0 || parsed != nil {
				t.Fatalf("%v, %v", parsed, err)
			}
			lines := 1 + strings.Count(text, "\n") + strings.Count(text, "\r") + strings.Count(text, "\u0085") + strings.Count(text, "\u2028") + strings.Count(text, "\u2029")
			for _, p := range problems {
				if p.Line < 1 || p.Line > lines || p.Column < 0 || p.What == "" || p.Remedy == "" {
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
		m, err := New(Config{Rules: append(parsed.Rules, Defaults()...), Rank: parsed.Rank})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"", "a", "xy", "\xff"} {
			e := m.Explain(Library{MPICH, "4.1"}, mpit.Variable{Name: name, Class: mpit.ClassTimer, Datatype: tDouble, Bind: mpit.BindComm}, nil)
			if e.Metric != nil {
				checkMetric(t, e.Metric)
			}
			for _, d := range e.Decisions {
				if d.Property == "labels" && !utf8.ValidString(d.Value) {
					t.Fatalf("labels %q", d.Value)
				}
			}
		}
	})
}

// FuzzPatterns holds what is quick against what is plain.
func FuzzPatterns(f *testing.F) {
	f.Add("a*b?", "axxby")
	f.Add("a(?P<x>.*)|b", "ab")
	f.Add("(?i)a.c", "ABC")
	f.Add("\xff*", "\xfe")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > maxGlob || len(name) > 1024 {
			return
		}
		v := mpit.Variable{Name: name}
		if pattern != "" {
			c, found := compileRule(Rule{Match: Match{Name: pattern}, Help: "x"})
			if found != nil {
				t.Fatal(joined(found))
			}
			want := globExpression(pattern).MatchString(name)
			if _, ok := c.matches(&v); ok != want || GlobMatches(pattern, name) != want {
				t.Fatalf("glob %q, %q: %v, %v, by the plain way %v", pattern, name, ok, GlobMatches(pattern, name), want)
			}
			c, found = compileRule(Rule{Match: Match{Regexp: pattern}, Help: "x"})
			if found != nil {
				return
			}
			whole := regexp.MustCompile(`(?s)\A(?:` + pattern + `)\z`)
			groups, ok := c.matches(&v)
			if ok != whole.MatchString(name) {
				t.Fatalf("regexp %q, %q: %v", pattern, name, ok)
			}
			if !ok {
				return
			}
			for _, l := range c.labelsOf(groups) {
				if l.Value == "" || len(l.Value) > maxLabelText || !utf8.ValidString(l.Value) {
					t.Fatalf("label %q", l)
				}
			}
		}
	})
}

// FuzzUpdate gives a rank catalogues, layouts and values that no agent would send.
func FuzzUpdate(f *testing.F) {
	f.Add([]byte("\x01\x02\x03\x04\x05\x06\x07\x08 some bytes to make a catalogue of, and then some more values"))
	// Compiling rules takes longer than all that is done by them.
	mapper, mappers := newMapper(f, Defaults()...), make([]*Mapper, len(fuzzRules))
	for i, rules := range fuzzRules {
		mappers[i] = newMapper(f, rules...)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := mapper.NewRank(Process{Library: Library{OpenMPI, "5.0"}})
		others := make([]*Rank, len(fuzzRules))
		for i, m := range mappers {
			others[i] = m.NewRank(Process{})
		}
		defer func() {
			for _, o := range append(others, r) {
				o.Close()
			}
		}()
		next := func() int {
			if len(b) == 0 {
				return 0
			}
			x := b[0]
			b = b[1:]
			return int(x)
		}
		var clock time.Duration
		for range 4 {
			vars := &mpit.Variables{}
			for i := range next() % 8 {
				v := mpit.Variable{ID: uint32(i), Name: string(rune('a' + next()%4)), Class: mpit.Class(next() % 12), Datatype: mpit.Datatype(next() % 17),
					DatatypeBytes: next() % 20, Bind: mpit.Bind(next() % 14), State: mpit.VariableState(next() % 8)}
				if next()%4 == 0 {
					v.Class, v.Datatype, v.Distribution = mpit.ClassTimer, mpit.DatatypeUint64, true
				}
				if next()%2 == 0 {
					v.Enum = &mpit.Enum{Items: []mpit.EnumItem{{Value: int64(next()), Name: "x"}, {Value: 1, Name: "x"}}}
				}
				vars.ByID = append(vars.ByID, v)
			}
			layout := &mpit.Layout{}
			for range next() % 4 {
				layout.Objects = append(layout.Objects, mpit.Object{ID: uint32(next() % 4), Kind: mpit.BindComm, Name: string([]byte{byte(next())})})
			}
			for range next() % 10 {
				h := mpit.Handle{ID: uint32(next() % 8), Variable: uint32(next() % 9), Object: uint32(next() % 4), Count: next()%6 - 1, Offset: next()%12 - 1}
				h.Earlier = &mpit.Earlier{}
				if next()%2 == 0 {
					h.Earlier.First = make([]uint64, next()%6)
				}
				if next()%2 == 0 {
					h.Earlier.Origin = make([]uint64, next()%6)
				}
				if next()%2 == 0 {
					h.Earlier.Excluded = make([]uint64, next()%6)
					for i := range h.Earlier.Excluded {
						h.Earlier.Excluded[i] = uint64(int64(int8(next()))) << (next() % 64)
					}
				}
				layout.Handles = append(layout.Handles, h)
			}
			remains := &mpit.Remains{}
			for range next() % 4 {
				words := func() []uint64 {
					w := make([]uint64, next()%5)
					for i := range w {
						w[i] = uint64(next()) << (next() % 64)
					}
					return w
				}
				remains.List = append(remains.List, mpit.Remain{Variable: uint32(next() % 9), Name: string([]byte{byte(next())}), Gained: words(), First: words(), Max: words(), Min: words()})
			}
			for range 3 {
				clock += time.Duration(next()) * time.Second / 8
				s := &mpit.Sample{Variables: vars, Layout: layout, Remains: remains, Monotonic: clock, Time: time.Unix(int64(next()), 0)}
				s.Status = []mpit.SampleStatus{mpit.SampleFresh, mpit.SamplePaused}[next()%2]
				s.Stats.PcontrolCalls = uint64(next() % 3)
				for range next() % 24 {
					s.Values = append(s.Values, uint64(next())<<(next()%64))
				}
				s.Failed = []mpit.FailedHandle{{Handle: uint32(next() % 8)}}
				r.Update(s)
				for i, o := range others {
					o.Update(s)
					o.Reload(mappers[(next()+i)%len(mappers)], s.Time)
					o.Update(s)
					show(others[i]) // panics where two series are the same
				}
				for _, series := range r.Series() {
					if series.Valid && (series.Metric.Monotonic && series.Value < 0 || math.IsNaN(series.Value)) {
						t.Fatalf("%s is %v", series.Metric.Name, series.Value)
					}
					for _, l := range series.Labels {
						if !utf8.ValidString(l.Value) {
							t.Fatalf("label %q", l.Value)
						}
					}
				}
			}
			again := mapper.NewRank(Process{Library: Library{OpenMPI, "5.0"}, Older: time.Unix(100, 0)})
			again.Update(&mpit.Sample{Variables: vars, Layout: layout, Remains: remains, Monotonic: clock})
			r.Infos()
			r.Objects()
			r.Select()
			r.Dropped()
		}
	})
}
