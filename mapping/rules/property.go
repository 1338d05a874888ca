package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mapping"
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

	show func(p *mapping.Properties) string // its value in a rule's words

	agent bool // no rule can set it of a distribution, whose agent says what it is
}

// propertyCount is the number of entries in properties.
const propertyCount = 15

// properties is all of them, in the order in which they are explained.
var properties = [propertyCount]property{
	yesNo("drop", func(r *Rule) *bool { return r.Drop }, func(p *mapping.Properties) *bool { return &p.Drop }),
	byAgent(property{
		name:  "class",
		isSet: func(r *compiledRule) bool { return r.Class != "" },
		check: func(r *compiledRule) (err error) { r.real, err = parseClass(r.Class); return err },
		take:  func(p *mapping.Properties, r *compiledRule, _ []string) { p.Class = r.real },
		show:  func(p *mapping.Properties) string { return mapping.NameOf(p.Class) },
	}),
	byAgent(property{
		name:  "unit",
		isSet: func(r *compiledRule) bool { return r.Unit != "" },
		check: func(r *compiledRule) (err error) { r.unit, err = parseUnit(r.Unit); return err },
		take:  func(p *mapping.Properties, r *compiledRule, _ []string) { p.Unit = r.unit },
		show:  func(p *mapping.Properties) string { return p.Unit.String() },
	}),
	byAgent(property{
		name:  "scale",
		isSet: func(r *compiledRule) bool { return r.Scale != nil },
		check: func(r *compiledRule) error {
			if *r.Scale > 0 && *r.Scale <= 1e30 { // NaN is refused as well
				return nil
			}
			return complain("write a factor above 0, such as 0.001", "scale %v is not above 0 and at most 1e30", *r.Scale)
		},
		take: func(p *mapping.Properties, r *compiledRule, _ []string) { p.Scale = *r.Scale },
		show: func(p *mapping.Properties) string { return strconv.FormatFloat(p.Scale, 'g', -1, 64) },
	}),
	{
		name:  "name",
		isSet: func(r *compiledRule) bool { return r.Name != "" },
		check: (*compiledRule).checkName,
		take:  func(p *mapping.Properties, r *compiledRule, groups []string) { p.Name = r.fill(r.Name, groups) },
		show:  func(p *mapping.Properties) string { return p.Name },
	},
	{
		name:  "help",
		isSet: func(r *compiledRule) bool { return r.Help != "" },
		check: func(r *compiledRule) error {
			if len(r.Help) <= mapping.MaxDescription {
				return nil
			}
			return complain(fmt.Sprintf("write at most %d", mapping.MaxDescription), "the help has %d bytes", len(r.Help))
		},
		take: func(p *mapping.Properties, r *compiledRule, _ []string) { p.Help = r.Help },
		show: func(p *mapping.Properties) string { return p.Help },
	},
	{
		name:  "labels", // they have no key: they are named groups of match.regexp
		isSet: func(r *compiledRule) bool { return len(r.groups) > 0 },
		take: func(p *mapping.Properties, r *compiledRule, groups []string) {
			p.Labels, p.Variables = r.labelsOf(groups), r.labelled
		},
		show: func(p *mapping.Properties) string {
			texts := make([]string, len(p.Labels))
			for i, l := range p.Labels {
				texts[i] = fmt.Sprintf("%s=%q", l.Name, l.Value)
			}
			return strings.Join(texts, ",")
		},
	},
	word("merge", func(r *Rule) mapping.Merge { return r.Merge },
		func(p *mapping.Properties) *mapping.Merge { return &p.Merge },
		mapping.MergeSum, mapping.MergeMax, mapping.MergeMin, mapping.MergeEach),
	byAgent(word("elements", func(r *Rule) mapping.Merge { return r.Elements },
		func(p *mapping.Properties) *mapping.Merge { return &p.Elements },
		mapping.MergeSum, mapping.MergeMax, mapping.MergeMin, mapping.MergePeer, mapping.MergeIndex)),
	byAgent(yesNo("nonzero", func(r *Rule) *bool { return r.Nonzero },
		func(p *mapping.Properties) *bool { return &p.Nonzero })),
	yesNo("object", func(r *Rule) *bool { return r.Object }, func(p *mapping.Properties) *bool { return &p.Object }),
	byAgent(property{
		name:  "companion",
		isSet: func(r *compiledRule) bool { return r.Companion != "" },
		check: (*compiledRule).checkCompanion,
		take: func(p *mapping.Properties, r *compiledRule, groups []string) {
			p.Companion = r.fill(r.Companion, groups)
		},
		show: func(p *mapping.Properties) string { return p.Companion },
	}),
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
		show: func(p *mapping.Properties) string {
			return strings.ReplaceAll(fmt.Sprint(p.Buckets), " ", ", ")
		},
	},
	byAgent(yesNo("offset", func(r *Rule) *bool { return r.Offset },
		func(p *mapping.Properties) *bool { return &p.Offset })),
	yesNo("open", func(r *Rule) *bool { return r.Open }, func(p *mapping.Properties) *bool { return &p.Open }),
}

// yesNo is a property that is true or false.
func yesNo(name string, key func(r *Rule) *bool, field func(p *mapping.Properties) *bool) property {
	return property{
		name:  name,
		isSet: func(r *compiledRule) bool { return key(&r.Rule) != nil },
		take:  func(p *mapping.Properties, r *compiledRule, _ []string) { *field(p) = *key(&r.Rule) },
		show:  func(p *mapping.Properties) string { return strconv.FormatBool(*field(p)) },
	}
}

// word is a property that is one of a few words.
func word[T ~string](name string, key func(r *Rule) T, field func(p *mapping.Properties) *T, known ...T) property {
	return property{
		name:  name,
		isSet: func(r *compiledRule) bool { return key(&r.Rule) != "" },
		check: func(r *compiledRule) error { return checkWord(name, key(&r.Rule), known...) },
		take:  func(p *mapping.Properties, r *compiledRule, _ []string) { *field(p) = key(&r.Rule) },
		show:  func(p *mapping.Properties) string { return string(*field(p)) },
	}
}

// byAgent is a property that the agent decides, where a variable is a distribution.
func byAgent(p property) property {
	p.agent = true
	return p
}

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
