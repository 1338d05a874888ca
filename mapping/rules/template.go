package rules

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// template is a text with places for what groups of a pattern stood for.
type template []templatePart

// templatePart is a text, or the group of that number where it is above 0.
type templatePart struct {
	text  string
	group int
}

// reference is what a $ begins in a template: $$, $1 or ${group}; the last alternative is a lone $.
var reference = regexp.MustCompile(`\$(?:\$|[0-9]|\{[^}]*\}|)`)

// parseTemplate reads $1 and ${group}; $$ is a $. pattern is what the groups are of; nil: of nothing.
func parseTemplate(text string, pattern *regexp.Regexp) (template, error) {
	var t template
	literal, at := "", 0
	flush := func() {
		if literal != "" {
			t = append(t, templatePart{text: literal})
		}
		literal = ""
	}
	for _, found := range reference.FindAllStringIndex(text, -1) {
		literal += text[at:found[0]]
		at = found[1]
		switch ref := strings.Trim(text[found[0]+1:at], "{}"); ref {
		case "$":
			literal += "$"
		case "":
			return nil, complain("write $1 or ${group}", "%q: a $ that no group follows", text)
		default:
			n := groupNumber(ref, pattern)
			if n == 0 {
				return nil, complain("write $1 for the first * or group of the pattern", "%q: there is no group %q", text, ref)
			}
			flush()
			t = append(t, templatePart{group: n})
		}
	}
	literal += text[at:]
	flush()
	return t, nil
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

// uses says whether a group stands in it.
func (t template) uses(group int) bool {
	return slices.ContainsFunc(t, func(p templatePart) bool { return p.group == group })
}

// expand puts in what the groups stood for.
func (t template) expand(groups []string) string {
	var b strings.Builder
	for _, p := range t {
		b.WriteString(p.text)
		if p.group > 0 && p.group < len(groups) {
			b.WriteString(groups[p.group])
		}
	}
	return b.String()
}
