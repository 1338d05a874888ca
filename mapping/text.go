package mapping

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// Unnamed is the name of objects that the program gave none.
	Unnamed = "unnamed"

	maxObjectName = 128
	maxStateName  = 128

	// MaxDescription is how many bytes of a description HELP has at most.
	MaxDescription = 300
)

// CleanName makes an object's name fit for a label: CleanText of at most 128 bytes, Unnamed if nothing is left.
func CleanName(s string) string {
	if s = CleanText(s, maxObjectName); s == "" {
		return Unnamed
	}
	return s
}

// CleanText makes a text that comes from a rank fit for a page: every name, description and value of a label goes
// through it. The result is valid UTF-8 of at most limit bytes, cut between characters, with nothing in it that a
// terminal obeys: control characters (ESC, BEL, CR, C1 …) become U+FFFD. New lines stay, as the formats of metrics
// write them as \n. What isn't UTF-8 is read as ISO 8859-1 (mpit.ValidText).
func CleanText(s string, limit int) string {
	ok := len(s) <= limit
	for i := 0; ok && i < len(s); i++ {
		ok = s[i] >= ' ' && s[i] < 0x7f || s[i] == '\n'
	}
	if ok {
		return s
	}
	// What is cut off anyway need not be cleaned. A character cut in two here stands far behind the limit.
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return utf8.RuneError
		}
		return r
	}, mpit.ValidText(s[:min(len(s), 4*limit)]))
	if len(s) > limit {
		end := limit
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end]
	}
	return s
}

// Fold makes a description one line of at most limit bytes.
func Fold(s string, limit int) string {
	s = strings.Join(strings.Fields(s[:min(len(s), 16*limit)]), " ") // before a tab is a control character
	if s = CleanText(s, 4*limit); len(s) > limit {
		s = CleanText(s, limit-len("…")) + "…"
	}
	return s
}
