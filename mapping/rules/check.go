package rules

import (
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// checkRule finds a rule that says what can't be, or what has no effect whatever other rules say.
func checkRule(c *compiledRule) []finding {
	var found []finding
	note := func(key, remedy, what string, args ...any) {
		found = append(found, finding{key, complain(remedy, what, args...)})
	}
	if !slices.Contains(c.sets[:], true) {
		note("", "write what it sets: drop, class, name …", "this rule sets nothing")
	}
	if c.Object != nil && len(c.binds) == 1 && c.binds[0] == mpit.BindNone {
		note("object", "take it out, or another bind under match", "variables of bind none have no object")
	}
	if c.Merge == mapping.MergeEach && c.Object != nil && !*c.Object {
		note("object", "take it or merge: each out", "objects can't be told apart and become one as well")
	}
	if c.Merge == mapping.MergeEach && (c.Rank == mapping.RankNode || c.Rank == mapping.RankBoth) {
		note("rank", "take it or merge: each out", "ranks whose objects are told apart by a number can't become one")
	}
	own, said := c.ownClasses()
	all := func(is func(mpit.Class) bool) bool {
		return len(own) > 0 && !slices.ContainsFunc(own,
			func(class mpit.Class) bool { return class == mpit.ClassUnknown || !is(class) })
	}
	remedy := "take it out, or say by class what the variable really is"
	mixes := func(m string) bool { return m == "max" || m == "min" || m == "mean" }
	if all(mapping.Grows) {
		if mixes(string(c.Merge)) {
			note("merge", "write sum or each, or say by class what the variable really is",
				"%s only grows: it is always summed, or each", said)
		}
		if mixes(string(c.Elements)) {
			note("elements", "write sum, peer or index, or say by class what the variable really is",
				"%s only grows: its elements are always summed, or each", said)
		}
	}
	if c.Nonzero != nil && *c.Nonzero && all(func(class mpit.Class) bool { return class == mpit.ClassState }) {
		note("nonzero", remedy, "%s is never 0: one of its states is always there", said)
	}
	if all(func(class mpit.Class) bool { return class == mpit.ClassState || class == mpit.ClassGeneric }) {
		if c.Merge != "" && c.Merge != mapping.MergeEach {
			note("merge", remedy, "%s is never merged", said)
		}
		if c.Elements != "" && c.Elements != mapping.ElementsPeer && c.Elements != mapping.ElementsIndex {
			note("elements", "write peer or index, or say by class what the variable really is",
				"%s is never merged", said)
		}
	}
	if c.Companion != "" && all(func(class mpit.Class) bool { return class != mpit.ClassTimer }) {
		note("companion", remedy, "%s is no timer, which alone has a companion", said)
	}
	if c.Buckets != nil && all(func(class mpit.Class) bool {
		return class != mpit.ClassTimer && class != mpit.ClassAggregate // which may be a distribution of sizes
	}) {
		note("buckets", remedy, "%s has no buckets, but timers and sizes of calls have", said)
	}
	is := func(one mpit.Class) bool { return all(func(class mpit.Class) bool { return class == one }) }
	if base := c.unit.Base; c.Unit != "" && c.Unit != mapping.NoUnit {
		if base != "s" && is(mpit.ClassTimer) {
			note("unit", "write s, ms, us, ns, min or h, or say by class what the variable really is",
				"%s has a time, which is not in %s", said, c.Unit)
		}
		if base != "1" && is(mpit.ClassPercentage) {
			note("unit", `write "1" or "%", or say by class what the variable really is`,
				"%s has a share, which is not in %s", said, c.Unit)
		}
	}
	present := func(class mpit.Class) bool { return !mapping.Grows(class) && class != mpit.ClassGeneric }
	if c.template.lastWord() == "count" && all(present) {
		note("name", "end it in another word", "%s becomes a gauge, and no gauge's name may end in _count", said)
	}
	if c.Offset != nil && *c.Offset && all(func(class mpit.Class) bool { return !mapping.Grows(class) }) {
		note("offset", remedy, "%s does not count: it has no beginning to subtract", said)
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
