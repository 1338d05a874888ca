package control

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
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

// noUser is a uid that no process has.
const noUser = 1<<32 - 1

// withCaller notes whose a connection is, and what it may see.
func (s *Server) withCaller(ctx context.Context, conn net.Conn) context.Context {
	c, ok := conn.(*connection)
	if !ok {
		return ctx
	}
	ctx, uid := context.WithValue(ctx, callerKey{}, c.caller), c.caller.UID
	if uid == 0 || s.cfg.SeesAll == nil {
		return ctx
	}
	groups, _ := mpit.PeerGroups(c.UnixConn) // where the kernel can't say, there is the main one
	switch {
	case uid == s.nobody: // it may be any user that this user namespace doesn't have
		return api.WithViewer(ctx, noUser)
	case s.cfg.SeesAll(uid, append(groups, c.caller.GID)):
		return ctx
	}
	return api.WithViewer(ctx, uid)
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
