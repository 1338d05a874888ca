package httpserver

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// thisHost is the address of all that ask from this machine: any of its users has all of its addresses.
const thisHost = "this host"

// addresses tells clients apart. It is safe for concurrent use.
type addresses struct {
	interfaces func() ([]net.Addr, error) // net.InterfaceAddrs

	mu    sync.Mutex
	own   map[netip.Addr]bool // of this machine
	asked time.Time
}

// ownFor is how long the machine's addresses are taken to be what they were.
const ownFor = time.Minute

// isOwn says whether an address is one of this machine's.
func (a *addresses) isOwn(ip netip.Addr) bool {
	if ip.IsLoopback() {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); now.Sub(a.asked) > ownFor {
		a.asked = now
		if all, err := a.interfaces(); err == nil {
			a.own = make(map[netip.Addr]bool, len(all))
			for _, addr := range all {
				if of, err := netip.ParsePrefix(addr.String()); err == nil {
					a.own[of.Addr().Unmap().WithZone("")] = true
				}
			}
		}
	}
	return a.own[ip]
}

// of names the other end: this host, an IPv4 address, or the /64 of an IPv6 one, because one host may have all of that.
func (a *addresses) of(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote // not TCP
	}
	ip := at.Addr().Unmap().WithZone("")
	if a.isOwn(ip) {
		return thisHost
	}
	if ip.Is6() {
		if network, err := ip.Prefix(64); err == nil {
			return network.String()
		}
	}
	return ip.String()
}

// half is what one address may have of limit.
func half(limit int) int { return (limit + 1) / 2 }

// connections bounds the connections of a http.Server. One too many costs the connection that has been without a
// request for longest: a hoard of idle ones, or of requests that only begin, keeps nobody out. Its methods are called
// concurrently.
type connections struct {
	limit   int
	from    *addresses
	refused *prometheus.CounterVec

	mu     sync.Mutex
	all    map[net.Conn]*httpConnection
	each   map[string]int // by address
	unused list.List      // of *httpConnection: those without a request, the longest so first
}

type httpConnection struct {
	net.Conn
	from   string
	unused *list.Element // nil: it has a request
}

// newConnections bounds connections; those that are refused are counted.
func newConnections(limit int, from *addresses, refused *prometheus.CounterVec) *connections {
	return &connections{limit: limit, from: from, refused: refused, all: map[net.Conn]*httpConnection{},
		each: map[string]int{}}
}

// connectionKey is where a request's context has its connection.
type connectionKey struct{}

// remember is http.Server's ConnContext.
func (c *connections) remember(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, conn)
}

// requested notes the connections of requests: of each the header is complete, which StateActive doesn't say.
func (c *connections) requested(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if conn, ok := req.Context().Value(connectionKey{}).(net.Conn); ok {
			c.request(conn)
		}
		next.ServeHTTP(w, req)
	})
}

func (c *connections) request(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.all[conn]; known != nil {
		c.use(known)
	}
}

// state is http.Server's ConnState.
func (c *connections) state(conn net.Conn, state http.ConnState) {
	if over := c.note(conn, state); over != nil {
		// A TLS connection would send a close notification first, and wait for it.
		if wrapped, ok := over.(interface{ NetConn() net.Conn }); ok {
			over = wrapped.NetConn()
		}
		_ = over.Close()
	}
}

// note returns the connection that has to be closed, if any.
func (c *connections) note(conn net.Conn, state http.ConnState) (over net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.all[conn]
	switch {
	case state == http.StateNew:
		known = &httpConnection{Conn: conn, from: c.from.of(conn.RemoteAddr().String())}
		c.all[conn] = known
		c.each[known.from]++
		known.unused = c.unused.PushBack(known)
		return c.makeRoom(known)
	case known == nil: // it had to go
	case state == http.StateActive: // as yet a request may have only begun
	case state == http.StateIdle:
		if known.unused == nil {
			known.unused = c.unused.PushBack(known)
		}
	default: // closed, or none of the server's any more
		c.forget(known)
	}
	return nil
}

// makeRoom picks the connection that has to be closed because another one has come: that one itself, if all others
// have requests.
func (c *connections) makeRoom(newest *httpConnection) net.Conn {
	reason, from := refusedConnections, ""
	switch {
	case c.each[newest.from] > half(c.limit):
		reason, from = refusedAddressConnections, newest.from
	case len(c.all) <= c.limit:
		return nil
	}
	for at := c.unused.Front(); at != nil; at = at.Next() {
		if over := at.Value.(*httpConnection); from == "" || over.from == from {
			c.forget(over)
			c.refused.WithLabelValues(reason).Inc()
			return over.Conn
		}
	}
	return nil // never: the newest has no request yet
}

func (c *connections) use(known *httpConnection) {
	if known.unused != nil {
		c.unused.Remove(known.unused)
		known.unused = nil
	}
}

func (c *connections) forget(known *httpConnection) {
	c.use(known)
	delete(c.all, known.Conn)
	if c.each[known.from]--; c.each[known.from] == 0 {
		delete(c.each, known.from)
	}
}
