package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// enduranceJob is a job as drawn.
type enduranceJob struct {
	harness.Job
	end     string        // how it ends: an argument of endure.c, or one of those below
	seconds time.Duration // how long it means to run
	holds   bool          // one of profilePrograms, which stop at hold points
	calls   bool          // with the call profile
	waits   bool          // MPI_Finalize and exit wait for the exporter
	report  string        // the file of its report
}

const (
	endTerm   = "term"   // its launcher gets SIGTERM
	endStop   = "stop"   // a rank is stopped for a while; then it goes on to MPI_Finalize
	endReport = "report" // MPI_Finalize, in a job with an exporter of its own, which writes a report
)

// Each as often as it stands here.
var enduranceEnds = []string{
	"finalize", "finalize", "finalize", "finalize", "finalize", "finalize", "finalize", "finalize", "finalize",
	"exit", "_exit", "abort", "kill", "oom", "hang", endTerm, endStop, endReport,
}

func (j enduranceJob) String() string {
	flags := strings.Join(j.Exec, "")
	if j.report != "" {
		flags = "--report"
	}
	return fmt.Sprintf("%s %d %s %s %v %s", j.MPI.Name, j.Ranks, j.Program, j.end, j.seconds.Round(time.Second), flags)
}

// startJobs starts one job after the other, as many at a time as a small machine bears, until the context ends.
func (e *endurance) startJobs(ctx context.Context, t *testing.T, draw *rand.Rand) {
	const most = 16 // ranks
	var mutex sync.Mutex
	ranks, number := 0, 0
	for sleep(ctx, between(draw, time.Second, 10*time.Second)) {
		job := e.drawJob(ctx, draw)
		mutex.Lock()
		room := ranks+job.Ranks <= most
		if room {
			ranks += job.Ranks
		}
		mutex.Unlock()
		if !room {
			continue
		}
		number++
		name := fmt.Sprintf("%d.%d %v", len(e.growth), number, job)
		e.jobs.Go(func() {
			t.Run(name, func(t *testing.T) { e.runJob(t, job) })
			mutex.Lock()
			defer mutex.Unlock()
			ranks -= job.Ranks
		})
	}
}

func (e *endurance) drawJob(ctx context.Context, draw *rand.Rand) enduranceJob {
	j := enduranceJob{
		Job:     harness.Job{MPI: e.mpis[draw.IntN(2)], Socket: e.exporter.Socket, Env: []string{e.clock.variable()}},
		end:     enduranceEnds[draw.IntN(len(enduranceEnds))],
		seconds: between(draw, time.Second, 20*time.Second),
		calls:   draw.IntN(4) > 0,
		waits:   draw.IntN(2) == 0,
	}
	if draw.IntN(4) == 0 {
		j.seconds = between(draw, 20*time.Second, 3*time.Minute)
	}
	if deadline, ok := ctx.Deadline(); ok {
		j.seconds = min(j.seconds, time.Until(deadline)+time.Second)
	}
	if draw.IntN(6) == 0 {
		p := profilePrograms[draw.IntN(len(profilePrograms))]
		j.Program, j.Ranks, j.holds, j.calls, j.end = p.file, p.ranks, true, true, "finalize"
		if p.rounds > 0 {
			j.Args = append(j.Args, strconv.Itoa(min(p.rounds, 500)))
		}
		j.Args = append(j.Args, harness.HoldDir)
	} else {
		e.drawEndure(&j, draw)
	}
	if j.calls {
		j.Exec = append(j.Exec, []string{"--calls", "--calls", "--calls=sizes", "--calls=sizes,peers"}[draw.IntN(4)])
	}
	if j.waits {
		j.Env = append(j.Env, "MPIT_AGENT_FINAL_WAIT=60000")
	}
	return j
}

