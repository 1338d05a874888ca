package dashboards

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// engine is another server that answers PromQL. Its programs are looked for in the directories of $MPIT_TEST_ENGINES,
// separated by colons, and it is left out, which is said, where one is missing.
type engine struct {
	name     string
	programs []string
	start    func(t *testing.T, run starter) endpoints
	noNative bool     // it knows no functions of native histograms
	pair     []string // flags with which what a pair of servers sends counts once; none: it can't be
	replica  string   // label that tells the servers of a pair apart; none: they have the same labels
	twice    bool     // it is compared with what a pair of servers has scraped
	known    []difference
}

// starter starts one of an engine's programs.
type starter func(program string, flags ...string) *harness.Process

// endpoints are where an engine, host:port with a path, is asked, takes remote writes and OTLP, and makes what has come
// ready to be read.
type endpoints struct{ ask, write, otlp, flush string }

// difference is what is known to differ in the answers to some queries, and why: in the minutes after a job began or
// ended, in which of equal series there are, or in what they are at all. All else must be the same.
type difference struct {
	queries            *regexp.Regexp
	ends, ties, values bool
	why                string
}

// engines are those that docs/engines.md speaks of.
func engines() []engine {
	return []engine{
		{name: "Prometheus 3", programs: []string{"prometheus"}, start: startPrometheus, known: everywhere},
		{name: "VictoriaMetrics", programs: []string{"victoria-metrics"}, start: startVictoriaMetrics, noNative: true, known: ofMetricsQL,
			pair: []string{"-dedup.minScrapeInterval=15s"}},
		{name: "VictoriaMetrics cluster", programs: []string{"vminsert", "vmselect", "vmstorage"}, start: startCluster,
			noNative: true, known: ofMetricsQL},
		{name: "Mimir", programs: []string{"mimir"}, start: startMimir, known: everywhere,
			replica: "__replica__",
			pair:    []string{"-distributor.ha-tracker.enable", "-distributor.ha-tracker.enable-for-all-users"}},
		// The label isn't one of docs/engines.md's, with which a pair would always count once.
		{name: "Thanos", programs: []string{"thanos"}, start: startThanos, known: everywhere, replica: "server",
			pair: []string{"--query.replica-label=server"}},
		{name: "Thanos, a pair", programs: []string{"thanos"}, start: startThanos, known: everywhere, replica: "replica",
			twice: true},
	}
}

var (
	everywhere = []difference{
		{queries: regexp.MustCompile(`\b(top|bottom)k\b`), ties: true, why: "of equal series topk has any"},
		{queries: regexp.MustCompile(`histogram_quantile`), values: true,
			why: "if just as many are below a bucket as the quantile wants, rounding says which one it is in"},
	}
	ofMetricsQL = append([]difference{{queries: regexp.MustCompile(`\b(rate|increase)\(`), ends: true,
		why: "rates begin with the last sample before the window, and are not extrapolated to its ends"}}, everywhere...)
)

func startPrometheus(t *testing.T, run starter) endpoints {
	config := filepath.Join(suite.Dir(t), "prometheus.yml")
	require.NoError(t, os.WriteFile(config, nil, 0o600))
	at := harness.FreeAddress(t)
	flags := []string{"--config.file=" + config, "--storage.tsdb.path=" + suite.Dir(t), "--web.listen-address=" + at,
		"--web.enable-remote-write-receiver"}
	help := run("prometheus", "--help").Wait(t)
	ends := endpoints{ask: at, write: at + "/api/v1/write"}
	if strings.Contains(help.Stdout+help.Stderr, "web.enable-otlp-receiver") { // not Debian's
		flags, ends.otlp = append(flags, "--web.enable-otlp-receiver"), at+"/api/v1/otlp/v1/metrics"
	}
	run("prometheus", flags...)
	return ends
}

// What was written must be found at once, and in no cache what was asked for before. Otherwise these are the flags of
// docs/engines.md.
var fresh = []string{"-search.latencyOffset=0s", "-search.disableCache"}

