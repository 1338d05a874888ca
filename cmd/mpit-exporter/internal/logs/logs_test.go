package logs

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cmdtest"
)

// A reader that stops to read holds up nobody; what finds no room is counted, and told when he reads on.
func TestLogWriterNeverBlocks(t *testing.T) {
	reads, writes, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = reads.Close() }()
	w := NewWriter(writes)
	line := strings.Repeat("x", 1000) + "\n"
	const written = 2000 // far more than the pipe and the queue take
	for range written {
		n, err := w.Write([]byte(line))
		require.NoError(t, err)
		require.Equal(t, len(line), n)
	}
	lost := float64(w.lost.Load())
	assert.Positive(t, lost)

	text := make(chan []byte, 1)
	go func() {
		all, _ := io.ReadAll(reads)
		text <- all
	}()
	require.Eventually(t, func() bool { return len(w.lines) == 0 }, cmdtest.Patience, time.Millisecond)
	w.Close()
	w.Close()
	require.NoError(t, writes.Close())
	all := string(<-text)
	assert.InDelta(t, written-lost, strings.Count(all, "xxx\n"), 0)
	assert.Contains(t, all, " lines of the log are lost")
	_, err = w.Write([]byte("late\n"))
	assert.NoError(t, err)
}

func TestLogLinesAreCut(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	_, err := w.Write(bytes.Repeat([]byte("x"), 10*logLineBytes))
	require.NoError(t, err)
	w.Close()
	assert.Equal(t, logLineBytes+len("…\n"), b.Len())
}

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
