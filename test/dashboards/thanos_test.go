package dashboards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// inbox takes alerts as an Alertmanager does, for each path that they come to.
type inbox struct {
	*httptest.Server
	mu       sync.Mutex
	received map[string]map[string]string // by path and labels: the description
}

func newInbox(t *testing.T) *inbox {
	box := &inbox{received: map[string]map[string]string{}}
	box.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var alerts []struct{ Labels, Annotations map[string]string }
		if err := json.NewDecoder(r.Body).Decode(&alerts); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		box.mu.Lock()
		defer box.mu.Unlock()
		from, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if box.received[from] == nil {
			box.received[from] = map[string]string{}
		}
		for _, alert := range alerts {
			if alert.Labels["jobid"] == "" {
				continue // of nodes: how slow they are differs between scrapers
			}
			box.received[from][labels.FromMap(alert.Labels).String()] = alert.Annotations["description"]
		}
	}))
	t.Cleanup(box.Close)
	return box
}

// of are the alerts from a path.
func (b *inbox) of(path string) map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.received[path])
}

// replicated is a pair of servers that scrape the same, with a sidecar each, and a pair of rulers, behind a querier.
type replicated struct {
	scrapers, sidecars, rulers []*harness.Process
	querier, ruler             *harness.Prometheus // how to ask it, and the last of the rulers
}

func startReplicated(t *testing.T, thanos string, nodes []*harness.Exporter, alertmanager string) replicated {
	t.Helper()
	var r replicated
	ask := harness.FreeAddress(t)
	r.querier = harness.PrometheusAt(ask)
	query := slices.Concat([]string{thanos, "query", "--http-address=" + ask, "--grpc-address=" + harness.FreeAddress(t)},
		ofDocs(t, "thanos query", ""))
	for _, replica := range []string{"a", "b"} {
		scraper := suite.PrometheusWith(t, harness.PrometheusConfig{Exporters: nodes, Labels: "replica: " + replica})
		store := harness.FreeAddress(t)
		r.scrapers = append(r.scrapers, scraper.Process)
		r.sidecars = append(r.sidecars, suite.Start(t, []string{thanos, "sidecar", "--prometheus.url=" + scraper.URL(),
			"--tsdb.path=" + scraper.Data, "--grpc-address=" + store, "--http-address=" + harness.FreeAddress(t)}, nil))
		query = append(query, "--endpoint="+store)
	}
	for _, name := range []string{"a", "b"} {
		at, store := harness.FreeAddress(t), harness.FreeAddress(t)
		rule := slices.Concat([]string{thanos, "rule", "--query=http://" + ask, "--http-address=" + at,
			"--grpc-address=" + store, "--data-dir=" + suite.Dir(t), "--alertmanagers.url=" + alertmanager,
			"--eval-interval=1s"}, ofDocs(t, "thanos rule", ""))
		for i := range rule {
			rule[i] = strings.Replace(rule[i], `ruler="a"`, fmt.Sprintf("ruler=%q", name), 1)
		}
		for _, file := range suite.RulesInSeconds(t) {
			rule = append(rule, "--rule-file="+file)
		}
		r.rulers = append(r.rulers, suite.Start(t, rule, nil))
		r.ruler = harness.PrometheusAt(at)
		query = append(query, "--endpoint="+store)
	}
	suite.Start(t, query, nil)
	return r
}

