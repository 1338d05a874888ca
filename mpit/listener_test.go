package mpit_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// deadSocket leaves a socket file that nobody listens at.
func deadSocket(t *testing.T, path string) {
	t.Helper()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	ln.SetUnlinkOnClose(false)
	require.NoError(t, ln.Close())
}

func TestListenTakesADeadSocketOver(t *testing.T) {
	path := socketPath(t)
	deadSocket(t, path)
	l, err := mpit.Listen(path)
	require.NoError(t, err)
	assert.Equal(t, path, l.Path())
	require.NoError(t, l.Close())
	assert.NoFileExists(t, path)
	require.NoError(t, l.Close(), "once more")
}

func TestListenRefusesALivingSocket(t *testing.T) {
	l := listen(t)
	_, err := mpit.Listen(l.Path())
	require.ErrorIs(t, err, mpit.ErrSocketInUse)
	assert.ErrorContains(t, err, l.Path())
	connect(t, l, mpittest.New(small())) // the living one has not been hurt
}

// Of many that find a dead socket at once, one listens.
func TestListenTakesOverOnce(t *testing.T) {
	path := socketPath(t)
	deadSocket(t, path)
	listeners := make([]*mpit.Listener, 20)
	var starters sync.WaitGroup
	for i := range listeners {
		starters.Go(func() {
			l, err := mpit.Listen(path)
			if err != nil {
				assert.ErrorIs(t, err, mpit.ErrSocketInUse)
				return
			}
			listeners[i] = l
		})
	}
	starters.Wait()
	var one *mpit.Listener
	for _, l := range listeners {
		if l == nil {
			continue
		}
		assert.Nil(t, one, "two listen")
		one = l
	}
	require.NotNil(t, one)
	connect(t, one, mpittest.New(small()))
	require.NoError(t, one.Close())
}

func TestListenErrors(t *testing.T) {
	dir := filepath.Dir(socketPath(t))
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
	for name, c := range map[string]struct{ path, message string }{
		"no path":           {"", "no path given"},
		"an abstract name":  {"@agent", "must not begin with @"},
		"too long a path":   {filepath.Join(dir, strings.Repeat("x", 120)), "a socket's can have 107"},
		"no such directory": {filepath.Join(dir, "missing", "agent.sock"), "no such file or directory"},
		"not a socket":      {file, "not a socket"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := mpit.Listen(c.path)
			assert.ErrorContains(t, err, c.message)
			assert.ErrorContains(t, err, "listening at "+c.path)
		})
	}
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "precious", string(content))
}

func TestSocketMode(t *testing.T) {
	for _, c := range []struct {
		opts []mpit.ListenOption
		mode os.FileMode
	}{{nil, 0o666}, {[]mpit.ListenOption{mpit.WithMode(0o600)}, 0o600}} {
		l := listen(t, c.opts...)
		info, err := os.Stat(l.Path())
		require.NoError(t, err)
		assert.Equal(t, c.mode, info.Mode().Perm())
	}
}

// Whoever has put another file at the path keeps it.
func TestCloseRemovesItsOwnFileOnly(t *testing.T) {
	path := socketPath(t)
	l, err := mpit.Listen(path)
	require.NoError(t, err)
	require.NoError(t, os.Rename(path, path+".old")) // keeps the inode in use
	other, err := mpit.Listen(path)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	assert.FileExists(t, path)
	connect(t, other, mpittest.New(small()))
	require.NoError(t, os.Remove(path))
	require.NoError(t, other.Close(), "the file is gone already")
}

