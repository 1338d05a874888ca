package process

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestStatus(t *testing.T) {
	for _, test := range []struct{ script, want string }{
		{"exit 0", "exit 0"},
		{"exit 3", "exit 3"},
		{"kill -SEGV $$", "SIGSEGV"},
		{"kill -40 $$", "signal 40"},
	} {
		t.Run(test.script, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "sh", "-c", "ulimit -c 0; read go; "+test.script)
			in, err := cmd.StdinPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			h := open(t, cmd.Process.Pid)
			assert.Empty(t, h.Status(), "while it runs")
			assert.False(t, h.Gone())
			_, err = in.Write([]byte("\n"))
			require.NoError(t, err)
			_ = cmd.Wait()
			assert.True(t, h.Gone())
			if got := h.Status(); got != "" || kernelTells(t) {
				assert.Equal(t, test.want, got)
			}
			assert.Empty(t, h.Status(), "a second time")
		})
	}
}

// Of one that has ended and that its parent hasn't waited for, too.
func TestStatusOfZombie(t *testing.T) {
	if !kernelTells(t) {
		t.Skip("Linux before 6.15 doesn't tell")
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "exit 4")
	require.NoError(t, cmd.Start())
	h := open(t, cmd.Process.Pid)
	require.NoError(t, unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil))
	assert.True(t, h.Gone())
	status := h.Status() // a kernel may not know it before the parent does
	_ = cmd.Wait()
	if status == "" {
		status = h.Status()
	}
	assert.Equal(t, "exit 4", status)
}

func TestNoHandle(t *testing.T) {
	h := New(nil)
	assert.Empty(t, h.Status())
	assert.False(t, h.Gone())
	h.Close()
}

func open(t *testing.T, pid int) Handle {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	require.NoError(t, err)
	h := New(os.NewFile(uintptr(fd), "pidfd"))
	t.Cleanup(h.Close)
	return h
}

// kernelTells asks of a process that has ended for certain.
func kernelTells(t *testing.T) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "true")
	require.NoError(t, cmd.Start())
	h := open(t, cmd.Process.Pid)
	require.NoError(t, cmd.Wait())
	return h.Status() != ""
}
