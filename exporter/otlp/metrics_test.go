package otlp

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// docs/otlp.md has a table of the metrics that there are, and no others, with all results that there can be.
func TestMetricsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "otlp.md"))
	require.NoError(t, err)
	documented := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(mpit_exporter_otlp_\\w+)` \\| (.*) \\|$").FindAllSubmatch(text,
		-1) {
		documented[string(m[1])] = string(m[2])
	}
	registry := prometheus.NewRegistry()
	newMetrics(registry)
	families, err := registry.Gather()
	require.NoError(t, err)
	there := map[string]bool{}
	for _, f := range families {
		there[f.GetName()] = true
		if assert.Contains(t, documented, f.GetName()) {
			for _, m := range f.Metric {
				for _, l := range m.Label {
					assert.Contains(t, documented[f.GetName()], "`"+l.GetValue()+"`", f.GetName())
				}
			}
		}
	}
	for name := range documented {
		assert.True(t, there[name], "docs/otlp.md has %s, which there isn't", name)
	}
}
