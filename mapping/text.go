package mapping

import (
	"strings"
	"unicode/utf8"
)

const (
	// Unnamed is the name of objects that the program gave none.
	Unnamed = "unnamed"

	maxObjectName  = 128
	maxStateName   = 128
	maxDescription = 300
)

// CleanName makes an object's name fit for a label: valid UTF-8 without NUL, at most 128 bytes, Unnamed if nothing is left.
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
	// What is cut off anyway need not be cleaned; a character replaced takes at most three bytes for one.
	s = s[:min(len(s), 4*limit)]
	s = strings.ReplaceAll(s, "\x00", "")
	s = strings.ToValidUTF8(s, "\uFFFD")
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
