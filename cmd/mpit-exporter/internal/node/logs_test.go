package node

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A reader that stops to read holds up nobody; what finds no room is counted, and told when he reads on.
func TestLogWriterNeverBlocks(t *testing.T) {
	reads, writes, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = reads.Close() }()
	w := newLogWriter(writes)
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
	require.Eventually(t, func() bool { return len(w.lines) == 0 }, patience, time.Millisecond)
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
	w := newLogWriter(&b)
	_, err := w.Write(bytes.Repeat([]byte("x"), 10*logLineBytes))
	require.NoError(t, err)
	w.Close()
	assert.Equal(t, logLineBytes+len("…\n"), b.Len())
}
