package mpit

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Socket is a listening Unix stream socket with the care that Listen takes of its file, for whatever is spoken over
// it. It is a net.Listener, and safe for concurrent use.
type Socket struct {
	path string
	mode os.FileMode

	restoring sync.Mutex // held for a whole Restore; taken before mu

	mu       sync.Mutex // never held for long: Accept needs it
	ln       *net.UnixListener
	file     fileID
	deadline time.Time
	closed   bool
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
	return &Socket{path: path, mode: mode.Perm(), ln: ln, file: file}, nil
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
func (s *Socket) AcceptUnix() (*net.UnixConn, error) {
	for {
		ln := s.listener()
		conn, err := ln.AcceptUnix()
		if errors.Is(err, net.ErrClosed) && s.listener() != ln {
			continue // Restore has put another one in its place
		}
		return conn, err
	}
}

func (s *Socket) listener() *net.UnixListener {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ln
}

// SetDeadline sets when Accept stops to wait, with an error that says so (net.Error); zero: never.
func (s *Socket) SetDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	return s.ln.SetDeadline(t)
}

// Restore looks whether the socket's file is where it was made, and makes it anew where it is gone or something else
// has taken its place; made says so. It costs a system call where all is well. Those who wait in Accept go on; who
// had connected and was not accepted yet has to come again. Without success the old socket stays, for those who have
// a way to it. The error is ErrSocketInUse where another process listens at the path by now, and net.ErrClosed after
// Close.
func (s *Socket) Restore() (made bool, err error) {
	s.restoring.Lock()
	defer s.restoring.Unlock()
	s.mu.Lock()
	file, closed := s.file, s.closed
	s.mu.Unlock()
	if closed {
		return false, fmt.Errorf("mpit: restoring %s: %w", s.path, net.ErrClosed)
	}
	// The kernel keeps the inode of a bound socket: no other file has its number while this one lives.
	if now, err := identify(s.path); err == nil && now == file {
		return false, nil
	}
	ln, file, err := bind(s.path, s.mode)
	if err != nil {
		return false, fmt.Errorf("mpit: restoring %s: %w", s.path, err)
	}
	if err := s.replace(ln, file); err != nil {
		return false, fmt.Errorf("mpit: restoring %s: %w", s.path, errors.Join(err, file.remove(s.path), ln.Close()))
	}
	return true, nil
}

// replace puts a new listener in the place of the old one, which it closes.
func (s *Socket) replace(ln *net.UnixListener, file fileID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	if err := ln.SetDeadline(s.deadline); err != nil {
		return err
	}
	old := s.ln
	s.ln, s.file = ln, file
	_ = old.Close() // nothing is lost with it: its file is gone
	return nil
}

// Close stops listening and removes the socket file, unless another one has taken its place. It may be called more than
// once. Connections live on.
func (s *Socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		// While it still listens, nobody takes the path for a dead one's.
		err := s.file.remove(s.path)
		s.closeErr = errors.Join(err, s.ln.Close())
	}
	if s.closeErr != nil {
		return fmt.Errorf("mpit: closing %s: %w", s.path, s.closeErr)
	}
	return nil
}

// Process returns a descriptor of the rank's process (a pidfd), which the caller closes. It is of the process that
// connected, whoever has its pid by now. Linux before 6.5 has none.
func (s *Session) Process() (*os.File, error) {
	var process int
	raw, err := s.conn.SyscallConn()
	if err == nil {
		failed := raw.Control(func(fd uintptr) {
			process, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD)
		})
		err = errors.Join(failed, err)
	}
	if err != nil {
		return nil, fmt.Errorf("mpit: asking the kernel for the rank's process: %w", err)
	}
	return os.NewFile(uintptr(process), "pidfd"), nil
}

// PeerOf asks the kernel who is at the other end of a connection (SO_PEERCRED): the user at the time of the connection.
func PeerOf(conn *net.UnixConn) (Peer, error) {
	var cred *unix.Ucred
	raw, err := conn.SyscallConn()
	if err == nil {
		failed := raw.Control(func(fd uintptr) {
			cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		})
		err = errors.Join(failed, err)
	}
	if err != nil {
		return Peer{}, fmt.Errorf("mpit: asking the kernel who connects: %w", err)
	}
	return Peer{PID: cred.Pid, UID: cred.Uid, GID: cred.Gid}, nil
}
