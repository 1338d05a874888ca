package judge

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/page"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// site is a Prometheus and the exporters of nodes, each with some ranks; a path says which of them is asked.
type site struct {
	http.ServeMux
	url    string
	found  []map[string]string // what Prometheus finds
	asked  []string            // of Prometheus
	status int                 // of its answers; 0: 200
}

func newSite(tb testing.TB) *site {
	s := &site{}
	server := httptest.NewServer(s)
	tb.Cleanup(server.Close)
	s.url = server.URL
	s.HandleFunc("/api/v1/query", func(w http.ResponseWriter, req *http.Request) {
		s.asked = append(s.asked, req.FormValue("query"))
		var answer struct {
			Data struct {
				Result []any `json:"result"`
			} `json:"data"`
		}
		answer.Data.Result = []any{}
		for _, of := range s.found {
			answer.Data.Result = append(answer.Data.Result, map[string]any{"metric": of, "value": []any{1, "1"}})
		}
		w.WriteHeader(max(s.status, http.StatusOK))
		_ = json.NewEncoder(w).Encode(answer)
	})
	return s
}

// add adds an exporter with ranks.
func (s *site) add(node string, ranks []api.RankValues) {
	at := time.Now().Add(-24 * time.Hour) // its clock is wrong, and each answer is new
	live := page.NewLive(func(context.Context) (api.ValueList, error) {
		at = at.Add(10 * time.Second)
		return api.ValueList{Time: at, Ranks: ranks}, nil
	}, nil).Handler(api.NewTurns(), slog.New(slog.DiscardHandler))
	s.Handle("/"+node+"/", http.StripPrefix("/"+node, live))
}

// job puts the ranks of a job on nodes, in this order, two on each, and has Prometheus find it.
func (s *site) job(ranks []api.RankValues, nodes ...string) {
	for i, node := range nodes {
		s.add(node, ranks[2*i:min(2*i+2, len(ranks))])
		s.found = append(s.found, map[string]string{"instance": node, "jobid": ranks[2*i].Rank.JobID,
			"world": ranks[2*i].Rank.World, "user": ranks[2*i].Rank.User})
	}
}

func (s *site) judge(tb testing.TB) *Several {
	tb.Helper()
	j, err := NewSeveral(s.url, s.url+"/"+Instance, `partition="gpu"`)
	require.NoError(tb, err)
	return j
}

func TestSeveral(t *testing.T) {
	const waits = `mpit_job_verdict_info{jobid="%s",node="n1",rank="3",state="waiting",user="ann",world="0"} 1` + "\n"
	for name, c := range map[string]struct {
		ranks []api.RankValues
		nodes []string
		more  map[string]string // that Prometheus finds
		want  string            // lines without comments
		not   string            // reason for which an exporter hasn't answered
	}{
		"nothing to be judged":       {},
		"all ranks":                  {ranks: barrier("7", "ann", 4, 4), nodes: []string{"a", "b"}, want: waits},
		"ranks that no node has":     {ranks: barrier("7", "ann", 4, 3), nodes: []string{"a", "b"}},
		"another world, with a part": {ranks: append(barrier("7", "ann", 4, 4), worldOf("1", 3)[:2]...), nodes: []string{"a", "b", "c"}, want: waits},
		"another world, with all": {ranks: append(barrier("7", "ann", 4, 4), worldOf("1", 3)...), nodes: []string{"a", "b", "c", "d"},
			want: waits + `mpit_job_verdict_info{jobid="7",node="",rank="",state="unknown",user="ann",world="1"} 1` + "\n"},
		"a world that isn't asked for": {ranks: barrier("7", "ann", 4, 4), nodes: []string{"a", "b"}, more: map[string]string{"instance": "both"}, want: waits},
		"a node without ranks of it":   {ranks: barrier("7", "ann", 4, 4), nodes: []string{"a", "b"}, more: map[string]string{"instance": "other"}, want: waits},
		"an exporter that isn't one":   {ranks: barrier("7", "ann", 4, 4), nodes: []string{"a", "b"}, more: map[string]string{"instance": "web"}, not: byExporter},
		"an exporter that refuses it":  {ranks: barrier("7", "ann", 4, 4), nodes: []string{"a", "b"}, more: map[string]string{"instance": "busy"}, not: byExporter},
		"what is no address":           {ranks: barrier("7", "ann", 4, 4), nodes: []string{"a", "b"}, more: map[string]string{"instance": "%"}, not: byExporter},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.job(c.ranks, c.nodes...)
			s.add("other", barrier("8", "ann", 4, 4))
			s.add("both", worldOf("1", 2))
			s.HandleFunc("/web/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
			s.HandleFunc("/busy/", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) })
			if c.more != nil {
				c.more["jobid"], c.more["world"], c.more["user"] = "7", "0", "ann"
				s.found = append(s.found, c.more)
			}
			j := s.judge(t)
			for range 3 { // with the second look there is a window
				require.NoError(t, j.Look(t.Context()))
				if c.want = strings.ReplaceAll(c.want, "%s", "7"); c.want != "" {
					assert.Contains(t, text(t, j), c.want)
				}
				assert.Equal(t, strings.Count(c.want, "\n"), strings.Count(text(t, j), "} 1\n"), text(t, j))
			}
			assert.Contains(t, s.asked[0], `mpit_rank_up{partition="gpu"}`)
			assert.InDelta(t, strings.Count(c.want, "\n"), testutil.ToFloat64(j.jobs), 0)
			for _, reason := range []string{byPrometheus, byExporter, byMany} {
				assert.Equal(t, reason == c.not, testutil.ToFloat64(j.unanswered.WithLabelValues(reason)) > 0, reason)
			}
		})
	}
}

