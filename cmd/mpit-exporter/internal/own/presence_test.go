package own

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

func startPresence(t *testing.T) (p *presence, path string) {
	t.Helper()
	path = filepath.Join(mpittest.ShortDir(t), presenceFile)
	p, err := listenPresence(path)
	require.NoError(t, err)
	t.Cleanup(p.close)
	return p, path
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func TestPresence(t *testing.T) {
	p, path := startPresence(t)
	present, came, gone := p.look()
	assert.Zero(t, present)
	assert.False(t, came)
	assert.False(t, gone)

	require.True(t, register(within(t), path)) // this process, which lives on
	require.True(t, register(within(t), path))
	present, came, gone = p.look()
	assert.Equal(t, 1, present)
	assert.True(t, came)
	assert.False(t, gone)
	assert.False(t, p.retire(), "somebody counts on it")
	p.mu.Lock()
	p.left[os.Getpid()] = true
	p.mu.Unlock()
	require.True(t, register(within(t), path))
	assert.False(t, p.hasLeft(os.Getpid()), "another process had this number")
}

func TestPresenceOfProcesses(t *testing.T) {
	p, path := startPresence(t)
	pid, end := sleeper(t)
	require.True(t, p.enter(pid))
	p.look()
	assert.False(t, p.retire())
	assert.False(t, p.hasLeft(pid))
	end()
	_, _, gone := p.look()
	assert.True(t, gone)
	assert.True(t, p.hasLeft(pid))
	_, _, gone = p.look()
	assert.False(t, gone, "once")
	assert.True(t, p.retire())
	assert.False(t, register(within(t), path), "too late")
}

// TestPresenceOfAZombie: a process has ended though its parent hasn't asked for its status.
func TestPresenceOfAZombie(t *testing.T) {
	p, _ := startPresence(t)
	process, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	require.NoError(t, err)
	require.True(t, p.enter(process.Pid))
	require.Eventually(t, func() bool {
		p.mu.Lock()
		p.read = time.Time{} // its state is read at each look
		p.mu.Unlock()
		p.look()
		return p.hasLeft(process.Pid)
	}, patience, time.Millisecond)
	_, err = process.Wait()
	require.NoError(t, err)
}

func TestPresenceOfNobody(t *testing.T) {
	p, path := startPresence(t)
	require.True(t, p.enter(0), "a process of another pid namespace")
	require.True(t, p.enter(1<<22+1), "one that has ended by now")
	present, came, _ := p.look()
	assert.Zero(t, present)
	assert.True(t, came)
	assert.False(t, p.hasLeft(0))
	p.close()
	assert.False(t, register(within(t), path))
}

// sleeper is a process that lives until its stdin is closed.
func sleeper(t *testing.T) (pid int, end func()) {
	t.Helper()
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	end = func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}
	t.Cleanup(end)
	return cmd.Process.Pid, end
}
