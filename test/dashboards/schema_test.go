package dashboards

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var drawing = filepath.Join("..", "..", "dashboards", "draw")

// The dashboards are what Grafana's own schema says, in the version that docker-compose.yml runs. The schema is a
// package of npm's, which only those have who draw.
func TestSchema(t *testing.T) {
	if _, err := os.Stat(filepath.Join(drawing, "node_modules", "grafana-schema-12")); err != nil {
		t.Skip("Grafana's schema isn't here: cd dashboards/draw && npm ci")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	check := exec.CommandContext(ctx, "node", "check.mjs")
	check.Dir = drawing
	out, err := check.CombinedOutput()
	assert.NoError(t, err, "%s", out)
}

// The schema is that of the Grafana which people are told to run.
func TestSchemaOfWhatRuns(t *testing.T) {
	version := func(path, pattern string) string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		m := regexp.MustCompile(pattern).FindSubmatch(text)
		require.NotNil(t, m, "%s: no %s", path, pattern)
		return string(m[1])
	}
	assert.Equal(t, version(filepath.Join("..", "..", "docker-compose.yml"), `image: grafana/grafana:(\S+)`),
		version(filepath.Join(drawing, "package.json"), `npm:@grafana/schema@([0-9.]+)"`))
}