// A pair of servers with sidecars, rulers and a querier records and alerts as one Prometheus does, also when one of
// each pair is lost.
func TestEnginesWithReplicas(t *testing.T) {
	thanos := engine{name: "Thanos with a pair of servers and of rulers"}.path(t, "thanos")
	nodes := []*harness.Exporter{suite.Exporter(t), suite.Exporter(t)}
	simulate(t, nodes...)
	mpi := harness.OpenMPI(t)
	queue := suite.Run(t, harness.Job{MPI: mpi, Program: "unexpected.c", Args: []string{"12000", harness.HoldDir},
		Socket: nodes[0].Socket, ID: "queue"})
	queue.AtHold(t, "queued", 1)
	stuck := suite.Run(t, harness.Job{MPI: mpi, Program: "profile_stuck.c", Args: []string{harness.HoldDir},
		Socket: nodes[1].Socket, Exec: []string{"--calls"}, ID: "stuck"})
	stuck.AtHold(t, "late", 1)

	box := newInbox(t)
	single := suite.PrometheusWith(t, harness.PrometheusConfig{Rules: suite.RulesInSeconds(t), Exporters: nodes,
		More: fmt.Sprintf("alerting: {alertmanagers: [{path_prefix: /single, static_configs: [{targets: [%q]}]}]}\n",
			strings.TrimPrefix(box.URL, "http://"))})
	pair := startReplicated(t, thanos, nodes, box.URL+"/pair")

	same := func(what, query string) {
		t.Helper()
		harness.Await(t, what, func(ctx context.Context) error {
			want, err := single.Query(ctx, query)
			if err != nil {
				return err
			}
			have, err := pair.querier.Query(ctx, query)
			if err == nil && (len(want) == 0 || fmt.Sprint(sorted(want)) != fmt.Sprint(sorted(have))) {
				err = fmt.Errorf("%v, not %v", sorted(have), sorted(want))
			}
			return err
		})
	}
	alerts := func() {
		t.Helper()
		harness.Await(t, "the alerts", func(context.Context) error {
			want, have := box.of("single"), box.of("pair")
			names := fmt.Sprint(slices.Sorted(maps.Keys(want)))
			for _, name := range []string{"MPIUnexpectedQueueLong", "MPIJobWaitsForRank"} {
				if !strings.Contains(names, name) {
					return errors.New("no " + name + " yet")
				}
			}
			if others := fmt.Sprint(slices.Sorted(maps.Keys(have))); names != others {
				return fmt.Errorf("%v, not %v", others, names)
			}
			return nil
		})
	}
	same("ranks", "count(mpit_rank_up)")
	same("recorded series", `count by (__name__) ({__name__=~"mpit_.+:.+"})`)
	same("ranks of jobs", "mpit_job:ranks:live")
	alerts()
	for of, text := range box.of("single") {
		if strings.Contains(of, "MPIUnexpectedQueueLong") {
			assert.Equal(t, text, box.of("pair")[of])
		}
	}

	// One of each is lost.
	for _, p := range []*harness.Process{pair.scrapers[0], pair.sidecars[0], pair.rulers[0]} {
		p.Signal(t, syscall.SIGKILL)
	}
	lost := time.Now()
	time.Sleep(30 * time.Second)
	same("ranks", "count(mpit_rank_up)")
	same("recorded series", `count by (__name__) ({__name__=~"mpit_.+:.+"})`)
	same("ranks of jobs", "mpit_job:ranks:live")
	alerts()
	firing := `count by (alertname, jobid) (ALERTS{alertstate="firing", jobid=~"queue|stuck"})`
	points, err := pair.querier.QueryRange(t.Context(), firing, lost, time.Now().Add(-time.Second), time.Second)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(points), 2*29) // two alerts, each second
	for _, point := range points {
		assert.InDelta(t, 1, point.Value, 0, "%v", point)
	}
	groups, err := pair.ruler.Rules(t.Context())
	require.NoError(t, err)
	evaluated := 0
	for _, group := range groups {
		for _, rule := range group.Rules {
			if assert.Empty(t, rule.LastError, rule.Name); rule.Health == "ok" {
				evaluated++
			}
		}
	}
	assert.Equal(t, len(rules(t)), evaluated)
}

func sorted(samples []harness.Sample) []string {
	var list []string
	for _, s := range samples {
		list = append(list, fmt.Sprint(labels.FromMap(s.Labels), " ", s.Value))
	}
	slices.Sort(list)
	return list
}
