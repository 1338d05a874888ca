package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// timeoutHeader says in seconds when the scraper will stop waiting.
const timeoutHeader = "X-Prometheus-Scrape-Timeout-Seconds"

// Scrapers of the real program that mean no good, or do not care. docs/internals/faults.md has a line for each of these
// tests.

// elsewhere is an address that is none of this machine's interfaces', which all count as one, and that connections can
// come from all the same. It takes root.
func elsewhere(t *testing.T) string {
	t.Helper()
	if err := foreign(); err != nil {
		t.Skip("no connection can come from another address than this machine's:", err)
	}
	return foreignAddress()
}

// foreignAddress is one of those for documentation, other tests that run at this time have another.
func foreignAddress() string { return fmt.Sprintf("198.51.100.%d", 1+os.Getpid()%254) }

// foreign has foreignAddress at this machine's loopback interface; unforeign takes it away again.
var foreign = sync.OnceValue(func() error {
	out, err := exec.Command("ip", "route", "replace", "local", foreignAddress(), "dev", "lo").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})

func unforeign() {
	_ = exec.Command("ip", "route", "del", "local", foreignAddress(), "dev", "lo").Run()
}

// getFrom reads a page from an address of this machine, over a connection of its own.
func (e *exporterProcess) getFrom(ctx context.Context, from, path string) (status int, body string, err error) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: dialer.DialContext}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+path, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	response, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// page reads the metrics, from elsewhere where that can be: that must work whatever others do.
func (e *exporterProcess) page(t *testing.T) values {
	t.Helper()
	from := "127.0.0.1"
	if foreign() == nil {
		from = elsewhere(t)
	}
	status, body, err := e.getFrom(t.Context(), from, "/metrics")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status, body)
	return parse(t, body)
}

// hurriedPage is a page that waits for no rank: when it is there, those that don't answer have been asked. It is
// refused until the exporter has seen that other scrapers of this address have gone.
func (e *exporterProcess) hurriedPage(t *testing.T) values {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.url+"/metrics", http.NoBody)
		require.NoError(t, err)
		req.Header.Set(timeoutHeader, "0.02")
		req.Close = true
		response, err := (&http.Client{Timeout: patience}).Do(req)
		require.NoError(t, err)
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		require.NoError(t, err)
		if response.StatusCode == http.StatusServiceUnavailable && time.Since(begun) < patience {
			continue
		}
		require.Equal(t, http.StatusOK, response.StatusCode, string(text))
		return parse(t, string(text))
	}
}

// values are those of a page by name and labels, as the text format writes them.
type values map[string]float64

func parse(t *testing.T, body string) values {
	t.Helper()
	v := values{}
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		require.Positive(t, at, "a line that is none: %q", line)
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		require.NoError(t, err)
		v[line[:at]] = value
	}
	require.NotEmpty(t, v)
	return v
}

// count is how many series of a family have a value.
func (v values) count(family string, value float64) int {
	n := 0
	for name, have := range v {
		if have == value && strings.HasPrefix(name, family+"{") {
			n++
		}
	}
	return n
}

// noneFell returns the counters that are less than before, or are gone. The exporter's own begin anew with it.
func (v values) noneFell(before values) error {
	var fallen []error
	for name, value := range before {
		family, _, _ := strings.Cut(name, "{")
		if !strings.HasSuffix(family, "_total") && !strings.HasSuffix(family, "_count") ||
			!strings.HasPrefix(family, "mpit_") ||
			strings.HasPrefix(family, "mpit_exporter_") {
			continue
		}
		if now, ok := v[name]; !ok || now < value {
			fallen = append(fallen, fmt.Errorf("%s was %v, is %v", name, value, now))
		}
	}
	return errors.Join(fallen...)
}

// openFiles counts the exporter's descriptors.
func (e *exporterProcess) openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", e.cmd.Process.Pid))
	require.NoError(t, err)
	return len(list)
}

// rests waits until the exporter has as few descriptors and goroutines as before, when it had so many.
func (e *exporterProcess) rests(t *testing.T, files int, goroutines float64) {
	t.Helper()
	require.Eventually(t, func() bool {
		return e.openFiles(t) <= files && e.page(t)["go_goroutines"] <= goroutines
	}, patience, 50*time.Millisecond, "descriptors %d, now %d; goroutines %v", files, e.openFiles(t),
		goroutines)
}

