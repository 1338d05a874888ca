package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// fault is a program with a known fault, and what is said of it while it runs.
type fault struct {
	name  string            // test/programs/faults.c says what it does
	ranks int               // all on one node,
	far   int               // but for so many, the last ones, on another
	slow  string            // what is slow in one rank's system, in libslow.c's words
	fires map[string]string // what each alert that fires says, with the node's name
	// What a report says of the whole run, and of which rank; -1: of none.
	verdict string
	late    int
}

var faults = []fault{
	{name: "compute", ranks: 3, fires: map[string]string{
		"MPIRanksWaitForOne": "now rank 1 on NODE",
	}, verdict: "of the time ranks wait", late: 1},
	// What no exporter sees the whole of has no verdict without a judge.
	{name: "nodes", ranks: 4, far: 2, verdict: "useful", late: -1},
	{name: "receive", ranks: 3, fires: map[string]string{
		"MPIRanksWaitForOne": "now rank 1 on NODE",
	}, verdict: "of the time ranks wait", late: 1},
	{name: "send", ranks: 3, slow: "SLOW_RANK=1 SLOW_WRITES=sockets SLOW_MILLISECONDS=5", fires: map[string]string{
		"MPIRanksWaitForOne": "now rank 1 on NODE",
		"MPIJobMostlyInMPI":  "",
	}, verdict: "takes long to send", late: 1},
	// Nobody is named: long messages go while all ranks are in MPI_Waitall.
	{name: "isend", ranks: 2, slow: "SLOW_RANK=1 SLOW_WRITES=sockets SLOW_MILLISECONDS=20", fires: map[string]string{
		"MPIJobMostlyInMPI": " were in the state wait.",
	}, verdict: "of the time is spent in MPI, mostly in MPI_Waitall", late: -1},
	{name: "tiny", ranks: 2, fires: map[string]string{
		"MPIMessagesTiny":   "of 8 bytes on average",
		"MPIJobMostlyInMPI": "",
	}, verdict: "of the time is spent in MPI", late: -1},
	{name: "file", ranks: 2, slow: "SLOW_RANK=0 SLOW_WRITES=files SLOW_MILLISECONDS=100", fires: map[string]string{
		"MPIRanksWaitForOne": "now rank 0 on NODE",
		"MPIJobMostlyInMPI":  "",
	}, verdict: "works on files", late: 0},
	{name: "posix", ranks: 2, slow: "SLOW_RANK=0 SLOW_WRITES=files SLOW_MILLISECONDS=100", fires: map[string]string{
		"MPIRanksWaitForOne": "now rank 0 on NODE",
	}, verdict: "of the time ranks wait", late: 0},
}

// Of each of these programs, the alerts name the rank that has the fault, or none where no rank is late; the figures
// are those of the program's own clock. TestAlertsOfHungJobs has programs that hang. Rules and verdicts know no library,
// and TestCallDurations compares the figures of both: daily Open MPI's jobs suffice, make soak has MPICH's, too.
func TestPlantedFaults(t *testing.T) {
	t.Parallel()
	suite.Crowd(t)
	for _, mpi := range oneLibrary(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			n := nodes{near: suite.Exporter(t), far: suite.Exporter(t)}
			n.prometheus = suite.PrometheusWith(t, harness.PrometheusConfig{
				Rules: suite.RulesInSeconds(t), Exporters: []*harness.Exporter{n.near, n.far},
			})
			var runs []*harness.Run // at the same time, as each takes as long as an alert does
			for _, f := range faults {
				runs = append(runs, f.start(t, mpi, n))
			}
			for i, f := range faults {
				t.Run(f.name, func(t *testing.T) {
					f.awaitAlerts(t, n, runs[i])
					// MPICH's ranks may hang in MPI_Finalize if they have talked through TCP: nobody waits for their end.
					runs[i].Release(t, "stop")
					f.compareFigures(t, n, runs[i])
					f.readReport(t, n)
					want := map[string]string{}
					for name := range f.fires {
						want[name] = f.name
					}
					expectAlerts(t, n.prometheus, fmt.Sprintf(", jobid=%q", f.name), want)
				})
			}
		})
	}
}

// nodes are two exporters with a Prometheus that reads both.
type nodes struct {
	near, far  *harness.Exporter
	prometheus *harness.Prometheus
}

func (f fault) start(t *testing.T, mpi *harness.MPI, n nodes) *harness.Run {
	t.Helper()
	job := harness.Job{MPI: mpi, Ranks: f.ranks, Program: "faults.c", Args: []string{f.name, harness.HoldDir},
		Socket: n.near.Socket, ID: f.name, Exec: []string{"--calls"}, Before: mpi.Modest(),
		// Room for a burst of messages: with MPICH's 64 a rank has to wait for the other one to have a core.
		Env: []string{"UCX_MM_FIFO_SIZE=4096"}}
	if f.slow != "" {
		library := suite.PlainProgram(t, "libslow.c", "library", "-shared", "-fPIC")
		job.Env = append(append(job.Env, strings.Fields(f.slow)...), "LD_PRELOAD="+library)
	}
	if strings.Contains(f.slow, "sockets") {
		job.Env = append(job.Env, "OMPI_MCA_btl=self,tcp", "UCX_TLS=self,tcp")
	}
	if f.far > 0 {
		job.Wrap = []string{"sh", "-c", fmt.Sprintf(
			`test "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" -lt %d || export MPIT_SOCKET='%s'; exec "$@"`,
			f.ranks-f.far, n.far.Socket), "sh"}
	}
	return suite.Run(t, job)
}

