package mpit

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Socket is a listening Unix stream socket with the care that Listen takes of its file, for whatever is spoken over
// it. It is a net.Listener, and safe for concurrent use.
type Socket struct {
	path string
	ln   *net.UnixListener
	file os.FileInfo

	closing  sync.Once
	closeErr error
}

// ListenUnix listens at path, as Listen does: the path is short enough (107 bytes), its directory exists, a socket
// file that nobody listens at any more is taken over, and where somebody does the error is ErrSocketInUse. Whoever
// may write to a file of this mode may connect.
func ListenUnix(path string, mode os.FileMode) (*Socket, error) {
	ln, file, err := bind(path, mode.Perm())
	if err != nil {
		return nil, fmt.Errorf("mpit: listening at %s: %w", path, err)
	}
	return &Socket{path: path, ln: ln, file: file}, nil
}

// Path returns the path that ListenUnix was given.
func (s *Socket) Path() string { return s.path }

// Addr returns the socket's address, which is its path.
func (s *Socket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

// Accept waits for a connection, a *net.UnixConn. The error is net.ErrClosed after Close.
func (s *Socket) Accept() (net.Conn, error) {
	conn, err := s.AcceptUnix()
	if err != nil {
		return nil, err // a nil *net.UnixConn in it would not be nil
	}
	return conn, nil
}

// AcceptUnix is Accept.
func (s *Socket) AcceptUnix() (*net.UnixConn, error) { return s.ln.AcceptUnix() }

// SetDeadline sets when Accept stops to wait, with an error that says so (net.Error); zero: never.
func (s *Socket) SetDeadline(t time.Time) error { return s.ln.SetDeadline(t) }

// Close stops listening and removes the socket file, unless another one has taken its place. It may be called more than
// once. Connections live on.
func (s *Socket) Close() error {
	s.closing.Do(func() {
		// While it still listens, nobody takes the path for a dead one's.
		if err := errors.Join(removeFile(s.path, s.file), s.ln.Close()); err != nil {
			s.closeErr = fmt.Errorf("mpit: closing %s: %w", s.path, err)
		}
	})
	return s.closeErr
}

// Process returns a descriptor of the rank's process (a pidfd), which the caller closes. It is of the process that
// connected, whoever has its pid by now. Linux before 6.5 has none.
func (s *Session) Process() (*os.File, error) {
	process, err := option(s.conn, unix.GetsockoptInt, unix.SO_PEERPIDFD)
	if err != nil {
		return nil, fmt.Errorf("mpit: asking the kernel for the rank's process: %w", err)
	}
	return os.NewFile(uintptr(process), "pidfd"), nil
}

// PeerOf asks the kernel who is at the other end of a connection (SO_PEERCRED): the user at the time of the connection.
func PeerOf(conn *net.UnixConn) (Peer, error) {
	cred, err := option(conn, unix.GetsockoptUcred, unix.SO_PEERCRED)
	if err != nil {
		return Peer{}, fmt.Errorf("mpit: asking the kernel who connects: %w", err)
	}
	return Peer{PID: cred.Pid, UID: cred.Uid, GID: cred.Gid}, nil
}

// option reads one of a socket's options.
func option[T any](conn *net.UnixConn, get func(fd, level, option int) (T, error), name int) (value T, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return value, err
	}
	failed := raw.Control(func(fd uintptr) { value, err = get(int(fd), unix.SOL_SOCKET, name) })
	return value, errors.Join(failed, err)
}

// PeerGroups asks the kernel for the supplementary groups of who is at the other end of a connection (SO_PEERGROUPS),
// at the time of the connection. Linux before 4.13 can't say.
func PeerGroups(conn *net.UnixConn) ([]uint32, error) {
	var groups []uint32
	raw, err := conn.SyscallConn()
	for size, errno := uint32(256), unix.ERANGE; err == nil && errno != 0; {
		groups = make([]uint32, size/4)
		err = raw.Control(func(fd uintptr) {
			//nolint:gosec // G103: package unix can't ask this
			_, _, errno = unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS,
				uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		})
		if groups = groups[:min(int(size/4), len(groups))]; errno != 0 && errno != unix.ERANGE {
			err = errors.Join(err, errno)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("mpit: asking the kernel for groups: %w", err)
	}
	return groups, nil
}
