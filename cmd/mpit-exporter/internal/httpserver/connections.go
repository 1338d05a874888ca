package httpserver

import (
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

// addresses tells clients apart by this machine's addresses.
type addresses func() ([]net.Addr, error)

// remembered asks for addresses (net.InterfaceAddrs) once a minute, or whoever opens many connections would have the
// kernel list all interfaces for each. It is safe for concurrent use.
func remembered(ask addresses) addresses {
	var mu sync.Mutex
	var known []net.Addr
	var at time.Time
	return func() ([]net.Addr, error) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(at) > time.Minute {
			if all, err := ask(); err == nil {
				known = all
			}
			at = now
		}
		return known, nil
	}
}

// isOwn says whether an address is one of this machine's.
func (a addresses) isOwn(ip netip.Addr) bool {
	if ip.IsLoopback() {
		return true
	}
	all, _ := a()
	for _, own := range all {
		if of, err := netip.ParsePrefix(own.String()); err == nil && of.Addr().Unmap().WithZone("") == ip {
			return true
		}
	}
	return false
}

// of names the other end: this host, an IPv4 address, or the /64 of an IPv6 one, because one host may have all of that.
func (a addresses) of(remote string) string {
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
	from    addresses
	refused *prometheus.CounterVec

	mu   sync.Mutex
	all  map[net.Conn]*httpConnection
	came int // how often a connection has come, or been left by its request
}

type httpConnection struct {
	net.Conn
	from   string
	unused int // which of came it was when it had no request any more; 0: it has one
}

// newConnections bounds connections; those that are refused are counted.
func newConnections(limit int, from addresses, refused *prometheus.CounterVec) *connections {
	return &connections{limit: limit, from: from, refused: refused, all: map[net.Conn]*httpConnection{}}
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
		known.unused = 0
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
	c.came++
	known := c.all[conn]
	switch {
	case state == http.StateNew:
		known = &httpConnection{Conn: conn, from: c.from.of(conn.RemoteAddr().String()), unused: c.came}
		c.all[conn] = known
		return c.makeRoom(known)
	case known == nil: // it had to go
	case state == http.StateActive: // as yet a request may have only begun
	case state == http.StateIdle:
		if known.unused == 0 {
			known.unused = c.came
		}
	default: // closed, or none of the server's any more
		delete(c.all, conn)
	}
	return nil
}

// makeRoom picks the connection that has to be closed because another one has come: that one itself, if all others
// have requests.
func (c *connections) makeRoom(newest *httpConnection) net.Conn {
	own, oldest, oldestOwn := 0, newest, newest
	for _, of := range c.all {
		unused := of.unused > 0
		if unused && of.unused < oldest.unused {
			oldest = of
		}
		if of.from == newest.from {
			own++
			if unused && of.unused < oldestOwn.unused {
				oldestOwn = of
			}
		}
	}
	reason := refusedConnections
	switch {
	case own > half(c.limit):
		reason, oldest = refusedAddressConnections, oldestOwn
	case len(c.all) <= c.limit:
		return nil
	}
	delete(c.all, oldest.Conn)
	c.refused.WithLabelValues(reason).Inc()
	return oldest.Conn
}
