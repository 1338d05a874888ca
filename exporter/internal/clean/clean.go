// Package clean bounds what comes from ranks and callers, and makes it fit to be shown: valid UTF-8, without control
// characters. What it returns doesn't hold on to the memory of what was cut off, for ranks are kept long after their
// connections.
package clean

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// The longest texts that become values of labels.
const (
	MaxLabel = 256  // bytes of a label's value
	MaxPath  = 1024 // bytes of an executable's path: what tells programs apart is at its end
)

// Label makes a text fit for a label's value.
func Label(s string) string { return Text(s, MaxLabel) }

// Name makes a text fit for a label that names a job: alerts carry those to programs that take some characters for
// markup, links or mentions. Schedulers' own ids stay as they are.
func Name(s string) string {
	last := ' '
	return Cut(strings.Map(func(r rune) rune {
		was := last
		last = r
		switch {
		case strings.ContainsRune("<>|()*`&", r), !unicode.IsPrint(r), r == '/' && was == '/',
			r == '@' && !isWord(was):
			return utf8.RuneError
		}
		return r
	}, Label(s)), MaxLabel)
}

// isWord says whether an @ behind such a character is no mention.
func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// Path makes an executable's path fit for a label's value.
func Path(s string) string { return Text(s, MaxPath) }

// Text is mapping.CleanText, of at most limit bytes.
func Text(s string, limit int) string { return strings.Clone(mapping.CleanText(s, limit)) }

// Cut shortens s, which is clean, to at most n bytes. It doesn't cut a character in two.
func Cut(s string, n int) string { return strings.Clone(mapping.Cut(s, n)) }
