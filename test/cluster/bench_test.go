package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// interval is that of scrapes and, where a group of rules has none of its own, of evaluations, in model time.
const interval = 15 * time.Second

// BenchmarkCluster has a Prometheus scrape the nodes of a cluster on which jobs come and go, and reports what that
// costs, per second of model time. The pages are made of that of a real job (examples/calls/stencil.c).
//
// Time runs $BENCH_SPEED times as fast: interval, the ranges of rules, Prometheus' look-back and its blocks of two
// hours are as much shorter, so that each series has as many samples in all of them as it would have.
func BenchmarkCluster(b *testing.B) {
	nodes, ranks := number(b, "BENCH_NODES", 100), number(b, "BENCH_RANKS", 16)
	speed, minutes := number(b, "BENCH_SPEED", 8), number(b, "BENCH_MINUTES", 25)
	load := float64(number(b, "BENCH_LOAD", 80)) / 100
	flags, ok := os.LookupEnv("BENCH_EXEC")
	if !ok {
		flags = "--calls"
	}
	// What is done at the beginning only isn't in the rates.
	template := record(b, suite, strings.Fields(flags), 10*time.Second, 20*time.Second)
	perRank, perNode := template.series()
	b.Logf("%d nodes with %d ranks each when busy, exec %s: %.0f series a rank and %d a node", nodes, ranks, flags,
		perRank, perNode)

	year(b, nodes, load)
	machine := newMachine(newWorkload(1, nodes, load))
	const before = 386 * time.Hour // the three hours after it have about as many jobs and idle nodes as the year
	machine.advance(before)
	started := time.Now()
	e := exporters{machine: machine, template: template, ranks: ranks, clock: func() time.Duration {
		return before + time.Since(started)*time.Duration(speed)
	}}
	discovery := e.serve(b)
	scaled := func(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()/int64(speed)) }
	prometheus := suite.PrometheusWith(b, harness.PrometheusConfig{Interval: interval / time.Duration(speed),
		Discovery: discovery, Rules: faster(b, speed), Flags: []string{
			"--web.enable-admin-api", "--query.lookback-delta=" + scaled(5*time.Minute),
			"--storage.tsdb.min-block-duration=" + scaled(2*time.Hour),
			"--storage.tsdb.max-block-duration=" + scaled(2*time.Hour),
		}})
	b.Logf("Prometheus is at %s", prometheus.URL())
	var agent, receiver *harness.Prometheus
	if number(b, "BENCH_AGENT", 0) != 0 {
		receiver = suite.PrometheusWith(b, harness.PrometheusConfig{Flags: []string{"--web.enable-remote-write-receiver"}})
		agent = suite.PrometheusWith(b, harness.PrometheusConfig{Interval: interval / time.Duration(speed),
			Discovery: discovery, Agent: agentFlag(b, harness.PrometheusServers(b)[0]),
			More: "remote_write: [{url: " + receiver.URL() + "/api/v1/write}]\n"})
	}

	end := started.Add(time.Duration(minutes) * time.Minute)
	w := watch(b, prometheus, machine, started.Add(end.Sub(started)/4), end)
	w.report(b, float64(speed))
	w.reportDisk(b, prometheus, float64(speed))
	w.reportRules(b, float64(speed))
	if agent != nil {
		reportProcess(b, agent, "agent", "prometheus_agent_samples_appended_total", "prometheus_agent_active_series")
		reportProcess(b, receiver, "receiver", "prometheus_tsdb_head_samples_appended_total", "prometheus_tsdb_head_series")
	}
}

// reportProcess says what one has cost since it began that has no rules, neither when it scrapes nor when it receives.
func reportProcess(b *testing.B, p *harness.Prometheus, what, samples, series string) {
	now, err := itself(b.Context(), p, append(figures, samples, series)...)
	require.NoError(b, err)
	b.Logf("%s: %.2f us of CPU a sample; %.0f MiB resident, %.0f bytes for each of %.0f series", what,
		now["process_cpu_seconds_total"]/now[samples]*1e6, now["process_resident_memory_bytes"]/(1<<20),
		now["process_resident_memory_bytes"]/now[series], now[series])
}

// itself is what a Prometheus says of itself.
func itself(ctx context.Context, p *harness.Prometheus, names ...string) (map[string]float64, error) {
	exporter := harness.Exporter{Address: strings.TrimPrefix(p.URL(), "http://")}
	page, err := exporter.ScrapeContext(ctx)
	if err != nil {
		return nil, err
	}
	now := map[string]float64{}
	for _, name := range names {
		now[name] = 0
		for _, series := range page.Select(name, nil) {
			now[name] += series.Value
		}
	}
	return now, nil
}

