package rules

import (
	"fmt"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Set is rules that have been checked, in their order. It is immutable, and safe for concurrent use.
type Set struct{ rules []*compiledRule }

// Compile checks rules. An error names the rule, counted from 1.
func Compile(rules []Rule) (*Set, error) {
	s := &Set{}
	for i, r := range rules {
		rule, found := compileRule(r)
		if found != nil {
			return nil, fmt.Errorf("rule %d (name %q): %w", i+1, r.Match.Name, joined(found))
		}
		s.rules = append(s.rules, rule)
	}
	return s, nil
}

// ForLibrary is the rules that can match variables of lib.
func (s *Set) ForLibrary(lib mapping.Library) *Set {
	others := func(r *compiledRule) bool { return !r.matchesLibrary(lib) }
	return &Set{slices.DeleteFunc(slices.Clone(s.rules), others)}
}

// Decide says what the rules make of a variable. They are those for its library.
func (s *Set) Decide(v *mpit.Variable) mapping.Properties { return decide(s.rules, v).Properties }
