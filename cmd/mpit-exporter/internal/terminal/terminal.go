// Package terminal takes a terminal over and shows text in it, until it is given back.
//
// It doesn't know what the text is; what isn't a terminal is the caller's to write to. Begin with Open.
package terminal

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
)

// Keys that are no letters.
const (
	KeyEnd       = 4 // Ctrl-D
	KeyInterrupt = 3 // Ctrl-C: in raw mode it is a key and no signal
)

// What a terminal is told. All that people use have known these since the VT220.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // a screen of one's own, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
	bold        = "\x1b[1m"
	plain       = "\x1b[0m"
)

// Heading ends a line that is one. Nothing that a rank says has it: table.Clean takes such characters away.
const Heading = "\x01"

// Screen is a terminal that belongs to us until close.
type Screen struct {
	in, out *os.File
	before  *term.State
	Keys    chan byte // closed when the terminal is gone
	Resized chan os.Signal
}

// Of returns the terminal that a stream is, or nil.
func Of(stream any) *os.File {
	if f, ok := stream.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// Open takes the terminal over. Its reader goes on until the terminal is closed or the process ends, as a read of a
// terminal can't be called off.
func Open(in, out *os.File) (*Screen, error) {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("taking over the terminal: %w", err)
	}
	s := &Screen{in: in, out: out, before: before, Keys: make(chan byte), Resized: make(chan os.Signal, 1)}
	signal.Notify(s.Resized, syscall.SIGWINCH)
	_, _ = out.WriteString(enterScreen)
	go func() {
		defer close(s.Keys)
		var key [1]byte
		for {
			if n, err := in.Read(key[:]); n == 0 || err != nil {
				return
			}
			s.Keys <- key[0]
		}
	}()
	return s, nil
}

// Close gives the terminal back as it was.
func (s *Screen) Close() {
	signal.Stop(s.Resized)
	_, _ = s.out.WriteString(leaveScreen)
	_ = term.Restore(int(s.in.Fd()), s.before)
}

// Size is that of the terminal now, or a usual one where it can't be told.
func (s *Screen) Size() (columns, lines int) {
	columns, lines, err := term.GetSize(int(s.out.Fd()))
	if err != nil || columns <= 0 || lines <= 0 {
		return 80, 24
	}
	return columns, lines
}

// Draw shows a text, and below it what is wrong.
func (s *Screen) Draw(text, trouble string) {
	w := bufio.NewWriter(s.out)
	_, _ = w.WriteString(home)
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if title, ok := strings.CutSuffix(line, Heading); ok {
			line = bold + title + plain
		}
		_, _ = w.WriteString(line + clearLine + "\r\n")
	}
	columns, _ := s.Size()
	_, _ = w.WriteString(table.Shorten(trouble, columns) + clearBelow)
	_ = w.Flush()
}
