// Package logs lets nobody wait for a log: Writer takes lines for a reader that may be slow or gone, and Repeats
// thins out what strangers can make net/http say.
//
// What is logged and how is promslog's.
package logs

import (
	"bytes"
	"fmt"
	"io"
	"strings"
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

// Writer hands lines to another writer, which may block: a full pipe, a stopped journald. Writing a line never
// blocks, because the caller may hold a lock that scrapes need. Lines that find no room are counted. It is safe for
// concurrent use.
type Writer struct {
	lines  chan []byte
	lost   atomic.Uint64 // lines, ever
	done   chan struct{} // closed when all lines are written
	mu     sync.Mutex    // guards closed, and lines against being closed while somebody writes
	closed bool
}

// NewWriter returns one that hands lines to another writer until it is closed.
func NewWriter(to io.Writer) *Writer {
	w := &Writer{lines: make(chan []byte, logLines), done: make(chan struct{})}
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
func (w *Writer) Write(line []byte) (int, error) {
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
func (w *Writer) Close() {
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
func (w *Writer) LostLines() prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "mpit_exporter_log_lines_lost_total",
		Help: "Log lines dropped because nobody read them in time.",
	}, func() float64 { return float64(w.lost.Load()) })
}

const (
	repeatsWindow = time.Minute
	repeatsKinds  = 32 // net/http has a handful
)

// repeats lets one line of each kind through in a minute, and says with the next one how many were left out:
// strangers can make net/http complain as often as they like. The kind is a line's first three words. Its user is a
// log.Logger, which writes a line at a time and never concurrently.
type repeats struct {
	to    io.Writer
	now   func() time.Time
	kinds map[string]*repeated
}

type repeated struct {
	since time.Time // when one was let through last
	out   int       // how many were left out since
}

// NewRepeats returns one that writes what it lets through to another writer.
func NewRepeats(to io.Writer) io.Writer {
	return &repeats{to: to, now: time.Now, kinds: map[string]*repeated{}}
}

func (r *repeats) Write(line []byte) (int, error) {
	words := strings.Fields(string(line[:min(len(line), 200)]))
	kind := strings.Join(words[:min(3, len(words))], " ")
	now := r.now()
	k := r.kinds[kind]
	switch {
	case k == nil:
		if len(r.kinds) >= repeatsKinds {
			clear(r.kinds)
		}
		r.kinds[kind] = &repeated{since: now}
	case now.Sub(k.since) < repeatsWindow:
		k.out++
		return len(line), nil
	default:
		if k.out > 0 {
			line = append(bytes.TrimRight(bytes.Clone(line), "\n"),
				fmt.Sprintf(" (and %d like it before)\n", k.out)...)
		}
		*k = repeated{since: now}
	}
	return r.to.Write(line)
}
