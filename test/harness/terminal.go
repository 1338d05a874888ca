package harness

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/gdamore/tcell/v3/color"
	"github.com/gdamore/tcell/v3/vt"
)

// Terminal is a program in a terminal of its own: what it shows can be read, and keys can be pressed.
type Terminal struct {
	cmd    *exec.Cmd
	keys   *os.File
	mu     sync.Mutex // of screen, between what is written to it
	screen vt.MockTerm
	read   chan struct{} // closed when all that was written is on the screen
	stream strings.Builder
}

// Terminal starts a command in a terminal of so many columns and lines. When the test ends it is ended.
func (s *Suite) Terminal(tb testing.TB, command, env []string, columns, lines int) *Terminal {
	tb.Helper()
	t := &Terminal{cmd: exec.Command(command[0], command[1:]...), read: make(chan struct{}),
		screen: vt.NewMockTerm(vt.MockOptSize{X: vt.Col(columns), Y: vt.Row(lines)})}
	t.cmd.Env = append(append(os.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8"), env...)
	t.cmd.Dir = s.dir
	if err := t.screen.Start(); err != nil {
		tb.Fatalf("starting a terminal: %v", err)
	}
	var err error
	t.keys, err = pty.StartWithSize(t.cmd, &pty.Winsize{Rows: uint16(lines), Cols: uint16(columns)})
	if err != nil {
		tb.Fatalf("starting %v: %v", command, err)
	}
	go func() {
		defer close(t.read)
		_, _ = io.Copy(t, t.keys) // ends with EIO when the last to have it open has gone
	}()
	tb.Cleanup(func() {
		_ = t.cmd.Process.Kill()
		_ = t.cmd.Wait()
		_ = t.keys.Close()
		<-t.read
		_ = t.screen.Stop()
	})
	return t
}

// Write shows what the program writes.
func (t *Terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stream.Write(p)
	return t.screen.Write(p)
}

// Stream is all that the program has written so far.
func (t *Terminal) Stream() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stream.String()
}

// Text is what is on the screen, without what stands behind the lines' ends.
func (t *Terminal) Text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	size, _ := t.screen.WindowSize()
	var b strings.Builder
	for y := range size.Height {
		var line strings.Builder
		for x := range size.Width {
			cell := t.screen.GetCell(vt.Coord{X: vt.Col(x), Y: vt.Row(y)})
			if cell.C == "" {
				cell.C = " "
			}
			line.WriteString(cell.C)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// themed are colours of the oldest terminals as those of today show them.
var themed = map[string]string{"#800000": "#e2554d", "#008000": "#3fae5a", "#808000": "#d9b12c", "#C0C0C0": "#d8dde2"}

func css(c color.Color) string { return cmp.Or(themed[c.CSS()], c.CSS()) }

// HTML is what is on the screen with its colours, as lines of a pre element.
func (t *Terminal) HTML() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	size, _ := t.screen.WindowSize()
	var b strings.Builder
	for y := range size.Height {
		for x := range size.Width {
			cell := t.screen.GetCell(vt.Coord{X: vt.Col(x), Y: vt.Row(y)})
			if cell.C == "" {
				cell.C = " "
			}
			text, front, back := html.EscapeString(cell.C), cell.S.Fg(), cell.S.Bg()
			if cell.S.Attr()&vt.Reverse != 0 {
				front, back = back, front
			}
			weight := "normal"
			if cell.S.Attr()&vt.Bold != 0 {
				weight = "bold"
			}
			fmt.Fprintf(&b, `<span style="color:%s;background:%s;font-weight:%s">%s</span>`, css(front), css(back), weight,
				text)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Await waits until what is on the screen is as it should be, and returns it.
func (t *Terminal) Await(tb testing.TB, what string, is func(text string) bool) (text string) {
	tb.Helper()
	Await(tb, what, func(context.Context) error {
		if text = t.Text(); !is(text) {
			return fmt.Errorf("the screen is:\n%s", text)
		}
		return nil
	})
	return text
}

// Type presses keys.
func (t *Terminal) Type(tb testing.TB, keys string) {
	tb.Helper()
	if _, err := t.keys.WriteString(keys); err != nil {
		tb.Fatalf("typing %q: %v", keys, err)
	}
}

// Resize changes the terminal's size.
func (t *Terminal) Resize(tb testing.TB, columns, lines int) {
	tb.Helper()
	t.mu.Lock()
	t.screen.SetSize(vt.Coord{X: vt.Col(columns), Y: vt.Row(lines)})
	t.mu.Unlock()
	if err := pty.Setsize(t.keys, &pty.Winsize{Rows: uint16(lines), Cols: uint16(columns)}); err != nil {
		tb.Fatalf("changing the terminal's size: %v", err)
	}
}

// Signal sends a signal to the program.
func (t *Terminal) Signal(tb testing.TB, signal syscall.Signal) {
	tb.Helper()
	if err := t.cmd.Process.Signal(signal); err != nil {
		tb.Fatalf("sending %v: %v", signal, err)
	}
}

// Wait waits for the program's end, and returns its status.
func (t *Terminal) Wait(tb testing.TB) int {
	tb.Helper()
	Await(tb, "the program's end", func(context.Context) error {
		select {
		case <-t.read:
			return nil
		default:
			return fmt.Errorf("the screen is:\n%s", t.Text())
		}
	})
	_ = t.cmd.Wait()
	return t.cmd.ProcessState.ExitCode()
}
