package httpserver

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// request is a handler's answer; header are names and values in turn.
func request(handler http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, req)
	return answer
}

// TestReadiness: a server that is about to end says so, and lives on for those who are being served.
func TestReadiness(t *testing.T) {
	ready := true
	handler := pages{Config{
		TelemetryPath: "/metrics",
		Metrics:       http.NotFoundHandler(),
		API:           http.NotFoundHandler(),
		Live:          http.NotFoundHandler(),
		Names:         []string{"example.com"},
	}, newAdmission(1, 1<<20, loopback(), newRefusals()), func() bool { return ready }}.mux()
	ask := func(path string) int {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		return answer.Code
	}
	assert.Equal(t, http.StatusOK, ask("/-/ready"))
	ready = false
	assert.Equal(t, http.StatusServiceUnavailable, ask("/-/ready"))
	assert.Equal(t, http.StatusOK, ask("/-/healthy"))
}

// TestOtherSitesChangeNothing: what a browser sends for another site's page is refused wherever it could change
// something. Nothing else is: browsers say where a request comes from, curl and Prometheus' reloaders don't.
func TestOtherSitesChangeNothing(t *testing.T) {
	for _, test := range []struct {
		name, method, path string
		header             []string
		status, reloads    int
	}{
		{"curl", http.MethodPost, "/-/reload", nil, http.StatusOK, 1},
		{"the exporter's own page", http.MethodPost, "/-/reload",
			[]string{"Sec-Fetch-Site", "same-origin", "Origin", "http://example.com"}, http.StatusOK, 1},
		{"the browser's address bar", http.MethodPost, "/-/reload", []string{"Sec-Fetch-Site", "none"},
			http.StatusOK, 1},
		{"the exporter's own page in an old browser", http.MethodPost, "/-/reload",
			[]string{"Origin", "http://example.com"}, http.StatusOK, 1},
		{"another site", http.MethodPost, "/-/reload", []string{"Sec-Fetch-Site", "cross-site"},
			http.StatusForbidden, 0},
		{"another host of the site", http.MethodPost, "/-/reload",
			[]string{"Sec-Fetch-Site", "same-site"}, http.StatusForbidden, 0},
		{"another site in an old browser", http.MethodPost, "/-/reload",
			[]string{"Origin", "http://evil.example"}, http.StatusForbidden, 0},
		{"a file, or a page in a sandbox", http.MethodPost, "/-/reload", []string{"Origin", "null"},
			http.StatusForbidden, 0},
		{"another site, by a method that nobody serves", http.MethodDelete, "/metrics",
			[]string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden, 0},
		{"a link on another site", http.MethodGet, "/", []string{"Sec-Fetch-Site", "cross-site"}, http.StatusOK, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			reloads := 0
			handler := pages{Config{
				TelemetryPath: "/metrics", Metrics: http.NotFoundHandler(), API: http.NotFoundHandler(),
				Live:   http.NotFoundHandler(),
				Names:  []string{"example.com"},
				Reload: func(context.Context) error { reloads++; return nil },
			}, newAdmission(1, 1<<20, loopback(), newRefusals()), func() bool { return true }}.mux()
			answer := request(handler, test.method, test.path, test.header...)
			assert.Equal(t, test.status, answer.Code)
			assert.Equal(t, test.reloads, reloads)
			if test.status == http.StatusForbidden {
				assert.Contains(t, answer.Body.String(), "curl -X POST", "what to do instead")
			}
		})
	}
}

// TestServerWaitsForNobodyForEver: every timeout that net/http has is set.
func TestServerWaitsForNobodyForEver(t *testing.T) {
	s := newServer(http.NotFoundHandler(), newConnections(1, loopback(), newRefusals()), slog.New(slog.DiscardHandler))
	assert.NotZero(t, s.ReadHeaderTimeout)
	assert.NotZero(t, s.ReadTimeout)
	assert.NotZero(t, s.WriteTimeout)
	assert.NotZero(t, s.IdleTimeout)
	assert.Greater(t, s.WriteTimeout, 100*time.Second, "what a scraper may ask for can be had")
}

func TestTelemetryPath(t *testing.T) {
	for path, good := range map[string]bool{
		"/metrics": true, "/a/b": true, "/apis": true, "/metrics/": true,
		"/a//b": false, "/a/../b": false, "//": false,
		"": false, "/": false, "metrics": false, "/-/ready": false, "/api": false, "/api/v1/ranks": false,
		"/debug/pprof": false,
		"/{x}":         false, "/a b": false, "/m?x=1": false,
	} {
		assert.Equal(t, good, CheckTelemetryPath(path) == nil, "%q", path)
	}
}

func TestWriteAddresses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	dir := t.TempDir()
	path := filepath.Join(dir, "addresses")
	require.NoError(t, os.WriteFile(path, []byte("old\n"), 0o600))
	require.NoError(t, WriteAddresses(path, []net.Listener{l, l}))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, l.Addr().String()+"\n"+l.Addr().String()+"\n", string(text))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 1)
	assert.ErrorContains(t, WriteAddresses(filepath.Join(dir, "none", "addresses"), nil), "--web.address-file: ")
}
