package body

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNegotiateCoding(t *testing.T) {
	for header, want := range map[string]string{
		"": "", "gzip": "gzip", "GZIP": "gzip", "gzip;q=0": "", "gzip; q=0.5": "gzip", "*": "gzip", "*;q=0": "",
		"br": "", "zstd": "zstd",
		"*, gzip;q=0": "zstd", "gzip;q=x": "", "gzip;q=NaN": "", "deflate, gzip;q=1.0, *;q=0.5": "gzip",
		"gzip, zstd":       "gzip",
		"zstd;q=0.5, gzip": "gzip", "zstd;q=0, *": "gzip", "gzip, gzip;q=0": "gzip",
	} {
		assert.Equal(t, want, NegotiateCoding(http.Header{"Accept-Encoding": {header}}), "%q", header)
	}
	assert.Equal(t, "gzip", NegotiateCoding(http.Header{"Accept-Encoding": {"br", "gzip"}}), "two lines")
}
