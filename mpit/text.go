package mpit

import (
	"strings"
	"unicode/utf8"
)

// ValidText returns a string of MPI's as valid UTF-8. MPI does not say in which encoding its strings are: what isn't
// UTF-8 is read as ISO 8859-1, byte by byte, so that two names that differ still do. Valid UTF-8 is returned as it
// is.
func ValidText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	b.Grow(2 * len(s))
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)) {
			r = rune(s[i]) // the first 256 characters of Unicode are those of ISO 8859-1
		}
		b.WriteRune(r)
	}
	return b.String()
}
