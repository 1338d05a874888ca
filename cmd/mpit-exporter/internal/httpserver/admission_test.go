package httpserver

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// client is one that has or hasn't read, and whose time to read may be cut.
type client struct {
	*httptest.ResponseRecorder
	over chan struct{} // closed when it has lost its place
	once sync.Once
}

func newClient() *client {
	return &client{ResponseRecorder: httptest.NewRecorder(), over: make(chan struct{})}
}

func (c *client) SetWriteDeadline(at time.Time) error {
	if at.Before(time.Now()) {
		c.once.Do(func() { close(c.over) })
	}
	return nil
}

func (c *client) gone() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// Whatever comes in whatever order: there are never more requests of a kind and an address than may be, answers never
// hold more bytes, who is refused is told why, and only those lose their place whose answers are being read.
func TestAdmissionIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		requests, limit := rapid.IntRange(1, 6).Draw(t, "requests"), rapid.IntRange(1, 100).Draw(t, "bytes")
		refused := newRefusals()
		a := newAdmission(requests, limit, loopback(), refused)
		var all []*visit
		gone := func(v *visit) bool { return v.w.(*client).gone() }
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				each, bytes, held := map[string]int{}, 0, map[string]int{}
				kinds := map[kind]int{}
				for _, v := range all {
					if gone(v) {
						require.False(t, v.sent.IsZero(), "it was being made")
						continue
					}
					kinds[v.kind]++
					each[fmt.Sprint(v.kind, v.from)]++
					bytes += v.bytes
					held[v.from] += v.bytes
				}
				for _, n := range kinds {
					require.LessOrEqual(t, n, requests)
				}
				for _, n := range each {
					require.LessOrEqual(t, n, half(requests))
				}
				require.LessOrEqual(t, bytes, limit)
				for _, n := range held {
					require.LessOrEqual(t, n, half(limit))
				}
			},
			"ask": func(t *rapid.T) {
				v := &visit{admission: a, kind: rapid.SampledFrom([]kind{scrape, other}).Draw(t, "kind"),
					from: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "from"), w: newClient()}
				later := time.Now().Add(rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "later"))
				if reason := a.enter(v, later); reason == "" {
					all = append(all, v)
				}
			},
			"make, send or end": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip("no request")
				}
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				v := all[i]
				switch what := rapid.SampledFrom([]string{"make", "send", "end"}).Draw(t, "what"); {
				case gone(v) || what == "end":
					a.leave(v)
					all = append(all[:i:i], all[i+1:]...)
				case what == "make" && v.sent.IsZero():
					_ = v.hold(rapid.IntRange(1, 60).Draw(t, "bytes"))
				case what == "send":
					v.send()
				}
			},
		})
	})
}

// Requests for other pages never have a scrape's place, however many there are.
func TestScrapesHaveTheirOwnPlaces(t *testing.T) {
	a := newAdmission(4, 100, loopback(), newRefusals())
	for i := range 100 {
		a.enter(&visit{admission: a, kind: other, from: fmt.Sprint(i), w: newClient()}, time.Now())
	}
	assert.Len(t, a.visits, 4)
	assert.Empty(t, a.enter(&visit{admission: a, kind: scrape, from: "0", w: newClient()}, time.Now()))
}

// Who asks once too often is told so, and may come again.
func TestTooManyRequests(t *testing.T) {
	refused := newRefusals()
	a := newAdmission(3, 100, loopback(), refused)
	reached, release := make(chan struct{}), make(chan struct{})
	h := a.of(scrape, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		reached <- struct{}{}
		<-release
	}))
	done := make(chan struct{})
	ask := func(from string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		req := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
		req.RemoteAddr = from
		h.ServeHTTP(w, req)
		return w
	}
	for _, from := range []string{"192.0.2.1:1", "192.0.2.1:2", "192.0.2.2:1"} {
		go func() {
			ask(from)
			done <- struct{}{}
		}()
		<-reached
	}
	for from, reason := range map[string]string{"192.0.2.1:3": refusedAddressRequests, "192.0.2.3:1": refusedRequests} {
		w := ask(from)
		assert.Equal(t, http.StatusServiceUnavailable, w.Code)
		assert.Contains(t, w.Body.String(), reason+": 3 requests")
		assert.InDelta(t, 1, counted64(refused.WithLabelValues(reason)), 0)
	}
	close(release)
	for range 3 {
		<-done
	}
	go func() {
		ask("192.0.2.1:4")
		done <- struct{}{}
	}()
	<-reached
	<-done
}

