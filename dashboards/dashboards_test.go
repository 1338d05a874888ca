package dashboards

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	verdict "github.com/mpit-exporter/mpit-exporter/exporter/job"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest/uptodate"
)

// The files beside this package are what its code writes, and there are no others.
func TestFilesAreUpToDate(t *testing.T) {
	written := files()
	there, err := filepath.Glob("*.json")
	require.NoError(t, err)
	assert.Len(t, there, len(written), "files that no code writes, or code whose file is not there")
	for name, d := range written {
		want, err := encode(d)
		require.NoError(t, err)
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		uptodate.Check(t, name, string(got), string(want), "go generate ./dashboards")
	}
}

// Colours mean the same as on the live page, whose palette has each of them, and every state's.
func TestPalette(t *testing.T) {
	css, err := os.ReadFile(filepath.Join("..", "cmd", "mpit-exporter", "internal", "page", "palette.css"))
	require.NoError(t, err)
	light, _, _ := strings.Cut(string(css), "@media")
	onPage := map[string]string{}
	for _, m := range regexp.MustCompile(`--([a-z]+): (#[0-9a-f]+);`).FindAllStringSubmatch(light, -1) {
		onPage[m[1]] = m[2]
	}
	assert.Equal(t, onPage, palette)
	for _, s := range verdict.States() {
		assert.NotEmpty(t, colourOf(s), s.Word)
	}
}

// The choice of partitions and nodes holds for all that is shown of jobs.
func TestJobsAreOfTheChosenPartitions(t *testing.T) {
	for _, p := range everything(jobs()) {
		for _, q := range p.Targets {
			assert.Subset(t, references(q.Expr), []string{"partition", "node"}, "%s: %s", p.Title, q.Expr)
		}
	}
}
