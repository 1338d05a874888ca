package mapping

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func FuzzCleanName(f *testing.F) {
	f.Add("é\x00\xff")
	f.Add("\u202egnp.exe \u0645\u06cc\u200c\u200d\ufe0f\u200d \U0001f3f4\U000e0067")
	f.Fuzz(func(t *testing.T, s string) {
		n := CleanName(s)
		if n == "" || len(n) > maxObjectName || !utf8.ValidString(n) || bytes.IndexByte([]byte(n), 0) >= 0 {
			t.Errorf("%q becomes %q", s, n)
		}
		run := 0
		for _, r := range n {
			if run++; r == '\n' || !Hidden(r) {
				run = 0
			}
			if run > 2 || unicode.Is(unicode.Bidi_Control, r) {
				t.Errorf("%q hides something", n)
			}
		}
		if CleanName(n) != n {
			t.Errorf("%q isn't clean", n)
		}
	})
}

// What can't be seen doesn't change what is read; names of all scripts can be read all the same.
func TestHiddenCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"\u202egnp.exe\u202c":                  "�gnp.exe�", // shown as exe.png
		"\u2066a\u2069\u200e\u200f\u061cb":     "�a����b",
		"a\u200bb\u200cc\u200dd\ufeffe\ufe0f":  "a�b�c�d�e�",
		"a\u2028b\u2029c\u00add\u2060e\u3164f": "a�b�c�d�e�f",
		"flag\U000e0067\U000e007f":             "flag��",
		"line\nbreak":                          "line\nbreak",
		"שלום مرحبا":                           "שלום مرحبا",
		"می\u200cخواهم":                        "می\u200cخواهم",
		"क्\u200dष":                            "क्\u200dष",
		"👩\u200d🚀 ❤\ufe0f\u200d🔥":              "👩\u200d🚀 ❤\ufe0f\u200d🔥",
		"🚀\u200d\u200d\ufe0f":                  "🚀\u200d��",
		"\u0600١":                              "\u0600١", // a sign that is seen
	} {
		assert.Equal(t, want, CleanText(text, 1000), "%q", text)
		quoted, err := json.Marshal(text)
		require.NoError(t, err)
		escaped := EscapeHidden(quoted)
		assert.Equal(t, -1, bytes.IndexFunc(escaped, Hidden), "%q", escaped)
		var back string
		require.NoError(t, json.Unmarshal(escaped, &back))
		assert.Equal(t, text, back)
	}
}
