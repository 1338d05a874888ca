package cluster

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// A Prometheus agent scrapes and sends what it reads to a server that has the rules: this has the series of one that
// scrapes itself, and they end there as soon. Mimir and Thanos Receive take
// the same requests.
func TestAgent(t *testing.T) {
	t.Parallel()
	for _, server := range harness.PrometheusServers(t) {
		t.Run(server.Name, func(t *testing.T) {
			t.Parallel()
			exporter := suite.Exporter(t)
			receiver := suite.PrometheusWith(t, harness.PrometheusConfig{Server: server, Rules: faster(t, 20),
				Flags: []string{"--web.enable-remote-write-receiver"}})
			agent := suite.PrometheusWith(t, harness.PrometheusConfig{Server: server,
				Exporters: []*harness.Exporter{exporter}, Agent: agentFlag(t, server),
				More: strings.ReplaceAll(block(t, "agent.yml"), "http://central:9090", receiver.URL())})
			direct := suite.PrometheusWith(t, harness.PrometheusConfig{Server: server,
				Exporters: []*harness.Exporter{exporter}})

			run := suite.Run(t, harness.Job{MPI: harness.OpenMPI(t), Program: "traffic.c", Socket: exporter.Socket,
				Args: []string{"50", "100", harness.HoldDir}, Exec: []string{"--calls=sizes"}})
			run.AtHold(t, "ready")
			run.Release(t, "ready")
			run.AtHold(t, "half")
			const own = `{job="mpit", __name__!~".+:.+"}` // not those of rules
			harness.Await(t, "the same series", func(ctx context.Context) error {
				return same(ctx, own, false, receiver, direct)
			})
			const calls = `{job="mpit", __name__=~"mpit_call_(bytes|messages|collectives)_total|` +
				`mpit_call_(time_seconds|size_bytes).*"}`
			harness.Await(t, "the same values", func(ctx context.Context) error {
				return same(ctx, calls, true, receiver, direct)
			})
			some, err := direct.QueryAt(t.Context(), `mpit_call_time_seconds`, time.Now())
			require.NoError(t, err)
			assert.Equal(t, server.Native, len(some) > 0, "native histograms")
			receiver.Await(t, fmt.Sprintf(`mpit_job:ranks:profiled{jobid=%q}`, run.ID), values(2))
			// Prometheus 3 starts a server with the flag of earlier versions.
			const active = "prometheus_agent_active_series"
			now, err := itself(t.Context(), agent, active)
			require.NoError(t, err)
			assert.Positive(t, now[active])

			run.Finish(t, "half", "done")
			exporter.Kill(t)
			for _, p := range []*harness.Prometheus{receiver, direct} {
				p.Await(t, `count(mpit_rank_up) or vector(0)`, values(0))
			}
		})
	}
}

// same says what differs in the answers of two servers.
func same(ctx context.Context, expression string, withValues bool, servers ...*harness.Prometheus) error {
	var answers []map[string]float64
	now := time.Now()
	for _, p := range servers {
		samples, err := p.QueryAt(ctx, expression, now)
		if err != nil {
			return err
		}
		answer := map[string]float64{}
		for _, s := range samples {
			if !withValues {
				s.Value = 0
			}
			answer[fmt.Sprint(s.Labels)] = s.Value
		}
		answers = append(answers, answer)
	}
	if len(answers[0]) == 0 || !maps.Equal(answers[0], answers[1]) {
		var differ []string
		for series, value := range answers[1] {
			if other, ok := answers[0][series]; !ok || other != value {
				differ = append(differ, fmt.Sprintf("%s %v, not %v (%t)", series, value, other, ok))
			}
		}
		return fmt.Errorf("%d series and %d: %v", len(answers[0]), len(answers[1]), differ)
	}
	return nil
}

func values(want ...float64) func([]harness.Sample) error {
	return func(samples []harness.Sample) error {
		var have []float64
		for _, s := range samples {
			have = append(have, s.Value)
		}
		if slices.Sort(have); !slices.Equal(have, want) {
			return fmt.Errorf("%v, not %v", have, want)
		}
		return nil
	}
}