// stuck is a server of a page that is more than sockets hold, for one request of an address at a time.
func stuck(t *testing.T) (a *admission, url string, ended chan error) {
	t.Helper()
	a, ended = newAdmission(2, 1<<30, loopback(), newRefusals()), make(chan error, 1)
	s := httptest.NewServer(a.of(scrape, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/small" {
			say(w, http.StatusOK, "small")
			return
		}
		_, err := w.Write(bytes.Repeat([]byte("x"), 64<<20))
		ended <- err
	})))
	t.Cleanup(s.Close)
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 1)) // so it is being sent
	require.NoError(t, err)
	return a, s.URL, ended
}

// A client that does not read what it has asked for loses its place once another one waits.
func TestStalledReaderLosesItsPlace(t *testing.T) {
	a, url, ended := stuck(t)
	a.mu.Lock()
	require.Len(t, a.visits, 1)
	a.visits[0].sent = time.Now().Add(-2 * unhurried)
	a.mu.Unlock()
	response, err := http.Get(url + "/small")
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	assert.Equal(t, http.StatusOK, response.StatusCode)
	assert.ErrorContains(t, <-ended, "timeout")
	assert.InDelta(t, 1, counted64(a.refused.WithLabelValues(refusedSlow)), 0)
}

// deadlined notes until when it may write.
type deadlined struct {
	http.ResponseWriter
	until time.Time
}

func (d *deadlined) SetWriteDeadline(at time.Time) error { d.until = at; return nil }

// A client has a time to read its answer that begins with the first byte, also where nobody waits for its place.
func TestUnreadPageIsGivenUp(t *testing.T) {
	d := &deadlined{ResponseWriter: httptest.NewRecorder()}
	h := newAdmission(1, 1<<20, loopback(), newRefusals()).of(scrape, http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		assert.Zero(t, d.until)
		before := time.Now()
		_, _ = w.Write([]byte("x"))
		assert.False(t, d.until.Before(before.Add(sendTime)))
		first := d.until
		_, _ = w.Write([]byte("x"))
		assert.Equal(t, first, d.until)
	}))
	h.ServeHTTP(d, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	assert.NotZero(t, d.until)
}

// noise is what can't be compressed.
func noise(n int) []byte {
	r := rand.NewChaCha8([32]byte{})
	text := make([]byte, n)
	_, _ = r.Read(text)
	return text
}

// What a handler says arrives, compressed or not, and the handler is done before the first byte is sent.
func TestAnswersAreMadeBeforeTheyAreSent(t *testing.T) {
	for _, size := range []int{0, 100, 1 << 20} {
		for _, accept := range []string{"", "gzip", "br, gzip", "gzip;q=0"} {
			text := noise(size)
			w := newClient()
			a := newAdmission(1, 8<<20, loopback(), newRefusals())
			h := a.of(other, made(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
				answer.Header().Set("Content-Type", "application/json")
				answer.WriteHeader(http.StatusTeapot)
				for rest := text; len(rest) > 0; rest = rest[min(len(rest), 1000):] {
					n, err := answer.Write(rest[:min(len(rest), 1000)])
					assert.NoError(t, err)
					assert.Equal(t, min(len(rest), 1000), n)
				}
				assert.Zero(t, w.Body.Len(), "it is sent while it is made")
				assert.False(t, w.Flushed)
			})))
			req := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
			req.Header.Set("Accept-Encoding", accept)
			h.ServeHTTP(w, req)
			assert.Equal(t, http.StatusTeapot, w.Code)
			assert.Equal(t, "application/json", w.Header().Get("Content-Type"))
			got := io.Reader(w.Body)
			zipped := w.Header().Get("Content-Encoding") == "gzip"
			assert.Equal(t, accept == "gzip" || accept == "br, gzip", zipped)
			if zipped {
				z, err := gzip.NewReader(got)
				require.NoError(t, err)
				got = z
			}
			all, err := io.ReadAll(got)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(text, all), "%d bytes, %q", size, accept)
			assert.Empty(t, a.visits)
		}
	}
}