func startVictoriaMetrics(t *testing.T, run starter) endpoints {
	at := harness.FreeAddress(t)
	run("victoria-metrics", slices.Concat(fresh, ofDocs(t, "victoria-metrics", "-relabelConfig"),
		[]string{"-storageDataPath=" + suite.Dir(t), "-httpListenAddr=" + at})...)
	return endpoints{ask: at, write: at + "/api/v1/write", otlp: at + "/opentelemetry/v1/metrics",
		flush: at + "/internal/force_flush"}
}

func startCluster(t *testing.T, run starter) endpoints {
	storage, in, out := harness.FreeAddress(t), harness.FreeAddress(t), harness.FreeAddress(t)
	insert, ask := harness.FreeAddress(t), harness.FreeAddress(t)
	run("vmstorage", "-storageDataPath="+suite.Dir(t), "-httpListenAddr="+storage, "-vminsertAddr="+in,
		"-vmselectAddr="+out)
	run("vminsert", slices.Concat(ofDocs(t, "victoria-metrics", "-relabelConfig"),
		[]string{"-httpListenAddr=" + insert, "-storageNode=" + in})...)
	run("vmselect", append(fresh, "-httpListenAddr="+ask, "-storageNode="+out, "-cacheDataPath="+suite.Dir(t))...)
	return endpoints{ask: ask + "/select/0/prometheus", write: insert + "/insert/0/prometheus/api/v1/write",
		otlp: insert + "/insert/0/opentelemetry/v1/metrics", flush: storage + "/internal/force_flush"}
}

func startMimir(t *testing.T, run starter) endpoints {
	at, grpc := harness.FreeAddress(t), harness.FreeAddress(t)
	_, port, _ := strings.Cut(at, ":")
	_, grpcPort, _ := strings.Cut(grpc, ":")
	flags := []string{"-auth.multitenancy-enabled=false", "-server.http-listen-address=127.0.0.1",
		"-server.http-listen-port=" + port, "-server.grpc-listen-address=127.0.0.1", "-server.grpc-listen-port=" + grpcPort,
		"-ingester.ring.replication-factor=1", "-store-gateway.sharding-ring.replication-factor=1",
		"-common.storage.backend=filesystem", "-common.storage.filesystem.dir=" + suite.Dir(t),
		"-usage-stats.enabled=false"}
	for _, ring := range []string{"ingester.ring", "distributor.ring", "compactor.ring", "ruler.ring",
		"store-gateway.sharding-ring"} {
		flags = append(flags, "-"+ring+".store=inmemory", "-"+ring+".instance-addr=127.0.0.1")
	}
	for _, dir := range []string{"blocks-storage.tsdb.dir", "blocks-storage.bucket-store.sync-dir", "compactor.data-dir",
		"ruler.rule-path"} {
		flags = append(flags, "-"+dir+"="+suite.Dir(t))
	}
	run("mimir", append(flags, ofDocs(t, "mimir", "")...)...)
	return endpoints{ask: at + "/prometheus", write: at + "/api/v1/push", otlp: at + "/otlp/v1/metrics"}
}

// Receivers add labels of their own, which the querier drops as if they were a replica's. Thanos has to be built with
// -tags slicelabels, as its releases are: otherwise receivers end at the first sample.
func startThanos(t *testing.T, run starter) endpoints {
	write, store, ask := harness.FreeAddress(t), harness.FreeAddress(t), harness.FreeAddress(t)
	run("thanos", "receive", "--remote-write.address="+write, "--grpc-address="+store,
		"--http-address="+harness.FreeAddress(t), "--receive.capnproto-address="+harness.FreeAddress(t),
		"--tsdb.path="+suite.Dir(t), `--label=receive="0"`)
	run("thanos", slices.Concat([]string{"query", "--endpoint=" + store, "--http-address=" + ask,
		"--grpc-address=" + harness.FreeAddress(t)}, ofDocs(t, "thanos query", ""))...)
	return endpoints{ask: ask, write: write + "/api/v1/receive", otlp: write + "/api/v1/otlp"}
}

