package sockets

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// TestDefaultSocket: /run for the system's exporter, the user's run-time directory for anybody else's, and what was
// made is removed again.
func TestDefaultSocket(t *testing.T) {
	const absent = "/proc/nothing/can/be/made/here"
	for _, test := range []struct {
		name      string
		run, user bool // can be written
		has       bool // the system's directory is there
		want      string
		stays     bool
	}{
		{"a system's", true, true, false, "run", false},
		{"a system's whose directory is there", true, true, true, "run", true},
		{"a user's", false, true, false, "user", false},
		{"nowhere", false, false, false, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := mpittest.ShortDir(t)
			places := map[string]string{"run": absent, "user": ""}
			for name, writable := range map[string]bool{"run": test.run, "user": test.user} {
				if writable {
					places[name] = filepath.Join(dir, name)
					require.NoError(t, os.Mkdir(places[name], 0o755))
				}
			}
			if test.has {
				require.NoError(t, os.Mkdir(filepath.Join(places["run"], Dir), 0o755))
			}

			s, err := ListenAgents("", places["run"], places["user"])
			if test.want == "" {
				assert.EqualError(t, err, "no place for the agent socket: mkdir "+absent+"/mpit-exporter: no such "+
					"file or directory\nXDG_RUNTIME_DIR is not set; name one with --agent.socket")
				return
			}
			require.NoError(t, err)
			made := filepath.Join(places[test.want], Dir)
			assert.Equal(t, filepath.Join(made, AgentFile), s.Path())
			info, err := os.Stat(made)
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o755), info.Mode().Perm(), "ranks of any user must get through")
			require.NoError(t, s.Close())
			assert.NoFileExists(t, s.Path())
			if test.stays {
				assert.DirExists(t, made)
			} else {
				assert.NoDirExists(t, made)
			}
		})
	}
}

// TestDefaultSocketDespiteUmask: a careful administrator's umask doesn't lock the ranks out.
func TestDefaultSocketDespiteUmask(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	dir := mpittest.ShortDir(t)
	s, err := ListenAgents("", dir, "")
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	info, err := os.Stat(filepath.Join(dir, Dir))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o755), info.Mode().Perm())
	info, err = os.Stat(s.Path())
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o666), info.Mode().Perm())
}

// TestDefaultSocketInUse: the directory that a living exporter uses is not removed.
func TestDefaultSocketInUse(t *testing.T) {
	dir := mpittest.ShortDir(t)
	first, err := ListenAgents("", dir, "")
	require.NoError(t, err)
	_, err = ListenAgents("", dir, "")
	assert.ErrorContains(t, err, "another exporter that is alive listens there")
	assert.FileExists(t, first.Path())
	require.NoError(t, first.Close())
	assert.NoDirExists(t, filepath.Join(dir, Dir))
}

// TestDirectoryWithOtherFilesStays: what others have put there is not ours to remove.
func TestDirectoryWithOtherFilesStays(t *testing.T) {
	dir := mpittest.ShortDir(t)
	s, err := ListenAgents("", dir, "")
	require.NoError(t, err)
	other := filepath.Join(dir, Dir, "other")
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	require.NoError(t, s.Close())
	assert.FileExists(t, other)
}