func (f fault) awaitAlerts(t *testing.T, n nodes, run *harness.Run) {
	t.Helper()
	node, err := os.Hostname()
	require.NoError(t, err)
	for name, text := range f.fires {
		harness.Await(t, "the alert "+name, func(ctx context.Context) error {
			if run.Ended() {
				t.Fatalf("the job has ended: %+v", run.Wait(t))
			}
			alerts, err := n.prometheus.Alerts(ctx)
			if err != nil {
				return err
			}
			return findAlert(alerts, name, harness.Labels{"jobid": f.name}, strings.ReplaceAll(text, "NODE", node))
		})
	}
}

// figures are those of a rank's time: how long it ran, and how long it was in MPI calls of each kind.
type figures struct{ total, send, wait, collective, file float64 }

func (f figures) inside() float64 { return f.send + f.wait + f.collective + f.file }
func (f figures) useful() float64 { return 1 - f.inside()/f.total }

// compareFigures compares those of the pages at the end of the job with what each rank has measured.
func (f fault) compareFigures(t *testing.T, n nodes, run *harness.Run) {
	t.Helper()
	var own []figures
	for rank := range f.ranks {
		node := n.near
		if rank >= f.ranks-f.far {
			node = n.far
		}
		page := node.Await(t, "the end", ended(run, "finalize", rank))
		want, got := readFigures(t, run, rank), figuresOf(t, page, run, rank)
		t.Logf("rank %d: useful %.4f, on the page %.4f: %+v, %+v", rank, want.useful(), got.useful(), want, got)
		assert.InDelta(t, want.total, got.total, 0.02*want.total, "rank %d: time observed", rank)
		// The profile's two looks at the clock are between the program's two. So it has no more than the program, but
		// for the clocks' rates; what it has less is a part of a microsecond for each call, and more where another
		// process got the core just then.
		less := 0.02*want.total + 1e-6*callsOf(page, run, rank)
		compare := func(what string, want, got float64) {
			assert.LessOrEqual(t, got, want*1.001+1e-4, "rank %d: %s", rank, what)
			assert.GreaterOrEqual(t, got, want-less, "rank %d: %s", rank, what)
		}
		compare("send", want.send, got.send)
		compare("wait", want.wait, got.wait)
		compare("collective", want.collective, got.collective)
		compare("file", want.file, got.file)
		own = append(own, want)
	}
	useful := 0.0
	for _, rank := range own {
		useful += rank.useful() / float64(len(own))
	}
	// The rule's figure is of five minutes each, here seconds: their mean is nearly that of the whole run.
	rule := fmt.Sprintf("avg_over_time(mpit_job:parallel_efficiency:ratio5m{jobid=%q}[10m])", f.name)
	samples, err := n.prometheus.Query(t.Context(), rule)
	require.NoError(t, err)
	require.Len(t, samples, 1, rule)
	t.Logf("%.3f, by the rule %.3f", useful, samples[0].Value)
	assert.InDelta(t, useful, samples[0].Value, 0.15)
}

// readReport looks at the verdict of a report of the whole run, over both nodes.
func (f fault) readReport(t *testing.T, n nodes) {
	t.Helper()
	// Until then its ranks may have been late last, on both nodes' pages.
	n.prometheus.Await(t, fmt.Sprintf(`count(last_over_time(mpit_rank_end_info{jobid=%q}[10m]))`, f.name),
		single(float64(f.ranks)))
	answer := suite.Start(t, []string{suite.Binary(), "report", "--output=json", "--prometheus=" + n.prometheus.URL(),
		"--jobid=" + f.name}, nil).Wait(t)
	require.Zero(t, answer.Status, answer.Stderr)
	r := reportIn(t, []byte(answer.Stdout))
	t.Logf("verdict: %s: %s", r.Verdict.State, r.Verdict.Text)
	if r.Verdict.State == "no core" { // the machine was too busy, and that is what is said
		return
	}
	assert.Contains(t, r.Verdict.Text, f.verdict)
	assert.Equal(t, f.late >= 0, r.Verdict.State == "late rank", r.Verdict.State)
	if f.late >= 0 {
		assert.Equal(t, f.late, r.Verdict.Late.Rank)
	} else {
		assert.Zero(t, r.Verdict.Late)
	}
}

// readFigures reads what a rank has left of its own clock.
func readFigures(t *testing.T, run *harness.Run, rank int) (own figures) {
	t.Helper()
	line, err := os.ReadFile(run.File(fmt.Sprintf("books.%d", rank)))
	require.NoError(t, err)
	_, err = fmt.Sscanf(string(line), "%f s, in MPI send %f wait %f collective %f file %f",
		&own.total, &own.send, &own.wait, &own.collective, &own.file)
	require.NoError(t, err, string(line))
	return own
}

// figuresOf are those of a page.
func figuresOf(t *testing.T, page *harness.Scrape, run *harness.Run, rank int) (shown figures) {
	t.Helper()
	labels := run.Labels(rank)
	_, shown.total = timeOf(page, run, rank)
	for state, to := range map[string]*float64{
		"send": &shown.send, "wait": &shown.wait, "collective": &shown.collective, "file": &shown.file,
	} {
		seconds, err := page.One("mpit_rank_seconds_total", labels.With("state", state))
		require.NoError(t, err)
		*to = seconds.Value
	}
	return shown
}

func callsOf(page *harness.Scrape, run *harness.Run, rank int) (calls float64) {
	for _, series := range page.Select(callTimes, run.Labels(rank)) {
		calls += float64(series.Metric.GetHistogram().GetSampleCount())
	}
	return calls
}
