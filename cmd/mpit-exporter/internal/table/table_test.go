package table

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                "plain",
		" two\n\tlines\r\n":    "two lines",
		"\x1b]0;title\x07bell": "]0;title bell",
		"r\xffd":               "r\uFFFDd",
		"zwei Wörter":          "zwei Wörter",
		"right\u202eleft":      "right left",
	} {
		assert.Equal(t, want, mapping.OneLine(text), "%q", text)
	}
}

func TestShorten(t *testing.T) {
	assert.Equal(t, "äöü", Shorten("äöü", 3))
	assert.Equal(t, "äö…", Shorten("äöüß", 3))
	assert.Equal(t, "作业", Shorten("作业", 4), "each takes two columns")
	assert.Equal(t, "作…", Shorten("作业流体", 4))
	assert.Equal(t, 1, Width("u\u0308"), "and a mark none")
}

func TestNumbers(t *testing.T) {
	for want, all := range map[string][]int{"": nil, "7": {7}, "0-2,7": {2, 0, 1, 7}, "1,3,5-6": {5, 6, 3, 1, 1}} {
		assert.Equal(t, want, Numbers(all))
	}
}