// drawEndure makes it a job of endure.c.
func (e *endurance) drawEndure(j *enduranceJob, draw *rand.Rand) {
	j.Program, j.Ranks = "endure.c", 1+draw.IntN(8)
	if j.MPI.Name == "mpich" { // whose ranks spin while they wait
		j.Ranks = 1 + draw.IntN(3)
	}
	end := j.end
	switch {
	case end == "hang":
		j.Ranks = 2
		j.Env = append(j.Env, fmt.Sprintf("MPIEXEC_TIMEOUT=%d", int(j.seconds.Seconds())+15))
	case end == "oom" && e.memory == "":
		end = "kill"
	case end == "oom":
		j.Wrap = []string{"sh", "-c",
			`test "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != 0 || echo $$ >"$0/cgroup.procs"; exec "$@"`, e.memory}
	case end == endReport:
		j.Socket, j.calls, end = "", false, "finalize" // which it brings
		j.report = filepath.Join(e.reports.dir, strconv.FormatUint(draw.Uint64(), 36)+".json")
		j.Exec = []string{"--report=" + j.report, "--own.dir=" + filepath.Dir(e.rules), "--own.wait=60s"}
	case end == endTerm || end == endStop:
		end = "finalize"
	}
	// It ends after so many seconds of pauses.
	j.Args = []string{strconv.FormatFloat(j.seconds.Seconds(), 'f', 2, 64), strconv.Itoa(draw.IntN(1 << 30)), end,
		harness.HoldDir}
	if j.MPI.Name == "openmpi" && j.report == "" && draw.IntN(3) == 0 {
		j.Exec = append(j.Exec, "--monitoring")
	}
	if draw.IntN(3) == 0 {
		j.Env = append(j.Env, "LD_PRELOAD="+e.clock.library)
	}
}

