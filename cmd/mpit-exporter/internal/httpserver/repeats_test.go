package httpserver

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRepeats(t *testing.T) {
	var b strings.Builder
	now := time.Unix(1000, 0)
	r := &repeats{to: &b, now: func() time.Time { return now }, kinds: map[string]*repeated{}}
	say := func(line string) string {
		b.Reset()
		n, err := r.Write([]byte(line + "\n"))
		require.NoError(t, err)
		require.GreaterOrEqual(t, n, len(line))
		return b.String()
	}
	assert.Equal(t, "http: TLS handshake error from a\n", say("http: TLS handshake error from a"))
	assert.Empty(t, say("http: TLS handshake error from b"))
	assert.Equal(t, "http: Accept error: full\n", say("http: Accept error: full"), "another kind")
	assert.Empty(t, say("http: TLS handshake error from c"))
	now = now.Add(repeatsWindow)
	assert.Equal(t, "http: TLS handshake error from d (and 2 like it before)\n",
		say("http: TLS handshake error from d"))
	now = now.Add(repeatsWindow)
	assert.Equal(t, "http: TLS handshake error from e\n", say("http: TLS handshake error from e"))
	for i := range 10 * repeatsKinds {
		say(strings.Repeat("y", i))
	}
	assert.LessOrEqual(t, len(r.kinds), repeatsKinds)
}
