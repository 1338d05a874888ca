package rules

import (
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// checkRule finds what is wrong with a rule as a whole. What has no effect on a class is no mistake: docs/rules.md.
func checkRule(c *compiledRule) (found findings) {
	if !slices.Contains(c.sets[:], true) {
		found.note("", complain("write what it sets: drop, class, name …", "this rule sets nothing"))
	}
	if c.Name != "" {
		found.note("name", checkNameOfClass(c))
	}
	if c.Unit == "" || c.Unit == mapping.NoUnit {
		return found
	}
	for _, of := range []struct {
		class        mpit.Class
		base, remedy string
	}{
		{mpit.ClassTimer, "s", "write s, ms, us, ns, min or h"},
		{mpit.ClassPercentage, "1", `write "1" or "%"`},
	} {
		if c.real == of.class || c.Class == "" && len(c.classes) == 1 && c.classes[0] == of.class {
			if c.unit.Base != of.base {
				found.note("unit", complain(of.remedy+", or say by class what the variable really is",
					"%q is no unit of a %s", c.Unit, mapping.NameOf(of.class)))
			}
		}
	}
	return found
}

// checkNameOfClass finds a name that a variable of the rule's class can't have: of one of several, and where the rule
// names none, of any. Such a variable would get an escaped one.
func checkNameOfClass(c *compiledRule) error {
	escaped := func(class mpit.Class) bool { return !mapping.Named(withAnyGroups(c.Name), class, c.unit) }
	classes := c.classes
	if c.Class != "" {
		classes = []mpit.Class{c.real}
	}
	if i := slices.IndexFunc(classes, escaped); i >= 0 {
		return badName(c.Name, mapping.NameOf(classes[i]))
	}
	if len(classes) == 0 && escaped(mpit.ClassCounter) && escaped(mpit.ClassLevel) {
		return badName(c.Name, "metric")
	}
	return nil
}
