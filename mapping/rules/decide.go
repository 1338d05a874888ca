package rules

import (
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// forLibrary is the rules that can match variables of lib, in order.
func forLibrary(rules []*compiledRule, lib mapping.Library) []*compiledRule {
	var out []*compiledRule
	for _, r := range rules {
		if r.matchesLibrary(lib) {
			out = append(out, r)
		}
	}
	return out
}

func (r *compiledRule) matchesLibrary(lib mapping.Library) bool {
	return (len(r.Match.Library) == 0 || slices.Contains(r.Match.Library, lib.Name)) && r.versions.holds(lib.Version)
}

// matches says whether all holds that a rule asks of the variable itself: all but library and category. groups are
// those of its pattern, if it has one.
func (r *compiledRule) matches(v *mpit.Variable) (groups []string, ok bool) {
	switch {
	case len(r.classes) > 0 && !slices.Contains(r.classes, v.Class),
		len(r.binds) > 0 && !slices.Contains(r.binds, v.Bind),
		!r.verbosity.holds(v.Verbosity),
		!strings.HasPrefix(v.Name, r.prefix):
		return nil, false
	case r.name == nil:
		return nil, true
	case r.whole:
		return nil, len(r.prefix) == len(v.Name)
	}
	groups = r.name.FindStringSubmatch(v.Name)
	return groups, groups != nil
}

// inCategory says whether one of the categories is one that the rule asks for.
func (r *compiledRule) inCategory(categories []string) bool {
	return r.Match.Category == "" || slices.ContainsFunc(categories,
		func(c string) bool { return GlobMatches(r.Match.Category, c) })
}

// decided is what all matching rules together say of one variable, and which rule says it.
type decided struct {
	mapping.Properties
	by       [propertyCount]*compiledRule // nil: the default
	measured bool                         // it is a distribution: the agent decides some properties
}

// decide applies rules that forLibrary has chosen. categories are those that v stands in; where they are not
// known yet, a rule that asks for one does not match, and undecided says whether it would have set something if it
// did.
func decide(rules []*compiledRule, v *mpit.Variable, categories []string, known bool) (s decided,
	undecided bool) {
	s.Properties = mapping.Properties{Class: v.Class, Unit: mapping.Unit{Scale: 1}, Scale: 1, Object: true}
	switch s.measured = v.Distribution; {
	case s.measured && v.Class == mpit.ClassAggregate:
		s.Unit.Base = "By"
	case s.measured:
		s.Class, s.Unit.Base, s.Scale, s.Companion = mpit.ClassTimer, "s", mpit.DistributionUnit, mapping.NoCompanion
	}
	for _, r := range rules {
		groups, ok := r.matches(v)
		switch {
		case !ok:
		case !known && r.Match.Category != "":
			undecided = undecided || s.lacks(r)
		case r.inCategory(categories):
			s.apply(r, groups)
		}
	}
	return s, undecided
}

// open says whether a rule sets a property that none has set yet, and that rules may set.
func (s *decided) open(r *compiledRule, p int) bool {
	return r.sets[p] && s.by[p] == nil && (!s.measured || !properties[p].agent)
}

// lacks says whether a rule sets a property that none has set yet.
func (s *decided) lacks(r *compiledRule) bool {
	for p := range properties {
		if s.open(r, p) {
			return true
		}
	}
	return false
}

// apply takes over what a rule sets and none has set yet.
func (s *decided) apply(r *compiledRule, groups []string) {
	for p := range properties {
		if s.open(r, p) {
			s.by[p] = r
			properties[p].take(&s.Properties, r, groups)
		}
	}
}
