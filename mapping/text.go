package mapping

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
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

// OneLine makes one line of a text that came from a rank, with nothing in it that a terminal would obey.
func OneLine(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))), " ")
}

// CleanText makes a text that comes from a rank fit for a page: every name, description and value of a label goes
// through it. The result is valid UTF-8 of at most limit bytes, cut between characters, with nothing in it that a
// terminal obeys, and nothing Hidden: these characters become U+FFFD. New lines stay, as the formats of metrics write
// them as \n, and so do joiners and variation selectors where they have a meaning. What isn't UTF-8 is read as ISO
// 8859-1 (mpit.ValidText).
func CleanText(s string, limit int) string {
	ok := len(s) <= limit
	for i := 0; ok && i < len(s); i++ {
		ok = s[i] >= ' ' && s[i] < 0x7f || s[i] == '\n'
	}
	if ok {
		return s
	}
	// What is cut off anyway need not be cleaned. A character cut in two here stands far behind the limit.
	var before rune
	s = strings.Map(func(r rune) rune {
		if r != '\n' && Hidden(r) && !joins(before, r) {
			r = utf8.RuneError
		}
		before = r
		return r
	}, mpit.ValidText(s[:min(len(s), 4*limit)]))
	return Cut(s, limit)
}

// Cut shortens s to at most limit bytes, between characters.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// Hidden says whether a character isn't seen by itself but changes what is read, or what a terminal does: control
// characters, those that turn the direction of text or break lines, and those without width.
func Hidden(r rune) bool {
	return r >= 0x7f && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r) || r < ' '
}

// joins says whether a hidden character belongs to the one before: scripts in which letters are joined (Arabic, those
// of India) and emoji are written with joiners and variation selectors. All of them come after Latin, Greek and
// Cyrillic.
func joins(before, r rune) bool {
	const begin = 0x590
	joiner, selector := unicode.Is(unicode.Join_Control, r), unicode.Is(unicode.Variation_Selector, r)
	after := unicode.Is(unicode.Variation_Selector, before)
	return before >= begin && before != utf8.RuneError && (joiner && (after || !Hidden(before)) || selector &&
		!Hidden(before))
}

// EscapeHidden writes hidden characters in JSON as \u…, for who reads it in a terminal or an editor. encoding/json has
// done so with those below a blank, or they are its own new lines.
func EscapeHidden(json []byte) []byte {
	is := func(r rune) bool { return r > ' ' && Hidden(r) }
	at := bytes.IndexFunc(json, is)
	if at < 0 {
		return json
	}
	out := make([]byte, 0, len(json)+len(json)/8)
	for ; at >= 0; at = bytes.IndexFunc(json, is) {
		r, size := utf8.DecodeRune(json[at:])
		out = append(out, json[:at]...)
		for _, unit := range utf16.Encode([]rune{r}) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
		json = json[at+size:]
	}
	return append(out, json...)
}

// Fold makes a description one line of at most limit bytes.
func Fold(s string, limit int) string {
	s = strings.Join(strings.Fields(s[:min(len(s), 16*limit)]), " ") // before a tab is a control character
	if s = CleanText(s, 4*limit); len(s) > limit {
		s = CleanText(s, limit-len("…")) + "…"
	}
	return s
}
