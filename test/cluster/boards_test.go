package cluster

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

const (
	largeJob = 4096 // ranks for which costs are told
	ofBoards = 16   // ranks of a node
	width    = 1000 // points for which a graph asks that doesn't say how many it wants
	day      = 24 * time.Hour
)

// BenchmarkBoards says what each query of the dashboard of one job costs a Prometheus that has scraped the job for
// seven days and evaluated the recording rules: in seconds of CPU, and in samples that it reads and holds at a time, for
// a job of 4,096 ranks. That is the line through the costs of two jobs, of which the larger one has $BENCH_RANKS ranks. $BENCH_QUERIES is a pattern of panels' titles.
func BenchmarkBoards(b *testing.B) {
	ranks := number(b, "BENCH_RANKS", 64)
	jobs := []job{{number: 0, width: ranks}, {number: 1, width: ranks / 4}}
	queries := oneJobsQueries(b)
	flags, ok := os.LookupEnv("BENCH_EXEC")
	if !ok {
		flags = "--calls"
	}
	template := record(b, suite, strings.Fields(flags), 10*time.Second, 20*time.Second)
	to := time.Now().Truncate(time.Minute)
	from := to.Add(-7 * day)

	// The last quarter of an hour with all series is enough for the rules.
	raw := slices.Concat(seriesOf(template, jobs[0]), seriesOf(template, jobs[1]))
	recorded := recordedOf(b, raw, from, to)
	series := slices.DeleteFunc(append(raw, recorded...), func(s stored) bool {
		return !slices.ContainsFunc(queries, func(q query) bool { return q.reads(s.labels) })
	})
	started := time.Now()
	prometheus := receiver(b)
	write(b, prometheus, series, from, to, from)
	b.Logf("%d series of %d ranks that queries read, written in %.0f s", len(series), ranks, time.Since(started).Seconds())

	costs := map[string]cost{}
	worst := 0.0
	for _, long := range []time.Duration{time.Hour, day, 7 * day} {
		for _, q := range queries {
			large, small := q.cost(b, prometheus, jobs[0], to, long), q.cost(b, prometheus, jobs[1], to, long)
			at := func(large, small float64) float64 {
				return large + max(0, large-small)/float64(jobs[0].width-jobs[1].width)*float64(largeJob-jobs[0].width)
			}
			c := cost{at(large.seconds, small.seconds), at(large.read, small.read), at(large.held, small.held)}
			costs[fmt.Sprintf("%4.0f h  %s", long.Hours(), q.title)] = c
			worst = max(worst, c.seconds)
		}
	}
	names := make([]string, 0, len(costs))
	for name := range costs {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int { return cmp.Compare(costs[y].seconds, costs[x].seconds) })
	for _, name := range names {
		b.Logf("%8.2f s %8.1f M read %8.1f M held %s", costs[name].seconds, costs[name].read, costs[name].held, name)
	}
	b.ReportMetric(worst, "s/query")
}

func spentCPU(b *testing.B, p *harness.Prometheus) float64 {
	now, err := itself(b.Context(), p, "process_cpu_seconds_total")
	require.NoError(b, err)
	return now["process_cpu_seconds_total"]
}

// cost is CPU, and millions of samples.
type cost struct{ seconds, read, held float64 }

// cost is what the query costs for a job.
func (q query) cost(b *testing.B, p *harness.Prometheus, j job, to time.Time, long time.Duration) cost {
	address := p.URL() + q.path(j, to, long)
	first := ask(b, address)
	// The kernel counts in hundredths of a second.
	before, asked := spentCPU(b, p), 0
	for begun := time.Now(); asked == 0 || time.Since(begun) < time.Second && asked < 50; asked++ {
		ask(b, address)
	}
	return cost{(spentCPU(b, p) - before) / float64(asked), first.Total / 1e6, first.Peak / 1e6}
}

// query is what a panel asks.
type query struct {
	title, expr string
	instant     bool
	points      int
	selectors   [][]*labels.Matcher
}

