package dashboards

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/otlp/otlptest"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// site is a cluster of two nodes, which a Prometheus has scraped while jobs ran, and what Grafana would know of it.
type site struct {
	server     harness.PrometheusServer
	prometheus *harness.Prometheus
	from, to   time.Time // the time range
	step       time.Duration
	profiled   []profiled
	answered   map[question][]harness.Sample
	chosen     map[string][]map[string]string // by the dashboard's UID
}

// question is what a Prometheus is asked once only: the time range is past, so that it would say the same again. Most
// queries don't use all variables of their dashboard, but every choice of them asks.
type question struct {
	expr     string
	instant  bool
	from, to time.Time
}

func newSite(p *harness.Prometheus) site {
	return site{prometheus: p, step: time.Second, answered: map[question][]harness.Sample{},
		chosen: map[string][]map[string]string{}}
}

const (
	early, split, queued, phases, killed, aborted, mpich, lost, stuck, left = "early", "split", "queued", "phases",
		"killed",
		"aborted", "mpich", "lost", "stuck", "left"

	// messages of each round of traffic.c go out on "ring"; so many rounds, twice.
	rounds = 40
)

// observe runs the jobs, which several Prometheus servers scrape. One has ended, and has left its exporter's page,
// when it returns.
func observe(t *testing.T) []site {
	t.Helper()
	flags := []string{"--retention=10s", "--timer-interval=200ms", "--cvar.name=btl_base_*"}
	receiver, err := otlptest.Start(otlptest.Options{Protocol: otlptest.HTTP})
	require.NoError(t, err)
	t.Cleanup(receiver.Close)
	one := suite.Exporter(t, append(flags[:len(flags):len(flags)], "--otlp.endpoint="+receiver.URL(),
		"--otlp.interval=500ms")...)
	two := suite.Exporter(t, flags...)
	from := time.Now()
	third := suite.Exporter(t)
	var sites []site
	for _, server := range harness.PrometheusServers(t) {
		s := newSite(suite.PrometheusWith(t, harness.PrometheusConfig{Server: server,
			Rules: suite.RulesInSeconds(t), Exporters: []*harness.Exporter{one, two, third}, Scrape: besides(t)}))
		s.server, s.from = server, from
		sites = append(sites, s)
	}
	scraped := func(expression string, want float64) {
		t.Helper()
		for _, s := range sites {
			s.scraped(t, expression, want)
		}
	}
	measured := []*harness.Run{startStencil(t, harness.OpenMPI(t), stencilOpenMPI, one),
		startStencil(t, harness.MPICH(t), stencilMPICH, two)}
	simulate(t, one, two)
	simulateAlone(t, third)
	openmpi := harness.OpenMPI(t)
	for _, run := range measured {
		scraped(fmt.Sprintf(`count(last_over_time(mpit_object_info{jobid=%q, name="residual"}[10m]))`, run.ID), 2)
	}
	begun := time.Now()

	traffic := harness.Job{
		MPI: openmpi, Program: "traffic.c", Args: []string{fmt.Sprint(rounds), "1000", harness.HoldDir},
		Exec: []string{"--monitoring", "--calls"},
	}
	traffic.Socket, traffic.ID = one.Socket, early
	first := suite.Run(t, traffic)
	traffic.ID = split
	// Rank 0 runs on one node, rank 1 on the other, and is another program.
	other := filepath.Join(suite.Dir(t), "other")
	traffic.Wrap = []string{"sh", "-c", fmt.Sprintf(
		`test "$OMPI_COMM_WORLD_RANK" = 0 && exec "$@"; export MPIT_SOCKET='%s'; cp "$1" '%s' && shift && exec '%[2]s' "$@"`, two.Socket, other), "sh"}
	second := suite.Run(t, traffic)
	for _, run := range []*harness.Run{first, second} {
		run.AtHold(t, "ready")
		scraped(fmt.Sprintf(`count(mpit_coll_monitoring_a2a_count_total{jobid=%q, comm="sums"} == 0)`, run.ID), 2)
		run.Release(t, "ready")
		run.AtHold(t, "half")
	}
	scraped(fmt.Sprintf(`count(count by (instance) (mpit_coll_monitoring_a2a_count_total{jobid=%q, comm="sums"} > 0))`,
		split), 2)
	scraped(fmt.Sprintf(`count(mpit_coll_monitoring_a2a_count_total{jobid=%q, comm="sums"} > 0)`, early), 2)
	first.Finish(t, "half", "done")

	backlog := suite.Run(t, harness.Job{MPI: openmpi, Program: "unexpected.c", Args: []string{"41", harness.HoldDir},
		Socket: two.Socket, ID: queued})
	backlog.AtHold(t, "queued")
	pcontrol := suite.Run(t, harness.Job{MPI: openmpi, Program: "pcontrol.c", Args: []string{"5", harness.HoldDir},
		Socket: one.Socket, ID: phases})
	for _, point := range []string{"on", "off", "back", "counted", "two"} {
		pcontrol.AtHold(t, point)
		pcontrol.Release(t, point)
	}
	pcontrol.AtHold(t, "level")
	for id, how := range map[string]string{killed: "kill", aborted: "abort", left: "exit"} {
		run := suite.Run(t, harness.Job{MPI: openmpi, Program: "ends.c", Args: []string{how, harness.HoldDir},
			Socket: two.Socket, ID: id})
		run.AtHold(t, "up")
		scraped(fmt.Sprintf(`count(mpit_rank_up{jobid=%q})`, id), 2)
		run.Release(t, "up")
		run.Wait(t)
	}
	for _, run := range measured {
		job := endOfStencil(t, run)
		scraped(fmt.Sprintf(`count(last_over_time(mpit_rank_end_info{jobid=%q, reason="finalize"}[1h]))`,
			run.ID), 2)
		for i, s := range sites {
			job.seen = s.lastSeen(t, run.ID)
			job.half = begun.Add(time.Duration(job.took / 2 * float64(time.Second)))
			sites[i].profiled = append(sites[i].profiled, job)
		}
	}
	tour := suite.Run(t, harness.Job{MPI: harness.MPICH(t), Program: "tour.c", Args: []string{harness.HoldDir},
		Socket: one.Socket, ID: mpich})
	tour.AtHold(t, "made")

	waits := suite.Run(t, harness.Job{MPI: harness.OpenMPI(t), Program: "profile_stuck.c", Args: []string{harness.HoldDir},
		Socket: one.Socket, ID: stuck, Exec: []string{"--calls"}})
	waits.AtHold(t, "late", 1)

	scraped(fmt.Sprintf(`count(mpit_rank_up{jobid=%q} == 1)`, mpich), 2)
	scraped(fmt.Sprintf(`count(mpit_pcontrol_level{jobid=%q} == 7)`, phases), 2)
	scraped(fmt.Sprintf(`count(last_over_time(mpit_rank_end_info{jobid=%q, reason="finalize"}[1h]))`, early), 2)
	// A rank without a last word is lost when it could have connected again.
	for id, reason := range map[string]string{killed: "lost", aborted: "abort", left: "exit"} {
		scraped(fmt.Sprintf(`count(count by (reason) (last_over_time(mpit_rank_end_info{jobid=%q, reason=%q}[1h])))`, id,
			reason), 1)
	}
	scraped(`count({__name__=~"mpit_.+", jobid="early"}) or vector(0)`, 0)
	// A node is lost with its job: nobody ever says that it has ended.
	scraped(fmt.Sprintf(`count(mpit_rank_up{jobid=%q} == 1)`, lost), 1)
	third.Kill(t)
	scraped(`count(up == 0)`, 1)
	scraped(fmt.Sprintf(`count(mpit_rank_up{jobid=%q}) or vector(0)`, lost), 0)
	scraped(`count(ALERTS{alertname="MPIJobWaitsForRank", jobid="stuck", alertstate="firing"})`, 1)
	scraped(`count(mpit_job_verdict_info{jobid="stuck", state="waiting", rank="1"})`, 1) // after 10 s, rules here don't wait
	scraped(`count(mpit_cvar_ranks{jobid="split"}) > bool 0`, 1)
	scraped(`count(mpit_pvar_category_info) > bool 0`, 1)
	to := time.Now()
	for i := range sites {
		sites[i].to = to
	}
	return sites
}