// year says what the model's jobs do in a year: what a few hours have is chance.
func year(b *testing.B, nodes int, load float64) {
	m := newMachine(newWorkload(2, nodes, load))
	const hours = 365 * 24
	busy := 0
	for hour := range hours {
		m.advance(time.Duration(hour) * time.Hour)
		busy += m.busy()
	}
	b.Logf("in a year of the model %.0f%% of the nodes have a job; %.0f jobs begin a day, on %.1f nodes in the mean; "+
		"a node "+
		"that has one gets another every %.2f hours", 100*float64(busy)/hours/float64(nodes), float64(m.started)/365,
		float64(m.placed)/float64(m.started), float64(busy)/float64(m.placed))
}

// faster are the rules of alerts/ with all durations divided.
func faster(b testing.TB, speed int) (files []string) {
	duration := regexp.MustCompile(`\b[0-9]+[smh]\b`)
	for _, name := range []string{"recording.yaml", "alerts.yaml"} {
		text, err := os.ReadFile(filepath.Join(suite.Root(), "alerts", name))
		require.NoError(b, err)
		text = duration.ReplaceAllFunc(text, func(d []byte) []byte {
			parsed, err := time.ParseDuration(string(d))
			require.NoError(b, err)
			return fmt.Appendf(nil, "%dms", parsed.Milliseconds()/int64(speed))
		})
		file := filepath.Join(b.TempDir(), name)
		require.NoError(b, os.WriteFile(file, text, 0o600))
		files = append(files, file)
	}
	return files
}

// watched is what Prometheus has said of itself.
type watched struct {
	seconds     float64            // between the two moments
	first, last map[string]float64 // by metric
	most        map[string]float64
	active      []float64 // series on all pages
	busy        []float64 // nodes
	lost        float64   // scrapes at most that failed together
	evaluations map[string]*evaluation
}

var figures = []string{"process_cpu_seconds_total", "process_resident_memory_bytes", "go_memstats_heap_inuse_bytes",
	"prometheus_tsdb_head_series", "prometheus_tsdb_head_series_created_total", "prometheus_tsdb_head_chunks",
	"prometheus_tsdb_head_samples_appended_total"}

// watch looks at a Prometheus until the end. What counts is counted from a moment on.
func watch(b *testing.B, prometheus *harness.Prometheus, m *machine, from, end time.Time) *watched {
	w := &watched{most: map[string]float64{}, evaluations: map[string]*evaluation{}}
	var counted time.Time
	for ticker := time.NewTicker(time.Second); time.Now().Before(end); <-ticker.C {
		now, err := itself(b.Context(), prometheus, figures...)
		require.NoError(b, err)
		for _, name := range figures {
			w.most[name] = max(w.most[name], now[name])
		}
		if time.Now().Before(from) {
			continue
		}
		if w.first == nil {
			w.first, counted = now, time.Now()
		}
		w.last, w.seconds = now, time.Since(counted).Seconds()
		w.busy = append(w.busy, float64(m.busy()))
		if all, err := prometheus.Query(b.Context(), "sum(scrape_samples_scraped)"); err == nil && len(all) == 1 {
			w.active = append(w.active, all[0].Value)
		}
		if down, err := prometheus.Query(b.Context(), "sum(1 - up)"); err == nil && len(down) == 1 {
			w.lost = max(w.lost, down[0].Value)
		}
		groups, err := prometheus.Rules(b.Context())
		require.NoError(b, err)
		for _, g := range groups {
			look(w.evaluations, g.Name, g.LastEvaluation, g.EvaluationTime, g.Interval)
			for _, r := range g.Rules {
				look(w.evaluations, g.Name+" "+r.Name, r.LastEvaluation, r.EvaluationTime, g.Interval)
			}
		}
	}
	return w
}

// perHour is how much a counter has grown, in an hour of model time.
func (w *watched) perHour(name string, speed float64) float64 {
	return (w.last[name] - w.first[name]) / (w.seconds * speed) * 3600
}

