package body

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

// What comes to a page stands in the gap, before all or behind all.
func TestResponse(t *testing.T) {
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
		b := New(1, 0)
		for _, name := range strings.Fields(test.page) {
			if test.gap != "" && name > test.gap {
				b.Gap()
				test.gap = ""
			}
			b.Text = append(append(b.Text, name...), ' ')
			b.End(name)
		}
		b.Finish()
		more := &Extra{}
		for _, name := range strings.Fields(test.more) {
			_, _ = more.Write([]byte(name + " "))
			more.End(name)
		}
		r := b.Response(more, "!")
		want := strings.TrimSpace(test.want + " !")
		var plain, sent bytes.Buffer
		require.NoError(t, r.WriteTo(&plain, false))
		assert.Equal(t, r.Length(false), plain.Len(), test)
		assert.Equal(t, want, plain.String(), test)
		require.NoError(t, r.WriteTo(&sent, true))
		assert.Equal(t, r.Length(true), sent.Len(), test)
		reader, err := gzip.NewReader(&sent)
		require.NoError(t, err)
		text, err := io.ReadAll(reader)
		require.NoError(t, err)
		assert.Equal(t, want, string(text), test)
	}
}

// failing is a client that has gone.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// What a client that has gone has left does not reach the next.
func TestClientThatHasGone(t *testing.T) {
	b := New(1, 0)
	defer b.Release()
	b.Text = append(b.Text, strings.Repeat("line\n", 100)...)
	b.End("a")
	b.Finish()
	r := b.Response(&Extra{}, "")
	for _, gzipped := range []bool{false, true} {
		require.ErrorIs(t, r.WriteTo(failing{}, gzipped), io.ErrClosedPipe)
	}
	assert.Equal(t, b.Length(), len(textOf(t, b)))
}

// What one reader gives back is another's for as long as he has it.
func TestBodyIsSharedUntilAllHaveReleasedIt(t *testing.T) {
	b := New(2, 0)
	b.Text = append(b.Text, "a"...)
	b.End("a")
	b.Finish()
	b.Release()
	assert.Equal(t, "a", textOf(t, b))
	b.Release()
	assert.Empty(t, b.names)
}

// A large family is compressed in parts.
func TestSpill(t *testing.T) {
	b := New(1, 0)
	defer b.Release()
	var want strings.Builder
	for range 3 * spillBytes / 8 {
		want.WriteString("a line.\n")
		b.Text = append(b.Text, "a line.\n"...)
		b.Spill()
	}
	assert.Less(t, len(b.Text), spillBytes)
	b.End("a")
	b.Finish()
	assert.Equal(t, want.String(), textOf(t, b))
	assert.Less(t, b.Compressed(), b.Length()/100)
}

// textOf is what a body says.
func textOf(t *testing.T, b *Body) string {
	t.Helper()
	var text strings.Builder
	require.NoError(t, b.Response(&Extra{}, "").WriteTo(&text, false))
	return text.String()
}