// An answer that would hold more than its address may have is none, and says so.
func TestAnswersAreBoundedInBytes(t *testing.T) {
	refused := newRefusals()
	a := newAdmission(10, 1<<20, loopback(), refused)
	var failed error
	h := a.of(other, made(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, failed = w.Write(noise(4 << 20))
	})))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	require.ErrorIs(t, failed, errTooMuch)
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Contains(t, w.Body.String(), errTooMuch.Error())
	assert.InDelta(t, 1, counted64(refused.WithLabelValues(refusedBytes)), 0)
}

// What an answer takes is what has been charged, piece by piece.
func TestAnswersTakeWhatIsCharged(t *testing.T) {
	a := newAdmission(10, 8<<20, loopback(), newRefusals())
	h := a.of(other, made(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 10 {
			_, err := w.Write(noise(100_000))
			require.NoError(t, err)
			taken := 0
			for _, piece := range w.(*answer).body.Buffers {
				taken += cap(piece)
			}
			assert.Equal(t, a.visits[0].bytes, taken)
			assert.Less(t, taken, 10*100_000+2*pieceBytes)
		}
	})))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
}

// A page that reaches the exporter through a browser by a name of its own gets nothing, and changes nothing.
func TestHostsAreKnown(t *testing.T) {
	for host, good := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:9799": true, "[::1]:9799": true, "[::1]": true, "192.0.2.1": true,
		"[fe80::1%25eth0]:1": true,
		"localhost":          true, "LocalHost:1": true, "localhost.": true,
		"node1": true, "node1:9799": true, "node1.cluster.example:9799": true, "NODE1.cluster.example.": true,
		"allowed.example": true,
		"evil.example":    false, "node1.evil.example": false, "localhost.evil.example": false, "": true,
		"127.0.0.1.evil.example": false, "xnode1": false,
	} {
		reloads := 0
		refused := newRefusals()
		handler := pages{Config{
			TelemetryPath: "/metrics", Metrics: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
			API: http.NotFoundHandler(), Live: http.NotFoundHandler(),
			Names:  []string{"node1", "node1.Cluster.example.", "allowed.example"},
			Reload: func(context.Context) error { reloads++; return nil },
		}, newAdmission(1, 1<<20, loopback(), refused), func() bool { return true }}.mux()
		ask := func(method, path string) *httptest.ResponseRecorder {
			req := httptest.NewRequest(method, path, http.NoBody)
			req.Host = host
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, req)
			return w
		}
		assert.Equal(t, http.StatusOK, ask(http.MethodGet, "/metrics").Code, host)
		w := ask(http.MethodPost, "/-/reload")
		if good {
			assert.Equal(t, http.StatusOK, w.Code, host)
			assert.Equal(t, 1, reloads)
			continue
		}
		assert.Equal(t, http.StatusMisdirectedRequest, w.Code, host)
		assert.Contains(t, w.Body.String(), "--web.allowed-host")
		assert.Zero(t, reloads)
		assert.Equal(t, http.StatusMisdirectedRequest, ask(http.MethodGet, "/api/v1/ranks").Code, host)
		assert.InDelta(t, 2, counted64(refused.WithLabelValues(refusedHost)), 0)
	}
}

// The node is known by its own names.
func TestOwnNames(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel() // what the name service says is another matter
	assert.NotEmpty(t, ownNames(canceled))
}
