package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// scale is a cluster on which jobs come and go, which one engine after the other watches. Time runs faster, by speed.
type scale struct {
	nodes, ranks, speed int
	interval            time.Duration // of scrapes, in model time
	discovery           string
}

// scaled is a duration of model time as engines need it.
func (s scale) scaled(d time.Duration) string {
	return fmt.Sprintf("%dms", d.Milliseconds()/int64(s.speed))
}

// watcher is an engine that watches a cluster.
type watcher struct {
	parts map[string][]*harness.Process // by what they do
	data  []string                      // directories of what is stored
	ruler *harness.Prometheus           // answers what alerts fire
}

// watchers start the engines that docs/capacity.md compares.
var watchers = []struct {
	name  string
	start func(b *testing.B, s scale) watcher
}{
	{"Prometheus", watchWithPrometheus},
	{"agents", watchWithAgents},
	{"VictoriaMetrics", watchWithVictoriaMetrics},
	{"Thanos", watchWithThanos},
}

// BenchmarkScale has each engine of $BENCH_ENGINES (directories with their programs, separated by colons) watch clusters
// of $BENCH_SCALE nodes for $BENCH_MINUTES each: what its processes need, and when it says that a job hangs. Model time
// runs $BENCH_SPEED times as fast.
func BenchmarkScale(b *testing.B) {
	ranks, speed := number(b, "BENCH_RANKS", 32), number(b, "BENCH_SPEED", 8)
	minutes := time.Duration(number(b, "BENCH_MINUTES", 5)) * time.Minute
	template := record(b, suite, []string{"--calls=light"}, 10*time.Second, 20*time.Second)
	perRank, perNode := template.series()
	b.Logf("%d ranks a node: %.0f series a rank and %d a node; a model minute takes %.1f s", ranks, perRank, perNode,
		60/float64(speed))
	sizes, ok := os.LookupEnv("BENCH_SCALE")
	if !ok {
		sizes = "125,250,500"
	}
	for _, w := range watchers {
		var points []needs
		for nodes := range strings.SplitSeq(sizes, ",") {
			b.Run(w.name+"/"+nodes, func(b *testing.B) {
				n, err := strconv.Atoi(nodes)
				require.NoError(b, err)
				s := scale{nodes: n, ranks: ranks, speed: speed, interval: time.Minute}
				machine := newMachine(newWorkload(1, n, 0.8))
				const before = 386 * time.Hour
				machine.advance(before)
				started := time.Now()
				e := exporters{machine: machine, template: template, ranks: ranks, served: &served{},
					clock: func() time.Duration { return before + time.Since(started)*time.Duration(speed) }}
				s.discovery = e.serve(b)
				points = append(points, s.measure(b, w.start(b, s), e, minutes))
			})
		}
		for _, of := range []struct {
			what string
			is   func(needs) float64
		}{
			{"cores", func(n needs) float64 { return n.cores }},
			{"MiB", func(n needs) float64 { return n.memory }},
			{"seconds of rules a minute", func(n needs) float64 { return n.rules }},
		} {
			if base, slope, off := straight(points, of.is); len(points) > 1 {
				b.Logf("%s: %.3g %s and %.3g a node, off by %.0f%% at most; 10,000 nodes of 128 ranks: %.3g", w.name, base, of.what,
					slope, 100*off, base+slope*10000*128/float64(ranks))
			}
		}
	}
}

// needs are what an engine needs for a cluster.
type needs struct{ nodes, cores, memory, rules float64 }

// straight is the straight line with the least squares of the errors' shares, and the largest share.
func straight(points []needs, is func(needs) float64) (base, slope, off float64) {
	var all []blocks
	for _, p := range points {
		all = append(all, blocks{bytes: is(p), samples: 1, series: p.nodes})
	}
	base, slope = fit(all)
	for _, p := range points {
		off = max(off, math.Abs((base+slope*p.nodes)/is(p)-1))
	}
	return base, slope, off
}

func TestStraight(t *testing.T) {
	cores := func(n needs) float64 { return n.cores }
	base, slope, off := straight([]needs{{nodes: 1, cores: 5}, {nodes: 2, cores: 7}, {nodes: 4, cores: 11}}, cores)
	assert.InDeltaSlice(t, []float64{3, 2, 0}, []float64{base, slope, off}, 1e-9)
	_, _, off = straight([]needs{{nodes: 1, cores: 5}, {nodes: 2, cores: 7.7}, {nodes: 4, cores: 11}}, cores)
	assert.InDelta(t, 0.05, off, 0.02)
}

