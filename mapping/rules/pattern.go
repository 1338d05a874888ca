package rules

import (
	"regexp"
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