// ofDocs are the flags that docs/engines.md gives a program. The file that a flag names is the block above it.
func ofDocs(t *testing.T, program, ofFile string) (flags []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "engines.md"))
	require.NoError(t, err)
	_, after, found := strings.Cut(string(text), "```sh\n"+program+" ")
	require.True(t, found, program)
	command, _, _ := strings.Cut(after, "```")
	for _, flag := range strings.Fields(strings.NewReplacer("\\\n", " ", "'", "").Replace(command)) {
		name, file, _ := strings.Cut(flag, "=")
		if ofFile != "" && name == ofFile {
			_, block, found := strings.Cut(string(text), "```yaml\n# "+file+"\n")
			require.True(t, found, file)
			block, _, _ = strings.Cut(block, "```")
			path := filepath.Join(suite.Dir(t), file)
			require.NoError(t, os.WriteFile(path, []byte(block), 0o600))
			flag = name + "=" + path
		}
		flags = append(flags, flag)
	}
	return flags
}

// path is where one of its programs is.
func (e engine) path(t *testing.T, program string) string {
	t.Helper()
	for _, dir := range filepath.SplitList(os.Getenv("MPIT_TEST_ENGINES")) {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path
		}
	}
	t.Skipf("NOT COMPARED: %s: there is no %s in %q", e.name, program, os.Getenv("MPIT_TEST_ENGINES"))
	return ""
}

// run starts the engine, unless a program is missing, and waits until it answers.
func (e engine) run(t *testing.T, more ...string) endpoints {
	t.Helper()
	for _, program := range e.programs {
		e.path(t, program)
	}
	at := e.start(t, func(program string, flags ...string) *harness.Process {
		if flags[0] != "receive" { // Thanos' querier takes the flags of a pair
			flags = append(flags, more...)
		}
		process := suite.Start(t, append([]string{e.path(t, program)}, flags...), nil)
		t.Cleanup(func() {
			if t.Failed() && process.Ended() {
				t.Logf("%s has ended: %s", program, process.Wait(t).Stderr)
			}
		})
		return process
	})
	harness.Await(t, e.name, func(ctx context.Context) error {
		if err := post(ctx, at.write, nil); err != nil {
			return err
		}
		_, err := harness.PrometheusAt(at.ask).Query(ctx, "vector(1)")
		return err
	})
	return at
}

// post sends a request of remote write.
func post(ctx context.Context, to string, series []prompb.TimeSeries) error {
	body, err := (&prompb.WriteRequest{Timeseries: series}).Marshal()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+to,
		bytes.NewReader(snappy.Encode(nil, body)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("Content-Encoding", "snappy")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s: %s", to, response.Status, answer)
	}
	return err
}

// feed writes samples into an engine, and has it make them visible.
func (at endpoints) feed(t *testing.T, series []prompb.TimeSeries) {
	t.Helper()
	for some := range slices.Chunk(series, 500) {
		// Thanos' receivers refuse the first ones, until they have opened the tenant's storage; senders try again.
		harness.Await(t, "that samples are taken", func(ctx context.Context) error { return post(ctx, at.write, some) })
	}
	if at.flush != "" {
		fetch(t, "http://"+at.flush)
	}
}

// fetch is what an address answers.
func fetch(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", address, body)
	return string(body)
}

// recording is what a Prometheus would have stored that scrapes pages and evaluates rules.
type recording struct {
	series map[string]*prompb.TimeSeries
	last   map[string]map[string]bool // what was there last, by the page or rule
}

// add stores what a page or rule has at a moment, and marks as stale what it had before and has no more.
func (r *recording) add(of string, at time.Time, found map[string]float64) error {
	for name := range r.last[of] {
		if _, ok := found[name]; !ok {
			found[name] = math.Float64frombits(value.StaleNaN)
		}
	}
	r.last[of] = map[string]bool{}
	for name, v := range found {
		if r.series[name] == nil {
			parsed, err := parser.NewParser(parser.Options{}).ParseMetric(name)
			if err != nil {
				return err
			}
			r.series[name] = &prompb.TimeSeries{Labels: prompb.FromLabels(parsed, nil)}
		}
		r.series[name].Samples = append(r.series[name].Samples, prompb.Sample{Value: v, Timestamp: at.UnixMilli()})
		if !value.IsStaleNaN(v) {
			r.last[of][name] = true
		}
	}
	return nil
}

// all are the series, or of those with samples at a moment these samples.
func (r *recording) all(at *time.Time) (list []prompb.TimeSeries) {
	for _, s := range r.series {
		last := s.Samples[len(s.Samples)-1]
		switch {
		case at == nil:
			list = append(list, *s)
		case last.Timestamp == at.UnixMilli():
			list = append(list, prompb.TimeSeries{Labels: s.Labels, Samples: []prompb.Sample{last}})
		}
	}
	return list
}

