package mpit

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A socket for another protocol: a dead one's file is taken over, a living one's not, and the kernel says who connects.
func TestListenUnix(t *testing.T) {
	dir, err := os.MkdirTemp("", "mpit")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	path := filepath.Join(dir, "s")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	dead.SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())

	s, err := ListenUnix(path, 0o622)
	require.NoError(t, err)
	assert.Equal(t, path, s.Path())
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o622), info.Mode().Perm())
	_, err = ListenUnix(path, 0o666)
	require.ErrorIs(t, err, ErrSocketInUse)
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	for range 2 { // the first is that of the one that asked whether somebody listens
		accepted, err := s.AcceptUnix()
		require.NoError(t, err)
		peer, err := PeerOf(accepted)
		require.NoError(t, err)
		assert.Equal(t, Peer{PID: int32(os.Getpid()), UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}, peer)
		require.NoError(t, accepted.Close())
	}
	require.NoError(t, conn.Close())

	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "closing twice is no mistake")
	assert.NoFileExists(t, path)
	_, err = ListenUnix("", 0o666)
	assert.Error(t, err)
}

// The kernel names the groups that the other end had when it connected, however many there are.
func TestPeerGroups(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not tested: only root can choose groups")
	}
	for _, n := range []int{0, 1, 64, 1000} {
		groups := make([]uint32, n+1) // one more, so that there is an address
		for i := range groups {
			groups[i] = uint32(70_000 + i)
		}
		dir, err := os.MkdirTemp("", "mpit")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
		s, err := ListenUnix(filepath.Join(dir, "s"), 0o600)
		require.NoError(t, err)
		dialed := make(chan error, 1)
		go func() {
			runtime.LockOSThread() // never unlocked: no other goroutine gets this thread
			_, _, errno := syscall.RawSyscall(syscall.SYS_SETGROUPS, uintptr(n), uintptr(unsafe.Pointer(&groups[0])), 0)
			assert.Zero(t, errno)
			conn, err := net.Dial("unix", s.Path())
			if err == nil {
				t.Cleanup(func() { _ = conn.Close() })
			}
			dialed <- err
		}()
		require.NoError(t, <-dialed)
		accepted, err := s.AcceptUnix()
		require.NoError(t, err)
		got, err := PeerGroups(accepted)
		require.NoError(t, err)
		assert.Equal(t, groups[:n], got)
		require.NoError(t, accepted.Close())
		_, err = PeerGroups(accepted)
		assert.Error(t, err)
		require.NoError(t, s.Close())
	}
}
