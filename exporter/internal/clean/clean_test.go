package clean

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLabel(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                        "plain",
		"ümlaut":                       "ümlaut",
		"bro\xffken":                   "broÿken",
		"line\nbreak\x1b":              "line\nbreak\uFFFD",
		strings.Repeat("x", 300):       strings.Repeat("x", 256),
		strings.Repeat("ü", 200):       strings.Repeat("ü", 128),
		"x" + strings.Repeat("ü", 200): "x" + strings.Repeat("ü", 127),
	} {
		assert.Equal(t, want, Label(in))
	}
}

func TestCut(t *testing.T) {
	assert.Equal(t, "plain", Cut("plain", 5))
	assert.Equal(t, "pl", Cut("plain", 2))
	assert.Equal(t, "x", Cut("xü", 2), "no half of a character")
	assert.Empty(t, Cut("ü", 1))
}
