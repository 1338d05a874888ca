package rules

import (
	"regexp"
	"strconv"
	"strings"
)

// How long patterns may be, in bytes. Names in MPI_T are shorter; a regular expression can hold many of them.
const (
	maxGlob    = 256
	maxPattern = 1024
)

// Glob compiles a pattern of * and ? that has to match a text as a whole; each * is a group.
func Glob(glob string) *regexp.Regexp { return regexp.MustCompile(whole(globExpression(glob))) }

// globExpression is a pattern of * and ? as a regular expression, and whole one that matches nothing but whole texts.
func globExpression(glob string) string {
	text := regexp.QuoteMeta(strings.ToValidUTF8(glob, "\uFFFD"))
	return "(?s)" + strings.NewReplacer(`\*`, "(.*?)", `\?`, ".").Replace(text)
}

func whole(expression string) string { return `(?s)\A(?:` + expression + `)\z` }

// wholeExpression compiles a regular expression that has to match a text as a whole.
func wholeExpression(text string) (*regexp.Regexp, error) {
	if len(text) > maxPattern {
		return nil, complain("write a shorter one, or several rules",
			"the regular expression has %d bytes, at most %d are read", len(text), maxPattern)
	}
	if _, err := regexp.Compile(text); err != nil { // alone: in what is put around it, a)(b would be good
		return nil, complain(`write one of RE2's, such as 'coll_(?P<function>[a-z]+)_time'`,
			`bad regular expression "%s": %v`, text, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	expression, err := regexp.Compile(whole(text))
	if err != nil {
		return nil, complain("write a simpler one", `bad regular expression "%s": %v`, text, err)
	}
	return expression, nil
}

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