// worldOf are ranks of another world of job 7.
func worldOf(world string, ranks int) []api.RankValues {
	list := barrier("7", "ann", ranks, ranks)
	for i := range list {
		list[i].Rank.World, list[i].Rank.Calls = world, nil
	}
	return list
}

// Where there are too many jobs, those of one user keep out no other's.
func TestSeveralUsers(t *testing.T) {
	s := newSite(t)
	s.job(barrier("7", "ann", 4, 4), "a", "b")
	s.add("x", nil)
	for i := range 2 * maxWorlds {
		s.found = append(s.found, map[string]string{"instance": "x", "jobid": fmt.Sprint(i), "world": "0", "user": "eve"})
	}
	j := s.judge(t)
	require.NoError(t, j.Look(t.Context()))
	assert.Contains(t, text(t, j), `jobid="7",node="n1"`)
	assert.InDelta(t, maxWorlds+1, testutil.ToFloat64(j.unanswered.WithLabelValues(byMany)), 0)
}

// A failure says nothing instead of something old, and a wait ends.
func TestSeveralWithoutAnswers(t *testing.T) {
	s := newSite(t)
	s.job(barrier("7", "ann", 4, 4), "a", "b")
	j := s.judge(t)
	require.NoError(t, j.Look(t.Context()))
	require.NotEmpty(t, text(t, j))
	s.status = http.StatusServiceUnavailable
	require.ErrorContains(t, j.Look(t.Context()), "503")
	assert.Empty(t, text(t, j))
	assert.InDelta(t, 1, testutil.ToFloat64(j.unanswered.WithLabelValues(byPrometheus)), 0)

	s.status = 0
	released := make(chan struct{})
	s.HandleFunc("/never/", func(http.ResponseWriter, *http.Request) { <-released })
	defer close(released)
	s.found = append(s.found, map[string]string{"instance": "never", "jobid": "7", "world": "0", "user": "ann"})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- j.Look(ctx) }()
	cancel()
	assert.ErrorIs(t, <-ended, context.Canceled)
	assert.Empty(t, text(t, j))
}

func TestAddressesOfSeveral(t *testing.T) {
	for name, c := range map[string]struct{ prometheus, exporter string }{
		"no Prometheus":        {"prometheus", "http://{instance}"},
		"no exporter":          {"http://prometheus:9090", "{instance}"},
		"an unreadable server": {"http://%", "http://{instance}"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewSeveral(c.prometheus, c.exporter, "")
			assert.ErrorContains(t, err, "is needed")
		})
	}
}