func (s scale) measure(b *testing.B, w watcher, e exporters, lasts time.Duration) needs {
	time.Sleep(lasts / 3)
	cpu, rules, samples, begun := w.cpu(b), w.evaluated(b), e.served.lines.Load(), time.Now()
	memory := map[string]float64{}
	for time.Since(begun) < lasts*2/3 {
		time.Sleep(time.Second)
		for part, processes := range w.parts {
			memory[part] = max(memory[part], resident(b, processes))
		}
	}
	took := time.Since(begun).Seconds() * float64(s.speed)
	ingested, all, most := float64(e.served.lines.Load()-samples)/took, 0.0, 0.0
	for part, now := range w.cpu(b) {
		share := (now - cpu[part]) / took
		b.Logf("%s: %.4f s of CPU a second, %.2f us a sample, %.0f MiB", part, share, share/ingested*1e6, memory[part]/(1<<20))
		all, most = all+share, most+memory[part]
	}
	rules = (w.evaluated(b) - rules) * 60 / took
	stored := 0.0
	for _, dir := range w.data {
		stored += size(b, dir)
	}
	hung := e.hang()
	at := time.Now()
	harness.Await(b, "that it says that the job hangs", func(ctx context.Context) error {
		alerts, err := w.ruler.Alerts(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(alerts, func(a harness.Alert) bool {
			return a.Labels["alertname"] == "MPIJobHung" && a.Labels["jobid"] == hung && a.State == "firing"
		}) {
			return errors.New("no alert fires")
		}
		return nil
	})
	b.ReportMetric(ingested, "samples/s")
	b.ReportMetric(all, "cpu-s/s")
	b.ReportMetric(all/ingested*1e6, "cpu-us/sample")
	b.ReportMetric(most/(1<<20), "MiB")
	b.ReportMetric(rules, "rules-s/min")
	b.ReportMetric(stored/float64(e.served.lines.Load()), "B/sample")
	b.ReportMetric(time.Since(at).Seconds()*float64(s.speed), "s-to-alert")
	return needs{float64(s.nodes), all, most / (1 << 20), rules}
}

// hang has the job hang that would go on for longest, as the exporter of its first node would say. It returns which.
func (e exporters) hang() (jobid string) {
	var longest *job
	for i := range e.machine.nodes {
		places, _ := e.machine.shown(i)
		for _, p := range places {
			if longest == nil || p.job.end > longest.end {
				longest = p.job
			}
		}
	}
	e.served.hung.Store(int64(longest.number))
	return strconv.Itoa(longest.number)
}

// evaluations are how long groups of rules have taken, as Prometheus and Thanos, or vmalert, count it.
var evaluations = regexp.MustCompile(`(?m)^(?:prometheus_rule_group|vmalert_iteration)_duration_seconds_sum(?:\{.*\})? (\S+)$`)

// evaluated is how many seconds they have taken.
func (w watcher) evaluated(b *testing.B) (seconds float64) {
	response, err := http.Get(w.ruler.URL() + "/metrics")
	require.NoError(b, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(b, err)
	require.NoError(b, response.Body.Close())
	for _, sum := range evaluations.FindAllSubmatch(text, -1) {
		value, err := strconv.ParseFloat(string(sum[1]), 64)
		require.NoError(b, err)
		seconds += value
	}
	return seconds
}

// cpu is the seconds that each part's processes have had.
func (w watcher) cpu(b *testing.B) map[string]float64 {
	seconds := map[string]float64{}
	for part, processes := range w.parts {
		for _, p := range processes {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
			require.NoError(b, err)
			_, after, _ := strings.Cut(string(text), ") ")
			for _, field := range strings.Fields(after)[11:13] { // in system and user mode, in hundredths
				ticks, err := strconv.ParseFloat(field, 64)
				require.NoError(b, err)
				seconds[part] += ticks / 100
			}
		}
	}
	return seconds
}

func resident(b *testing.B, processes []*harness.Process) (bytes float64) {
	for _, p := range processes {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.PID()))
		require.NoError(b, err)
		pages, err := strconv.ParseFloat(strings.Fields(string(text))[1], 64)
		require.NoError(b, err)
		bytes += pages * float64(os.Getpagesize())
	}
	return bytes
}

// program is where one is; without it the engine is skipped.
func program(b *testing.B, name string) string {
	b.Helper()
	for _, dir := range filepath.SplitList(os.Getenv("BENCH_ENGINES")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path
		}
	}
	b.Skipf("NOT MEASURED: there is no %s in %q", name, os.Getenv("BENCH_ENGINES"))
	return ""
}

// prometheus is one with the interval of the model.
func (s scale) prometheus(b *testing.B, c harness.PrometheusConfig) *harness.Prometheus {
	c.Interval = s.interval / time.Duration(s.speed)
	if c.Agent == "" {
		c.Flags = append(c.Flags, "--query.lookback-delta="+s.scaled(5*time.Minute),
			"--storage.tsdb.min-block-duration="+s.scaled(2*time.Hour), "--storage.tsdb.max-block-duration="+s.scaled(2*time.Hour))
	}
	return suite.PrometheusWith(b, c)
}

