package rules

import (
	"regexp"
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

// parseTemplate reads $1 and ${group}; $$ is a $. pattern is what the groups are of; nil: of nothing.
func parseTemplate(text string, pattern *regexp.Regexp, glob bool) (template, error) {
	var t template
	literal := ""
	for i := 0; i < len(text); i++ {
		if text[i] != '$' {
			literal += text[i : i+1]
			continue
		}
		rest := text[i+1:]
		var ref string
		switch {
		case strings.HasPrefix(rest, "$"):
			literal += "$"
			i++
			continue
		case strings.HasPrefix(rest, "{") && strings.Contains(rest, "}"):
			ref = rest[1:strings.IndexByte(rest, '}')]
			i += len(ref) + 2
		case rest != "" && rest[0] >= '0' && rest[0] <= '9':
			ref = rest[:1]
			i++
		default:
			return nil, complain("write $1 or ${group}", "%q: a $ that no group follows", text)
		}
		n, err := groupNumber(ref, pattern, glob)
		if err != nil {
			return nil, complain(err.Error(), "%q: there is no group %q", text, ref)
		}
		if literal != "" {
			t = append(t, templatePart{text: literal})
			literal = ""
		}
		t = append(t, templatePart{group: n})
	}
	if literal != "" {
		t = append(t, templatePart{text: literal})
	}
	return t, nil
}

// groupNumber finds a group by its name or number. The error is a remedy.
func groupNumber(ref string, pattern *regexp.Regexp, glob bool) (int, error) {
	groups := 0
	var named []string
	if pattern != nil {
		groups = pattern.NumSubexp()
		for _, name := range pattern.SubexpNames() {
			if name != "" {
				named = append(named, name)
			}
		}
	}
	if n, err := strconv.Atoi(ref); err == nil && n >= 1 && n <= groups {
		return n, nil
	}
	if pattern != nil && ref != "" {
		if n := pattern.SubexpIndex(ref); n > 0 {
			return n, nil
		}
	}
	switch {
	case groups == 0 && glob:
		return 0, errText("put a * into the pattern, or take the $ out")
	case groups == 0:
		return 0, errText("take the $ out, or match by a pattern that has groups")
	case glob:
		return 0, errText("$1 is what the first * stood for; the pattern gives " + numbered(groups))
	case len(named) > 0:
		return 0, errText("the groups are " + strings.Join(named, ", ") + ", by number " + numbered(groups))
	case groups == 1:
		return 0, errText("the only group is $1")
	}
	return 0, errText("the groups are " + numbered(groups))
}

// numbered is the groups by number.
func numbered(groups int) string {
	if groups == 1 {
		return "$1"
	}
	return "$1 to $" + strconv.Itoa(groups)
}

type errText string

func (e errText) Error() string { return string(e) }

// literal is the template's text without its groups.
func (t template) literal() string {
	var b strings.Builder
	for _, p := range t {
		b.WriteString(p.text)
	}
	return b.String()
}

// lastWord is the last word of the texts that it makes, where all end in the same one; else "".
func (t template) lastWord() string {
	if len(t) == 0 {
		return ""
	}
	text := t[len(t)-1].text
	under := strings.LastIndexByte(text, '_')
	if under < 0 && len(t) > 1 {
		return ""
	}
	return text[under+1:]
}

// uses says whether a group stands in it.
func (t template) uses(group int) bool {
	for _, p := range t {
		if p.group == group && group > 0 {
			return true
		}
	}
	return false
}

// expand puts in what the groups stood for.
func (t template) expand(groups []string) string {
	if len(t) == 1 && t[0].group == 0 {
		return t[0].text
	}
	var b strings.Builder
	for _, p := range t {
		b.WriteString(p.text)
		if p.group > 0 && p.group < len(groups) {
			b.WriteString(groups[p.group])
		}
	}
	return b.String()
}
