package rules

import (
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// check is something that can't be, or has no effect, whatever other rules say.
type check struct {
	key   string                     // that it is about; "": the rule
	class func(mpit.Class) bool      // all classes that the rule names are so, and what is said of them; nil: any
	wrong func(c *compiledRule) bool // it is so

	what, remedy string
}

const reclassify = "say by class what the variable really is"

var checks = []check{
	{
		wrong: func(c *compiledRule) bool { return !slices.Contains(c.sets[:], true) },
		what:  "this rule sets nothing", remedy: "write what it sets: drop, class, name …",
	},
	{
		key: "object",
		wrong: func(c *compiledRule) bool {
			return c.Object != nil && len(c.binds) == 1 && c.binds[0] == mpit.BindNone
		},
		what: "variables of bind none have no object", remedy: "take it out, or another bind under match",
	},
	{
		key: "object",
		wrong: func(c *compiledRule) bool {
			return c.Merge == mapping.MergeEach && c.Object != nil && !*c.Object
		},
		what: "objects can't be told apart and become one as well", remedy: "take it or merge: each out",
	},
	{
		key: "rank",
		wrong: func(c *compiledRule) bool {
			return c.Merge == mapping.MergeEach && c.Rank == mapping.RankNode
		},
		what:   "ranks whose objects are told apart by a number can't become one",
		remedy: "take it or merge: each out",
	},
	{
		key: "merge", class: mapping.Grows,
		wrong: func(c *compiledRule) bool { return mixes(string(c.Merge)) },
		what:  "only grows: it is always summed, or each", remedy: "write sum or each, or " + reclassify,
	},
	{
		key: "elements", class: mapping.Grows,
		wrong:  func(c *compiledRule) bool { return mixes(string(c.Elements)) },
		what:   "only grows: its elements are always summed, or each",
		remedy: "write sum, peer or index, or " + reclassify,
	},
	{
		key: "nonzero", class: is(mpit.ClassState),
		wrong: func(c *compiledRule) bool { return c.Nonzero != nil && *c.Nonzero },
		what:  "is never 0: one of its states is always there", remedy: "take it out, or " + reclassify,
	},
	{
		key: "merge", class: is(mpit.ClassState, mpit.ClassGeneric),
		wrong: func(c *compiledRule) bool { return c.Merge != "" && c.Merge != mapping.MergeEach },
		what:  "is never merged", remedy: "take it out, or " + reclassify,
	},
	{
		key: "elements", class: is(mpit.ClassState, mpit.ClassGeneric),
		wrong: func(c *compiledRule) bool {
			return c.Elements != "" && c.Elements != mapping.ElementsPeer && c.Elements != mapping.ElementsIndex
		},
		what: "is never merged", remedy: "write peer or index, or " + reclassify,
	},
	{
		key: "companion", class: not(is(mpit.ClassTimer)),
		wrong: func(c *compiledRule) bool { return c.Companion != "" },
		what:  "is no timer, which alone has a companion", remedy: "take it out, or " + reclassify,
	},
	{
		key: "buckets", class: not(is(mpit.ClassTimer, mpit.ClassAggregate)), // which may be a distribution of sizes
		wrong: func(c *compiledRule) bool { return c.Buckets != nil },
		what:  "has no buckets, but timers and sizes of calls have", remedy: "take it out, or " + reclassify,
	},
	{
		key: "unit", class: is(mpit.ClassTimer),
		wrong: func(c *compiledRule) bool { return c.hasUnit() && c.unit.Base != "s" },
		what:  "has a time, which this is no unit of", remedy: "write s, ms, us, ns, min or h, or " + reclassify,
	},
	{
		key: "unit", class: is(mpit.ClassPercentage),
		wrong: func(c *compiledRule) bool { return c.hasUnit() && c.unit.Base != "1" },
		what:  "has a share, which this is no unit of", remedy: `write "1" or "%", or ` + reclassify,
	},
	{
		key: "name", class: func(c mpit.Class) bool { return !mapping.Grows(c) && c != mpit.ClassGeneric },
		wrong: func(c *compiledRule) bool { return c.template.lastWord() == "count" },
		what:  "becomes a gauge, and no gauge's name may end in _count", remedy: "end it in another word",
	},
	{
		key: "offset", class: not(mapping.Grows),
		wrong: func(c *compiledRule) bool { return c.Offset != nil && *c.Offset },
		what:  "does not count: it has no beginning to subtract", remedy: "take it out, or " + reclassify,
	},
}

func is(classes ...mpit.Class) func(mpit.Class) bool {
	return func(c mpit.Class) bool { return slices.Contains(classes, c) }
}

func not(f func(mpit.Class) bool) func(mpit.Class) bool {
	return func(c mpit.Class) bool { return !f(c) }
}

func mixes(word string) bool { return word == "max" || word == "min" || word == "mean" }

func (r *compiledRule) hasUnit() bool { return r.Unit != "" && r.Unit != mapping.NoUnit }

// checkRule finds what is wrong with a rule as a whole.
func checkRule(c *compiledRule) []finding {
	var found []finding
	classes, said := c.ownClasses()
	for _, check := range checks {
		what := check.what
		if check.class != nil {
			if len(classes) == 0 || slices.ContainsFunc(classes, not(check.class)) {
				continue
			}
			what = said + " " + what
		}
		if check.wrong(c) {
			found = append(found, finding{check.key, complain(check.remedy, "%s", what)})
		}
	}
	return found
}

// ownClasses is what the variables of a rule are, as far as the rule itself says it.
func (r *compiledRule) ownClasses() (classes []mpit.Class, said string) {
	if r.Class != "" {
		return []mpit.Class{r.real}, "class " + string(r.Class)
	}
	return r.classes, "class " + strings.Join(r.Match.Class, ", ")
}