// lastSeen is when a job that has ended was on its exporter's page for the last time, with all its ends.
func (s site) lastSeen(t *testing.T, id string) (at time.Time) {
	t.Helper()
	s.prometheus.Await(t, fmt.Sprintf(
		`min(max by (rank) (max_over_time(timestamp(mpit_rank_end_info{jobid=%q, reason="finalize"})[5m:100ms])))`, id),
		func(samples []harness.Sample) error {
			if len(samples) != 1 {
				return fmt.Errorf("%v", samples)
			}
			at = time.UnixMilli(int64(samples[0].Value * 1000))
			return nil
		})
	return at
}

// scraped waits until an expression is one number.
func (s site) scraped(t *testing.T, expression string, want float64) {
	t.Helper()
	s.prometheus.Await(t, expression, func(samples []harness.Sample) error {
		if len(samples) != 1 || samples[0].Value != want {
			return fmt.Errorf("%v, not %v", samples, want)
		}
		return nil
	})
}

// ask is what Grafana gets for a panel's query: the samples that are numbers. They are everybody's: nobody may change
// them.
func (s site) ask(ctx context.Context, q target, values map[string]string) ([]harness.Sample, error) {
	asked := question{fill(q.Expr, values), q.Instant, s.from, s.to}
	if samples, known := s.answered[asked]; known {
		return samples, nil
	}
	var samples []harness.Sample
	var err error
	if q.Instant {
		samples, err = s.prometheus.QueryAt(ctx, asked.expr, s.to)
	} else {
		samples, err = s.prometheus.QueryRange(ctx, asked.expr, s.from, s.to, s.step)
	}
	if err != nil {
		return nil, err
	}
	s.answered[asked] = slices.DeleteFunc(samples, func(x harness.Sample) bool {
		return math.IsNaN(x.Value) ||
			math.IsInf(x.Value, 0)
	})
	return s.answered[asked], nil
}

