package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	reports "github.com/mpit-exporter/mpit-exporter/exporter/job"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// reported is a report as far as these tests look at it.
type reported struct {
	Job struct {
		ID        string `json:"jobid"`
		WorldSize int    `json:"world_size"`
		Observed  int    `json:"observed"`
		Nodes     int    `json:"nodes"`
		Ended     string `json:"ended"`
	} `json:"job"`
	Verdict struct {
		State string `json:"state"`
		Text  string `json:"text"`
		Late  struct {
			Rank int    `json:"rank"`
			Node string `json:"node"`
		} `json:"late"`
		Efficiency struct {
			Parallel float64 `json:"parallel"`
		} `json:"efficiency"`
	} `json:"verdict"`
	Calls []struct {
		Function string  `json:"function"`
		Object   string  `json:"object"`
		Calls    float64 `json:"calls"`
		Seconds  float64 `json:"seconds"`
	} `json:"calls"`
	Ranks []struct {
		Rank int    `json:"rank"`
		End  string `json:"end_reason"`
	} `json:"ranks"`
}

func reportIn(t *testing.T, text []byte) (r reported) {
	t.Helper()
	require.NoError(t, json.Unmarshal(text, &r), string(text))
	return r
}

// seconds are all ranks' in a function.
func (r *reported) seconds(function, object string) (seconds, calls float64) {
	for _, c := range r.Calls {
		if c.Function == function && c.Object == object {
			return c.Seconds, c.Calls
		}
	}
	return 0, 0
}

// stencilClock is what the ranks of the stencil say of themselves with --report: seconds in a call, of all ranks.
func stencilClock(t *testing.T, output, call string) (seconds float64) {
	t.Helper()
	found := regexp.MustCompile(call+` ([0-9.]+) s`).FindAllStringSubmatch(output, -1)
	require.NotEmpty(t, found, output)
	for _, one := range found {
		s, err := strconv.ParseFloat(one[1], 64)
		require.NoError(t, err)
		seconds += s
	}
	return seconds
}

const reportSteps = 40

// uneven is a job of the stencil in which the others wait for rank 2.
func uneven(mpi *harness.MPI, exec ...string) harness.Job {
	return harness.Job{MPI: mpi, Ranks: 4, Program: "examples/calls/stencil.c", Exec: exec,
		Args: []string{"--seconds=0", "--steps=" + strconv.Itoa(reportSteps), "--cells=32", "--pause=10", "--slow=2", "--factor=12",
			"--report"}}
}

// expectUneven compares a report of that job with the program's own clock.
func expectUneven(t *testing.T, r *reported, output string) {
	t.Helper()
	assert.Equal(t, 4, r.Job.WorldSize)
	assert.Equal(t, 4, r.Job.Observed)
	assert.NotEmpty(t, r.Job.Ended)
	require.Len(t, r.Ranks, 4)
	assert.Equal(t, 2, r.Ranks[0].Rank, "the late one comes first")
	assert.Regexp(t, busyOr(`ranks wait in MPI_Allreduce on residual (probably )?for rank 2 on `), r.Verdict.Text)
	own := stencilClock(t, output, "MPI_Allreduce")
	seconds, calls := r.seconds("MPI_Allreduce", "residual")
	assert.InDelta(t, 4*reportSteps, calls, 4, "a last step agrees to stop")
	assert.LessOrEqual(t, seconds, own)
	assert.Greater(t, seconds, 0.9*own, "the program's clock is read around the calls")
}