func watchWithPrometheus(b *testing.B, s scale) watcher {
	p := s.prometheus(b, harness.PrometheusConfig{Discovery: s.discovery, Rules: faster(b, s.speed)})
	return watcher{map[string][]*harness.Process{"server": {p.Process}}, []string{p.Data}, p}
}

// shards are four agents that share the nodes by hashmod.
func (s scale) shards(b *testing.B, write string) (agents []*harness.Process) {
	for shard := range 4 {
		p := s.prometheus(b, harness.PrometheusConfig{Discovery: s.discovery, Agent: agentFlag(b, harness.PrometheusServers(b)[0]),
			Scrape: fmt.Sprintf("    relabel_configs:\n      - {source_labels: [__address__], modulus: 4, target_label: __tmp_shard, "+
				"action: hashmod}\n      - {source_labels: [__tmp_shard], regex: %d, action: keep}\n", shard),
			More: "remote_write: [{url: " + write + "}]\n"})
		agents = append(agents, p.Process)
	}
	return agents
}

func watchWithAgents(b *testing.B, s scale) watcher {
	p := s.prometheus(b, harness.PrometheusConfig{Rules: faster(b, s.speed), Flags: []string{"--web.enable-remote-write-receiver"}})
	return watcher{map[string][]*harness.Process{"agents": s.shards(b, p.URL()+"/api/v1/write"), "ruler": {p.Process}},
		[]string{p.Data}, p}
}

func watchWithVictoriaMetrics(b *testing.B, s scale) watcher {
	at, ruler, dir := harness.FreeAddress(b), harness.FreeAddress(b), suite.Dir(b)
	config := filepath.Join(suite.Dir(b), "scrape.yml")
	require.NoError(b, os.WriteFile(config, fmt.Appendf(nil, "global: {scrape_interval: %s}\nscrape_configs:\n- job_name: mpit\n"+
		"  file_sd_configs: [{files: [%q]}]\n", s.scaled(s.interval), s.discovery), 0o600))
	server := suite.Start(b, []string{program(b, "victoria-metrics"), "-storageDataPath=" + dir, "-httpListenAddr=" + at,
		"-promscrape.config=" + config, "-search.latencyOffset=" + s.scaled(30*time.Second)}, nil)
	flags := []string{program(b, "vmalert"), "-datasource.url=http://" + at, "-remoteWrite.url=http://" + at,
		"-httpListenAddr=" + ruler, "-notifier.blackhole", "-evaluationInterval=" + s.scaled(s.interval),
		"-datasource.queryStep=" + s.scaled(5*time.Minute), "-rule.evalDelay=" + s.scaled(30*time.Second)}
	for _, file := range faster(b, s.speed) {
		flags = append(flags, "-rule="+file)
	}
	harness.Await(b, "VictoriaMetrics", func(ctx context.Context) error {
		_, err := harness.PrometheusAt(at).Query(ctx, "vector(1)")
		return err
	})
	return watcher{map[string][]*harness.Process{"server": {server}, "vmalert": {suite.Start(b, flags, nil)}}, []string{dir},
		harness.PrometheusAt(ruler)}
}

func watchWithThanos(b *testing.B, s scale) watcher {
	thanos, dir := program(b, "thanos"), suite.Dir(b)
	write, store, ask := harness.FreeAddress(b), harness.FreeAddress(b), harness.FreeAddress(b)
	ruler, recorded := harness.FreeAddress(b), harness.FreeAddress(b)
	receiver := suite.Start(b, []string{thanos, "receive", "--remote-write.address=" + write, "--grpc-address=" + store,
		"--http-address=" + harness.FreeAddress(b), "--receive.capnproto-address=" + harness.FreeAddress(b), "--tsdb.path=" + dir,
		`--label=receive="0"`}, nil)
	querier := suite.Start(b, []string{thanos, "query", "--endpoint=" + store, "--endpoint=" + recorded, "--http-address=" + ask,
		"--grpc-address=" + harness.FreeAddress(b), "--query.replica-label=ruler", "--query.replica-label=receive",
		"--query.replica-label=tenant_id", "--query.lookback-delta=" + s.scaled(5*time.Minute)}, nil)
	flags := []string{thanos, "rule", "--query=http://" + ask, "--http-address=" + ruler, "--grpc-address=" + recorded,
		"--data-dir=" + suite.Dir(b), `--label=ruler="a"`, "--alert.label-drop=ruler", "--eval-interval=" + s.scaled(s.interval)}
	for _, file := range faster(b, s.speed) {
		flags = append(flags, "--rule-file="+file)
	}
	return watcher{map[string][]*harness.Process{"agents": s.shards(b, "http://"+write+"/api/v1/receive"),
		"receiver": {receiver}, "querier": {querier}, "ruler": {suite.Start(b, flags, nil)}}, []string{dir},
		harness.PrometheusAt(ruler)}
}
