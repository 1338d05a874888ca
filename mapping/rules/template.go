package rules

import (
	"regexp"
	"strconv"
	"strings"
)

// reference is what a $ begins in a template: $$, $1 or ${group}; the last alternative is a lone $.
var reference = regexp.MustCompile(`\$(?:\$|[0-9]|\{[^}]*\}|)`)

// expand replaces references: $$ by a $, all others by what group returns for the number or name in them.
func expand(template string, group func(ref string) string) string {
	return reference.ReplaceAllStringFunc(template, func(ref string) string {
		if ref == "$$" {
			return "$"
		}
		return group(strings.Trim(ref[1:], "{}"))
	})
}

// checkTemplate says which reference is none to a group of the pattern; nil: of nothing.
func checkTemplate(template string, pattern *regexp.Regexp) (err error) {
	expand(template, func(ref string) string {
		switch {
		case err != nil:
		case ref == "":
			err = complain("write $1 or ${group}", "%q: a $ that no group follows", template)
		case groupNumber(ref, pattern) == 0:
			err = complain("write $1 for the first * or group of the pattern", "%q: there is no group %q", template, ref)
		}
		return ""
	})
	return err
}

// groupNumber finds a group by its name or number; 0: there is none.
func groupNumber(ref string, pattern *regexp.Regexp) int {
	if pattern == nil || ref == "" {
		return 0
	}
	if n, err := strconv.Atoi(ref); err == nil && n > 0 && n <= pattern.NumSubexp() {
		return n
	}
	return max(0, pattern.SubexpIndex(ref))
}

// fill puts into a template of the rule what the groups of its pattern stood for.
func (r *compiledRule) fill(template string, groups []string) string {
	return expand(template, func(ref string) string { return groups[groupNumber(ref, r.name)] })
}
