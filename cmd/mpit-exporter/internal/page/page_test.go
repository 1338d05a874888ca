package page

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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

// Each file of the page is served, as what it is, to be asked for again when it has changed, and may load nothing
// from elsewhere.
func TestPageFiles(t *testing.T) {
	handler := http.NewServeMux()
	Serve(handler, "1.0", "mpit-exporter exec --", nil)
	files, err := fs.ReadDir(pageFiles, ".")
	require.NoError(t, err)
	require.Greater(t, len(files), 5)
	for _, f := range files {
		path := pagePath + f.Name()
		if f.Name() == "index.html" {
			path = "/"
		}
		answer := request(handler, http.MethodGet, path)
		require.Equal(t, http.StatusOK, answer.Code, path)
		h := answer.Header()
		assert.NotEqual(t, "application/octet-stream", h.Get("Content-Type"), path)
		assert.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), path)
		assert.Equal(t, "no-cache", h.Get("Cache-Control"), path)
		assert.True(t, strings.HasPrefix(h.Get("Content-Security-Policy"),
			"default-src 'none'; script-src 'self'; style-src 'self'; "), path)
		assert.NotContains(t, h.Get("Content-Security-Policy"), "unsafe")
		assert.Equal(t, http.StatusNotModified, request(handler, http.MethodGet, path, "If-None-Match",
			h.Get("ETag")).Code, path)
		assert.Empty(t, request(handler, http.MethodHead, path).Body.String(), path)
		assert.Equal(t, http.StatusMethodNotAllowed, request(handler, http.MethodPost, path).Code, path)

		body := strings.ReplaceAll(answer.Body.String(), "http://www.w3.org/2000/svg", "")
		assert.NotRegexp(t,
			`https?://|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function\(|style=`, body, path)
	}
	for _, path := range []string{"/index.html", "/nothing", "/-/page/", "/-/page/index.html", "/-/page/nothing.js"} {
		assert.Equal(t, http.StatusNotFound, request(handler, http.MethodGet, path).Code, path)
	}
}

// Two exporters' files don't have one tag.
func TestPageTags(t *testing.T) {
	tag := func(content string) string {
		return request(pageFile("a.js", []byte(content)), http.MethodGet, "/").Header().Get("ETag")
	}
	assert.NotEqual(t, tag("1"), tag("2"))
	assert.Equal(t, tag("1"), tag("1"))
}
