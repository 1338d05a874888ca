package node

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
)

const (
	logLines     = 512      // that wait to be written
	logLineBytes = 16 << 10 // of one of them; what is longer is cut
	// logPatience is how long the end waits for the last lines to be taken.
	logPatience = time.Second
)

// logWriter hands lines to another writer, which may block: a full pipe, a stopped journald. Writing a line never
// blocks, because the caller may hold a lock that scrapes need. Lines that find no room are counted. It is safe for
// concurrent use.
type logWriter struct {
	lines  chan []byte
	lost   atomic.Uint64 // lines, ever
	done   chan struct{} // closed when all lines are written
	mu     sync.Mutex    // guards closed, and lines against being closed while somebody writes
	closed bool
}

// newLogWriter returns one that hands lines to another writer until it is closed.
func newLogWriter(to io.Writer) *logWriter {
	w := &logWriter{lines: make(chan []byte, logLines), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		told := uint64(0)
		for line := range w.lines {
			_, _ = to.Write(line) // there is nobody to tell of an error
			if lost := w.lost.Load(); lost > told {
				_, _ = fmt.Fprintf(to, "%s: %d lines of the log are lost: what reads it is too slow\n",
					cli.ProgramName, lost-told)
				told = lost
			}
		}
	}()
	return w
}

// Write takes a line. It never blocks and never fails.
func (w *logWriter) Write(line []byte) (int, error) {
	n := len(line)
	if n > logLineBytes {
		line = append(bytes.Clone(line[:logLineBytes]), "…\n"...)
	} else {
		line = bytes.Clone(line)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return n, nil
	}
	select {
	case w.lines <- line:
	default:
		w.lost.Add(1)
	}
	return n, nil
}

// Close waits until all is written, though not for long. What is written later is thrown away.
func (w *logWriter) Close() {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.lines)
	}
	w.mu.Unlock()
	select {
	case <-w.done:
	case <-time.After(logPatience):
	}
}

// LostLines is the metric of lines that found no room.
func (w *logWriter) LostLines() prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "mpit_exporter_log_lines_lost_total",
		Help: "Log lines dropped because nobody read them in time.",
	}, func() float64 { return float64(w.lost.Load()) })
}
