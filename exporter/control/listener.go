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
	conns places
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
			return nil, fmt.Errorf("a connection over %s, of which nobody says whose it is", conn.LocalAddr().Network())
		}
		caller, err := mpit.PeerOf(unix)
		if err == nil && l.conns.of(caller.UID).Take(caller.UID, 1) {
			leave := sync.OnceFunc(func() { l.conns.of(caller.UID).Give(caller.UID, 1) })
			return &connection{unix, caller, leave}, nil
		}
		_ = conn.Close()
	}
}

// Close makes room for another one.
func (c *connection) Close() error {
	c.leave()
	return c.UnixConn.Close()
}

// places are what users may have at once. Root has its own, so that it always gets through.
type places struct{ users, root *mpit.Shares }

func newPlaces(total, each int) places {
	return places{mpit.NewShares(total, each), mpit.NewShares(total, each)}
}

func (p places) of(uid uint32) *mpit.Shares {
	if uid == 0 {
		return p.root
	}
	return p.users
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
