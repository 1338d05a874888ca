package mpit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

const (
	maxAcceptWait = time.Second

	// spareDescriptors are left to whoever else needs some in this process: scrapers, files, the control socket.
	// Where there are few, it is a quarter of them.
	spareDescriptors = 128
)

// ListenOption changes how Listen listens.
type ListenOption func(*listenConfig)

type listenConfig struct {
	mode       os.FileMode
	limits     Limits
	holdFinals bool
	peer       func(*net.UnixConn) (Peer, error)
}

// WithMode sets the permissions of the socket file, 0666 by default: whoever may write to it may connect.
func WithMode(mode os.FileMode) ListenOption {
	return func(c *listenConfig) { c.mode = mode.Perm() }
}

// Limits bound what peers may take. Zero stands for the default.
type Limits struct {
	// HandshakeTimeout is how long a peer may take for its HELLO; 5 s.
	HandshakeTimeout time.Duration
	// Handshakes is how many connections one user may have that have not said HELLO yet, or that nobody has admitted
	// since (Session.Admit); 1024. What is more is closed at once; an agent tries again by itself.
	Handshakes int
	// Connections is how many there may be at once; 6,144, and never more than the process may have descriptors open,
	// less 128 or a quarter of them. One user may have as many as are left: what is more is closed at once.
	Connections int
	// Memory is how many bytes all connections together may hold of what ranks have sent; 256 MiB. Variables that
	// several ranks of a user have alike count once. One user may have as much as is left; the connection that would
	// need more is closed. What others have taken over from a session is not in it.
	Memory int
}

// WithLimits sets limits.
func WithLimits(l Limits) ListenOption { return func(c *listenConfig) { c.limits = l } }

// WithHeldFinals leaves the connection of a last sample open until Session.Close: an agent that is told to
// (MPIT_AGENT_FINAL_WAIT) keeps its program in MPI_Finalize until then. Otherwise it is closed as soon as the sample
// has come.
func WithHeldFinals() ListenOption {
	return func(c *listenConfig) { c.holdFinals = true }
}

// Listener is a Unix socket that ranks connect to. It is safe for concurrent use, but either Serve is called, once at a
// time, or Accept: they would take each other's ranks.
type Listener struct {
	config listenConfig
	ln     *Socket

	closing context.Context
	cancel  context.CancelFunc

	acceptOnce sync.Once
	ready      chan *Session
	accepting  sync.WaitGroup

	connections, handshakes, memory *Shares
	alike                           *alike
}

// Listen listens at path, which must be short enough for a socket's address (107 bytes) and whose directory must exist.
// A socket file that nobody listens at any more is taken over; if somebody does, the error is ErrSocketInUse.
func Listen(path string, opts ...ListenOption) (*Listener, error) {
	config := listenConfig{mode: 0o666, peer: PeerOf} // any user's rank may connect; the kernel says whose it is
	for _, opt := range opts {
		opt(&config)
	}
	limits := &config.limits
	limits.HandshakeTimeout = cmp.Or(limits.HandshakeTimeout, 5*time.Second)
	limits.Handshakes = cmp.Or(limits.Handshakes, 1024)
	ln, err := ListenUnix(path, config.mode)
	if err != nil {
		return nil, err
	}
	descriptors := maxDescriptors()
	connections := max(descriptors-min(spareDescriptors, descriptors/4), 1)
	l := &Listener{
		config: config,
		ln:     ln,
		ready:  make(chan *Session),

		connections: NewShares(min(cmp.Or(limits.Connections, 6144), connections), 0),
		handshakes:  NewShares(math.MaxInt, limits.Handshakes),
		memory:      NewShares(cmp.Or(limits.Memory, 256<<20), 0),
		alike:       newAlike(),
	}
	l.closing, l.cancel = context.WithCancel(context.Background())
	return l, nil
}

// Path returns the path that Listen was given.
func (l *Listener) Path() string { return l.ln.Path() }

// Close stops listening and removes the socket file, unless another one has taken its place. Sessions live on.
func (l *Listener) Close() error {
	l.cancel()
	err := l.ln.Close()
	l.accepting.Wait()
	return err
}

// Accept waits for a rank and returns it when it has said HELLO. A silent peer doesn't hold up others. Peers that
// fail to say HELLO are dropped; Serve tells of them. The session belongs to the caller. The error is the context's,
// or net.ErrClosed after Close.
func (l *Listener) Accept(ctx context.Context) (*Session, error) {
	l.acceptOnce.Do(func() {
		l.accepting.Go(func() {
			_ = l.Serve(l.closing, func(ctx context.Context, s *Session) {
				select {
				case l.ready <- s: // even one that has ended: it may have brought a last sample
				case <-ctx.Done():
					_ = s.Close()
				}
			}, nil)
		})
	})
	select {
	case s := <-l.ready:
		return s, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("mpit: accepting at %s: %w", l.Path(), ctx.Err())
	case <-l.closing.Done():
		return nil, fmt.Errorf("mpit: accepting at %s: %w", l.Path(), net.ErrClosed)
	}
}