// moments are the site at the end of its time range and, for a Prometheus that forgets native histograms of jobs that
// have ended, when these were there.
func (s site) moments() []site {
	list := []site{s}
	for _, job := range s.profiled {
		if s.server.Native && !s.server.LastNative {
			s.to = job.seen
			list = append(list, s)
		}
	}
	return list
}

// choices are the values that a dashboard's variables have together: one choice for each job where there is one to
// choose, and for each timer.
func (s site) choices(t *testing.T, d dashboard) []map[string]string {
	t.Helper()
	if list, known := s.chosen[d.UID]; known {
		return list
	}
	list := []map[string]string{{
		"__rate_interval": "5s", "__interval": "1s", "__range": fmt.Sprintf("%.0fs", math.Ceil(s.to.Sub(s.from).
					Seconds())),
	}}
	used := map[string]bool{}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		selector, label := v.values(t)
		var next []map[string]string
		for _, values := range list {
			found, err := s.prometheus.LabelValues(t.Context(), fill(selector, values), label, s.from, s.to)
			require.NoError(t, err, v.Name)
			if v.Regex != "" {
				re := regexp.MustCompile("^(?:" + v.Regex + ")$")
				for i := range found {
					m := re.FindStringSubmatch(found[i])
					require.NotNil(t, m, "%s: %s", v.Name, found[i])
					found[i] = m[1]
				}
			}
			used[v.Name] = used[v.Name] || len(found) > 0
			switch {
			case v.Name == "jobid":
				slices.SortFunc(found, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
				require.ElementsMatch(t, order, found, "jobs to choose from")
				for _, value := range found {
					next = append(next, with(values, v.Name, value))
				}
			case v.AllValue != "":
				next = append(next, with(values, v.Name, v.AllValue))
			case len(found) == 0:
				next = append(next, with(values, v.Name, ""))
			case v.Name == "counter" || v.Name == "level":
				for _, value := range oneOfEachUnit(found) {
					next = append(next, with(values, v.Name, value))
				}
			case v.IncludeAll:
				next = append(next, with(values, v.Name, oneOf(found)))
			default:
				next = append(next, with(values, v.Name, found[0]))
			}
		}
		list = next
	}
	for _, v := range d.Templating.List {
		// These targets have no such label, and these ranks no scheduler.
		optional := v.Type != "query" || v.Name == "cluster" || v.Name == "partition"
		assert.True(t, optional || used[v.Name], "nothing to choose from: %s", v.Name)
	}
	s.chosen[d.UID] = list
	return list
}