// dialed opens connections that are closed with the test, if not before.
func (e *exporterProcess) dialed(t *testing.T, n int) []net.Conn {
	t.Helper()
	conns := make([]net.Conn, n)
	for i := range conns {
		conn, err := net.Dial("tcp", strings.TrimPrefix(e.url, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		conns[i] = conn
	}
	return conns
}

// settled starts an exporter with ranks that have been scraped, and says what it has open then.
func settled(t *testing.T, ranks int, args ...string) (e *exporterProcess, job *mpittest.Job, files int,
	goroutines float64) {
	t.Helper()
	e = startExporter(t, mpittest.ShortDir(t)+"/agent.sock", args...)
	job = mpittest.NewJob(ranks)
	for _, r := range job.Ranks {
		require.NoError(t, r.Connect(t.Context(), e.socket))
		t.Cleanup(r.Kill)
	}
	var page values
	require.Eventually(t, func() bool {
		page = e.page(t)
		return page.count("mpit_rank_up", 1) == ranks
	}, patience, 20*time.Millisecond)
	time.Sleep(100 * time.Millisecond) // for what ends with a scrape
	page = e.page(t)
	return e, job, e.openFiles(t) + 2, page["go_goroutines"] + 4
}

// A thousand scrapers at once: each gets a page, or is told to come again, or is not let in; all of it is counted,
// and nothing stays.
func TestScrapersAThousandAtOnce(t *testing.T) {
	t.Parallel()
	elsewhere(t)
	e, _, files, goroutines := settled(t, 4)
	before := e.page(t)
	var pages, refused, cut atomic.Int64
	var scrapers sync.WaitGroup
	start := make(chan struct{})
	for range 1000 {
		scrapers.Go(func() {
			<-start
			switch status, body, err := e.try("/metrics"); {
			case err != nil:
				cut.Add(1)
			case status == http.StatusOK && strings.Contains(body, "\nmpit_rank_up{"):
				pages.Add(1)
			case status == http.StatusServiceUnavailable:
				refused.Add(1)
			default:
				assert.Fail(t, "an answer that is neither", "%d %s", status, body)
			}
		})
	}
	close(start)
	for range 5 { // from elsewhere there is room all the time
		e.awaitRanks(t, 4)
	}
	scrapers.Wait()
	t.Logf("%d pages, %d refusals, %d connections cut", pages.Load(), refused.Load(), cut.Load())
	assert.Positive(t, pages.Load())
	e.rests(t, files, goroutines)
	after := e.page(t)
	gained := func(name string) float64 { return after[name] - before[name] }
	// One that is refused may not get to read it.
	assert.GreaterOrEqual(t, gained(`mpit_exporter_http_refused_total{reason="too_many_requests_of_address"}`),
		float64(refused.Load()))
	assert.GreaterOrEqual(t, gained(`mpit_exporter_http_refused_total{reason="too_many_connections_of_address"}`),
		float64(cut.Load()))
	assert.Equal(t, 1.0, after["mpit_exporter_scrapes_in_flight"])
}

// Scrapers that ask and ask and never read fill their half of what may be under way; elsewhere nobody notices.
func TestScrapersThatDoNotRead(t *testing.T) {
	t.Parallel()
	elsewhere(t)
	e, _, files, goroutines := settled(t, 64)
	// one after the other, more than sockets hold the answers of
	request := strings.Repeat("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 200)
	conns := e.dialed(t, 40)
	for _, conn := range conns {
		_, err := io.WriteString(conn, request)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		return e.page(t)["mpit_exporter_scrapes_in_flight"] == 20+1
	}, patience, 20*time.Millisecond, "never full")
	for range 10 {
		e.awaitRanks(t, 64) // each page is there; where the ranks themselves are starved, not each has all of them
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
	e.rests(t, files, goroutines)
}

// Connections that say nothing, begin and say no more, or ask once and stay: their number is bounded, the oldest go,
// and both their own address and others are served.
func TestScrapersThatHoardConnections(t *testing.T) {
	t.Parallel()
	elsewhere(t)
	const limit = 64
	e, _, files, _ := settled(t, 4, "--web.max-connections="+strconv.Itoa(limit))
	conns := e.dialed(t, 150)
	for _, conn := range e.dialed(t, 20) {
		_, err := io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHo")
		require.NoError(t, err)
	}
	for _, conn := range e.dialed(t, 100) {
		_, _ = io.WriteString(conn, "GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n")
		_, _ = conn.Read(make([]byte, 10))
	}
	assert.LessOrEqual(t, e.openFiles(t), files+limit/2+2)
	for range 10 {
		status, _, err := e.try("/metrics")
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, status, "from the same address")
		e.awaitRanks(t, 4) // from elsewhere
	}
	require.NoError(t, conns[0].SetReadDeadline(time.Now().Add(patience)))
	_, err := conns[0].Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the oldest has been closed")
	assert.GreaterOrEqual(t, e.page(t)[`mpit_exporter_http_refused_total{reason="too_many_connections_of_address"}`],
		200.0)

	// Half a request each, and more of them than an address may have connections: it is cut off, and it alone.
	for _, conn := range e.dialed(t, limit) {
		_, _ = io.WriteString(conn, "GET /metrics HTTP/1.1\r\nX: ")
	}
	for range 10 {
		e.awaitRanks(t, 4)
	}
}

// Headers without an end, lines without an end, no HTTP at all, bodies that nobody asked for, methods that there are
// not: an answer that says so, or the end of the connection.
func TestScrapersThatTalkNonsense(t *testing.T) {
	t.Parallel()
	e, _, files, goroutines := settled(t, 4)
	huge := strings.Repeat("x", 1<<20)
	for _, test := range []struct {
		name, text string
		status     int // 0: the connection ends without an answer
	}{
		{"a huge header", "GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + huge + "\r\n\r\n",
			http.StatusRequestHeaderFieldsTooLarge},
		{"many headers", "GET /metrics HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X: y\r\n", 100_000) + "\r\n",
			http.StatusRequestHeaderFieldsTooLarge},
		{"a header without an end", "GET /metrics HTTP/1.1\r\nX: " + huge, http.StatusRequestHeaderFieldsTooLarge},
		{"a huge path", "GET /" + huge + " HTTP/1.1\r\nHost: x\r\n\r\n", http.StatusRequestHeaderFieldsTooLarge},
		{"no HTTP", "MPIT\x00\x01\x02\x03\r\n\r\n", http.StatusBadRequest},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", http.StatusBadRequest},
		{"no host", "GET /metrics HTTP/1.1\r\n\r\n", http.StatusBadRequest},
		{"two lengths", "GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
			http.StatusBadRequest},
		{"a method of its own", "BREW /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
			http.StatusMethodNotAllowed},
		{"POST with a body", "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 104857600\r\n\r\n" + huge,
			http.StatusMethodNotAllowed},
		{"DELETE", "DELETE /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", http.StatusMethodNotAllowed},
		{"PUT to the list of ranks", "PUT /api/v1/ranks HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
			http.StatusMethodNotAllowed},
		{"CONNECT", "CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
			http.StatusMisdirectedRequest},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn := e.dialed(t, 1)[0]
			go func() { _, _ = io.Copy(conn, strings.NewReader(test.text)) }() // it may be refused before it is read
			require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			defer func() { _ = response.Body.Close() }()
			assert.Equal(t, test.status, response.StatusCode)
			_ = conn.Close()
		})
	}
	e.rests(t, files, goroutines)
	assert.Less(t, e.page(t)["process_resident_memory_bytes"], float64(256<<20))
}

