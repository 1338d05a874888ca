package mapping

import (
	"strings"
	"unicode/utf8"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// Unnamed is the name of objects that the program gave none.
	Unnamed = "unnamed"

	maxObjectName  = 128
	maxStateName   = 128
	maxDescription = 300
)

// CleanName makes an object's name fit for a label: valid UTF-8 without NUL, at most 128 bytes, Unnamed if nothing is left.
// What isn't UTF-8 is read as ISO 8859-1 (mpit.ValidText), and a new line stays: the formats of metrics write it as \n.
func CleanName(s string) string {
	if s = cleanText(s, maxObjectName); s == "" {
		return Unnamed
	}
	return s
}

// cleanText returns s as valid UTF-8 without NUL bytes and with at most limit bytes, cut between characters.
func cleanText(s string, limit int) string {
	ok := len(s) <= limit
	for i := 0; ok && i < len(s); i++ {
		ok = s[i] != 0 && s[i] < utf8.RuneSelf
	}
	if ok {
		return s
	}
	// What is cut off anyway need not be cleaned. A character cut in two here stands far behind the limit.
	s = s[:min(len(s), 4*limit)]
	s = mpit.ValidText(strings.ReplaceAll(s, "\x00", ""))
	for len(s) > limit {
		end := limit
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end]
	}
	return s
}

// fold makes a description one line of at most limit bytes.
func fold(s string, limit int) string {
	s = strings.Join(strings.Fields(cleanText(s, 4*limit)), " ")
	if len(s) > limit {
		s = cleanText(s, limit-len("…")) + "…"
	}
	return s
}