// Ranks that have done their work wait in MPI_Finalize for the others, and their efficiency says so: while they wait,
// and in the report.
func TestWorkThatNobodySharesOut(t *testing.T) {
	t.Parallel()
	for _, mpi := range oneLibrary(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			run := suite.Run(t, harness.Job{MPI: mpi, Ranks: 4, Program: "alone.c", Args: []string{"4", "4", "16", "4.7"},
				Socket: exporter.Socket, Exec: []string{"--calls"}})
			spent := func(s *harness.Scrape, rank int, state string) float64 {
				series, err := s.One("mpit_rank_seconds_total", run.Labels(rank).With("state", state))
				require.NoError(t, err)
				return series.Value
			}
			exporter.Await(t, "ranks in MPI_Finalize", func(s *harness.Scrape) error {
				if err := ended(run, "finalize", 0, 1, 3)(s); err != nil {
					return err
				}
				for _, rank := range []int{0, 1, 3} {
					waited, all := spent(s, rank, "finalize"), 0.0
					for _, state := range s.Select("mpit_rank_seconds_total", run.Labels(rank)) {
						all += state.Value
					}
					if runs := spent(s, 2, "outside"); waited < 4 || math.Abs(all-runs) > 1.5 {
						return fmt.Errorf("rank %d: %v s of %v in MPI_Finalize, rank 2 has run for %v", rank, waited, all, runs)
					}
				}
				return s.Expect("mpit_rank_up", run.Labels(2), 1)
			})
			result := run.Finish(t)
			require.Zero(t, result.Status, result.Stderr)
			exporter.Await(t, "its end", ended(run, "finalize"))
			answer := suite.Start(t, []string{suite.Binary(), "report", "--output=json", "--url=" + exporter.URL(""),
				"--jobid=" + run.ID}, nil).Wait(t)
			require.Zero(t, answer.Status, answer.Stderr)
			r := reportIn(t, []byte(answer.Stdout))
			assert.InDelta(t, (4+4+16+4.7)/(4*16), r.Verdict.Efficiency.Parallel, 0.04, r.Verdict.Text)
			assert.Equal(t, 2, r.Verdict.Late.Rank, r.Verdict.Text)
		})
	}
}

// Two phases of opposite imbalance: over all time the load is balanced, and the report says that it isn't in either.
func TestPhasesOfAReport(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(suite.Dir(t), "report.json")
			result := suite.Run(t, harness.Job{MPI: mpi, Ranks: 2, Program: "phases.c", Exec: []string{"--report=" + file,
				"--own.dir=" + suite.Dir(t)}, Env: []string{"MPIT_PHASES=3=assembly,4=solver"}}).Finish(t)
			require.Zero(t, result.Status, result.Stderr)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var r struct {
				Verdict struct {
					Efficiency reports.Efficiency `json:"efficiency"`
				} `json:"verdict"`
				Phases []reports.Phase `json:"phases"`
			}
			require.NoError(t, json.Unmarshal(text, &r))
			assert.Less(t, r.Verdict.Efficiency.Parallel, 0.6, "less where ranks have no core while they wait")
			require.Len(t, r.Phases, 2)
			for _, p := range r.Phases {
				assert.Less(t, p.Efficiency.LoadBalance+0.2, r.Verdict.Efficiency.LoadBalance, p.Name)
				assert.Less(t, p.Efficiency.Parallel, 0.6, p.Name)
				require.NotNil(t, p.Late, p.Name)
				assert.Equal(t, map[string]int{"assembly": 0, "solver": 1}[p.Name], p.Late.Rank, p.Name)
			}
			shown := suite.Start(t, []string{suite.Binary(), "report", file}, nil).Wait(t)
			require.Zero(t, shown.Status, shown.Stderr)
			assert.Regexp(t, `(?m)^assembly .* rank 0 on \S+, \d+ % of the time$`, shown.Stdout)
			assert.Contains(t, shown.Stdout, "ranks with less to do in one phase have more in another")
		})
	}
}

// The time of a rank with several threads is that of one that works, whichever has initialised MPI.
func TestTimeOfThreads(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		for _, how := range []string{"beside", "first", "equal"} {
			t.Run(mpi.Name+"/"+how, func(t *testing.T) {
				exporter := suite.Exporter(t)
				run := suite.Run(t, harness.Job{MPI: mpi, Ranks: 2, Program: "serving.c", Args: []string{how, "60"},
					Socket: exporter.Socket, Exec: []string{"--calls"}})
				now := func() (wait, outside float64) {
					for _, state := range exporter.Scrape(t).Select("mpit_rank_seconds_total", run.Labels(0)) {
						switch state.Labels["state"] {
						case "wait":
							wait = state.Value
						case "outside":
							outside = state.Value
						}
					}
					return wait, outside
				}
				exporter.Await(t, "the beginning of it", up(run))
				time.Sleep(time.Second)
				wait, outside := now()
				time.Sleep(2 * time.Second)
				waited, passed := now()
				assert.InDelta(t, 0, (waited-wait)/2, 0.02, "nothing of the thread that serves")
				assert.Greater(t, (passed-outside)/2, 0.2, "what is left is a barrier that comes by its lock late")
			})
		}
	}
}