func TestAcceptEnds(t *testing.T) {
	l := listen(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err := l.Accept(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, l.Close())
	_, err = l.Accept(context.Background())
	assert.ErrorIs(t, err, net.ErrClosed)
}

// A rank that nobody has accepted is let go when the listener closes.
func TestCloseWithUnacceptedRanks(t *testing.T) {
	l := listen(t)
	connect(t, l, mpittest.New(small()))
	r := mpittest.New(small())
	require.NoError(t, r.Connect(testContext(t), l.Path()))
	require.NoError(t, l.Close())
	await(t, "the connection's end", r.Disconnected())
}

// failure is what Serve reports.
type failure struct {
	peer mpit.Peer
	err  error
}

// serve serves ranks until the returned function is called.
func serve(t *testing.T, l *mpit.Listener) (sessions chan *mpit.Session, failures chan failure, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	sessions, failures = make(chan *mpit.Session, 100), make(chan failure, 100)
	served := make(chan error, 1)
	go func() {
		served <- l.Serve(ctx,
			func(_ context.Context, s *mpit.Session) { sessions <- s },
			func(peer mpit.Peer, err error) { failures <- failure{peer, err} })
	}()
	stopped := sync.OnceValue(func() error {
		cancel()
		return <-served
	})
	t.Cleanup(func() { _ = stopped() })
	return sessions, failures, stopped
}

func TestServe(t *testing.T) {
	l := listen(t)
	sessions, _, stop := serve(t, l)
	r := mpittest.New(small())
	require.NoError(t, r.Connect(testContext(t), l.Path()))
	defer r.Kill()
	s := <-sessions
	read(t, s)
	require.NoError(t, stop())
	read(t, s) // the session belongs to whoever got it
	require.NoError(t, s.Close())

	sessions, _, stop = serve(t, l) // and once more
	require.NoError(t, r.Connect(testContext(t), l.Path()))
	require.NoError(t, (<-sessions).Close())
	require.NoError(t, stop())

	require.NoError(t, l.Close())
	assert.ErrorIs(t, l.Serve(context.Background(), nil, nil), net.ErrClosed)
}

// A peer that says nothing is let go after the time for it, and holds up nobody meanwhile.
func TestSilentPeer(t *testing.T) {
	l := listen(t, mpit.WithLimits(mpit.Limits{HandshakeTimeout: 200 * time.Millisecond}))
	sessions, failures, _ := serve(t, l)
	silent, err := net.Dial("unix", l.Path())
	require.NoError(t, err)
	defer func() { _ = silent.Close() }()
	half, err := net.Dial("unix", l.Path())
	require.NoError(t, err)
	defer func() { _ = half.Close() }()
	_, err = half.Write([]byte("MPIT"))
	require.NoError(t, err)

	r := mpittest.New(small())
	require.NoError(t, r.Connect(testContext(t), l.Path()))
	defer r.Kill()
	require.NoError(t, (<-sessions).Close())

	for range 2 {
		f := <-failures
		assertReason(t, mpit.ReasonHandshakeTimeout, f.err)
		assert.Equal(t, uint32(os.Getuid()), f.peer.UID)
	}
	eof(t, silent)
	eof(t, half)
}

// One that only looks whether somebody listens is no failure.
func TestProbeIsNoFailure(t *testing.T) {
	l := listen(t)
	_, failures, stop := serve(t, l)
	conn, err := net.Dial("unix", l.Path())
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	conn, err = net.Dial("unix", l.Path())
	require.NoError(t, err)
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\n"))
	require.NoError(t, err)
	eof(t, conn)
	require.NoError(t, conn.Close())
	require.NoError(t, stop())
	require.Len(t, failures, 1)
	assertReason(t, mpit.ReasonBadMagic, (<-failures).err)
}

func TestBadHello(t *testing.T) {
	hello := dialed(t, mpittest.New(small())).hello
	with := func(change func(f *wire.Frame)) []byte {
		f := hello
		f.Payload = append([]byte(nil), hello.Payload...)
		change(&f)
		return encoded(f)
	}
	newer := with(func(*wire.Frame) {})
	newer[6] = wire.Version + 1
	for name, c := range map[string]struct {
		raw    []byte
		reason string
	}{
		"another frame":        {with(func(f *wire.Frame) { f.Type = wire.TypeSample }), mpit.ReasonMalformed},
		"a newer version":      {newer, mpit.ReasonVersion},
		"an unknown kind":      {with(func(f *wire.Frame) { f.Payload[0] = 2 }), mpit.ReasonMalformed},
		"no id":                {with(func(f *wire.Frame) { clear(f.Payload[8:24]) }), mpit.ReasonMalformed},
		"a rank beyond size":   {with(func(f *wire.Frame) { f.Payload[32] = 3 }), mpit.ReasonMalformed},
		"a string too long":    {with(func(f *wire.Frame) { f.Payload[83] = 1 }), mpit.ReasonTooLarge},
		"a string cut short":   {with(func(f *wire.Frame) { f.Payload = f.Payload[:88] }), mpit.ReasonMalformed},
		"more words than said": {with(func(f *wire.Frame) { f.Payload[80] = 0xff }), mpit.ReasonMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			_, failures, _ := serve(t, l)
			conn, err := net.Dial("unix", l.Path())
			require.NoError(t, err)
			defer func() { _ = conn.Close() }()
			_, err = conn.Write(c.raw)
			require.NoError(t, err)
			assertReason(t, c.reason, (<-failures).err)
		})
	}
}

func TestHandshakeLimit(t *testing.T) {
	l := listen(t, mpit.WithLimits(mpit.Limits{Handshakes: 2}))
	sessions, failures, _ := serve(t, l)
	var silent []net.Conn
	for range 3 {
		conn, err := net.Dial("unix", l.Path())
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		silent = append(silent, conn)
	}
	assertReason(t, mpit.ReasonTooMany, (<-failures).err)
	for _, conn := range silent {
		require.NoError(t, conn.Close())
	}
	// There is room again as soon as the listener has seen them go.
	r := mpittest.New(small())
	defer r.Kill()
	for {
		// turned away before it has said anything
		if err := r.Connect(testContext(t), l.Path()); !errors.Is(err, unix.EPIPE) {
			require.NoError(t, err)
		}
		select {
		case s := <-sessions:
			require.NoError(t, s.Close())
			return
		case f := <-failures:
			assertReason(t, mpit.ReasonTooMany, f.err)
		}
	}
}

// Stopping to serve does not wait for peers that say nothing.
func TestServeStopsHandshakes(t *testing.T) {
	l := listen(t, mpit.WithLimits(mpit.Limits{HandshakeTimeout: time.Hour}))
	_, failures, stop := serve(t, l)
	conn, err := net.Dial("unix", l.Path())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = conn.Write([]byte("M"))
	require.NoError(t, err)
	require.NoError(t, stop())
	assert.Empty(t, failures)
}

func TestSessionIsEndedByTheRank(t *testing.T) {
	l := listen(t)
	sessions, _, _ := serve(t, l)
	r := mpittest.New(small())
	require.NoError(t, r.Connect(testContext(t), l.Path()))
	s := <-sessions
	require.NoError(t, r.Close())
	await(t, "the end", s.Done())
	assert.Equal(t, io.EOF, s.Err())
}

// Any user may lock a directory that he can read: that must not keep the exporter from starting.
func TestSomebodyElsesLockIsWaitedForAndNoMore(t *testing.T) {
	t.Parallel() // it waits
	path := socketPath(t)
	dir, err := os.Open(filepath.Dir(path))
	require.NoError(t, err)
	defer dir.Close()
	require.NoError(t, unix.Flock(int(dir.Fd()), unix.LOCK_EX))
	l, err := mpit.Listen(path)
	require.NoError(t, err)
	require.NoError(t, l.Close())
}