// besides is a target on the exporters' host that has what panels read of node_exporter.
func besides(t *testing.T) string {
	t.Helper()
	const page = `# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 13126.34
node_cpu_seconds_total{cpu="0",mode="user"} 11030.1
# TYPE node_procs_running gauge
node_procs_running 3
# TYPE node_memory_MemAvailable_bytes gauge
node_memory_MemAvailable_bytes 1.7179869184e+10
# TYPE node_memory_MemTotal_bytes gauge
node_memory_MemTotal_bytes 2.5289547776e+10
`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write([]byte(page))
	}))
	t.Cleanup(server.Close)
	return fmt.Sprintf("  - job_name: node\n    static_configs: [{targets: [%q]}]\n", server.Listener.Addr())
}

// oneOfEachUnit is the first name of each unit that panels ask for by name.
func oneOfEachUnit(names []string) []string {
	units := regexp.MustCompile(`_(bytes|seconds|ratio)(_total)?$`)
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		unit := units.FindString(name)
		defer func() { seen[unit] = true }()
		return seen[unit]
	})
}

// order is all jobs, real ones first.
var order = append([]string{split, early, queued, phases, killed, aborted, left, mpich, stuck, stencilOpenMPI,
	stencilMPICH,
	"simulated", lost}, simulated...)

func with(values map[string]string, name, value string) map[string]string {
	c := maps.Clone(values)
	c[name] = value
	return c
}