// One word on the command line, one file after the run, with no exporter installed; it names the late rank and has the
// program's own figures. On two nodes the exporters make it together.
func TestReportOfAJob(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		for _, nodes := range []int{1, 2} {
			if nodes > 1 && mpi.Name == "mpich" {
				continue // Hydra 4 doesn't tell nodes that they are of one job
			}
			t.Run(fmt.Sprintf("%s/%d nodes", mpi.Name, nodes), func(t *testing.T) {
				t.Parallel()
				file := filepath.Join(suite.Dir(t), "report.json")
				job := uneven(mpi, "--report="+file, "--own.dir="+suite.Dir(t))
				if nodes > 1 {
					job.Before = onNodes(t, nodes)
				}
				result := suite.Run(t, job).Finish(t)
				require.Zero(t, result.Status, result.Stderr)
				assert.Contains(t, result.Stderr, "the report of this job will be "+file)
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				r := reportIn(t, text)
				assert.Equal(t, nodes, r.Job.Nodes)
				expectUneven(t, &r, result.Stdout)
				for _, function := range []string{"MPI_Comm_free", "MPI_Gather"} {
					calls := 0.0
					for _, c := range r.Calls {
						if c.Function == function {
							calls += c.Calls
						}
					}
					assert.Equal(t, map[string]float64{"MPI_Comm_free": 8, "MPI_Gather": 4}[function], calls,
						"what ranks do last is in it: %s", function)
				}

				page := suite.Start(t, []string{suite.Binary(), "report", "--output=html", file}, nil).Wait(t)
				assert.Contains(t, page.Stdout, "MPI_Allreduce")
				compared := suite.Start(t, []string{suite.Binary(), "report", "--compare", file, file}, nil).Wait(t)
				assert.Contains(t, compared.Stdout, "MPI_Allreduce residual")
			})
		}
	}
}

// A report that can't be written is said before the program begins and when it ends, each once.
func TestReportThatIsNotWritten(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			link := filepath.Join(suite.Dir(t), "report.html")
			require.NoError(t, os.Symlink("elsewhere", link))
			o := newOwn(t)
			run := suite.Run(t, harness.Job{MPI: mpi, Ranks: 2, Program: "ends.c", Args: []string{"finalize", harness.HoldDir},
				Exec: []string{"--report=" + link, "--own.dir=" + o.dir, "--own.wait=1m"}})
			run.AtHold(t, "up")
			result := run.Finish(t, "up")
			require.Zero(t, result.Status, result.Stderr)
			complaint := "mpit-exporter: no report: " + link + " is a link; name another file with --report"
			assert.Equal(t, 1, strings.Count(result.Stderr, complaint+"; the program runs on\n"), result.Stderr)
			assert.Equal(t, 1, strings.Count(result.Stderr, complaint+"\n"), result.Stderr)
			o.nothingLeft(t, run)
		})
	}
}

// onNodes is a command that gives every so many-th rank a node of its own, as far as names make nodes.
func onNodes(t *testing.T, nodes int) []string {
	t.Helper()
	if tried := suite.Start(t, []string{"unshare", "--uts", "true"}, nil).Wait(t); tried.Status != 0 {
		t.Skip("names of nodes can't be made here: ", tried.Stderr)
	}
	return []string{"unshare", "--uts", "sh", "-c",
		fmt.Sprintf(`hostname node$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} %% %d)); exec "$@"`, nodes), "sh"}
}

// The same of a job that a node's exporter has seen, when it is over: from Prometheus, on every kind of histograms.
func TestReportFromElsewhere(t *testing.T) {
	t.Parallel()
	exporter := suite.Exporter(t)
	var servers []*harness.Prometheus
	for _, server := range harness.PrometheusServers(t) {
		if !server.Native || server.LastNative {
			servers = append(servers, suite.PrometheusWith(t, harness.PrometheusConfig{Server: server,
				Interval: 500 * time.Millisecond, Exporters: []*harness.Exporter{exporter}})) // of five seconds
		}
	}
	job := uneven(harness.OpenMPI(t), "--calls")
	job.Socket = exporter.Socket
	run := suite.Run(t, job)
	result := run.Finish(t)
	require.Zero(t, result.Status, result.Stderr)
	ask := func(flags ...string) *reported {
		t.Helper()
		command := append([]string{suite.Binary(), "report", "--output=json", "--jobid=" + run.ID}, flags...)
		answer := suite.Start(t, command, nil).Wait(t)
		require.Zero(t, answer.Status, answer.Stderr)
		r := reportIn(t, []byte(answer.Stdout))
		return &r
	}
	for _, prometheus := range servers {
		prometheus.Await(t, `last_over_time(mpit_rank_end_info{jobid="`+run.ID+`"}[1h])`, number(4))
		r := ask("--prometheus=" + prometheus.URL())
		assert.Equal(t, run.ID, r.Job.ID)
		expectUneven(t, r, result.Stdout)
	}
}
