package httpserver

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// thisHost is the address of all that ask from this machine: any of its users has all of 127.0.0.0/8.
const thisHost = "127.0.0.0/8"

// address names the other end: an IPv4 address, or the /64 of an IPv6 one, because one host may have all of that.
func address(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote // not TCP
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.IsLoopback() {
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

// connections bounds the connections of a http.Server, whose ConnState it is. One too many costs the connection that
// has been without a request for longest: a hoard of idle ones keeps nobody out. Its methods are called concurrently.
type connections struct {
	limit   int
	refused *prometheus.CounterVec

	mu     sync.Mutex
	all    map[net.Conn]*httpConnection
	each   map[string]int // by address
	unused list.List      // of *httpConnection: those without a request, the longest so first
}

type httpConnection struct {
	net.Conn
	from   string
	unused *list.Element // nil: it has a request, or the beginning of one
}

// newConnections bounds connections; those that are refused are counted.
func newConnections(limit int, refused *prometheus.CounterVec) *connections {
	return &connections{limit: limit, refused: refused, all: map[net.Conn]*httpConnection{}, each: map[string]int{}}
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
		known = &httpConnection{Conn: conn, from: address(conn.RemoteAddr().String())}
		c.all[conn] = known
		c.each[known.from]++
		known.unused = c.unused.PushBack(known)
		return c.makeRoom(known)
	case known == nil: // it had to go
	case state == http.StateActive:
		c.use(known)
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