// oneJobsQueries are those of the dashboard of one job.
func oneJobsQueries(b *testing.B) (all []query) {
	text, err := os.ReadFile(filepath.Join(suite.Root(), "dashboards", "one-job.json"))
	require.NoError(b, err)
	type target struct {
		RefID, Expr string
		Instant     bool
	}
	var board struct {
		Annotations struct{ List []struct{ Name, Expr string } }
		Panels      []struct {
			Title         string
			MaxDataPoints int
			Targets       []target
		}
	}
	require.NoError(b, json.Unmarshal(text, &board))
	chosen := regexp.MustCompile(os.Getenv("BENCH_QUERIES"))
	add := func(title, expr string, instant bool, points int) {
		if !chosen.MatchString(title) {
			return
		}
		q := query{title: title, expr: expr, instant: instant, points: cmp.Or(points, width)}
		parsed, err := parser.NewParser(parser.Options{}).ParseExpr(q.filled(job{}, time.Hour))
		require.NoError(b, err, expr)
		q.selectors = parser.ExtractSelectors(parsed)
		all = append(all, q)
	}
	for _, a := range board.Annotations.List {
		if a.Expr != "" {
			add("annotation "+a.Name, a.Expr, false, 0)
		}
	}
	for _, p := range board.Panels {
		for _, t := range p.Targets {
			add(p.Title+" "+t.RefID, t.Expr, t.Instant, p.MaxDataPoints)
		}
	}
	return all
}

func (q query) reads(series labels.Labels) bool {
	return slices.ContainsFunc(q.selectors, func(matchers []*labels.Matcher) bool {
		return !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool {
			ofAny := m.Name == "jobid" || m.Name == "user" || m.Name == "instance"
			return !ofAny && !m.Matches(series.Get(m.Name))
		})
	})
}

// step is how far apart Grafana wants the points of a time range: the nearest of these.
func (q query) step(long time.Duration) time.Duration {
	steps := []time.Duration{interval, 20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute,
		10 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour}
	exact := long / time.Duration(q.points)
	return slices.MinFunc(steps, func(x, y time.Duration) int { return cmp.Compare((x - exact).Abs(), (y - exact).Abs()) })
}

// filled is the query with what Grafana puts in for a job and a time range. Of a job of few ranks, a heat map shows as
// few.
func (q query) filled(j job, long time.Duration) string {
	step := q.step(long)
	return strings.NewReplacer("$cluster", ".*", "$world", ".*", "$host", hosts(j), "$jobid", strconv.Itoa(j.number),
		"$user", fmt.Sprint("user", j.number), "$__rate_interval", max(step+interval, 4*interval).String(),
		"$__range", long.String(), "$__interval", step.String(),
		"k(300,", fmt.Sprintf("k(%d,", max(1, 300*j.width/largeJob))).Replace(q.expr)
}

// hosts are a job's nodes as Grafana writes a choice of all.
func hosts(j job) string {
	all := make([]string, max(1, j.width/ofBoards))
	for node := range all {
		all[node] = fmt.Sprintf("node%d-%d", j.number, node)
	}
	return "(" + strings.Join(all, "|") + ")"
}

func (q query) path(j job, to time.Time, long time.Duration) string {
	values := url.Values{"query": {q.filled(j, long)}, "stats": {"all"}}
	seconds := func(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
	if q.instant {
		values.Set("time", seconds(to))
		return "/api/v1/query?" + values.Encode()
	}
	step := q.step(long)
	values.Set("start", seconds(to.Add(-long).Truncate(step)))
	values.Set("end", seconds(to.Truncate(step)))
	values.Set("step", seconds(time.Unix(0, 0).Add(step)))
	return "/api/v1/query_range?" + values.Encode()
}

// touched are the samples that a query read, and how many of them were there at a time.
type touched struct {
	Total float64 `json:"totalQueryableSamples"`
	Peak  float64 `json:"peakSamples"`
}

func ask(b *testing.B, address string) touched {
	response, err := http.Get(address)
	require.NoError(b, err)
	defer response.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			Stats struct{ Samples touched }
		}
	}
	require.NoError(b, json.NewDecoder(response.Body).Decode(&answer))
	require.Empty(b, answer.Error, address)
	return answer.Data.Stats.Samples
}

// stored is a series with its value at each age of the job.
type stored struct {
	labels labels.Labels
	every  time.Duration
	at     func(age time.Duration) float64
}

// seriesOf are the series of a job's ranks, like those of a template.
func seriesOf(t *template, j job) (all []stored) {
	p := place{job: &j}
	read := func(l line, kind string, rank int, with string) {
		text := string(l.append(nil, with, 0))
		parsed, err := parser.NewParser(parser.Options{}).ParseMetric(strings.TrimSuffix(text, " 0\n"))
		if err != nil {
			panic(err) // the exporter wrote it
		}
		instance := fmt.Sprintf("node%d-%d:10092", j.number, rank/ofBoards)
		all = append(all, stored{labels.NewBuilder(parsed).Set("instance", instance).Set("job", "mpit").Labels(), interval,
			func(age time.Duration) float64 { return l.at(kind, age.Seconds()) }})
	}
	for _, f := range t.families {
		for rank := range j.width {
			if len(f.ofRank) > 0 {
				for _, l := range f.ofRank[t.like(rank)] {
					read(l, f.kind, rank, p.labels(rank))
				}
			}
			if rank%ofBoards == 0 {
				for _, l := range f.ofNode {
					read(l, f.kind, rank, "")
				}
			}
		}
	}
	return append(all, besideOf(j)...)
}

