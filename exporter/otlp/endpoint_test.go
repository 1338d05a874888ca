package otlp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHTTPPath: the general variable is a base, that of metrics is taken as it is, and a path is never relative.
func TestHTTPPath(t *testing.T) {
	for _, test := range []struct{ variable, url, path string }{
		{general + "ENDPOINT", "http://h:4318", "/v1/metrics"},
		{general + "ENDPOINT", "http://h:4318/", "/v1/metrics"},
		{general + "ENDPOINT", "http://h:4318/base", "/base/v1/metrics"},
		{general + "ENDPOINT", "http://h:4318/base/", "/base/v1/metrics"},
		{ofMetrics + "ENDPOINT", "http://h:4318", "/"},
		{ofMetrics + "ENDPOINT", "http://h:4318/own", "/own"},
		{"", "", "/v1/metrics"},
	} {
		set, err := Config{Environ: env(test.variable, test.url)}.settings()
		require.NoError(t, err)
		assert.Equal(t, test.path, set.url.Path, "%s=%s", test.variable, test.url)
	}
}
