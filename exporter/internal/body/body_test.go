package body

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What else is on the page stands behind it, and both together are one member of gzip.
func TestResponse(t *testing.T) {
	long := strings.Repeat("a line.\n", 3*spillBytes/8)
	for _, test := range []struct{ page, more string }{
		{"", ""}, {"", "a b"}, {"a b", ""}, {"a b", "a b"}, {long, "a line.\n"}, {"a line.\n", long},
	} {
		b := New(1, 0)
		b.Text = append(b.Text, test.page...)
		b.End("a")
		b.Finish()
		r := b.Response([]byte(test.more))
		want := test.page + test.more
		var plain, sent bytes.Buffer
		require.NoError(t, r.WriteTo(&plain, false))
		assert.Equal(t, r.Length(false), plain.Len())
		assert.Equal(t, want, plain.String())
		require.NoError(t, r.WriteTo(&sent, true))
		assert.Equal(t, r.Length(true), sent.Len())
		reader, err := gzip.NewReader(&sent)
		require.NoError(t, err)
		text, err := io.ReadAll(reader)
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}

func TestHas(t *testing.T) {
	b := New(1, 0)
	defer b.Release()
	b.End("a")
	b.End("c")
	b.Finish()
	for name, want := range map[string]bool{"": false, "a": true, "b": false, "c": true, "d": false} {
		assert.Equal(t, want, b.Has(name), name)
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
	r := b.Response(nil)
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
	require.NoError(t, b.Response(nil).WriteTo(&text, false))
	return text.String()
}
