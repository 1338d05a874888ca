// Package queries has what rules and alerts ask read by the parsers of Prometheus and VictoriaMetrics.
package queries

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/VictoriaMetrics/metricsql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

type rule struct {
	Record, Alert, Expr string
	Annotations         map[string]string
}

func readRules(t *testing.T, name string) (all []rule) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "alerts", name))
	require.NoError(t, err)
	var file struct{ Groups []struct{ Rules []rule } }
	require.NoError(t, yaml.Unmarshal(text, &file))
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// parses says why a query isn't one in both languages.
func parses(query string) error {
	if _, err := parser.NewParser(parser.Options{}).ParseExpr(query); err != nil {
		return fmt.Errorf("no PromQL: %w", err)
	}
	if _, err := metricsql.Parse(query); err != nil {
		return fmt.Errorf("no MetricsQL: %w", err)
	}
	return nil
}

// Every rule is a query in both languages, and so is what the texts of alerts ask, whether there is an answer or not.
func TestRulesParse(t *testing.T) {
	for _, r := range readRules(t, "recording.yaml") {
		assert.NoError(t, parses(r.Expr), r.Record)
	}
	asked := 0
	for _, r := range readRules(t, "alerts.yaml") {
		assert.NoError(t, parses(r.Expr), r.Alert)
		for _, text := range r.Annotations {
			for _, answer := range [][]sample{nil, {anySample()}} {
				queries, err := expand(text, answer)
				require.NoError(t, err, r.Alert)
				asked += len(queries)
				for _, q := range queries {
					assert.NoError(t, parses(q), "text of %s: %s", r.Alert, q)
				}
			}
		}
	}
	assert.Greater(t, asked, 30)
}

// What one of them doesn't understand is found, in a rule and in a text.
func TestMistakesAreFound(t *testing.T) {
	for query, want := range map[string]string{
		"mpit_rank_up == 0":                             "",
		"mpit_rank_up ==":                               "no PromQL",
		"histogram_sum(rate(mpit_call_seconds[5m]))":    "no MetricsQL",
		`label_set(mpit_rank_up, "alert", "elsewhere")`: "no PromQL",
	} {
		if err := parses(query); want == "" {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, want)
		}
	}
	queries, err := expand(`{{ with query "first_one" }}{{ with first . }}{{ query .Labels.rank }}{{ end }}{{ end }}`,
		[]sample{anySample()})
	require.NoError(t, err)
	assert.Equal(t, []string{"first_one", "a rank"}, queries)
	_, err = expand(`{{ externalURL }}`, nil)
	assert.ErrorContains(t, err, "externalURL")
}

// sample is what both servers' templates have of a series.
type sample struct {
	Labels map[string]string
	Value  float64
}

// anySample has all labels that a text may ask for.
func anySample() sample {
	s := sample{Labels: map[string]string{}, Value: 1}
	for _, name := range strings.Fields("cluster instance jobid jobname world user rank dup node state reason alert " +
		"metric name value function comm win") {
		s.Labels[name] = "a " + name
	}
	return s
}

// expand writes a text with the functions that both servers have, and returns what it asks.
func expand(text string, answer []sample) (queries []string, err error) {
	asIs := func(x any) string { return fmt.Sprint(x) }
	t, err := template.New("").Funcs(template.FuncMap{
		"query":        func(q string) []sample { queries = append(queries, q); return answer },
		"first":        func(list []sample) sample { return list[0] },
		"sortByLabel":  func(_ string, list []sample) []sample { return list },
		"match":        func(_, _ string) bool { return false },
		"reReplaceAll": func(_, _, text string) string { return text },
		"humanize":     asIs, "humanize1024": asIs, "humanizePercentage": asIs, "humanizeDuration": asIs,
	}).Option("missingkey=zero").Parse("{{ $labels := .Labels }}{{ $value := .Value }}" + text)
	if err != nil {
		return nil, err
	}
	return queries, t.Execute(&strings.Builder{}, anySample())
}
