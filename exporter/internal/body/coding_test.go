package body

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTakesGzip(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": true, "GZIP": true, "gzip;q=0": false, "gzip; q=0.5": true, "*": true, "*;q=0": false,
		"br": false, "zstd": false,
		"*, gzip;q=0": false, "gzip;q=x": false, "gzip;q=NaN": false, "deflate, gzip;q=1.0, *;q=0.5": true,
		"zstd, gzip;q=0.5": true, "gzip, gzip;q=0": true,
	} {
		assert.Equal(t, want, TakesGzip(http.Header{"Accept-Encoding": {header}}), "%q", header)
	}
	assert.True(t, TakesGzip(http.Header{"Accept-Encoding": {"br", "gzip"}}), "two lines")
}
