package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// property is one of those that rules set: each has its own first rule. A new one is a key of Rule, a field of
// mapping.Properties, an entry here, and whatever uses the field: mapping.Basis.Become, mostly. Its default is in
// decide (decide.go), where it isn't the field's zero; what makes no sense together with it is in checkRule (check.go).
type property struct {
	name  string                      // what rules call it
	isSet func(r *compiledRule) bool  // whether a rule says it
	check func(r *compiledRule) error // what is wrong with it, where it is set; nil: nothing can be

	// take takes over what a rule says; groups are those of its pattern.
	take func(p *mapping.Properties, r *compiledRule, groups []string)

	// show is its value in a rule's words.
	show func(s *mapping.Spec, set *decided, x *explaining) string

	agent bool // no rule can set it of a distribution, whose agent says what it is
}

// explaining is what a property's value may depend on besides the rules.
type explaining struct {
	basis *mapping.Basis
	v     *mpit.Variable
	rule  *compiledRule // that has set it; nil: the default
}

// propertyCount is the number of entries in properties.
const propertyCount = 16

// properties is all of them, in the order in which they are explained.
var properties = [propertyCount]property{
	{
		name:  "drop",
		isSet: func(r *compiledRule) bool { return r.Drop != nil },
		take:  func(p *mapping.Properties, r *compiledRule, _ []string) { p.Drop = *r.Drop },
		show:  func(_ *mapping.Spec, set *decided, _ *explaining) string { return strconv.FormatBool(set.Drop) },
	},
	{
		name: "class", agent: true,
		isSet: func(r *compiledRule) bool { return r.Class != "" },
		check: func(r *compiledRule) (err error) { r.real, err = parseClass(r.Class); return err },
		take:  func(p *mapping.Properties, r *compiledRule, _ []string) { p.Class = r.real },
		show:  func(_ *mapping.Spec, set *decided, _ *explaining) string { return mapping.NameOf(set.Class) },
	},
	{
		name: "unit", agent: true,
		isSet: func(r *compiledRule) bool { return r.Unit != "" },
		check: func(r *compiledRule) (err error) { r.unit, err = parseUnit(r.Unit); return err },
		take:  func(p *mapping.Properties, r *compiledRule, _ []string) { p.Unit = r.unit },
		show: func(s *mapping.Spec, _ *decided, x *explaining) string {
			if x.rule != nil {
				return x.rule.Unit
			}
			return cmp.Or(s.Unit, mapping.NoUnit)
		},
	},
	{
		name: "scale", agent: true,
		isSet: func(r *compiledRule) bool { return r.Scale != nil },
		check: func(r *compiledRule) error {
			if *r.Scale > 0 && *r.Scale <= 1e30 { // NaN is refused as well
				return nil
			}
			return complain("write a factor above 0, such as 0.001", "scale %v is not above 0 and at most 1e30", *r.Scale)
		},
		take: func(p *mapping.Properties, r *compiledRule, _ []string) { p.Scale = *r.Scale },
		show: func(_ *mapping.Spec, set *decided, _ *explaining) string { return number64(set.Scale) },
	},
	{
		name:  "name",
		isSet: func(r *compiledRule) bool { return r.Name != "" },
		check: (*compiledRule).compileName,
		take:  func(p *mapping.Properties, r *compiledRule, groups []string) { p.Name = r.template.expand(groups) },
		show: func(_ *mapping.Spec, set *decided, x *explaining) string {
			return cmp.Or(set.Name, mapping.CleanText(x.v.Name, 256))
		},
	},
	{
		name:  "help",
		isSet: func(r *compiledRule) bool { return r.Help != "" },
		check: func(r *compiledRule) error {
			if len(r.Help) <= mapping.MaxDescription {
				return nil
			}
			return complain(fmt.Sprintf("write at most %d", mapping.MaxDescription), "the help has %d bytes",
				len(r.Help))
		},
		take: func(p *mapping.Properties, r *compiledRule, _ []string) { p.Help = r.Help },
		show: func(_ *mapping.Spec, set *decided, _ *explaining) string { return set.Help },
	},
	{
		name:  "labels", // they have no key: they are named groups of match.regexp
		isSet: func(r *compiledRule) bool { return len(r.groups) > 0 },
		take: func(p *mapping.Properties, r *compiledRule, groups []string) {
			p.Labels, p.Variables = r.labelsOf(groups), r.labelled
		},
		show: func(_ *mapping.Spec, set *decided, _ *explaining) string {
			return strings.Join(labelTexts(set.Labels), ",")
		},
	},
	{
		name:  "merge",
		isSet: func(r *compiledRule) bool { return r.Merge != "" },
		check: func(r *compiledRule) error {
			return parseWord("merge", r.Merge, mapping.MergeSum, mapping.MergeMax, mapping.MergeMin,
				mapping.MergeMean, mapping.MergeEach)
		},
		take: func(p *mapping.Properties, r *compiledRule, _ []string) { p.Merge = r.Merge },
		show: func(s *mapping.Spec, set *decided, _ *explaining) string {
			if s.Separate || set.Merge == mapping.MergeEach {
				return string(mapping.MergeEach)
			}
			return string(s.Objects)
		},
	},
	{
		name: "elements", agent: true,
		isSet: func(r *compiledRule) bool { return r.Elements != "" },
		check: func(r *compiledRule) error {
			return parseWord("elements", r.Elements, mapping.ElementsSum, mapping.ElementsMax, mapping.ElementsMin,
				mapping.ElementsMean,
				mapping.ElementsPeer, mapping.ElementsIndex)
		},
		take: func(p *mapping.Properties, r *compiledRule, _ []string) { p.Elements = r.Elements },
		show: func(s *mapping.Spec, _ *decided, _ *explaining) string { return cmp.Or(s.Each, string(s.Elements)) },
	},
	{
		name: "nonzero", agent: true,
		isSet: func(r *compiledRule) bool { return r.Nonzero != nil },
		take:  func(p *mapping.Properties, r *compiledRule, _ []string) { p.Nonzero = *r.Nonzero },
		show:  func(_ *mapping.Spec, set *decided, _ *explaining) string { return strconv.FormatBool(set.Nonzero) },
	},
	{
		name:  "object",
		isSet: func(r *compiledRule) bool { return r.Object != nil },
		take:  func(p *mapping.Properties, r *compiledRule, _ []string) { p.Object = *r.Object },
		show:  func(_ *mapping.Spec, set *decided, _ *explaining) string { return strconv.FormatBool(set.Object) },
	},
	{
		name: "companion", agent: true,
		isSet: func(r *compiledRule) bool { return r.Companion != "" },
		check: (*compiledRule).compileCompanion,
		take: func(p *mapping.Properties, r *compiledRule, groups []string) {
			p.Companion = r.companion.expand(groups)
		},
		show: func(s *mapping.Spec, _ *decided, _ *explaining) string {
			return cmp.Or(s.Companion, mapping.NoCompanion)
		},
	},
	{
		name:  "buckets",
		isSet: func(r *compiledRule) bool { return r.Buckets != nil },
		check: func(r *compiledRule) error {
			if err := mapping.CheckBuckets(r.Buckets); err != nil {
				return complain("write upper bounds that rise, in seconds or bytes, such as [0.001, 0.01, 0.1]", "buckets: %v",
					err)
			}
			return nil
		},
		take: func(p *mapping.Properties, r *compiledRule, _ []string) { p.Buckets = r.Buckets },
		show: func(s *mapping.Spec, _ *decided, _ *explaining) string {
			texts := make([]string, len(s.Buckets))
			for i, b := range s.Buckets {
				texts[i] = number64(b)
			}
			return "[" + strings.Join(texts, ", ") + "]"
		},
	},
	{
		name: "offset", agent: true,
		isSet: func(r *compiledRule) bool { return r.Offset != nil },
		take:  func(p *mapping.Properties, r *compiledRule, _ []string) { p.Offset = *r.Offset },
		show:  func(_ *mapping.Spec, set *decided, _ *explaining) string { return strconv.FormatBool(set.Offset) },
	},
	{
		name:  "rank",
		isSet: func(r *compiledRule) bool { return r.Rank != "" },
		check: func(r *compiledRule) error { return parseRank(r.Rank) },
		take:  func(p *mapping.Properties, r *compiledRule, _ []string) { p.Rank = r.Rank },
		show: func(_ *mapping.Spec, set *decided, x *explaining) string {
			return string(cmp.Or(set.Rank, x.basis.Ranks))
		},
	},
	{
		name:  "open",
		isSet: func(r *compiledRule) bool { return r.Open != nil },
		take:  func(p *mapping.Properties, r *compiledRule, _ []string) { p.Open = *r.Open },
		show:  func(_ *mapping.Spec, set *decided, _ *explaining) string { return strconv.FormatBool(set.Open) },
	},
}

func number64(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// labelsOf is the labels that the named groups give. A group that stood for nothing gives none, as Prometheus has it.
func (r *compiledRule) labelsOf(groups []string) []mapping.Label {
	var labels []mapping.Label
	for _, g := range r.groups {
		if value := mapping.CleanText(groups[g.group], maxLabelText); value != "" {
			labels = append(labels, mapping.Label{Name: g.label, Value: value})
		}
	}
	slices.SortFunc(labels, func(a, b mapping.Label) int { return cmp.Compare(a.Name, b.Name) })
	return labels
}
