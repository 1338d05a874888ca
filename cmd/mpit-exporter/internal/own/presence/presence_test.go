package presence

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
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/own/launch"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/own/place"
)

func startPresence(t *testing.T) (p *Presence, path string) {
	t.Helper()
	path = filepath.Join(cmdtest.ShortDir(t), place.PresenceFile)
	p, err := Listen(path, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
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
	present, came := p.Count()
	assert.Zero(t, present)
	assert.False(t, came)

	require.NoError(t, Register(within(t), path)) // this process, which lives on
	require.NoError(t, Register(within(t), path))
	present, came = p.Count()
	assert.Equal(t, 1, present)
	assert.True(t, came)
	assert.False(t, p.Retire(), "somebody counts on it")
	p.mu.Lock()
	p.left[os.Getpid()] = true
	p.mu.Unlock()
	require.NoError(t, Register(within(t), path))
	assert.False(t, p.HasLeft(os.Getpid()), "another process had this number")
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
			p.greeting.Go(func() { p.awaitLooking(pid, launch.StatOf(os.DirFS("/proc"), pid).Started) })
		} else {
			require.True(t, p.Enter(pid))
		}
		assert.False(t, p.Retire())
		assert.False(t, p.HasLeft(pid))
		end()
		require.Eventually(t, p.Retire, cmdtest.Patience, time.Millisecond, "its end was not seen")
		assert.True(t, p.HasLeft(pid))
		assert.Len(t, p.Left, 1, "somebody may wait for it")
		assert.ErrorContains(t, Register(within(t), path), "about to end", "too late")
		assert.False(t, p.Enter(os.Getpid()))
	}
}

func TestPresenceOfNobody(t *testing.T) {
	p, path := startPresence(t)
	require.True(t, p.Enter(0), "a process of another pid namespace")
	require.True(t, p.Enter(1<<22+1), "one that has ended by now")
	present, came := p.Count()
	assert.Zero(t, present)
	assert.True(t, came)
	assert.False(t, p.HasLeft(0))
	require.NoError(t, p.Close())
	assert.Error(t, Register(within(t), path))
}
