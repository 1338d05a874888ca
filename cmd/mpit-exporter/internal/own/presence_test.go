package own

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cmdtest"
)

func startPresence(t *testing.T) (p *presence, path string) {
	t.Helper()
	path = filepath.Join(cmdtest.ShortDir(t), presenceFile)
	p, err := listenPresence(path, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.close()) })
	return p, path
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cmdtest.Patience)
	t.Cleanup(cancel)
	return ctx
}

func TestPresence(t *testing.T) {
	p, path := startPresence(t)
	present, came := p.count()
	assert.Zero(t, present)
	assert.False(t, came)

	require.NoError(t, register(within(t), path)) // this process, which lives on
	require.NoError(t, register(within(t), path))
	present, came = p.count()
	assert.Equal(t, 1, present)
	assert.True(t, came)
	assert.False(t, p.retire(), "somebody counts on it")
	p.mu.Lock()
	p.left[os.Getpid()] = true
	p.mu.Unlock()
	require.NoError(t, register(within(t), path))
	assert.False(t, p.hasLeft(os.Getpid()), "another process had this number")
}

// TestPresenceOfProcesses: the kernel tells of their ends; where it can't, it is looked.
func TestPresenceOfProcesses(t *testing.T) {
	t.Parallel() // it waits
	for _, looked := range []bool{false, true} {
		p, path := startPresence(t)
		pid, end := cmdtest.Sleeper(t)
		if looked {
			p.mu.Lock()
			p.present[pid] = nil
			p.mu.Unlock()
			p.greeting.Go(func() { p.await(pid, StatOf(os.DirFS("/proc"), pid).Started, nil) })
		} else {
			require.True(t, p.enter(pid))
		}
		assert.False(t, p.retire())
		assert.False(t, p.hasLeft(pid))
		end()
		require.Eventually(t, p.retire, cmdtest.Patience, time.Millisecond, "its end was not seen")
		assert.True(t, p.hasLeft(pid))
		assert.Len(t, p.gone, 1, "somebody may wait for it")
		assert.ErrorContains(t, register(within(t), path), "about to end", "too late")
		assert.False(t, p.enter(os.Getpid()))
	}
}

func TestPresenceOfNobody(t *testing.T) {
	p, path := startPresence(t)
	require.True(t, p.enter(0), "a process of another pid namespace")
	require.True(t, p.enter(1<<22+1), "one that has ended by now")
	present, came := p.count()
	assert.Zero(t, present)
	assert.True(t, came)
	assert.False(t, p.hasLeft(0))
	require.NoError(t, p.close())
	assert.Error(t, register(within(t), path))
}
