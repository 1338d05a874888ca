package httpserver

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Clients are not trusted. One address may use up half of what there is, so that requests of another one go on, and
// scrapes have places that nothing else takes.

const (
	// sendTime is how long a client may take to read an answer, from its first byte on.
	sendTime = 20 * time.Second
	// unhurried is how long it may take although another one waits for its place.
	unhurried = time.Second
	// answerBytes bounds the answers that are being made or sent, compressed. Those of pages for scrapers are shared,
	// and bounded by the exporter.
	answerBytes = 16 << 20
)

// Reasons of mpit_exporter_http_refused_total.
const (
	refusedConnections        = "too_many_connections"
	refusedAddressConnections = "too_many_connections_of_address"
	refusedRequests           = "too_many_requests"
	refusedAddressRequests    = "too_many_requests_of_address"
	refusedBytes              = "too_many_bytes"
	refusedSlow               = "too_slow"
	refusedHost               = "unknown_host"
	refusedClient             = "private"
)

// newRefusals counts what clients were refused, by reason.
func newRefusals() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mpit_exporter_http_refused_total",
		Help: "HTTP connections and requests that were refused or given up, by reason.",
	}, []string{"reason"})
	for _, reason := range []string{refusedConnections, refusedAddressConnections, refusedRequests,
		refusedAddressRequests, refusedBytes, refusedSlow, refusedHost, refusedClient} {
		c.WithLabelValues(reason)
	}
	return c
}

// admission bounds the requests that are served at once, and what their answers hold. Its methods are called
// concurrently.
type admission struct {
	requests int // of each kind
	bytes    int
	from     addresses
	refused  *prometheus.CounterVec

	mu     sync.Mutex
	visits []*visit // in the order in which they began to be sent, and before that to be served
}

// kind is what requests have places of their own for.
type kind int

const (
	scrape kind = iota
	other
)

// visit is a request that has a place.
type visit struct {
	*admission
	kind  kind
	from  string
	w     http.ResponseWriter
	bytes int       // that its answer holds
	sent  time.Time // when the client got the first byte; zero: it has not yet
}

func newAdmission(requests, bytes int, from addresses, refused *prometheus.CounterVec) *admission {
	return &admission{requests: requests, bytes: bytes, from: from, refused: refused}
}

// of serves requests of one kind while there are places.
func (a *admission) of(k kind, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		v := &visit{admission: a, kind: k, from: a.from.of(req.RemoteAddr), w: w}
		if reason := a.enter(v, time.Now()); reason != "" {
			a.refused.WithLabelValues(reason).Inc()
			w.Header().Set("Retry-After", "1")
			say(w, http.StatusServiceUnavailable, fmt.Sprintf("%s: %d requests are served at once "+
				"(--web.max-requests), %d of one address; try again", reason, a.requests, half(a.requests)))
			return
		}
		defer a.leave(v)
		req = req.WithContext(req.Context()) // a copy
		req.RemoteAddr = v.from              // by which answers are made in turns (api.Turns)
		next.ServeHTTP(&tracked{w, v}, req)
	})
}

// enter gives a request a place, or says why there is none.
func (a *admission) enter(v *visit, now time.Time) (reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all, own := 0, 0
	for _, other := range a.visits {
		if other.kind == v.kind {
			all++
			if other.from == v.from {
				own++
			}
		}
	}
	same := func(other *visit) bool { return other.kind == v.kind }
	switch {
	case own >= half(a.requests):
		reason, same = refusedAddressRequests, func(other *visit) bool {
			return other.kind == v.kind && other.from == v.from
		}
	case all >= a.requests:
		reason = refusedRequests
	}
	if reason != "" && !a.giveUp(same, now.Add(-unhurried)) {
		return reason
	}
	a.visits = append(a.visits, v)
	return ""
}

// giveUp ends the one of these requests whose answer is being read for longest, if that began before. mu is held.
func (a *admission) giveUp(of func(*visit) bool, before time.Time) bool {
	i := slices.IndexFunc(a.visits, func(v *visit) bool { return !v.sent.IsZero() && v.sent.Before(before) && of(v) })
	if i < 0 {
		return false
	}
	// It ends what is being written; net/http closes the connection then.
	_ = http.NewResponseController(a.visits[i].w).SetWriteDeadline(time.Unix(1, 0))
	a.visits = slices.Delete(a.visits, i, i+1)
	a.refused.WithLabelValues(refusedSlow).Inc()
	return true
}

// leave gives a place back.
func (a *admission) leave(v *visit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.visits = slices.DeleteFunc(a.visits, func(other *visit) bool { return other == v })
}

// errTooMuch is why an answer is not made.
var errTooMuch = errors.New("answers that are being read take too much memory; try again")

// hold notes that the answer holds so much more. Without room for it, those go whose answers have been read for
// longest: of the same address at once, of another one after a while.
func (v *visit) hold(bytes int) error {
	a := v.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		all, own := bytes, bytes
		for _, other := range a.visits {
			all += other.bytes
			if other.from == v.from {
				own += other.bytes
			}
		}
		of, before := func(other *visit) bool { return other.bytes > 0 }, time.Now()
		switch {
		case own > half(a.bytes):
			of = func(other *visit) bool { return other.bytes > 0 && other.from == v.from }
		case all <= a.bytes:
			v.bytes += bytes
			return nil
		default:
			before = before.Add(-unhurried)
		}
		if !a.giveUp(of, before) {
			a.refused.WithLabelValues(refusedBytes).Inc()
			return errTooMuch
		}
	}
}

// send notes that the client gets the first byte of its answer now, which it has a time to read.
func (v *visit) send() {
	a := v.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.visits, v); i >= 0 && v.sent.IsZero() {
		v.sent = time.Now()
		a.visits = append(slices.Delete(a.visits, i, i+1), v)
		// Where it can't be set the server's own timeout holds.
		_ = http.NewResponseController(v.w).SetWriteDeadline(v.sent.Add(sendTime))
	}
}

// tracked is the client of a request that has a place.
type tracked struct {
	http.ResponseWriter
	visit *visit
}

func (t *tracked) Write(p []byte) (int, error) {
	t.visit.send()
	return t.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (t *tracked) Unwrap() http.ResponseWriter { return t.ResponseWriter }
