package mpit_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// Whatever becomes of the socket's file, ranks that are there stay and new ones find their way, once somebody has
// looked.
func TestRestore(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, path string){
		"deleted": func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"its directory replaced": func(t *testing.T, path string) {
			dir := filepath.Dir(path)
			require.NoError(t, os.Rename(dir, dir+".old"))
			t.Cleanup(func() { _ = os.RemoveAll(dir + ".old") })
			require.NoError(t, os.Mkdir(dir, 0o755))
		},
		"a dead one in its place": func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			deadSocket(t, path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			made, err := l.Restore()
			require.NoError(t, err)
			assert.False(t, made, "all is well")

			sessions, failures, stop := serve(t, l)
			old := mpittest.New(small())
			require.NoError(t, old.Connect(testContext(t), l.Path()))
			defer old.Kill()
			first := <-sessions
			harm(t, l.Path())
			made, err = l.Restore()
			require.NoError(t, err)
			assert.True(t, made)
			info, err := os.Stat(l.Path())
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o666), info.Mode().Perm())

			late := mpittest.New(small())
			require.NoError(t, late.Connect(testContext(t), l.Path()))
			defer late.Kill()
			second := <-sessions
			read(t, first)
			read(t, second)
			require.NoError(t, first.Close())
			require.NoError(t, second.Close())

			require.NoError(t, stop(), "the end of serving is told to the new socket, too")
			assert.Empty(t, failures)
			require.NoError(t, l.Close())
			assert.NoFileExists(t, l.Path())
			_, err = l.Restore()
			assert.ErrorIs(t, err, net.ErrClosed)
			assert.NoFileExists(t, l.Path())
		})
	}
}

// What can't be made anew yet is left as it is: whoever still has a way to the old socket is served, and the next
// look may succeed.
func TestRestoreFails(t *testing.T) {
	l := listen(t)
	sessions, _, _ := serve(t, l)
	aside := l.Path() + ".old"
	require.NoError(t, os.Rename(l.Path(), aside))
	other, err := mpit.Listen(l.Path())
	require.NoError(t, err)
	_, err = l.Restore()
	require.ErrorIs(t, err, mpit.ErrSocketInUse)
	require.NoError(t, other.Close())
	require.NoError(t, os.WriteFile(l.Path(), nil, 0o600))
	_, err = l.Restore()
	require.ErrorContains(t, err, "not a socket")

	r := mpittest.New(small())
	require.NoError(t, r.Connect(testContext(t), aside))
	defer r.Kill()
	require.NoError(t, (<-sessions).Close())

	require.NoError(t, os.Remove(l.Path()))
	made, err := l.Restore()
	require.NoError(t, err)
	assert.True(t, made)
}

// Nobody who waits for a connection notices, however often the file goes.
func TestRestoreWhileAccepting(t *testing.T) {
	s, err := mpit.ListenUnix(socketPath(t), 0o600)
	require.NoError(t, err)
	accepted := make(chan error, 1)
	go func() {
		for range 20 {
			conn, err := s.Accept()
			if err != nil {
				accepted <- err
				return
			}
			_ = conn.Close()
		}
		accepted <- nil
	}()
	for range 20 {
		require.NoError(t, os.Remove(s.Path()))
		made, err := s.Restore()
		require.NoError(t, err)
		require.True(t, made)
		eof(t, dial(t, s.Path()))
	}
	require.NoError(t, <-accepted)
	require.NoError(t, s.Close())
	_, err = s.Accept()
	assert.ErrorIs(t, err, net.ErrClosed)
}

// A deadline that was set before holds for the new socket: serving that is being ended just then ends.
func TestRestoreKeepsTheDeadline(t *testing.T) {
	s, err := mpit.ListenUnix(socketPath(t), 0o600)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.NoError(t, s.SetDeadline(time.Unix(1, 0)))
	require.NoError(t, os.Remove(s.Path()))
	_, err = s.Restore()
	require.NoError(t, err)
	_, err = s.Accept()
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
}
