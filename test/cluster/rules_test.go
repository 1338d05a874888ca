package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// BenchmarkRules says what each rule costs a Prometheus, in microseconds of CPU a rank and minute: it evaluates them one
// by one at a moment before which the ranks of one job were observed for 12 minutes of model time. Unlike the time that
// a group takes, that doesn't depend on what else the machine does.
func BenchmarkRules(b *testing.B) {
	nodes, ranks := number(b, "BENCH_NODES", 32), number(b, "BENCH_RANKS", 32)
	const speed, evaluations = 8, 40
	m := &machine{arrival: math.MaxInt64} // no other job comes
	for i := range nodes {
		m.nodes = append(m.nodes, node{running: &place{job: &job{end: math.MaxInt64}, index: i}})
	}
	template, started := record(b, suite, []string{"--calls"}, 10*time.Second, 20*time.Second), time.Now()
	e := exporters{machine: m, template: template, ranks: ranks, gone: &atomic.Bool{},
		clock: func() time.Duration { return time.Since(started) * speed }}
	files := faster(b, speed)
	prometheus := suite.PrometheusWith(b, harness.PrometheusConfig{Interval: interval / speed, Discovery: e.serve(b),
		Rules: files, Flags: []string{"--query.lookback-delta=37500ms"}})
	time.Sleep(12 * time.Minute / speed)
	at := time.Now()
	e.gone.Store(true) // what follows costs nothing but what is asked
	time.Sleep(2 * time.Minute / speed)

	used := func() float64 {
		now, err := itself(b.Context(), prometheus, "process_cpu_seconds_total")
		require.NoError(b, err)
		return now["process_cpu_seconds_total"]
	}
	const quiet = 20 * time.Second
	idle := -used()
	time.Sleep(quiet)
	idle = (idle + used()) / quiet.Seconds() // of a core, without questions
	all := 0.0
	for _, r := range expressions(b, files, interval/speed) {
		before, begun := used(), time.Now()
		for range evaluations {
			response, err := http.Get(prometheus.URL() + "/api/v1/query?" + url.Values{"query": {"count(" + r.Expr + ")"},
				"time": {strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)}}.Encode())
			require.NoError(b, err)
			var answer struct{ Status, Error string }
			require.NoError(b, json.NewDecoder(response.Body).Decode(&answer))
			_, _ = io.Copy(io.Discard, response.Body)
			require.NoError(b, response.Body.Close())
			require.Equal(b, "success", answer.Status, answer.Error)
		}
		cost := max(0, used()-before-idle*time.Since(begun).Seconds()) / evaluations / float64(nodes*ranks) *
			r.PerMinute / speed
		all += cost
		b.Logf("%8.1f us  %s", cost*1e6, r.Name)
	}
	b.Logf("%8.3f    of a core without questions", idle)
	b.ReportMetric(all*1e3, "ms/rank/min")
}

// expression is what a rule evaluates so often.
type expression struct {
	Name, Expr string
	PerMinute  float64
}

// expressions are those of rules in files, whose groups are evaluated otherwise where they don't say how often.
func expressions(b *testing.B, files []string, otherwise time.Duration) (all []expression) {
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(b, err)
		var rules struct {
			Groups []struct {
				Interval time.Duration
				Rules    []struct {
					Record, Alert, Expr string
					Labels              map[string]string
				}
			}
		}
		require.NoError(b, yaml.Unmarshal(text, &rules))
		for _, g := range rules.Groups {
			for _, r := range g.Rules {
				all = append(all, expression{fmt.Sprint(r.Record, r.Alert, " ", r.Labels["alert"]), r.Expr,
					time.Minute.Seconds() / cmp.Or(g.Interval, otherwise).Seconds()})
			}
		}
	}
	return all
}
