package httpserver

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
)

// A private port has the metrics for scrapers, reports for judges, and for all others, and on all other paths, a word
// on what to do.
func TestPrivate(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	certified := func(verified bool, name string, dns ...string) func(*http.Request) {
		of := &x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: dns}
		state := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{of}}
		if verified {
			state.VerifiedChains = [][]*x509.Certificate{{of}}
		}
		return func(req *http.Request) { req.TLS = state }
	}
	password := func(name string) func(*http.Request) {
		return func(req *http.Request) { req.SetBasicAuth(name, "checked by the toolkit") }
	}
	for _, test := range []struct {
		name             string
		scrapers, judges []string
		client           func(*http.Request)
		metrics, report  bool
	}{
		{"nobody", nil, nil, func(*http.Request) {}, false, false},
		{"a user, where every one will do", nil, nil, password("prometheus"), true, true},
		{"a user whose password was not checked", nil, nil, password("eve"), false, false},
		{"a scraper", []string{"prometheus"}, []string{"judge"}, password("prometheus"), true, false},
		{"a judge", []string{"prometheus"}, []string{"judge"}, password("judge"), false, true},
		{"another user", []string{"prometheus"}, []string{"prometheus"}, password("judge"), false, false},
		{"a certificate", nil, nil, certified(true, "node9"), true, true},
		{"its name", []string{"node9"}, []string{"node8"}, certified(true, "node9"), true, false},
		{"its DNS name", []string{"node8"}, []string{"node9.example.com"}, certified(true, "", "a", "node9.example.com"),
			false, true},
		{"one that was not verified", nil, nil, certified(false, "node9"), false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			refused := newRefusals()
			handler := pages{Config{
				TelemetryPath: "/metrics", Metrics: ok, API: ok, Live: ok, Pprof: true,
				Private: &Private{Scrapers: test.scrapers, Judges: test.judges,
					Users: func() []string { return []string{"prometheus", "judge"} }},
			}, newAdmission(1, 1<<20, loopback(), refused), func() bool { return true }}.mux()
			ask := func(path string) int {
				req := httptest.NewRequest(http.MethodGet, "http://localhost"+path, http.NoBody)
				test.client(req)
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, req)
				if answer.Code == http.StatusForbidden {
					assert.Contains(t, answer.Body.String(), "run mpit-exporter top, list, report or page on its node", path)
				}
				return answer.Code
			}
			want := map[bool]int{true: http.StatusOK, false: http.StatusForbidden}
			assert.Equal(t, want[test.metrics], ask("/metrics"))
			assert.Equal(t, want[test.report], ask("/api/v1/report?jobid=7"))
			for _, path := range []string{"/", "/-/page/main.js", "/-/reload", "/api/v1/jobs", "/api/v1/ranks", "/api/v1/values",
				"/api/v1/catalogue", "/api/v1/cvar", "/api/v1/report/", "/debug/pprof/", "/none"} {
				assert.Equal(t, http.StatusForbidden, ask(path), path)
			}
			assert.Equal(t, http.StatusOK, ask("/-/healthy"))
			assert.Equal(t, http.StatusOK, ask("/-/ready"))
			assert.GreaterOrEqual(t, testutil.ToFloat64(refused.WithLabelValues(refusedClient)), 11.0)
		})
	}
}
