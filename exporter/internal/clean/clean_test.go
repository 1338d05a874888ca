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

// What schedulers and launchers call jobs stays; markup, links, mentions and what isn't seen doesn't.
func TestName(t *testing.T) {
	for _, plain := range []string{
		"4711", "100_3", "12[3].server", "ƒ2oLkTLb", "prterun-node7-1234@1", "node7-99", "my job", "grp/run:7", "größe",
	} {
		assert.Equal(t, plain, Name(plain))
	}
	for in, want := range map[string]string{
		"<!here>":                "\uFFFD!here\uFFFD",
		"<https://a.b|pay>":      "\uFFFDhttps:/\uFFFDa.b\uFFFDpay\uFFFD",
		"[text](https://a.b)":    "[text]\uFFFDhttps:/\uFFFDa.b\uFFFD",
		"*7* `8` &amp;":          "\uFFFD7\uFFFD \uFFFD8\uFFFD \uFFFDamp;",
		"@channel 1@@all":        "\uFFFDchannel 1@\uFFFDall",
		"exe.\u202egnp\u200b\n":  "exe.\uFFFDgnp\uFFFD\uFFFD",
		strings.Repeat("(", 256): strings.Repeat("\uFFFD", 85),
	} {
		assert.Equal(t, want, Name(in))
	}
}

func TestCut(t *testing.T) {
	assert.Equal(t, "plain", Cut("plain", 5))
	assert.Equal(t, "pl", Cut("plain", 2))
	assert.Equal(t, "x", Cut("xü", 2), "no half of a character")
	assert.Empty(t, Cut("ü", 1))
}