// pair is what two servers would have stored, with a label that tells them apart: the second one scrapes later, but
// within the 5 seconds in which Thanos keeps to the first one, whose answers can be foretold.
func (r *recording) pair(label string) (list []prompb.TimeSeries) {
	const later = 3 * time.Second
	for _, s := range r.all(nil) {
		second := prompb.TimeSeries{Labels: append(slices.Clone(s.Labels), prompb.Label{Name: label, Value: "b"})}
		first := prompb.TimeSeries{Labels: append(slices.Clone(s.Labels), prompb.Label{Name: label, Value: "a"})}
		for i, sample := range s.Samples {
			first.Samples = append(first.Samples, sample)
			if sample.Timestamp%interval.Milliseconds() != 0 { // of a page, not of a rule
				if i+1 < len(s.Samples) && !value.IsStaleNaN(sample.Value) && !value.IsStaleNaN(s.Samples[i+1].Value) {
					sample.Value += (s.Samples[i+1].Value - sample.Value) * later.Seconds() / interval.Seconds()
				}
				sample.Timestamp += later.Milliseconds()
			}
			second.Samples = append(second.Samples, sample)
		}
		for _, s := range []prompb.TimeSeries{first, second} {
			slices.SortFunc(s.Labels, func(a, b prompb.Label) int { return cmp.Compare(a.Name, b.Name) })
			list = append(list, s)
		}
	}
	return list
}

const (
	pages    = 60 // of each node
	killedAt = 40 // the first one after a job was killed
	interval = 30 * time.Second
)

