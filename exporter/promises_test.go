package exporter

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testFunctions finds all functions of the repository's tests, of both modules, by their names, with their packages'
// directories.
func testFunctions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range function.FindAllStringSubmatch(string(text), -1) {
			found[m[1]] = filepath.ToSlash(filepath.Dir(path))[len("../"):]
		}
		return err
	}))
	return found
}

// What the documents promise is tested by tests that exist, and every row of a table of promises names one. Every
// test of a fault stands in a row of docs/internals/faults.md.
func TestPromisesAreTested(t *testing.T) {
	functions := testFunctions(t)
	named := map[string]bool{}
	name := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w+)`")
	for _, document := range []string{"internals/faults.md", "security.md"} {
		text, err := os.ReadFile("../docs/" + document)
		require.NoError(t, err)
		promising := false
		for line := range strings.Lines(string(text)) {
			names := name.FindAllStringSubmatch(line, -1)
			for _, m := range names {
				assert.NotEmpty(t, functions[m[1]], "%s names %s, which there isn't", document, m[1])
				named[m[1]] = true
			}
			switch {
			case !strings.HasPrefix(line, "|"):
				promising = false
			case strings.HasPrefix(line, "| promise |"), strings.HasPrefix(line, "| fault |"):
				promising = true
			case promising && !strings.HasPrefix(line, "|---"):
				assert.NotEmpty(t, names, "%s names no test: %s", document, line)
				for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
					assert.NotEmpty(t, strings.TrimSpace(cell), "%s: %s", document, line)
				}
			}
		}
	}
	for name, dir := range functions {
		if strings.HasPrefix(name, "TestFault") || strings.HasPrefix(name, "TestScrapers") {
			assert.True(t, named[name], "%s in %s stands in no row", name, dir)
		}
	}
}

// All fuzz targets stand in docs/internals/faults.md, with their packages, and no others.
func TestFuzzTargetsAreListed(t *testing.T) {
	text, err := os.ReadFile("../docs/internals/faults.md")
	require.NoError(t, err)
	listed := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(Fuzz\\w+)` \\| `([a-z/-]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		listed[m[1]] = m[2]
	}
	there := testFunctions(t)
	for name := range there {
		if !strings.HasPrefix(name, "Fuzz") {
			delete(there, name)
		}
	}
	assert.Equal(t, there, listed)
}
