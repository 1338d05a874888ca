package httpserver

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pageOf serves what an exporter serves, with another telemetry path than usual.
func pageOf(t *testing.T, pprof bool) http.Handler {
	t.Helper()
	handler := pages{Config{
		TelemetryPath: "/a/metrics", Metrics: http.NotFoundHandler(), API: http.NotFoundHandler(),
		Live:  http.NotFoundHandler(),
		Names: []string{"example.com"},
		Pprof: pprof,
	}, newAdmission(1, 1<<20, loopback(), newRefusals()), func() bool { return true }}.mux()
	return handler
}

// Who has no scripts finds all other pages, by addresses that a proxy may put a path in front of.
func TestPageLinksToAllOthers(t *testing.T) {
	links := func(pprof bool) (found []string) {
		answer := request(pageOf(t, pprof), http.MethodGet, "/")
		require.Equal(t, http.StatusOK, answer.Code)
		for _, m := range regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(answer.Body.String(),
			-1) {
			found = append(found, m[1])
		}
		return found
	}
	want := []string{
		"-/page/icon.svg", "-/page/palette.css", "-/page/style.css", "-/page/main.js", "#verdict", "#variables",
		"a/metrics", "api/v1/jobs", "api/v1/report", "api/v1/ranks", "api/v1/catalogue", "api/v1/values",
		"-/healthy", "-/ready",
	}
	assert.Equal(t, want, links(false))
	assert.Equal(t, append(want, "debug/pprof/"), links(true))
}