// Serve accepts connections until ctx ends or the listener is closed. Each has a goroutine of its own, in which it
// must say HELLO before the time for that is over; then handle is called in it. The session belongs to handle, which
// may keep it after it has returned, and is admitted by then, if it has not called Session.Admit. Peers that fail to
// say HELLO are reported to onError, unless it is nil, with a *ProtocolError; so are failures to accept, with an empty
// Peer. Both functions are called concurrently.
//
// Serve waits for all calls of handle to return. It returns nil when ctx has ended, and net.ErrClosed after Close.
func (l *Listener) Serve(ctx context.Context, handle func(ctx context.Context, s *Session),
	onError func(peer Peer, err error)) error {
	if onError == nil {
		onError = func(Peer, error) {}
	}
	var connections sync.WaitGroup
	defer connections.Wait()
	if err := l.ln.SetDeadline(time.Time{}); err != nil {
		return fmt.Errorf("mpit: serving %s: %w", l.Path(), err)
	}
	stop := context.AfterFunc(ctx, func() { _ = l.ln.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	wait := time.Duration(0)
	for {
		conn, err := l.ln.AcceptUnix()
		switch {
		case err == nil:
			wait = 0
			// Here, so that those who come too often cost no more than that.
			if p, err := l.enter(conn); err != nil {
				_ = conn.Close()
				onError(p.peer, err)
			} else {
				connections.Go(func() { l.connection(ctx, conn, p, handle, onError) })
			}
			continue
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("mpit: serving %s: %w", l.Path(), net.ErrClosed)
		}
		// Out of descriptors, most likely: that passes.
		wait = min(max(2*wait, 5*time.Millisecond), maxAcceptWait)
		onError(Peer{}, protocolError("accepting", err))
		select {
		case <-ctx.Done():
			return nil
		case <-l.closing.Done():
		case <-time.After(wait):
		}
	}
}

// place is what a connection takes of its user's shares.
type place struct {
	peer  Peer
	held  *memory
	end   func() // of the connection
	admit func() // it doesn't count as a handshake any more; once, whoever calls it
}

// enter finds out whose a connection is and gives it its place, if there is one.
func (l *Listener) enter(conn *net.UnixConn) (p place, err error) {
	if p.peer, err = l.config.peer(conn); err != nil {
		return p, protocolError("accepting", err)
	}
	uid := p.peer.UID
	if !l.connections.Take(uid, 1) {
		return p, &ProtocolError{
			Reason: ReasonConnections,
			Err:    fmt.Errorf("user %d has too many of the %d connections that there may be", uid, l.connections.limit),
		}
	}
	if !l.handshakes.Take(uid, 1) {
		l.connections.Give(uid, 1)
		return p, &ProtocolError{
			Reason: ReasonTooMany,
			Err:    fmt.Errorf("user %d has %d connections without HELLO", uid, l.config.limits.Handshakes),
		}
	}
	p.held = &memory{of: l.memory, uid: uid}
	p.end = func() {
		p.held.end()
		l.connections.Give(uid, 1)
	}
	p.admit = sync.OnceFunc(func() { l.handshakes.Give(uid, 1) })
	return p, nil
}

// connection takes one connection through its handshake to handle.
func (l *Listener) connection(ctx context.Context, conn *net.UnixConn, p place, handle func(context.Context, *Session),
	onError func(Peer, error)) {
	defer p.admit()
	s, err := l.handshake(ctx, conn, p)
	if err != nil {
		_ = conn.Close()
		p.end()
		// Whoever connects and says nothing at all wanted to know whether somebody listens.
		var breach *ProtocolError
		if errors.As(err, &breach) {
			onError(p.peer, err)
		}
		return
	}
	handle(ctx, s)
}

// handshake reads HELLO. The error is a *ProtocolError, io.EOF where nothing was said, or the context's.
func (l *Listener) handshake(ctx context.Context, conn *net.UnixConn, p place) (*Session, error) {
	if err := conn.SetReadDeadline(time.Now().Add(l.config.limits.HandshakeTimeout)); err != nil {
		return nil, protocolError("setting a deadline", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	frames := wire.NewReader(conn, wire.MaxHello)
	frames.Room = p.held.grow
	f, err := frames.Next()
	stopped := !stop() // the deadline may be changed still
	switch {
	case stopped && (err == nil || isTimeout(err)):
		return nil, ctx.Err()
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	case err != nil && isTimeout(err):
		return nil, &ProtocolError{Reason: ReasonHandshakeTimeout,
			Err: fmt.Errorf("no HELLO after %v", l.config.limits.HandshakeTimeout)}
	case err != nil:
		return nil, protocolError("reading HELLO", err)
	case f.Version > wire.Version:
		return nil, protocolError("reading HELLO", wire.Errorf(wire.ReasonVersion, "version %d, this side speaks %d",
			f.Version, wire.Version))
	case f.Type != wire.TypeHello:
		return nil, protocolError("reading HELLO", wire.Errorf(wire.ReasonMalformed, "a frame of type %d", f.Type))
	}
	hello, err := decodeHello(f)
	if err != nil {
		return nil, protocolError("reading HELLO", err)
	}
	if err := p.held.grow(len(f.Payload)); err != nil { // which the session keeps, as a Hello
		return nil, protocolError("reading HELLO", err)
	}
	frames.Limit = wire.MaxAgentPayload
	return newSession(conn, frames, p, hello, l.alike, l.config.holdFinals)
}

// maxDescriptors is how many descriptors the process may have open.
func maxDescriptors() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > 1<<30 {
		return 1 << 30
	}
	return int(limit.Cur)
}
