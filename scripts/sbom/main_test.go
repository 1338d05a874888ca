package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Modules with what go.sum knows of them, a replaced one as what it is, and Go's own library.
func TestWrite(t *testing.T) {
	const build = `{"GoVersion": "go1.26.8", "Path": "example.org/a/cmd/tool", "Main": {"Path": "example.org/a"}, "Deps": [
		{"Path": "example.org/b", "Version": "v1.2.3", "Sum": "h1:AAEC"},
		{"Path": "example.org/c", "Version": "v1.0.0", "Replace": {"Path": "example.org/d", "Version": "v2.0.0+incompatible"}}]}`
	var out bytes.Buffer
	require.NoError(t, write(&out, strings.NewReader(build), "0.1.0+5.gabc", time.Unix(1795415041, 0)))
	assert.JSONEq(t, `{"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata": {"timestamp": "2026-11-23T06:24:01Z", "component": {"bom-ref": "pkg:golang/example.org/a@0.1.0%2B5.gabc",
			"type": "application", "name": "tool", "version": "0.1.0+5.gabc", "purl": "pkg:golang/example.org/a@0.1.0%2B5.gabc"}},
		"components": [
			{"bom-ref": "pkg:golang/stdlib@1.26.8", "type": "library", "name": "stdlib", "version": "1.26.8",
				"purl": "pkg:golang/stdlib@1.26.8"},
			{"bom-ref": "pkg:golang/example.org/b@v1.2.3", "type": "library", "name": "example.org/b", "version": "v1.2.3",
				"purl": "pkg:golang/example.org/b@v1.2.3", "hashes": [{"alg": "SHA-256", "content": "000102"}]},
			{"bom-ref": "pkg:golang/example.org/d@v2.0.0%2Bincompatible", "type": "library", "name": "example.org/d",
				"version": "v2.0.0+incompatible", "purl": "pkg:golang/example.org/d@v2.0.0%2Bincompatible"}]}`, out.String())

	assert.ErrorContains(t, write(&out, strings.NewReader("no"), "1", time.Time{}), "go version -m -json")
}
