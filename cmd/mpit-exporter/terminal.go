package main

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// Keys that are no letters.
const (
	keyEnd       = 4 // Ctrl-D
	keyInterrupt = 3 // Ctrl-C: in raw mode it is a key and no signal
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

// heading ends a line that is one. Nothing that a rank says has it: table.Clean takes such characters away.
const heading = "\x01"

// screen is a terminal that belongs to us until close.
type screen struct {
	in, out *os.File
	before  *term.State
	keys    chan byte // closed when the terminal is gone
	resized chan os.Signal
}

// terminalOf returns the terminal that a stream is, or nil.
func terminalOf(stream any) *os.File {
	if f, ok := stream.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// openScreen takes the terminal over. Its reader goes on until the terminal is closed or the process ends, as a read of a terminal
// can't be called off.
func openScreen(in, out *os.File) (*screen, error) {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("taking over the terminal: %w", err)
	}
	s := &screen{in: in, out: out, before: before, keys: make(chan byte), resized: make(chan os.Signal, 1)}
	signal.Notify(s.resized, syscall.SIGWINCH)
	_, _ = out.WriteString(enterScreen)
	go func() {
		defer close(s.keys)
		var key [1]byte
		for {
			if n, err := in.Read(key[:]); n == 0 || err != nil {
				return
			}
			s.keys <- key[0]
		}
	}()
	return s, nil
}

// close gives the terminal back as it was.
func (s *screen) close() {
	signal.Stop(s.resized)
	_, _ = s.out.WriteString(leaveScreen)
	_ = term.Restore(int(s.in.Fd()), s.before)
}

func (s *screen) size() (columns, lines int) {
	columns, lines, err := term.GetSize(int(s.out.Fd()))
	if err != nil || columns <= 0 || lines <= 0 {
		return 80, 24
	}
	return columns, lines
}

// draw shows a table, and below it what is wrong.
func (s *screen) draw(table, trouble string) {
	w := bufio.NewWriter(s.out)
	_, _ = w.WriteString(home)
	for line := range strings.Lines(table) {
		line = strings.TrimSuffix(line, "\n")
		if text, ok := strings.CutSuffix(line, heading); ok {
			line = bold + text + plain
		}
		_, _ = w.WriteString(line + clearLine + "\r\n")
	}
	columns, _ := s.size()
	_, _ = w.WriteString(shorten(trouble, columns) + clearBelow)
	_ = w.Flush()
}
