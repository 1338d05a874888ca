package rules

import (
	"regexp"
	"testing"
	"unicode/utf8"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

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
				t.Fatal(found.joined())
			}
			want := Glob(pattern).MatchString(name)
			if _, ok := c.matches(&v); ok != want {
				t.Fatalf("glob %q, %q: %v, by the plain way %v", pattern, name, ok, want)
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
