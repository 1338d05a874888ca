package rules

import (
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// checkRule finds what is wrong with a rule as a whole. What has no effect on a class is no mistake: docs/rules.md.
func checkRule(c *compiledRule) (found []finding) {
	if !slices.Contains(c.sets[:], true) {
		found = append(found, finding{"", complain("write what it sets: drop, class, name …", "this rule sets nothing")})
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
				found = append(found, finding{"unit", complain(of.remedy+", or say by class what the variable really is",
					"%q is no unit of a %s", c.Unit, mapping.NameOf(of.class))})
			}
		}
	}
	return found
}
