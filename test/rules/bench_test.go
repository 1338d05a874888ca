package rules

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// interval is that of scrapes and, where a group of rules has none of its own, of evaluations.
const interval = 15 * time.Second

// BenchmarkRules reports how long the last evaluations of each group and each rule took, and what that is of a minute. A
// Prometheus scrapes made-up ranks with the call profile, on nodes of 128: $BENCH_RANKS is how many, $BENCH_MINUTES how
// long. Before the eleventh minute there is nothing yet for a rule that looks ten minutes back.
func BenchmarkRules(b *testing.B) {
	ranks, minutes := fromEnvironment(b, "BENCH_RANKS", 1024), fromEnvironment(b, "BENCH_MINUTES", 13)
	started := time.Now()
	discovery := harness.MadeUpNodes(b, ranks, 8)
	prometheus := suite.PrometheusWith(b, harness.PrometheusConfig{Interval: interval, Discovery: discovery,
		Rules: []string{filepath.Join(suite.Root(), "alerts", "recording.yaml"),
			filepath.Join(suite.Root(), "alerts", "alerts.yaml")}})
	b.Logf("%d ranks, at %s", ranks, prometheus.URL())

	evaluations := map[string]*evaluation{}
	for ticker := time.NewTicker(interval / 5); time.Since(started) < time.Duration(minutes)*time.Minute; <-ticker.C {
		groups, err := prometheus.Rules(b.Context())
		require.NoError(b, err)
		for _, g := range groups {
			look(evaluations, g.Name, g.LastEvaluation, g.EvaluationTime, g.Interval)
			for _, r := range g.Rules {
				look(evaluations, g.Name+" "+r.Name, r.LastEvaluation, r.EvaluationTime, g.Interval)
			}
		}
	}
	b.Log("median of the last evaluations [ms], seconds of a minute")
	for _, name := range slices.Sorted(maps.Keys(evaluations)) {
		e := evaluations[name]
		b.Logf("%10.1f %8.3f  %s", 1000*e.median(), e.perMinute(), name)
	}
}

// evaluation is how long the latest evaluations of a rule or a group took.
type evaluation struct {
	last     time.Time
	interval float64
	seconds  []float64
}

func look(evaluations map[string]*evaluation, name string, at time.Time, seconds, interval float64) {
	e := evaluations[name]
	if e == nil {
		e = &evaluation{interval: interval}
		evaluations[name] = e
	}
	if at.Equal(e.last) {
		return
	}
	e.last = at
	e.seconds = append(e.seconds, seconds)
}

// median is that of the last three: the first ones have not all data.
func (e *evaluation) median() float64 {
	last := slices.Sorted(slices.Values(e.seconds[max(0, len(e.seconds)-3):]))
	return last[len(last)/2]
}

func (e *evaluation) perMinute() float64 { return e.median() * 60 / e.interval }

func fromEnvironment(b *testing.B, name string, otherwise int) int {
	text, ok := os.LookupEnv(name)
	if !ok {
		return otherwise
	}
	number, err := strconv.Atoi(text)
	require.NoError(b, err, name)
	return number
}
