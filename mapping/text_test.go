package mapping

import (
	"bytes"
	"testing"
	"unicode/utf8"
)

func FuzzCleanName(f *testing.F) {
	f.Add("é\x00\xff")
	f.Fuzz(func(t *testing.T, s string) {
		n := CleanName(s)
		if n == "" || len(n) > maxObjectName || !utf8.ValidString(n) || bytes.IndexByte([]byte(n), 0) >= 0 {
			t.Errorf("%q becomes %q", s, n)
		}
		if CleanName(n) != n {
			t.Errorf("%q isn't clean", n)
		}
	})
}