// Scrapers that go away while the ranks are being asked: nothing of their scrapes stays.
func TestScrapersThatGoAway(t *testing.T) {
	t.Parallel() // it waits
	e, job, files, goroutines := settled(t, 4)
	job.Ranks[0].Stall(true)
	for range 10 {
		conns := e.dialed(t, 15)
		for _, conn := range conns {
			_, err := io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: x\r\n"+timeoutHeader+": 60\r\n\r\n")
			require.NoError(t, err)
		}
		for i, conn := range conns {
			if i%2 == 0 { // with a reset
				require.NoError(t, conn.(*net.TCPConn).SetLinger(0))
			}
			_ = conn.Close()
		}
	}
	e.hurriedPage(t)
	time.Sleep(time.Second)       // then the rank holds others up no longer
	e.rests(t, files, goroutines) // though the rank still does not answer
	assert.Equal(t, 1.0, e.page(t)["mpit_exporter_scrapes_in_flight"])
	job.Ranks[0].Stall(false)
	e.awaitRanks(t, 4)
}

// After 4,000 scrapes the exporter has what it had after 1,000: descriptors, goroutines, live memory.
// MPIT_SOAK_SCRAPES is another number.
func TestScrapersLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	total := 4000
	if text := os.Getenv("MPIT_SOAK_SCRAPES"); text != "" {
		var err error
		total, err = strconv.Atoi(text)
		require.NoError(t, err, "MPIT_SOAK_SCRAPES")
	}
	e, job, files, goroutines := settled(t, 2, "--web.enable-pprof")
	accepts := []string{"", "application/openmetrics-text;version=1.0.0",
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"}
	scrape := func(n int) {
		var scrapers sync.WaitGroup
		for range 4 {
			scrapers.Go(func() {
				transport := &http.Transport{}
				defer transport.CloseIdleConnections()
				client := &http.Client{Timeout: patience, Transport: transport}
				for i := range n / 4 {
					req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.url+"/metrics", http.NoBody)
					if !assert.NoError(t, err) {
						return
					}
					req.Header.Set("Accept", accepts[i%len(accepts)])
					req.Header.Set("Accept-Encoding", "gzip") // by hand: nobody has to unpack it
					req.Close = i%10 == 0
					response, err := client.Do(req)
					if !assert.NoError(t, err) {
						return
					}
					_, err = io.Copy(io.Discard, response.Body)
					_ = response.Body.Close()
					if !assert.NoError(t, err) || !assert.Equal(t, http.StatusOK, response.StatusCode) {
						return
					}
				}
			})
		}
		for range 10 { // the ranks do something meanwhile
			assert.NoError(t, job.Step())
		}
		scrapers.Wait()
	}
	live := func() float64 {
		e.rests(t, files, goroutines)
		status, _ := e.get(t, "/debug/pprof/heap?gc=1")
		require.Equal(t, http.StatusOK, status)
		return e.page(t)["go_memstats_heap_alloc_bytes"]
	}
	scrape(1000)
	before := live()
	scrape(total - 1000)
	after := live()
	t.Logf("live heap after 1,000 scrapes %.2f MB, after %d %.2f MB", before/1e6, total, after/1e6)
	// Pools of buffers and encoders come and go. A kilobyte left behind by each scrape would be 3 MB.
	assert.Less(t, after, before+2e6)
}