// runJob runs a job as it says, and accounts for each of its ranks.
func (e *endurance) runJob(t *testing.T, j enduranceJob) {
	began := time.Now()
	run := suite.Run(t, j.Job)
	pause := min(j.seconds/2, time.Minute) // less than HOLD_LIMIT_SECONDS
	switch {
	case j.holds:
		run.AtHold(t, "half")
		time.Sleep(pause)
		run.Release(t, "half")
		run.AtHold(t, "done")
		time.Sleep(pause)
		run.Release(t, "done")
	case j.end == endTerm:
		e.pidOf(t, run, 0)
		time.Sleep(pause)
		run.Signal(t, syscall.SIGTERM)
	case j.end == endStop:
		pid := e.pidOf(t, run, run.Ranks-1)
		time.Sleep(pause)
		if syscall.Kill(pid, syscall.SIGSTOP) == nil { // or it has ended
			time.Sleep(min(pause, 20*time.Second))
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
	result := run.WaitLong(t, j.seconds)
	ended := time.Now()
	e.tally.add(1, "jobs of %s: %s", j.MPI.Name, j.end)
	e.tally.add(1, "jobs")
	if j.report != "" {
		e.readReport(t, j, run, began, ended)
	} else {
		e.account(t, j, run, began, ended)
	}
	if j.regular() {
		assert.Zero(t, result.Status, "status; stderr: %s", clip(result.Stderr))
	}
}

// regular: the job comes to MPI_Finalize in all ranks.
func (j enduranceJob) regular() bool {
	return slices.Contains([]string{"finalize", endStop, endReport}, j.end)
}

// readReport compares a job's report with its books. While the disk was full there may be none, but not half of one.
func (e *endurance) readReport(t *testing.T, j enduranceJob, run *harness.Run, began, ended time.Time) {
	t.Helper()
	e.tally.add(run.Ranks, "ranks")
	text, err := os.ReadFile(j.report)
	full := e.full.excuse(began, ended) != ""
	if os.IsNotExist(err) && full {
		e.tally.add(1, "reports: none, the disk was full")
		return
	}
	require.NoError(t, err)
	r := reportIn(t, text)
	require.NoError(t, os.Remove(j.report))
	if full { // it may be of an earlier moment
		e.tally.add(1, "reports: the disk was full")
		return
	}
	all := books{}
	for _, own := range readBooks(t, run, "end") {
		for key, a := range own {
			all.account(callers{key.function, strings.TrimPrefix(key.object, "comm:")}).calls += a.calls
		}
	}
	for key, a := range all {
		_, calls := r.seconds(key.function, strings.TrimPrefix(key.object, "-"))
		assert.InDelta(t, a.calls, calls, 0, "%v in the report", key)
	}
	e.tally.add(len(all), "counters compared with books")
	e.tally.add(1, "reports: as their books")
}

// pidOf waits until a rank of endure.c has told its process id.
func (e *endurance) pidOf(t *testing.T, run *harness.Run, rank int) (pid int) {
	t.Helper()
	harness.Await(t, "a rank's process id", func(context.Context) error {
		text, err := os.ReadFile(run.File(fmt.Sprintf("pid.%d", rank)))
		if err != nil {
			return err
		}
		pid, err = strconv.Atoi(string(text))
		return err
	})
	return pid
}

// account looks for the last sample of each rank of a job that has ended.
func (e *endurance) account(t *testing.T, j enduranceJob, run *harness.Run, began, ended time.Time) {
	t.Helper()
	first := ended.Add(-10 * time.Second)
	files, err := filepath.Glob(run.File("end.books.*"))
	require.NoError(t, err)
	for _, file := range files { // left right before a rank ended
		info, err := os.Stat(file)
		require.NoError(t, err)
		if len(files) == 1 || info.ModTime().Before(first) {
			first = info.ModTime()
		}
	}
	reasons := e.awaitEnds(t, run, began, ended)
	e.tally.add(run.Ranks, "ranks")
	figures := map[int]*rankFigures{}
	harness.Await(t, "Prometheus' answer", func(ctx context.Context) (err error) {
		figures, err = e.figures(ctx, run, began)
		return err
	})
	for rank := range run.Ranks {
		reason := reasons[rank]
		what := e.accountRank(t, j, run, rank, reason, figures, e.journal.excuse(first, ended))
		e.tally.add(1, "ranks whose job's end was %s: %s", j.end, what)
		if t.Failed() {
			t.Logf("rank %d: %s", rank, what)
		}
	}
}

// accountRank says what is known of a rank's last sample; the test fails if that is not enough.
func (e *endurance) accountRank(t *testing.T, j enduranceJob, run *harness.Run, rank int, reason string,
	figures map[int]*rankFigures, excuse string) string {
	t.Helper()
	f := figures[rank]
	if f == nil {
		f = &rankFigures{profile: books{}}
	}
	switch {
	case reason == "" && excuse != "":
		return "missing, there was " + excuse
	case reason == "" && j.regular():
		t.Errorf("rank %d has ended, and nothing tells of its last sample; seen while it lived: %t", rank, f.seen)
		return "UNACCOUNTED"
	case reason == "" && f.seen:
		t.Errorf("rank %d is gone, and nothing tells how it ended", rank)
		return "UNACCOUNTED"
	case reason == "":
		return "never scraped, killed within seconds"
	case reason == "lost" && j.regular() && j.waits && excuse == "":
		t.Errorf("rank %d has waited for its last sample to be taken, and it is lost", rank)
		return "UNACCOUNTED"
	case !slices.Contains(j.reasons(rank), reason):
		t.Errorf("rank %d: the exporter says %q; the job's end is %s", rank, reason, j.end)
		return "WRONG"
	}
	return reason + e.compare(t, j, run, rank, reason, f)
}

// reasons are how the exporter may say that a rank has ended.
func (j enduranceJob) reasons(rank int) []string {
	switch {
	case j.regular():
		return []string{"finalize", "lost"}
	case j.end == "exit": // the first one that does has the others killed
		return []string{"exit", "lost"}
	case j.end == "abort" && rank == 0:
		return []string{"abort", "lost"}
	default: // or it was at its end before the signal came
		return []string{"lost", "finalize"}
	}
}

// compare compares a rank's last figures with its books, if it has left any.
func (e *endurance) compare(t *testing.T, j enduranceJob, run *harness.Run, rank int, reason string,
	f *rankFigures) string {
	t.Helper()
	if _, err := os.Stat(run.File(fmt.Sprintf("end.books.%d", rank))); err != nil {
		return ", no books"
	}
	own := readRankBooks(t, run, "end", rank)
	if slices.Contains(j.Exec, "--monitoring") && reason != "lost" {
		want := float64(own.there(callers{"MPI_Allreduce", "comm:ring"}).calls)
		assert.InDelta(t, want, f.monitored, 0, "rank %d: allreduces that Open MPI has counted", rank)
		e.tally.add(1, "counters compared with books")
	}
	switch {
	case !j.calls:
		return ""
	case reason == "lost":
		for key, shown := range f.profile {
			assert.LessOrEqual(t, shown.calls, own.there(key).calls, "rank %d: %v", rank, key)
		}
		return ", not above its books"
	}
	if reason != "finalize" {
		e.tally.add(own.forget(f.profile), "counters missing: what was called first after the last scrape")
	}
	differences := own.differences(f.profile)
	assert.Empty(t, differences, "rank %d: its last sample and its books", rank)
	e.tally.add(len(own), "counters compared with books")
	return ", as its books"
}

// forget takes out of books what isn't shown, and returns how many accounts these were: in exit and MPI_Abort nothing
// is allocated, so that what was called for the first time since the last scrape is not in the last sample.
func (b books) forget(shown books) (forgotten int) {
	for key, own := range b {
		if shown[key] == nil {
			delete(b, key)
			forgotten++
			continue
		}
		maps.DeleteFunc(own.bytes, func(direction string, _ float64) bool {
			_, ok := shown[key].bytes[direction]
			return !ok
		})
	}
	return forgotten
}

// awaitEnds asks Prometheus until it knows of all ranks how they ended, or should have come to know it. It returns what
// it knows.
func (e *endurance) awaitEnds(t *testing.T, run *harness.Run, began, ended time.Time) map[int]string {
	t.Helper()
	for {
		samples, err := e.last(t.Context(), "mpit_rank_end_info", run, began)
		reasons := map[int]string{}
		for _, s := range samples {
			rank, atoi := strconv.Atoi(s.Labels["rank"])
			require.NoError(t, atoi)
			if before, ok := reasons[rank]; ok {
				t.Errorf("rank %d ended twice: %s, %s", rank, before, s.Labels["reason"])
			}
			reasons[rank] = s.Labels["reason"]
		}
		late := time.Now().After(e.journal.scraped(ended).Add(30 * time.Second))
		if err == nil && (len(reasons) == run.Ranks || late) {
			return reasons
		}
		if err != nil && time.Now().After(e.journal.scraped(ended).Add(5*time.Minute)) {
			t.Fatalf("Prometheus does not answer: %v", err)
		}
		if !sleep(t.Context(), enduranceScrapes) {
			t.Fatal("the test is over")
		}
	}
}

// rankFigures are the last ones that Prometheus has of a rank.
type rankFigures struct {
	seen      bool // it has been scraped while it lived
	profile   books
	monitored float64 // allreduces on the communicator ring, as Open MPI counts them
}

func (e *endurance) figures(ctx context.Context, run *harness.Run, began time.Time) (map[int]*rankFigures, error) {
	figures := map[int]*rankFigures{}
	for _, name := range []string{"mpit_rank_up", callTimes + "_count", callBytes, allToAllCalls} {
		samples, err := e.last(ctx, name, run, began)
		if err != nil {
			return nil, err
		}
		for _, s := range samples {
			rank, err := strconv.Atoi(s.Labels["rank"])
			if err != nil {
				return nil, fmt.Errorf("a rank's label: %w", err)
			}
			f := figures[rank]
			if f == nil {
				f = &rankFigures{profile: books{}}
				figures[rank] = f
			}
			switch name {
			case "mpit_rank_up":
				f.seen = true
			case allToAllCalls:
				if s.Labels["comm"] == "ring" {
					f.monitored += s.Value
				}
			case callBytes:
				if s.Value != 0 && s.Labels["peer"] == "" {
					f.profile.account(callersOf(s.Labels)).bytes[s.Labels["direction"]] = s.Value
				}
			default:
				f.profile.account(callersOf(s.Labels)).calls = uint64(s.Value)
			}
		}
	}
	return figures, nil
}

// last asks for the last values that a job's series have had since it began.
func (e *endurance) last(ctx context.Context, name string, run *harness.Run,
	since time.Time) ([]harness.Sample, error) {
	return e.prometheus.Query(ctx, fmt.Sprintf("last_over_time(%s{jobid=%q}[%ds])", name, run.ID,
		int(time.Since(since).Seconds())+1))
}
