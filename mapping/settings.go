package mapping

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// property is one of those that rules set: each has its own first rule.
type property uint8

const (
	propDrop property = iota
	propClass
	propUnit
	propScale
	propName
	propHelp
	propLabels
	propMerge
	propElements
	propNonzero
	propObject
	propCompanion
	propBuckets
	propOffset
	propRank
	propOpen
	properties // how many there are
)

// propertyNames is what rules call them. Labels have no key: they are named groups of match.regexp.
var propertyNames = [properties]string{
	"drop", "class", "unit", "scale", "name", "help", "labels", "merge", "elements", "nonzero", "object", "companion", "buckets", "offset", "rank",
	"open",
}

// settings is what all matching rules together say of one variable.
type settings struct {
	by [properties]*compiledRule // who has set it; nil: the default

	drop      bool
	class     mpit.Class
	unit      unit
	scale     float64
	name      string
	help      string
	labels    []Label // sorted by name, values clean; of the named groups
	merge     Merge
	elements  Elements
	nonzero   bool
	object    bool // false: no label with the object's name
	companion string
	buckets   []float64 // nil: those of Config, or of distributions
	offset    bool
	rank      RankMode // "": that of Config
	open      bool
}

// forLibrary is the rules that can match variables of lib, in order.
func forLibrary(rules []*compiledRule, lib Library) []*compiledRule {
	var out []*compiledRule
	for _, r := range rules {
		if r.matchesLibrary(lib) {
			out = append(out, r)
		}
	}
	return out
}

func (r *compiledRule) matchesLibrary(lib Library) bool {
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
	return r.Match.Category == "" || slices.ContainsFunc(categories, func(c string) bool { return GlobMatches(r.Match.Category, c) })
}

// settingsOf applies rules that forLibrary has chosen. categories are those that v stands in; where they are not
// known yet, a rule that asks for one does not match, and undecided says whether it would have set something if it
// did.
func settingsOf(rules []*compiledRule, v *mpit.Variable, categories []string, known bool) (s settings, undecided bool) {
	s = settings{class: v.Class, unit: unit{scale: 1}, scale: 1, object: true}
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
	if v.Distribution {
		s.fix()
	}
	return s, undecided
}

// lacks says whether a rule sets a property that none has set yet.
func (s *settings) lacks(r *compiledRule) bool {
	for p := range properties {
		if r.sets[p] && s.by[p] == nil {
			return true
		}
	}
	return false
}

// apply takes over what a rule sets and none has set yet.
func (s *settings) apply(r *compiledRule, groups []string) {
	for p := range properties {
		if !r.sets[p] || s.by[p] != nil {
			continue
		}
		s.by[p] = r
		switch p {
		case propDrop:
			s.drop = *r.Drop
		case propClass:
			s.class = r.real
		case propUnit:
			s.unit = r.unit
		case propScale:
			s.scale = *r.Scale
		case propName:
			s.name = r.template.expand(groups)
		case propHelp:
			s.help = r.Help
		case propLabels:
			s.labels = r.labelsOf(groups)
		case propMerge:
			s.merge = r.Merge
		case propElements:
			s.elements = r.Elements
		case propNonzero:
			s.nonzero = *r.Nonzero
		case propObject:
			s.object = *r.Object
		case propCompanion:
			s.companion = r.companion.expand(groups)
		case propBuckets:
			s.buckets = r.Buckets
		case propOffset:
			s.offset = *r.Offset
		case propRank:
			s.rank = r.Rank
		case propOpen:
			s.open = *r.Open
		}
	}
}

// labelsOf is the labels that the named groups give. A group that stood for nothing gives none, as Prometheus has it.
func (r *compiledRule) labelsOf(groups []string) []Label {
	var labels []Label
	for _, g := range r.groups {
		if value := CleanText(groups[g.group], maxLabelText); value != "" {
			labels = append(labels, Label{g.label, value})
		}
	}
	slices.SortFunc(labels, func(a, b Label) int { return cmp.Compare(a.Name, b.Name) })
	return labels
}
