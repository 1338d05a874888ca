package mpit

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// maxPath is what fits in sockaddr_un, with its terminating zero.
const maxPath = len(unix.RawSockaddrUnix{}.Path) - 1

// lockWait is how long to wait for another process that is just now binding in the same directory. It needs
// milliseconds; who holds the lock for longer is somebody else, for any user may lock a directory that is readable.
const lockWait = 2 * time.Second

// bind makes a listening socket at path, in place of a dead one's file.
func bind(path string, mode os.FileMode) (*net.UnixListener, os.FileInfo, error) {
	switch {
	case path == "":
		return nil, nil, errors.New("no path given")
	case path[0] == '@':
		return nil, nil, errors.New("the path of a socket file must not begin with @")
	case len(path) > maxPath:
		return nil, nil, fmt.Errorf("the path has %d bytes, a socket's can have %d", len(path), maxPath)
	}
	// Of two that find the same dead socket, the second would remove the first one's new file: only one at a time may
	// look.
	unlock, err := lockDirectory(filepath.Dir(path))
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	if err := removeDead(path); err != nil {
		return nil, nil, err
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, nil, err
	}
	ln.SetUnlinkOnClose(false) // it would remove whatever is there then
	file, err := os.Lstat(path)
	if err == nil {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		return nil, nil, errors.Join(err, ln.Close(), os.Remove(path))
	}
	return ln, file, nil
}

// removeDead removes a socket file that nobody listens at.
func removeDead(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("a file is there that is not a socket")
	}
	// DialTimeout, for connecting to one whose queue is full waits.
	conn, err := net.DialTimeout("unix", path, time.Second)
	switch {
	case err == nil:
		return errors.Join(ErrSocketInUse, conn.Close())
	case errors.Is(err, unix.ECONNREFUSED):
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("taking over the socket of a dead process: %w", err)
		}
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, unix.EAGAIN) || isTimeout(err):
		return ErrSocketInUse
	}
	return fmt.Errorf("finding out whether the socket is in use: %w", err)
}

// lockDirectory keeps others of this package from binding in a directory. Where it can't be had there is none: that
// is the small danger of two that start in the same millisecond, not a reason not to start.
func lockDirectory(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) { // it may be written to but not read
			return func() {}, nil
		}
		return nil, err
	}
	deadline := time.Now().Add(lockWait)
	for {
		err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			return func() { _ = d.Close() }, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// removeFile removes the file at path if it is this one.
func removeFile(path string, file os.FileInfo) error {
	now, err := os.Lstat(path)
	if err == nil && os.SameFile(now, file) {
		err = os.Remove(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
