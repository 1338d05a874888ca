package main

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

// Every test that docs/reliability.md names is there, in whatever package, and every test of a fault stands in a row of it.
func TestReliabilityIsDocumented(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "reliability.md"))
	require.NoError(t, err)
	there := map[string]string{} // where a test is, by name
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range function.FindAllSubmatch(source, -1) {
			there[string(m[1])] = path
		}
		return err
	}))

	named := map[string]bool{}
	test := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	rows, columns := 0, 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch {
		case !strings.HasPrefix(line, "|"):
			columns = 0
			continue
		case columns == 0:
			columns = len(cells)
			continue
		case columns != 4 || strings.HasPrefix(line, "|---"):
			continue
		}
		rows++
		assert.Len(t, cells, columns, line)
		for _, cell := range cells {
			assert.NotEmpty(t, strings.TrimSpace(cell), line)
		}
		last := cells[len(cells)-1]
		assert.Regexp(t, test, last, "no test: %s", line)
		for _, m := range test.FindAllStringSubmatch(last, -1) {
			named[m[1]] = true
			assert.Contains(t, there, m[1], "docs/reliability.md names a test that is not there")
		}
	}
	assert.Greater(t, rows, 15)
	for name, path := range there {
		if strings.HasPrefix(name, "TestFault") || strings.HasPrefix(name, "TestScrapers") {
			assert.True(t, named[name], "%s in %s stands in no row of docs/reliability.md", name, path)
		}
	}
}
