package rules

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// How long patterns may be, in bytes. Names in MPI_T are shorter; a regular expression can hold many of them.
const (
	maxGlob    = 256
	maxPattern = 1024
)

// globExpression compiles a pattern of * and ?; each * is a group.
func globExpression(glob string) *regexp.Regexp {
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
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, complain(`write one of RE2's, such as 'coll_(?P<function>[a-z]+)_time'`,
			`bad regular expression "%s": %v`, text, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if nothing(tree.Simplify()) {
		return nil, complain("write one that some name matches", `the regular expression "%s" can never match`, text)
	}
	expression, err := regexp.Compile(`(?s)\A(?:` + text + `)\z`)
	if err != nil {
		return nil, complain("write a simpler one", `bad regular expression "%s": %v`, text, err)
	}
	return expression, nil
}

// nothing says whether a regular expression is known to match nothing. That it is not does not say that it can.
func nothing(r *syntax.Regexp) bool {
	switch r.Op {
	case syntax.OpNoMatch:
		return true
	case syntax.OpCharClass:
		return len(r.Rune) == 0
	case syntax.OpConcat:
		for i, sub := range r.Sub {
			if nothing(sub) || i > 0 && sub.Op == syntax.OpBeginText && r.Sub[i-1].Op == syntax.OpLiteral {
				return true
			}
			if i > 0 && sub.Op == syntax.OpLiteral && r.Sub[i-1].Op == syntax.OpEndText {
				return true
			}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return nothing(r.Sub[0])
	case syntax.OpAlternate:
		for _, sub := range r.Sub {
			if !nothing(sub) {
				return false
			}
		}
		return true
	}
	return false
}

// checkGlob finds what makes a glob useless.
func checkGlob(glob string) error {
	if len(glob) > maxGlob {
		return complain("write a shorter one", "the pattern has %d bytes, at most %d are read", len(glob), maxGlob)
	}
	return nil
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

// GlobMatches says whether a glob matches a text as a whole, as globExpression does.
func GlobMatches(pattern, name string) bool {
	glob, text := []rune(pattern), []rune(name)
	g, t := 0, 0
	star, from := -1, 0 // the last *, and where what follows it has been tried
	for t < len(text) {
		switch {
		case g < len(glob) && glob[g] == '*':
			star, from = g, t
			g++
		case g < len(glob) && (glob[g] == '?' || glob[g] == text[t]):
			g++
			t++
		case star >= 0:
			from++
			g, t = star+1, from
		default:
			return false
		}
	}
	for g < len(glob) && glob[g] == '*' {
		g++
	}
	return g == len(glob)
}
