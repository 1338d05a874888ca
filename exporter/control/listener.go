package control

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// listener bounds connections, and knows whose they are.
type listener struct {
	net.Listener
	conns limiter
}

// connection is a connection of a caller whom the kernel has named.
type connection struct {
	*net.UnixConn
	caller mpit.Peer
	leave  func()
}

// Accept returns a *connection.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		unix, ok := conn.(*net.UnixConn)
		if !ok {
			_ = conn.Close()
			return nil, fmt.Errorf("a connection over %s, of which nobody says whose it is",
				conn.LocalAddr().Network())
		}
		caller, err := mpit.PeerOf(unix)
		if err != nil || !l.conns.enter(caller.UID) {
			_ = conn.Close()
			continue
		}
		return &connection{unix, caller, sync.OnceFunc(func() { l.conns.leave(caller.UID) })}, nil
	}
}

// Close makes room for another one.
func (c *connection) Close() error {
	c.leave()
	return c.UnixConn.Close()
}

// limiter bounds what all users, and each of them, have at once.
type limiter struct {
	total, each int

	mu    sync.Mutex
	all   int // without root's
	users map[uint32]int
}

func (l *limiter) enter(uid uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users[uid] >= l.each || uid != 0 && l.all >= l.total {
		return false
	}
	if l.users == nil {
		l.users = map[uint32]int{}
	}
	l.users[uid]++
	if uid != 0 {
		l.all++
	}
	return true
}

func (l *limiter) leave(uid uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users[uid]--; l.users[uid] == 0 {
		delete(l.users, uid)
	}
	if uid != 0 {
		l.all--
	}
}

type callerKey struct{}

func withCaller(ctx context.Context, conn net.Conn) context.Context {
	if c, ok := conn.(*connection); ok {
		return context.WithValue(ctx, callerKey{}, c.caller)
	}
	return ctx
}

// overflowUID is the uid that the kernel gives for users that have none in this user namespace.
func overflowUID() uint32 {
	text, _ := os.ReadFile("/proc/sys/kernel/overflowuid")
	uid, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	if err != nil {
		return 65534 // as it usually is
	}
	return uint32(uid)
}
