package rules

import (
	"fmt"
	"slices"
	"strings"

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
			return nil, fmt.Errorf("rule %d (name %q): %w", i+1, r.Match.Name, found.joined())
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

func (r *compiledRule) matchesLibrary(lib mapping.Library) bool {
	return (len(r.Match.Library) == 0 || slices.Contains(r.Match.Library, lib.Name)) && r.versions.holds(lib.Version)
}

// matches says whether all holds that a rule asks of the variable itself: all but the library. groups are those of its
// pattern, if it has one.
func (r *compiledRule) matches(v *mpit.Variable) (groups []string, ok bool) {
	switch {
	case r.declared != 0 && r.declared&(1<<v.Class) == 0,
		!strings.HasPrefix(v.Name, r.prefix),
		len(r.binds) > 0 && !slices.Contains(r.binds, v.Bind),
		r.levels != 0 && r.levels&(1<<v.Verbosity) == 0:
		return nil, false
	case r.name == nil:
		return nil, true
	case r.whole:
		return nil, len(r.prefix) == len(v.Name)
	}
	groups = r.name.FindStringSubmatch(v.Name)
	return groups, groups != nil
}

// decided is what all matching rules together say of one variable, and which rule says it.
type decided struct {
	mapping.Properties
	by       [propertyCount]*compiledRule // nil: the default
	measured bool                         // it is a distribution: the agent decides some properties
}

// decide applies rules of a Set for one library.
func decide(rules []*compiledRule, v *mpit.Variable) (s decided) {
	s.Properties = mapping.Properties{Class: v.Class, Unit: mapping.Unit{Scale: 1}, Scale: 1, Object: true}
	switch s.measured = v.Distribution; {
	case s.measured && v.Class == mpit.ClassAggregate:
		s.Unit.Base = "By"
	case s.measured:
		s.Class, s.Unit.Base, s.Scale, s.Companion = mpit.ClassTimer, "s", mpit.DistributionUnit, mapping.NoCompanion
	}
	for _, r := range rules {
		if groups, ok := r.matches(v); ok {
			s.apply(r, groups)
		}
	}
	return s
}

// apply takes over what a rule sets, none has set yet, and rules may set.
func (s *decided) apply(r *compiledRule, groups []string) {
	for p := range properties {
		if r.sets[p] && s.by[p] == nil && (!s.measured || !properties[p].agent) {
			s.by[p] = r
			properties[p].take(&s.Properties, r, groups)
		}
	}
}
