package dashboards

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/cluster"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// A job of hundreds of ranks stays readable: graphs have no more series than their legends have room for, heat
// maps no more rows than there are pixels, and tables no more rows than there are ranks.
func TestManyRanks(t *testing.T) {
	t.Parallel()
	const nodes, ofNode = 4, 128
	const ranks = nodes * ofNode
	// Their windows hold several scrapes, and they cost less than this machine has.
	rules := suite.RulesInSeconds(t)[:1]
	text, err := os.ReadFile(rules[0])
	require.NoError(t, err)
	text = bytes.ReplaceAll(text, []byte("[5s]"), []byte("[30s]"))
	text = regexp.MustCompile(`interval: \d+s`).ReplaceAll(text, []byte("interval: 10s"))
	require.NoError(t, os.WriteFile(rules[0], text, 0o600))
	p := suite.PrometheusWith(t, harness.PrometheusConfig{Interval: 5 * time.Second, Rules: rules,
		Discovery: cluster.OneJob(t, suite, nodes, ofNode)})
	p.Await(t, "count(count_over_time(mpit_rank:useful:ratio5m[1m]) > 1)", func(samples []harness.Sample) error {
		if len(samples) != 1 || samples[0].Value != ranks {
			return fmt.Errorf("%v", samples)
		}
		return nil
	})
	s := newSite(p)
	s.step, s.from, s.to = 10*time.Second, time.Now().Add(-20*time.Second), time.Now()
	rows := 0
	for _, d := range read(t) {
		values := map[string]string{"__rate_interval": "20s", "__interval": "5s", "__range": "20s"}
		for _, v := range d.Templating.List {
			values[v.Name] = ".*"
		}
		for name, value := range map[string]string{"jobid": "0", "user": "user0", "timer": "mpit_call_time_seconds",
			"counter": "mpit_call_bytes_total", "level": "mpit_pml_ob1_unexpected_msgq_length"} {
			values[name] = value
		}
		for _, p := range d.all() {
			for _, q := range p.Targets {
				samples, err := s.ask(t.Context(), q, values)
				require.NoError(t, err, "%s: %s", p.Title, q.Expr)
				series := map[string]bool{}
				for _, sample := range samples {
					series[fmt.Sprint(sample.Labels)] = true
				}
				most := map[string]int{"timeseries": 10, "stat": 2, "heatmap": 300, "table": ranks}[p.Type]
				assert.LessOrEqual(t, len(series), most, "%s: %s", p.Title, q.Expr)
				if p.Title == "Useful time, rank by rank" {
					rows = len(series)
					most, err := s.ask(t.Context(), target{Instant: true,
						Expr: "topk(1, max by (rank) (max_over_time(mpit_rank:useful:ratio5m[20s])))"}, values)
					require.NoError(t, err)
					require.Len(t, most, 1)
					assert.True(t, slices.ContainsFunc(samples, func(x harness.Sample) bool {
						return x.Labels["rank"] == most[0].Labels["rank"]
					}), "the rank with most useful time isn't among those that are shown")
				}
				// What is said of all exporters together has as few series with any number of them.
				if d.UID != "mpit-exporter" && (p.Type == "heatmap" || most == 10 && len(series) > 3) {
					assert.True(t, p.MaxDataPoints > 0 && p.MaxDataPoints*len(series) <= 50_000, "%s: too many points", p.Title)
				}
			}
		}
	}
	assert.Equal(t, 300, rows)
}