// record has jobs run on two nodes, takes their pages, and makes half an hour of what was between: five libraries'
// catalogues, a job that is profiled and killed, one that hangs, and one with a queue.
func record(t *testing.T, from time.Time) *recording {
	nodes := []*harness.Exporter{suite.Exporter(t), suite.Exporter(t)}
	simulate(t, nodes...)
	run := func(node int, program, hold string, exec []string, args ...string) *harness.Run {
		r := suite.Run(t, harness.Job{MPI: harness.OpenMPI(t), Program: program, Socket: nodes[node].Socket, Exec: exec,
			Args: append(args, harness.HoldDir)})
		r.AtHold(t, hold, 1)
		return r
	}
	traffic := run(1, "traffic.c", "ready", []string{"--monitoring", "--calls=sizes,peers"}, "200", "1000")
	run(0, "profile_stuck.c", "late", []string{"--calls"})
	run(1, "unexpected.c", "queued", nil, "41")
	var taken [4][]map[string]float64 // before and at the kill, after it and at the end
	take := func(i int) {
		for number, node := range nodes {
			taken[i] = append(taken[i], seriesOf(t, fetch(t, node.URL("/metrics")), fmt.Sprintf("node%d:10093", number)))
		}
	}
	nodes[0].Await(t, "a long call", func(s *harness.Scrape) error {
		if len(s.Select("mpit_call_running_info", nil)) == 0 {
			return errors.New("none")
		}
		return nil
	})
	take(0)
	traffic.Release(t, "ready")
	traffic.AtHold(t, "half")
	take(1)
	traffic.Signal(t, syscall.SIGKILL)
	nodes[1].Await(t, "lost ranks", func(s *harness.Scrape) error {
		if n := len(s.Select("mpit_rank_end_info", harness.Labels{"jobid": traffic.ID})); n != 2 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	take(2)
	time.Sleep(2 * time.Second) // others go on counting
	take(3)
	r := &recording{map[string]*prompb.TimeSeries{}, map[string]map[string]bool{}}
	for i := range pages {
		for number := range nodes {
			first, last, share := taken[0][number], taken[1][number], float64(i)/killedAt
			if i >= killedAt {
				first, last, share = taken[2][number], taken[3][number], float64(i-killedAt)/(pages-killedAt)
			}
			found := map[string]float64{}
			for name, v := range first {
				found[name] = v
				if later, ok := last[name]; ok {
					found[name] += (later - v) * share
				}
			}
			// No page lies where a rule or panel may have a window begin: whether that is in it differs.
			at := from.Add(time.Duration(i)*interval + time.Duration(4+number)*time.Second)
			require.NoError(t, r.add(fmt.Sprint("node", number), at, found))
		}
	}
	return r
}

// seriesOf are those of a page as a Prometheus has them, with their values.
func seriesOf(t *testing.T, page, instance string) map[string]float64 {
	t.Helper()
	instance = `job="mpit",instance="` + instance + `"`
	found := map[string]float64{"up{" + instance + "}": 1}
	for line := range strings.Lines(page) {
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		name, labels, _ := strings.Cut(line[:at], "{")
		if labels = strings.TrimSuffix(labels, "}"); labels != "" {
			labels += ","
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		require.NoError(t, err, line)
		found[name+"{"+labels+instance+"}"] = v
	}
	return found
}

// rule is one of alerts/, which is evaluated so often.
type rule struct {
	Record, Alert, Expr string
	Labels              map[string]string
	every               time.Duration
}

// rules are all, in their order. A call is long after fewer seconds: the jobs are young.
func rules(t *testing.T) (all []rule) {
	t.Helper()
	for _, file := range []string{"recording.yaml", "alerts.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "alerts", file))
		require.NoError(t, err)
		var list struct {
			Groups []struct {
				Interval time.Duration
				Rules    []rule
			}
		}
		require.NoError(t, yaml.Unmarshal(text, &list))
		for _, g := range list.Groups {
			for _, r := range g.Rules {
				r.every = cmp.Or(g.Interval, time.Minute)
				r.Expr = strings.ReplaceAll(r.Expr, "mpit_call_running_seconds > 300", "mpit_call_running_seconds > 5")
				all = append(all, r)
			}
		}
	}
	return all
}

// evaluate has a server that has the recorded pages evaluate the rules, and adds what they write.
func (r *recording) evaluate(t *testing.T, s site, at endpoints) {
	for now := s.from; !now.After(s.to); now = now.Add(time.Minute) {
		for i, rule := range rules(t) {
			if now.Sub(s.from)%rule.every != 0 {
				continue
			}
			samples, err := s.prometheus.QueryAt(t.Context(), rule.Expr, now)
			require.NoError(t, err, rule.Expr)
			found := map[string]float64{}
			for _, sample := range samples {
				name := labels.NewBuilder(labels.FromMap(sample.Labels)).Set(model.MetricNameLabel, cmp.Or(rule.Record, "ALERTS"))
				if rule.Alert != "" {
					name.Set("alertname", rule.Alert).Set("alertstate", "firing")
					sample.Value = 1
				}
				for label, v := range rule.Labels {
					name.Set(label, v)
				}
				found[name.Labels().String()] = sample.Value
			}
			require.NoError(t, r.add(fmt.Sprint(i), now, found))
			one := &recording{r.series, nil}
			at.feed(t, one.all(&now))
		}
	}
}

// Other servers give the answers that Prometheus 2.42 gives, to every rule, alert and panel, from the same pages, but
// for what the table of engines says: run by make test-engines.
func TestEngines(t *testing.T) {
	if os.Getenv("MPIT_TEST_ENGINES") == "" {
		t.Skip("MPIT_TEST_ENGINES names no directories")
	}
	s := newSite(suite.PrometheusWith(t, harness.PrometheusConfig{Flags: []string{"--web.enable-remote-write-receiver"}}))
	s.step = interval
	s.to = time.Now().Truncate(time.Minute)
	s.from = s.to.Add(-pages * interval)
	recorded := record(t, s.from)
	at := endpoints{write: strings.TrimPrefix(s.prometheus.URL(), "http://") + "/api/v1/write"}
	at.feed(t, recorded.all(nil))
	recorded.evaluate(t, s, at)
	for _, e := range engines() {
		t.Run(e.name, func(t *testing.T) {
			at := e.run(t)
			other := newSite(harness.PrometheusAt(at.ask))
			if e.twice {
				at.feed(t, recorded.pair(e.replica))
			} else {
				at.feed(t, recorded.all(nil))
			}
			harness.Await(t, "all series", func(ctx context.Context) error { // vminsert sends them on later
				at.feed(t, nil)
				n, err := other.prometheus.QueryAt(ctx, `count(last_over_time({__name__=~".+"}[1h]))`, s.to)
				if err == nil && (len(n) != 1 || n[0].Value != float64(len(recorded.series))) {
					err = fmt.Errorf("%v, not %d", n, len(recorded.series))
				}
				return err
			})
			other.from, other.to, other.step = s.from, s.to, s.step
			e.compare(t, s, other)
		})
	}
}

// compare asks both the same.
func (e engine) compare(t *testing.T, s, other site) {
	asked, answered, used := map[string]bool{}, 0, map[string]int{}
	ask := func(what, query string, of func(s site, query string) ([]harness.Sample, error)) {
		if asked[what+query] {
			return
		}
		asked[what+query] = true
		want, err := of(s, query)
		require.NoError(t, err, query)
		there := query
		if e.noNative {
			there = regexp.MustCompile(`histogram_(sum|count)\(`).ReplaceAllString(query, "abs(") // docs/dashboards.md
		}
		have, err := of(other, there)
		if len(want) > 0 {
			answered++
		}
		require.NoError(t, err, there)
		var but difference
		err = s.same(want, have, but)
		for _, d := range e.known {
			if err != nil && d.queries.MatchString(query) {
				used[d.why]++
				but.ends, but.ties, but.values = but.ends || d.ends, but.ties || d.ties, but.values || d.values
				err = s.same(want, have, but)
			}
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", what, err, query)
		}
	}
	for _, rule := range rules(t) {
		for now := s.from; !now.After(s.to); now = now.Add(4 * time.Minute) {
			ask(fmt.Sprintf("%s%s after %v", rule.Record, rule.Alert, now.Sub(s.from)), rule.Expr,
				func(s site, query string) ([]harness.Sample, error) {
					return s.prometheus.QueryAt(t.Context(), query, now)
				})
		}
	}
	jobs, err := s.prometheus.QueryAt(t.Context(), "count by (jobid, user) (last_over_time(mpit_rank_up[1h]))", s.to)
	require.NoError(t, err)
	for _, d := range read(t) {
		for _, job := range jobs {
			values := map[string]string{"__rate_interval": "2m", "__interval": "30s", "__range": s.to.Sub(s.from).String()}
			for _, v := range d.Templating.List {
				values[v.Name] = ".*"
			}
			maps.Copy(values, map[string]string{"timer": "mpit_call_time_seconds", "counter": "mpit_call_bytes_total",
				"level": "mpit_pml_ob1_unexpected_msgq_length", "jobid": job.Labels["jobid"], "user": job.Labels["user"]})
			for _, p := range d.all() {
				for _, q := range p.Targets {
					ask(p.Title+" "+q.RefID, fill(q.Expr, values), func(s site, query string) ([]harness.Sample, error) {
						return s.ask(t.Context(), target{Expr: query, Instant: q.Instant}, nil)
					})
				}
			}
		}
	}
	t.Logf("%d queries compared, %d of them with an answer; known differences: %v", len(asked), answered, used)
}

// same says in what two answers differ, but for a known difference. Whether a function keeps the name of a metric isn't
// looked at.
func (s site) same(want, have []harness.Sample, but difference) error {
	young := func(sample harness.Sample) bool { // its window is no longer than that
		age := time.Duration((sample.At - float64(s.from.Unix())) * float64(time.Second))
		return age < 6*time.Minute || age >= killedAt*interval && age < killedAt*interval+6*time.Minute
	}
	byKey := func(samples []harness.Sample) map[string][]float64 {
		all := map[string][]float64{}
		for _, sample := range samples {
			if math.IsNaN(sample.Value) || math.IsInf(sample.Value, 0) || but.ends && young(sample) ||
				but.ties && sample.Value == 0 { // there may be any number of these
				continue
			}
			labels := maps.Clone(sample.Labels)
			if delete(labels, model.MetricNameLabel); but.ties {
				labels = nil
			}
			key := fmt.Sprintf("%v at %.3f", labels, sample.At)
			all[key] = append(all[key], sample.Value)
		}
		return all
	}
	wanted, had := byKey(want), byKey(have)
	var differ []string
	for key, values := range wanted {
		slices.Sort(values)
		slices.Sort(had[key])
		if !slices.EqualFunc(values, had[key], func(x, y float64) bool {
			return but.values || math.Abs(x-y) <= 1e-6*max(math.Abs(x), math.Abs(y), 1e-9)
		}) {
			differ = append(differ, fmt.Sprintf("%s is %v, not %v", key, had[key], values))
		}
		delete(had, key)
	}
	for key, values := range had {
		differ = append(differ, fmt.Sprintf("%s is %v, not there", key, values))
	}
	if len(differ) == 0 {
		return nil
	}
	slices.Sort(differ)
	return fmt.Errorf("%d of %d points, such as %s", len(differ), len(wanted), strings.Join(differ[:min(3, len(differ))],
		"; "))
}

// Two nodes that push over OTLP stay two, and all series of a page are there under the names that rules and panels ask
// for.
func TestEnginesOverOTLP(t *testing.T) {
	for _, e := range engines() {
		if e.twice { // it is among them already
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			at := e.run(t)
			if at.otlp == "" {
				t.Skipf("NOT TRIED: %s doesn't take OTLP", e.name)
			}
			push := []string{"--otlp.endpoint=http://" + at.otlp, "--otlp.interval=1s"}
			nodes := []*harness.Exporter{suite.Exporter(t, push...), suite.Exporter(t, push...)}
			simulate(t, nodes...)
			harness.Await(t, "the series of both pages", func(ctx context.Context) error {
				pushed, err := harness.PrometheusAt(at.ask).Query(ctx,
					`count by (__name__, job, instance) ({__name__=~"mpit_.+"})`)
				if err != nil {
					return err
				}
				host, err := os.Hostname()
				require.NoError(t, err)
				for _, node := range nodes {
					page, err := node.ScrapeContext(ctx)
					if err != nil {
						return err
					}
					instance, had := host+":"+node.Socket, map[string]float64{}
					for _, s := range pushed {
						if s.Labels["instance"] == instance && s.Labels["job"] == "mpit-exporter" {
							had[s.Labels[model.MetricNameLabel]] = s.Value
						}
					}
					for name, family := range page.Families {
						if strings.HasPrefix(name, "mpit_") && family.GetType() == dto.MetricType_HISTOGRAM {
							name += "_count"
						}
						if n := float64(len(family.Metric)); strings.HasPrefix(name, "mpit_") && had[name] != n {
							return fmt.Errorf("%s: %v series of %s, not %v; all are %v", instance, had[name], name, n, pushed)
						}
					}
				}
				return nil
			})
		})
	}
}

// What a pair of servers has scraped counts once where docs/engines.md says how, and twice without.
func TestEnginesWithPairs(t *testing.T) {
	for _, e := range engines() {
		if e.pair == nil {
			continue
		}
		for _, deduplicated := range []bool{true, false} {
			t.Run(fmt.Sprint(e.name, " ", deduplicated), func(t *testing.T) {
				var flags []string
				if deduplicated {
					flags = e.pair
				}
				at := e.run(t, flags...)
				const scrapes = 4
				to := time.Now()
				for i, replica := range []string{"a", "b"} {
					name := labels.NewBuilder(labels.FromStrings(model.MetricNameLabel, "mpit_rank_up", "instance", "node1"))
					if e.replica != "" {
						name.Set("cluster", "c").Set(e.replica, replica)
					}
					series := prompb.TimeSeries{Labels: prompb.FromLabels(name.Labels(), nil)}
					for scrape := range scrapes {
						at := to.Truncate(15 * time.Second).Add(time.Duration(scrape-scrapes)*15*time.Second +
							time.Duration(i+1)*4*time.Second)
						series.Samples = append(series.Samples, prompb.Sample{Value: 1, Timestamp: at.UnixMilli()})
					}
					at.feed(t, []prompb.TimeSeries{series})
				}
				want := scrapes
				if !deduplicated {
					want *= 2
				}
				harness.Await(t, "its samples", func(ctx context.Context) error {
					counted, err := harness.PrometheusAt(at.ask).QueryAt(ctx, "sum(count_over_time(mpit_rank_up[5m]))", to)
					if err == nil && (len(counted) != 1 || counted[0].Value != float64(want)) {
						err = fmt.Errorf("%v, not %d", counted, want)
					}
					return err
				})
			})
		}
	}
}