func (w *watched) report(b *testing.B, speed float64) {
	cpu := w.perHour("process_cpu_seconds_total", speed)
	samples := w.perHour("prometheus_tsdb_head_samples_appended_total", speed)
	created := w.perHour("prometheus_tsdb_head_series_created_total", speed)
	const most = "prometheus_tsdb_head_series"
	b.Logf("%12.0f nodes have a job, in the mean", mean(w.busy))
	b.Logf("%12.0f scrapes failed together, at most", w.lost)
	b.Logf("%12.0f series are scraped, in the mean; %.0f at most", mean(w.active), slices.Max(w.active))
	b.Logf("%12.0f series are new in an hour: %.2f of those", created, created/mean(w.active))
	b.Logf("%12.0f series in the head, at most: %.2f of those", w.most[most], w.most[most]/mean(w.active))
	b.Logf("%12.0f samples a second", samples/3600)
	b.Logf("%12.4f s of CPU a second: %.2f us a sample", cpu/3600, cpu/samples*1e6)
	for _, name := range []string{"process_resident_memory_bytes", "go_memstats_heap_inuse_bytes"} {
		b.Logf("%12.0f MiB %s at most: %.0f bytes for each series in the head", w.most[name]/(1<<20), name,
			w.most[name]/w.most[most])
	}
	b.ReportMetric(cpu/samples*1e6, "cpu-us/sample")
	b.ReportMetric(w.most["process_resident_memory_bytes"]/w.most[most], "B/series")
}

// reportDisk has Prometheus write its head as a block, and looks at how large that is, and the log that it keeps for a
// restart.
func (w *watched) reportDisk(b *testing.B, prometheus *harness.Prometheus, speed float64) {
	log := size(b, filepath.Join(prometheus.Data, "wal"))
	response, err := http.Post(prometheus.URL()+"/api/v1/admin/tsdb/snapshot", "", nil)
	require.NoError(b, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(b, err)
	require.NoError(b, response.Body.Close())
	require.Equal(b, http.StatusOK, response.StatusCode, "%s", body)
	blocks, err := filepath.Glob(filepath.Join(prometheus.Data, "snapshots", "*", "*", "meta.json"))
	require.NoError(b, err)
	require.NotEmpty(b, blocks)
	var chunks, index, samples, series float64
	for _, file := range blocks {
		text, err := os.ReadFile(file)
		require.NoError(b, err)
		var meta struct {
			Stats struct{ NumSamples, NumSeries float64 }
		}
		require.NoError(b, json.Unmarshal(text, &meta))
		samples, series = samples+meta.Stats.NumSamples, series+meta.Stats.NumSeries
		chunks += size(b, filepath.Join(filepath.Dir(file), "chunks"))
		index += size(b, filepath.Join(filepath.Dir(file), "index"))
	}
	b.Logf("%12.2f bytes a sample on disk, and %.0f for each series of a block (%d blocks)", chunks/samples, index/series,
		len(blocks))
	perDay := 24 * w.perHour("prometheus_tsdb_head_samples_appended_total", speed) * (chunks + index) / samples
	b.Logf("%12.1f GiB of blocks a day", perDay/(1<<30))
	b.Logf("%12.1f GiB of write-ahead log", log/(1<<30))
	b.ReportMetric((chunks+index)/samples, "B/sample")
}

// size is that of a file, or of all files below a directory.
func size(b *testing.B, path string) (bytes float64) {
	require.NoError(b, filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		bytes += float64(info.Size())
		return err
	}))
	return bytes
}

func (w *watched) reportRules(b *testing.B, speed float64) {
	b.Log("rules: median of the last evaluations [ms], seconds of a minute")
	all := 0.0
	for _, name := range slices.Sorted(maps.Keys(w.evaluations)) {
		e := w.evaluations[name]
		if !strings.Contains(name, " ") {
			all += e.perMinute() / speed
		}
		b.Logf("%10.1f %8.3f  %s", 1000*e.median(), e.perMinute()/speed, name)
	}
	b.Logf("%10s %8.3f  together", "", all)
	b.ReportMetric(all, "rules-s/min")
}

// evaluation is how long the evaluations of a rule or a group took.
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

// median is that of the later half: the first ones have not all data.
func (e *evaluation) median() float64 {
	last := slices.Sorted(slices.Values(e.seconds[len(e.seconds)/2:]))
	return last[len(last)/2]
}

func (e *evaluation) perMinute() float64 { return e.median() * 60 / e.interval }

func mean(values []float64) (mean float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	return mean
}

func number(b *testing.B, name string, otherwise int) int {
	text, ok := os.LookupEnv(name)
	if !ok {
		return otherwise
	}
	number, err := strconv.Atoi(text)
	require.NoError(b, err, name)
	return number
}
