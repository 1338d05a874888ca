package httpserver

import (
	"container/list"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Scrapers are not trusted. One address may use up half of what there is, so that the scrapes of another one go on.

const (
	// sendTime is how long a client may take to read the page, beyond the time that its scrape may take. Without it
	// 40 clients that do not read would keep all others out for as long as the server's own timeout.
	sendTime = 20 * time.Second
	// usualScrape is how long a scrape may take that doesn't say its timeout; longestScrape is the longest that it
	// may ask for.
	usualScrape, longestScrape = 10 * time.Second, 100 * time.Second
	// TimeoutHeader says in seconds when the scraper will stop waiting.
	TimeoutHeader = "X-Prometheus-Scrape-Timeout-Seconds"
)

// Reasons of mpit_exporter_http_refused_total.
const (
	refusedConnections        = "too_many_connections"
	refusedAddressConnections = "too_many_connections_of_address"
	refusedAddressScrapes     = "too_many_scrapes_of_address"
)

// newRefusals counts what scrapers were refused before the exporter saw a request, by reason.
func newRefusals() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mpit_exporter_http_refused_total",
		Help: "HTTP connections and requests refused because too many were open, by reason.",
	}, []string{"reason"})
	for _, reason := range []string{refusedConnections, refusedAddressConnections, refusedAddressScrapes} {
		c.WithLabelValues(reason)
	}
	return c
}

// address names the other end: an IPv4 address, or the /64 of an IPv6 one, because one host may have all of that.
func address(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote // not TCP
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.Is6() && !ip.IsLoopback() {
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

// perAddress lets one address have only half of limit requests under way at once.
func perAddress(next http.Handler, limit int, refused *prometheus.CounterVec) http.Handler {
	var mu sync.Mutex
	each := map[string]int{}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		from := address(req.RemoteAddr)
		mu.Lock()
		full := each[from] >= half(limit)
		if !full {
			each[from]++
		}
		mu.Unlock()
		if full {
			refused.WithLabelValues(refusedAddressScrapes).Inc()
			say(w, http.StatusServiceUnavailable, fmt.Sprintf("%d requests of this address are being served "+
				"already, half of --web.max-requests", half(limit)))
			return
		}
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			if each[from]--; each[from] == 0 {
				delete(each, from)
			}
		}()
		next.ServeHTTP(w, req)
	})
}

// hurried gives clients only so long to read what they have asked for: send beyond the time that their scrape may
// take.
func hurried(next http.Handler, send time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		// Where it can't be set the server's own timeout holds.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(scrapeTime(req.Header) + send))
		next.ServeHTTP(w, req)
	})
}

// scrapeTime is how long a scrape may take, by its header.
func scrapeTime(header http.Header) time.Duration {
	s, err := strconv.ParseFloat(header.Get(TimeoutHeader), 64)
	switch {
	case err != nil || !(s > 0): // NaN, too
		return usualScrape
	case s >= longestScrape.Seconds():
		return longestScrape
	}
	return time.Duration(s * float64(time.Second))
}