// besideOf are the series of node_exporter on the job's nodes that panels read.
func besideOf(j job) (all []stored) {
	add := func(node int, value func(age time.Duration) float64, name string, more ...string) {
		instance := fmt.Sprintf("node%d-%d:9100", j.number, node)
		all = append(all, stored{labels.FromStrings(append([]string{model.MetricNameLabel, name, "instance", instance,
			"job", "node"}, more...)...), interval, value})
	}
	wave := func(age time.Duration) float64 { return 1 + 0.05*math.Sin(age.Minutes()) }
	for node := range j.width / ofBoards {
		for cpu := range ofBoards {
			add(node, time.Duration.Seconds, "node_cpu_seconds_total", "cpu", strconv.Itoa(cpu), "mode", "idle")
		}
		for _, name := range []string{"node_procs_running", "node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes"} {
			add(node, wave, name)
		}
	}
	return all
}

// recordedOf are the series that the recording rules make of others, by one evaluation of each in their order: their
// values are always about those of that moment.
func recordedOf(b *testing.B, raw []stored, from, at time.Time) (all []stored) {
	prometheus := receiver(b)
	write(b, prometheus, raw, at.Add(-12*time.Minute), at, from)
	text, err := os.ReadFile(filepath.Join(suite.Root(), "alerts", "recording.yaml"))
	require.NoError(b, err)
	var rules struct {
		Groups []struct {
			Interval time.Duration
			Rules    []struct {
				Record, Expr string
				Labels       map[string]string
			}
		}
	}
	require.NoError(b, yaml.Unmarshal(text, &rules))
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			samples, err := prometheus.QueryAt(b.Context(), r.Expr, at)
			require.NoError(b, err, r.Record)
			var made []stored
			for _, s := range samples {
				name := labels.NewBuilder(labels.FromMap(s.Labels)).Set(model.MetricNameLabel, r.Record)
				for label, value := range r.Labels {
					name.Set(label, value)
				}
				made = append(made, stored{name.Labels(), cmp.Or(g.Interval, time.Minute),
					func(age time.Duration) float64 { return s.Value * (1 + 0.05*math.Sin(age.Minutes())) }})
			}
			write(b, prometheus, made, at, at, from)
			all = append(all, made...)
		}
	}
	return all
}

// receiver is a Prometheus that takes what others have scraped, as fast as it comes, and makes blocks of it like those
// that it has of the past in the end.
func receiver(b *testing.B) *harness.Prometheus {
	return suite.PrometheusWith(b, harness.PrometheusConfig{Flags: []string{"--web.enable-remote-write-receiver",
		"--query.max-samples=1000000000", "--query.timeout=10m",
		"--storage.tsdb.min-block-duration=18h", "--storage.tsdb.max-block-duration=18h"}})
}

// write sends what the series of a job are from one time to another; the job began at a third one.
func write(b *testing.B, to *harness.Prometheus, series []stored, first, last, began time.Time) {
	const atOnce = 30 * time.Minute // a Prometheus takes what is an hour older than its newest sample
	for ; !first.After(last); first = first.Add(atOnce) {
		for some := range slices.Chunk(series, 2000) {
			var request prompb.WriteRequest
			for _, s := range some {
				written := prompb.TimeSeries{Labels: prompb.FromLabels(s.labels, nil)}
				for at := first; at.Before(first.Add(atOnce)) && !at.After(last); at = at.Add(interval) {
					if age := at.Sub(began); age%s.every == 0 {
						written.Samples = append(written.Samples, prompb.Sample{Value: s.at(age), Timestamp: at.UnixMilli()})
					}
				}
				if written.Samples != nil {
					request.Timeseries = append(request.Timeseries, written)
				}
			}
			body, err := request.Marshal()
			require.NoError(b, err)
			response, err := http.Post(to.URL()+"/api/v1/write", "application/x-protobuf",
				bytes.NewReader(snappy.Encode(nil, body)))
			require.NoError(b, err)
			answer, err := io.ReadAll(response.Body)
			require.NoError(b, err)
			require.NoError(b, response.Body.Close())
			require.Less(b, response.StatusCode, 300, string(answer))
		}
	}
}