// oneOf is a choice of several values as Grafana writes it for Prometheus.
func oneOf(values []string) string {
	escaped := make([]string, len(values))
	for i, v := range values {
		escaped[i] = strings.ReplaceAll(regexp.QuoteMeta(v), `\`, `\\`)
	}
	return "(" + strings.Join(escaped, "|") + ")"
}

// What Grafana gets for the dashboards while jobs run and after one has ended.
func TestDashboards(t *testing.T) {
	t.Parallel()
	for _, s := range observe(t) {
		t.Run(s.server.Name, func(t *testing.T) {
			t.Parallel()
			t.Run("data", s.testData)
			t.Run("tables", s.testTables)
			t.Run("truth", s.testTruth)
			t.Run("calls", s.testCalls)
		})
	}
}

// Every query of every panel has data, every selector in it finds series, and the panels that only simulated ranks
// fill are known.
func (s site) testData(t *testing.T) {
	var unreal []string
	for _, d := range read(t) {
		t.Run(d.Title, func(t *testing.T) {
			choices := s.choices(t, d)
			found := map[string]bool{} // selectors, as they stand in the file
			for _, p := range d.all() {
				for _, q := range p.Targets {
					at := slices.IndexFunc(choices, func(values map[string]string) bool {
						var samples []harness.Sample
						for _, s := range s.moments() {
							if len(samples) == 0 {
								var err error
								samples, err = s.ask(t.Context(), q, values)
								require.NoError(t, err, "%s %s", p.Title, q.RefID)
							}
						}
						if d.UID == "mpit-jobs" && q.Instant {
							assert.LessOrEqual(t, len(samples), len(order), "%s: the dashboard of all jobs goes rank by rank", p.Title)
						}
						return len(samples) > 0
					})
					if !assert.GreaterOrEqual(t, at, 0, "%s %s: no data in any job: %s", p.Title, q.RefID, q.Expr) {
						continue
					}
					if id, ok := choices[at]["jobid"]; ok &&
						slices.Index(order, id) >= slices.Index(order, "simulated") {
						unreal = append(unreal, p.Title+": "+id)
					}
					s.selectors(t, p, q, choices, found)
				}
			}
		})
	}
	slices.Sort(unreal)
	if harness.OpenMPI(t).Major >= 6 {
		// What is counted for each peer depends on the candidate: monitoring of messages crashes MPI_Init of 6.0.0rc2.
		unreal = slices.DeleteFunc(unreal, func(panel string) bool {
			return panel == "Messages of collectives and one-sided operations: openmpi-4.1" ||
				panel == "Their bytes: openmpi-4.1"
		})
	}
	assert.ElementsMatch(t, onlySimulated, slices.Compact(unreal), "panels that no job of Debian's libraries fills")
}

// onlySimulated are the panels that need what neither of Debian's libraries has, and the simulated job that fills them.
var onlySimulated = []string{
	// States, shares and watermarks: see docs/metrics.md for who has some.
	"By what it is bound to: simulated",
	"Rank by rank: simulated",
	"Which rank holds a watermark: simulated",
	// Other builds of Open MPI and MPICH, and other libraries.
	"Bytes that unexpected messages take up: mpich-3.4",
	"Bytes through network cards: mpich-4.0",
	"Bytes: openmpi-4.1",
	"Cache of registered memory: mvapich2-2.3",
	"Calls of MPI functions: openmpi-4.1",
	"Collectives by algorithm (MVAPICH 3 and 4): mvapich-4.0",
	"Collectives by algorithm: mvapich2-2.3",
	"Handlers of one-sided operations: mpich-3.4",
	"Messages that came too early or out of order: openmpi-4.1",
	"Messages: mvapich2-2.3",
	"Network buffers free: mvapich2-2.3",
	"Searches of the queues: mpich-3.4",
	"Time in collectives: mvapich2-2.3",
	"Time spent matching: openmpi-4.1",
}

// selectors checks that each selector of a query finds a series in some job. A histogram is there either as its parts
// or as a native one.
func (s site) selectors(t *testing.T, p panel, q target, choices []map[string]string, found map[string]bool) {
	t.Helper()
	missing := map[string]string{}
	for _, values := range choices {
		selectors, err := parse(fill(q.Expr, values))
		require.NoError(t, err)
		clear(missing)
		same := map[string]int{} // the first selector of each family
		for i, selector := range selectors {
			family := part.ReplaceAllString(selector.String(), "$1")
			if _, ok := same[family]; !ok {
				same[family] = i
			}
			key := fmt.Sprintf("%s/%d", q.Expr, same[family])
			if found[key] {
				continue
			}
			missing[key] = selector.String()
			samples, err := s.ask(t.Context(), target{Instant: true,
				Expr: fmt.Sprintf("count(last_over_time(%s[%s]))", selector, values["__range"])}, nil)
			require.NoError(t, err)
			if len(samples) > 0 {
				found[key] = true
				delete(missing, key)
			}
		}
		if len(missing) == 0 {
			return
		}
	}
	for _, selector := range missing {
		assert.Fail(t, "a selector that finds nothing", "%s %s: nobody has %s", p.Title, q.RefID, selector)
	}
}

// part is the end of a histogram's name that says which part of it a series is.
var part = regexp.MustCompile(`_(?:sum|count|bucket)(\{|")`)