// Of two servers that share the targets by hashmod, each target is one's.
func TestHashmod(t *testing.T) {
	t.Parallel()
	shard := ofScrape(block(t, "one of two servers"))
	require.Contains(t, shard, "regex: 0")
	var nodes []*harness.Exporter
	for range 10 {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("mpit_exporter_build_info 1\n"))
		}))
		t.Cleanup(server.Close)
		nodes = append(nodes, &harness.Exporter{Address: server.Listener.Addr().String()})
	}
	servers := []*harness.Prometheus{
		suite.PrometheusWith(t, harness.PrometheusConfig{Exporters: nodes, Scrape: shard}),
		suite.PrometheusWith(t, harness.PrometheusConfig{Exporters: nodes,
			Scrape: strings.Replace(shard, "regex: 0", "regex: 1", 1)}),
	}
	harness.Await(t, "each target at one of the servers", func(ctx context.Context) error {
		scraped := map[string]int{}
		for _, p := range servers {
			samples, err := p.Query(ctx, "mpit_exporter_build_info")
			if err != nil {
				return err
			}
			for _, s := range samples {
				scraped[s.Labels["instance"]]++
			}
		}
		for _, n := range nodes {
			if scraped[n.Address] != 1 {
				return fmt.Errorf("%s is scraped by %d; all: %v", n.Address, scraped[n.Address], scraped)
			}
		}
		return nil
	})
}

// What docs/capacity.md has Prometheus leave out is left out, and no rule misses it.
func TestLeaveOut(t *testing.T) {
	t.Parallel()
	exporter := suite.Exporter(t)
	run := suite.Run(t, harness.Job{MPI: harness.OpenMPI(t), Program: "traffic.c", Socket: exporter.Socket,
		Args: []string{"50", "100", harness.HoldDir}, Exec: []string{"--calls"}})
	run.AtHold(t, "ready")
	run.Release(t, "ready")
	run.AtHold(t, "half")
	rules := faster(t, 20)
	start := func(scrape string) *harness.Prometheus {
		return suite.PrometheusWith(t, harness.PrometheusConfig{Exporters: []*harness.Exporter{exporter}, Rules: rules,
			Scrape: scrape})
	}
	const profiled = `mpit_job:ranks:profiled`
	all := start("")
	all.Await(t, profiled, values(2))
	for comment, families := range map[string]string{
		"first: buckets": "mpit_.+_bucket",
		"second: what describes agents and objects": "mpit_object.*|mpit_rank_agent_(busy|read|gate|cpu).*",
	} {
		t.Run(comment, func(t *testing.T) {
			t.Parallel()
			less := start(ofScrape(block(t, comment)))
			less.Await(t, profiled, values(2))
			harness.Await(t, "the other series", func(ctx context.Context) error {
				return same(ctx, fmt.Sprintf(`{job="mpit", __name__!~%q, __name__!~"mpit_.+:.+"}`, families), false, less, all)
			})
			harness.Await(t, "the rules' series", func(ctx context.Context) error {
				return same(ctx, `{__name__=~"mpit_.+:.+"}`, false, less, all)
			})
			less.Await(t, fmt.Sprintf(`count({__name__=~%q}) or vector(0)`, families), values(0))
			all.Await(t, fmt.Sprintf(`count({__name__=~%q}) > bool 0`, families), values(1))
		})
	}
}

// A server keeps what it scrapes for days, and sends what its rules say of jobs to where it stays for years.
func TestLongTerm(t *testing.T) {
	t.Parallel()
	exporter := suite.Exporter(t)
	years := suite.PrometheusWith(t, harness.PrometheusConfig{Flags: []string{"--web.enable-remote-write-receiver"}})
	suite.PrometheusWith(t, harness.PrometheusConfig{Exporters: []*harness.Exporter{exporter}, Rules: faster(t, 20),
		More: strings.ReplaceAll(block(t, "for years"), "http://archive:9090", years.URL())})
	run := suite.Run(t, harness.Job{MPI: harness.OpenMPI(t), Program: "traffic.c", Socket: exporter.Socket,
		Args: []string{"50", "100", harness.HoldDir}, Exec: []string{"--calls"}})
	run.AtHold(t, "ready")
	years.Await(t, fmt.Sprintf(`mpit_job:ranks:profiled{jobid=%q}`, run.ID), values(2))
	years.Await(t, `count({__name__=~".+", __name__!~"mpit_job:.+"}) or vector(0)`, values(0))
	run.Finish(t, "ready", "half", "done")
}
