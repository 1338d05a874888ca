package mpit

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
)

// Socket is a listening Unix stream socket with the care that Listen takes of its file, for whatever is spoken over it. It
// is safe for concurrent use.
type Socket struct {
	*net.UnixListener
	path string
	file fileID

	once sync.Once
	err  error
}

// ListenUnix listens at path, as Listen does: the path is short enough (107 bytes), its directory exists, a socket file that nobody
// listens at any more is taken over, and where somebody does the error is ErrSocketInUse. Whoever may write to a file of this
// mode may connect.
func ListenUnix(path string, mode os.FileMode) (*Socket, error) {
	ln, file, err := bind(path, mode.Perm())
	if err != nil {
		return nil, fmt.Errorf("mpit: listening at %s: %w", path, err)
	}
	return &Socket{UnixListener: ln, path: path, file: file}, nil
}

// Path returns the path that ListenUnix was given.
func (s *Socket) Path() string { return s.path }

// Close stops listening and removes the socket file, unless another one has taken its place. It may be called more than
// once. Connections live on.
func (s *Socket) Close() error {
	s.once.Do(func() {
		// While it still listens, nobody takes the path for a dead one's.
		err := s.file.remove(s.path)
		s.err = errors.Join(err, s.UnixListener.Close())
	})
	if s.err != nil {
		return fmt.Errorf("mpit: closing %s: %w", s.path, s.err)
	}
	return nil
}

// PeerOf asks the kernel who is at the other end of a connection (SO_PEERCRED): who it was when he connected.
func PeerOf(conn *net.UnixConn) (Peer, error) {
	peer, err := credentials(conn)
	if err != nil {
		return Peer{}, fmt.Errorf("mpit: asking the kernel who connects: %w", err)
	}
	return peer, nil
}