// BenchmarkLook is a look at 1,000 jobs of which 20 are conspicuous, each with 8 ranks on each of 4 nodes, with what
// the exporters do for it. A real Prometheus finds the 20, in time that is given apart, or, with -short, an answer that
// is known.
func BenchmarkLook(b *testing.B) {
	const all, conspicuous, nodes, ranks = 1000, 20, 4, 8
	s := newSite(b)
	for n := range conspicuous {
		list := barrier(fmt.Sprint(n), "ann", nodes*ranks, nodes*ranks)
		for i := range nodes {
			node := fmt.Sprintf("n%d-%d", n, i)
			s.add(node, list[ranks*i:ranks*i+ranks])
			s.found = append(s.found, map[string]string{"instance": node, "jobid": fmt.Sprint(n), "world": "0", "user": "ann"})
		}
	}
	server := s.url
	if !testing.Short() {
		server = prometheusOf(b, func(w io.Writer) {
			now := float64(time.Now().Unix())
			write := func(name, labels string, value func(job int, at float64) float64) {
				for i := range all * nodes * ranks {
					for _, at := range []float64{now - 30, now, now + 30, now + 60, now + 90, now + 120} {
						fmt.Fprintf(w, "%s{jobid=\"%d\",user=\"ann\",world=\"0\",instance=\"n%[2]d-%d\",rank=\"%d\"%s} %g %.0f\n", name,
							i/nodes/ranks, i/ranks%nodes, i%(nodes*ranks), labels, value(i/nodes/ranks, at), at)
					}
				}
			}
			write("mpit_rank_up", "", func(int, float64) float64 { return 1 })
			write("mpit_call_running_seconds", "", func(job int, _ float64) float64 { return float64(60 * max(0, min(1, conspicuous-job))) })
			fmt.Fprintln(w, "# TYPE mpit_rank_seconds counter")
			write("mpit_rank_seconds_total", `,state="outside"`, func(job int, at float64) float64 { return 0.9 * (at - now + 3600) })
			fmt.Fprintln(w, "# EOF")
		})
	}
	j, err := NewSeveral(server, s.url+"/"+Instance, "")
	require.NoError(b, err)
	took, used := time.Duration(0), -cpuOf(b, server)
	b.ReportAllocs()
	for b.Loop() {
		began := time.Now()
		found, err := j.nodes(b.Context())
		took += time.Since(began)
		require.NoError(b, err)
		require.Len(b, found, conspicuous)
		require.Len(b, j.reports(b.Context(), found), conspicuous)
	}
	b.ReportMetric(took.Seconds()*1e3/float64(b.N), "ms/query")
	b.ReportMetric((used+cpuOf(b, server))*1e3/float64(b.N), "ms-of-Prometheus'-CPU/query")
}

// cpuOf is the time that a Prometheus says it has used, in seconds; 0: it is none.
func cpuOf(b *testing.B, address string) (seconds float64) {
	b.Helper()
	response, err := http.Get(address + "/metrics")
	require.NoError(b, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(b, err)
	if _, value, found := strings.Cut(string(text), "\nprocess_cpu_seconds_total "); found {
		_, err = fmt.Sscan(value, &seconds)
		require.NoError(b, err)
	}
	return seconds
}

// prometheusOf is the address of a real Prometheus that has these samples, and ends with the benchmark.
func prometheusOf(b *testing.B, write func(io.Writer)) string {
	b.Helper()
	dir := b.TempDir()
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(b.Context(), name, args...)
		cmd.Stderr = os.Stderr
		return cmd
	}
	samples, err := os.Create(filepath.Join(dir, "samples"))
	require.NoError(b, err)
	buffered := bufio.NewWriter(samples)
	write(buffered)
	require.NoError(b, buffered.Flush())
	require.NoError(b, samples.Close())
	require.NoError(b, run("promtool", "tsdb", "create-blocks-from", "openmetrics", samples.Name(), dir+"/data").Run())
	require.NoError(b, os.WriteFile(dir+"/config", nil, 0o600))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	address := listener.Addr().String()
	require.NoError(b, listener.Close())
	server := run("prometheus", "--config.file="+dir+"/config", "--storage.tsdb.path="+dir+"/data", "--log.level=error",
		"--web.listen-address="+address)
	require.NoError(b, server.Start())
	b.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	require.Eventually(b, func() bool {
		response, err := http.Get("http://" + address + "/-/ready")
		return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}, time.Minute, 100*time.Millisecond)
	return "http://" + address
}
