package main

import (
	"bytes"
	"debug/elf"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cmdtest"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// movingRank is an exporter with a rank in it whose counter grows.
func movingRank(t *testing.T) *exporterProcess {
	t.Helper()
	e := startExporter(t, filepath.Join(cmdtest.ShortDir(t), "agent.sock"))
	r := mpittest.New(cmdtest.RankConfig(0, "steps\x1b[31m"))
	keepConnected(t, e.socket, r)
	e.awaitRanks(t, 1)
	ended := make(chan struct{})
	var growing sync.WaitGroup
	growing.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(10 * time.Millisecond):
				assert.NoError(t, r.Add("steps\x1b[31m", mpit.ClassCounter, 0, 1))
			}
		}
	})
	t.Cleanup(func() {
		close(ended)
		growing.Wait()
	})
	return e
}

// TestTopInATerminal: the real program in a pseudo-terminal shows what moves, obeys keys and the terminal's size, and
// gives the terminal back as it was, whichever way it ends.
func TestTopInATerminal(t *testing.T) {
	e := movingRank(t)
	for _, test := range []struct {
		name string
		end  func(keys io.Writer, p *exec.Cmd) error
	}{
		{"q", func(keys io.Writer, _ *exec.Cmd) error { _, err := keys.Write([]byte("q")); return err }},
		{"Ctrl-C", func(keys io.Writer, _ *exec.Cmd) error { _, err := keys.Write([]byte{3}); return err }},
		{"SIGTERM", func(_ io.Writer, p *exec.Cmd) error { return p.Process.Signal(syscall.SIGTERM) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := exec.Command(binary(), "top", "--url="+e.url, "--interval=100ms")
			cmd.Env = cleanEnviron()
			terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: 100})
			require.NoError(t, err)
			defer func() { _ = terminal.Close() }()
			var seen lockedBuffer
			read := make(chan struct{})
			go func() {
				defer close(read)
				_, _ = io.Copy(&seen, terminal) // ends with EIO when the last to have it open has gone
			}()
			shows := func(text string) {
				t.Helper()
				require.Eventually(t, func() bool { return strings.Contains(seen.String(), text) }, cmdtest.Patience,
					10*time.Millisecond, "never shown: %q in %q", text, seen.String())
			}
			shows("\x1b[?1049h")
			shows("mpit_steps_")
			shows("1 rank, 1 up")
			_, err = terminal.WriteString("n")
			require.NoError(t, err)
			// A narrow terminal: nothing is wider.
			require.NoError(t, pty.Setsize(terminal, &pty.Winsize{Rows: 6, Cols: 30}))
			mark := seen.Len()
			require.Eventually(t, func() bool {
				screens := strings.Split(seen.String()[mark:], "\x1b[H")
				return len(screens) > 3 && strings.Count(screens[len(screens)-2], "\r\n") <= 5
			}, cmdtest.Patience, 10*time.Millisecond)
			require.NoError(t, test.end(terminal, cmd))
			require.NoError(t, cmd.Wait())
			shows("\x1b[?1049l")
			assert.NotContains(t, seen.String(), "\x1b[31m", "what a rank says does not reach the terminal as it is")
			_ = terminal.Close()
			<-read
		})
	}
}

// Into a pipe it writes tables, one after the other, and no word to a terminal.
func TestTopInAPipe(t *testing.T) {
	t.Parallel() // it waits for new values, twice
	e := movingRank(t)
	out := runBinary(t, cleanEnviron(), "top", "--url="+e.url, "--interval=200ms", "--count=2")
	assert.Zero(t, out.status, out.stderr)
	assert.Equal(t, 2, strings.Count(out.stdout, "PROGRAM\n"), out.stdout)
	assert.NotRegexp(t, "[\x00-\x09\x0b-\x1f]", out.stdout)
	assert.Regexp(t, `(?m)^\d[\d.]*\s+\d[\d.]*\s+0\s+\d+\s+1\s+\S+\s+\S+\s+mpit_steps`, out.stdout)
}

// lockedBuffer is a buffer that one goroutine writes and others read.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lockedBuffer) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Len()
}

// TestTopOpensNoFileOfOthers: where a call was made is looked up for the ranks of whoever runs it alone.
func TestTopOpensNoFileOfOthers(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	compile := exec.Command("cc", "-g", "-o", program, "-x", "c", "-")
	compile.Stdin = strings.NewReader("int main(void) { return 0; }\n")
	out, err := compile.CombinedOutput()
	require.NoError(t, err, string(out))
	file, err := elf.Open(program)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	symbols, err := file.Symbols()
	require.NoError(t, err)
	at := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == "main" })
	code := file.Section(".text")
	call := &api.LongCall{Module: program, Offset: symbols[at].Value - code.Addr + code.Offset + 1}
	for uid, want := range map[uint32]string{uint32(os.Getuid()): "main (<stdin>:1)", uint32(os.Getuid()) + 1: ""} {
		assert.Equal(t, want, placeOfOwn()(&api.RankStatus{UID: uid, Calls: &api.Calls{Long: call}}), "user %d", uid)
	}
}
