package main

import (
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

// TestReadiness: a server that is about to end says so, and lives on for those who are being served.
func TestReadiness(t *testing.T) {
	ready := true
	handler, err := pages{
		telemetryPath: "/metrics",
		metrics:       http.NotFoundHandler(),
		api:           http.NotFoundHandler(),
		ready:         func() bool { return ready },
	}.mux()
	require.NoError(t, err)
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

// TestServerWaitsForNobodyForEver: every timeout that net/http has is set.
func TestServerWaitsForNobodyForEver(t *testing.T) {
	s := newServer(http.NotFoundHandler(), newConnections(1, newRefusals()), slog.New(slog.DiscardHandler))
	assert.NotZero(t, s.ReadHeaderTimeout)
	assert.NotZero(t, s.ReadTimeout)
	assert.NotZero(t, s.WriteTimeout)
	assert.NotZero(t, s.IdleTimeout)
	assert.Greater(t, s.WriteTimeout, longestScrape+sendTime-time.Second, "what a scraper may ask for can be had")
}

func TestTelemetryPath(t *testing.T) {
	for path, good := range map[string]bool{
		"/metrics": true, "/a/b": true, "/apis": true, "/metrics/": true,
		"/a//b": false, "/a/../b": false, "//": false,
		"": false, "/": false, "metrics": false, "/-/ready": false, "/api": false, "/api/v1/ranks": false, "/debug/pprof": false,
		"/{x}": false, "/a b": false, "/m?x=1": false,
	} {
		assert.Equal(t, good, checkTelemetryPath(path) == nil, "%q", path)
	}
}

func TestWriteAddresses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	dir := t.TempDir()
	path := filepath.Join(dir, "addresses")
	require.NoError(t, os.WriteFile(path, []byte("old\n"), 0o600))
	require.NoError(t, writeAddresses(path, []net.Listener{l, l}))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, l.Addr().String()+"\n"+l.Addr().String()+"\n", string(text))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 1)
	assert.ErrorContains(t, writeAddresses(filepath.Join(dir, "none", "addresses"), nil), "--web.address-file: ")
}
