package rules

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// How long patterns may be, in bytes. Names in MPI_T are shorter; a regular expression can hold many of them.
const (
	maxGlob    = 256
	maxPattern = 1024
)

// Glob compiles a pattern of * and ? that has to match a text as a whole; each * is a group.
func Glob(glob string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for _, r := range glob {
		switch r {
		case '*':
			b.WriteString("(.*?)")
		case '?':
			b.WriteString(".")
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	b.WriteString(`\z`)
	return regexp.MustCompile(b.String())
}

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
	expression, err := regexp.Compile(`(?s)\A(?:` + text + `)\z`)
	if err != nil {
		return nil, complain("write a simpler one", `bad regular expression "%s": %v`, text, err)
	}
	return expression, nil
}

// globPrefix is how all texts begin that a glob matches, and whether that is the whole of the only one.
func globPrefix(glob string) (prefix string, whole bool) {
	for i, r := range glob {
		if r == '*' || r == '?' || r == utf8.RuneError {
			return glob[:i], false
		}
	}
	return glob, true
}
