package dashboards

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// What panels, rules and alerts ask for and OTLP doesn't bring is named in docs/otlp.md, and nothing else is. That
// all other series are the same is TestOTLPLabels' business.
func TestWhatOTLPDoesNotBring(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "otlp.md"))
	require.NoError(t, err)
	_, list, found := strings.Cut(string(text), "ask for what OTLP doesn't bring:")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "\n\n")
	var named []string
	for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(list, -1) {
		named = append(named, m[1])
	}
	slices.Sort(named)

	var asked []string
	add := func(query string) {
		selectors, err := parse(fill(query, map[string]string{"__rate_interval": "1m", "__interval": "1m", "__range": "1m",
			"timer": "mpit_x", "counter": "mpit_x", "level": "mpit_x"}))
		require.NoError(t, err)
		for _, selector := range selectors {
			for _, m := range selector.LabelMatchers {
				of, _, _ := strings.Cut(m.Value, "_")
				others := of == "ALERTS" || of == "node" // Prometheus' and node_exporter's
				if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual &&
					!strings.HasPrefix(of, "mpit") && of != "process" && !others {
					asked = append(asked, m.Value)
				}
			}
		}
	}
	for _, d := range read(t) {
		for _, p := range d.all() {
			for _, q := range p.Targets {
				add(q.Expr)
			}
		}
	}
	for _, file := range []string{"recording.yaml", "alerts.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "alerts", file))
		require.NoError(t, err)
		var rules struct {
			Groups []struct{ Rules []struct{ Expr string } }
		}
		require.NoError(t, yaml.Unmarshal(text, &rules))
		for _, g := range rules.Groups {
			for _, r := range g.Rules {
				add(r.Expr)
			}
		}
	}
	slices.Sort(asked)
	assert.Equal(t, slices.Compact(asked), named)
}
