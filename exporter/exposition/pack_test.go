package exposition

import (
	"bytes"
	"compress/gzip"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCombinedChecksums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, second := rapid.SliceOf(rapid.Byte()).Draw(t, "first"), rapid.SliceOf(rapid.Byte()).Draw(t, "second")
		assert.Equal(t, crc32.ChecksumIEEE(append(first, second...)),
			combine(crc32.ChecksumIEEE(first), crc32.ChecksumIEEE(second), int64(len(second))))
	})
	zeros := make([]byte, 3<<20)
	assert.Equal(t, crc32.ChecksumIEEE(append([]byte("page"), zeros...)),
		combine(crc32.ChecksumIEEE([]byte("page")), crc32.ChecksumIEEE(zeros), int64(len(zeros))))
}

// What comes to a compressed page stands in the gap, before all or behind all.
func TestGzipped(t *testing.T) {
	bodyOf := func(b *Body, names, gap string) *Body {
		for _, name := range strings.Fields(names) {
			if gap != "" && name > gap {
				b.endSegment()
				gap = ""
			}
			b.text = append(append(b.text, name...), ' ')
			b.EndPart(name)
		}
		b.endSegment()
		return b
	}
	for _, test := range []struct{ page, gap, more, want string }{
		{"", "", "", ""},
		{"", "", "a b", "a b"},
		{"a b", "", "", "a b"},
		{"b c", "", "a d", "a b c d"},
		{"b e", "c", "a c d f", "a b c d e f"},
		{"b d e", "c", "ca", "b ca d e"},
		{"b d e", "c", "a d e f", "a b d e f"},
		{"b d e", "c", "b da", "b d e da"},
		{"d e", "c", "a c f", "a c d e f"},
		{"a b", "c", "c", "a b c"},
	} {
		compressed := &Body{packed: true}
		compressed.pack.begin()
		b := bodyOf(compressed, test.page, test.gap)
		z, err := gzip.NewReader(bytes.NewReader(bytes.Join(b.Gzipped(bodyOf(&Body{}, test.more, ""), "!"), nil)))
		require.NoError(t, err)
		text, err := io.ReadAll(z)
		require.NoError(t, err)
		assert.Equal(t, strings.TrimSpace(test.want+" !"), string(text), "%+v", test)
		b.pack.finish()
	}
}
