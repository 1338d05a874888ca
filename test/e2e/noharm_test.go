package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// With no exporter anywhere a job does what it does without the agent. The thread levels are TestThreadLevels' business.
func TestNoExporter(t *testing.T) {
	t.Parallel()
	programs := []struct {
		name, program string
		args          []string
	}{
		{"plain MPI_Init", "threads.c", []string{"none"}},
		{"traffic", "traffic.c", []string{"10", "1000", "-"}},
		{"unexpected", "unexpected.c", []string{"100", "-"}},
		{"forks", "forks.c", []string{"-"}},
		{"descriptors", "descriptors.c", []string{"-"}},
	}
	for _, mpi := range harness.Both(t) {
		for _, p := range programs {
			t.Run(mpi.Name+"/"+p.name, func(t *testing.T) {
				job := harness.Job{MPI: mpi, Program: p.program, Args: p.args,
					Socket: filepath.Join(suite.Dir(t), "nobody.sock")}
				observed := suite.Run(t, job).Wait(t)
				job.Bare = true
				assert.Equal(t, suite.Run(t, job).Wait(t), observed)
			})
		}
	}
}

// With an exporter the thread levels that MPI answers are the same, too, and the program's stands on the page.
func TestThreadLevels(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		exporter := suite.Exporter(t)
		for _, level := range []string{"none", "single", "funneled", "serialized", "multiple"} {
			t.Run(mpi.Name+"/"+level, func(t *testing.T) {
				job := harness.Job{MPI: mpi, Program: "threads.c", Args: []string{level}, Socket: exporter.Socket}
				run := suite.Run(t, job)
				observed := run.Wait(t)
				job.Bare = true
				assert.Equal(t, suite.Run(t, job).Wait(t), observed)
				page := exporter.Await(t, "the ended job", ended(run, "finalize"))
				for rank := range run.Ranks {
					info, err := page.One("mpit_process_info", run.Labels(rank))
					require.NoError(t, err)
					assert.Contains(t, observed.Stdout, "query "+info.Labels["thread_level"]+",")
				}
			})
		}
	}
}

// Threads may use one info object at the same time: what the agent asks of it is never of a key that another thread
// has deleted meanwhile, for that error would be fatal. MPICH 4.0 itself doesn't allow it.
func TestInfoSharedByThreads(t *testing.T) {
	t.Parallel()
	job := harness.Job{MPI: harness.OpenMPI(t), Ranks: 1, Program: "infos.c", Args: []string{"4", "5000"}, Bare: true}
	bare := suite.Run(t, job).Wait(t)
	require.Zero(t, bare.Status, "%+v", bare)
	job.Bare = false
	assert.Equal(t, bare, suite.Run(t, job).Wait(t))
}

// halfway starts a job that has sent half of its messages when it comes back, and waits there.
func halfway(t *testing.T, mpi *harness.MPI, exporter *harness.Exporter) (harness.Job, *harness.Run) {
	job := harness.Job{
		MPI: mpi, Program: "traffic.c", Args: []string{"30", "500", harness.HoldDir},
		Socket: exporter.Socket, Exec: monitoring(mpi),
	}
	run := suite.Run(t, job)
	run.AtHold(t, "ready")
	run.Release(t, "ready")
	run.AtHold(t, "half")
	return job, run
}

// An exporter that is killed and comes back finds the ranks again, and no figure has fallen: what was sent meanwhile
// is counted.
func TestExporterKilledAndRestarted(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			job, run := halfway(t, mpi, exporter)
			before := counters(exporter.Await(t, "the first half", all(up(run), halves(run, mpi, 1))), run)
			started := startTimes(t, exporter, run)

			exporter.Kill(t)
			run.Release(t, "half")
			run.AtHold(t, "done")
			exporter.Restart(t)
			exporter.Await(t, "the ranks to be back", all(up(run), noneFell(before, run), halves(run, mpi, 2),
				healthy))
			assert.Equal(t, started, startTimes(t, exporter, run))

			observed := run.Finish(t, "done")
			exporter.Await(t, "the regular end", all(ended(run, "finalize"), noneFell(before, run),
				halves(run, mpi, 2)))
			job.Bare, job.Args = true, []string{"30", "500", "-"}
			assert.Equal(t, suite.Run(t, job).Wait(t), observed)
		})
	}
}

// A stopped exporter holds nobody up, not even at the end; when it goes on, it gets what was sent meanwhile.
func TestExporterStopped(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			job, run := halfway(t, mpi, exporter)
			exporter.Await(t, "the first half", all(up(run), halves(run, mpi, 1)))

			exporter.Signal(t, syscall.SIGSTOP)
			observed := run.Finish(t, "half", "done")
			late := suite.Run(t, harness.Job{MPI: mpi, Program: "tour.c", Args: []string{"-"},
				Socket: exporter.Socket})
			late.Finish(t)
			exporter.Signal(t, syscall.SIGCONT)
			exporter.Await(t, "the ends", all(ended(run, "finalize"), ended(late, "finalize"), halves(run, mpi, 2),
				healthy))

			job.Bare, job.Args = true, []string{"30", "500", "-"}
			assert.Equal(t, suite.Run(t, job).Wait(t), observed)
		})
	}
}

// monitoring: Debian's MPICH has nothing to switch on.
func monitoring(mpi *harness.MPI) []string {
	if mpi.Name == "openmpi" {
		return []string{"--monitoring"}
	}
	return nil
}

// halves: so many times 30 rounds of traffic.c are on the page, where the library has figures at all.
func halves(run *harness.Run, mpi *harness.MPI, n float64) check {
	if mpi.Name != "openmpi" {
		return all()
	}
	return all(
		counted(run, allToAllCalls, "sums", always(30*n)),
		counted(run, allToAllCalls, "brief", always(60)),
		counted(run, oneToAllBytes, "ring", atRoot(30*500*n)),
	)
}

// startTimes are the ranks' start times: a rank that is found again isn't a new one.
func startTimes(t *testing.T, exporter *harness.Exporter, run *harness.Run) []float64 {
	t.Helper()
	scrape := exporter.Scrape(t)
	var times []float64
	for rank := range run.Ranks {
		series, err := scrape.One("mpit_rank_start_time_seconds", run.Labels(rank))
		require.NoError(t, err)
		times = append(times, series.Value)
	}
	return times
}

// Programs that aren't MPI, or that no agent can follow, run on as they are.
func TestUnobservablePrograms(t *testing.T) {
	t.Parallel()
	dir := filepath.Dir(suite.PlainProgram(t, "libstranger.c", "lib", "-shared", "-fPIC", "-Wl,-soname,libmpi.so.99"))
	type unobservable struct {
		name    string
		command []string
	}
	programs := []unobservable{
		{"no MPI", []string{suite.PlainProgram(t, "plain.c", "dynamic")}},
		{"static", []string{suite.PlainProgram(t, "plain.c", "static", "-static")}},
		{"a script", []string{"/bin/sh", "-c", "echo out; echo err >&2; exit 9"}},
		{"an MPI that no agent knows", []string{suite.PlainProgram(t, "stranger.c", "unknown",
			filepath.Join(dir, "libstranger-c.lib"), "-Wl,-rpath,"+dir)}},
		{"killed", []string{"/bin/sh", "-c", "kill -TERM $$"}},
		{"AddressSanitizer", []string{suite.PlainProgram(t, "plain.c", "addresses", "-fsanitize=address")}},
		{"AddressSanitizer out of a script", []string{"/bin/sh", "-c",
			suite.PlainProgram(t, "plain.c", "addresses", "-fsanitize=address")}},
		{"ThreadSanitizer", []string{suite.PlainProgram(t, "plain.c", "threads", "-fsanitize=thread")}},
	}
	if _, err := exec.LookPath("musl-gcc"); err == nil {
		path := suite.Compile(t, "plain.c", "musl", "musl-gcc",
			filepath.Join(suite.Root(), "test", "programs", "plain.c"))
		programs = append(programs, unobservable{"musl", []string{path}})
	}
	const note = "mpit-exporter: the program runs unobserved: it is linked statically, and nothing can be preloaded " +
		"into it\n"
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			bare := suite.Start(t, p.command, nil).Wait(t)
			observed := suite.Start(t, append(suite.ExecCommand(), p.command...), nil).Wait(t)
			if p.name == "static" {
				assert.Contains(t, observed.Stderr, note)
			}
			observed.Stderr = strings.Replace(observed.Stderr, note, "", 1)
			assert.Equal(t, bare, observed)

			logging := suite.Start(t, append(suite.ExecCommand(), p.command...), []string{"MPIT_AGENT_LOG=1"}).Wait(t)
			said := strings.Replace(strings.TrimPrefix(logging.Stderr, note), bare.Stderr, "", 1)
			assert.LessOrEqual(t, strings.Count(said, "\n"), 1, "more than one line: %s", said)
			assert.Equal(t, bare.Stdout, logging.Stdout)
			assert.Equal(t, bare.Status, logging.Status)
		})
	}
	t.Run("it says why when asked", func(t *testing.T) {
		stranger := append(suite.ExecCommand(), programs[3].command...)
		logging := suite.Start(t, stranger, []string{"MPIT_AGENT_LOG=1"}).Wait(t)
		assert.Equal(t, 1, strings.Count(logging.Stderr, "\n"), "not one line: %q", logging.Stderr)
	})
}

// A switched-off agent isn't there.
func TestDisabledAgent(t *testing.T) {
	t.Parallel()
	exporter := suite.Exporter(t)
	job := harness.Job{
		MPI: harness.OpenMPI(t), Program: "tour.c", Args: []string{harness.HoldDir}, Socket: exporter.Socket,
		Env: []string{"MPIT_AGENT_DISABLE=1"},
	}
	run := suite.Run(t, job)
	run.AtHold(t, "made")
	require.Empty(t, exporter.Scrape(t).Select("mpit_rank_up", harness.Labels{"jobid": run.ID}))
	run.Finish(t, "made", "freed")
	require.Empty(t, exporter.Scrape(t).Select("mpit_rank_up", harness.Labels{"jobid": run.ID}))
}

// With room for two objects of a kind MPI_COMM_WORLD and MPI_COMM_SELF are observed; what the program makes is
// counted as left out.
func TestObjectsOverTheBound(t *testing.T) {
	t.Parallel()
	exporter := suite.Exporter(t)
	run := suite.Run(t, harness.Job{
		MPI: harness.OpenMPI(t), Program: "tour.c", Args: []string{harness.HoldDir}, Socket: exporter.Socket,
		Env: []string{"MPIT_AGENT_MAX_OBJECTS=2"},
	})
	run.AtHold(t, "made")
	scrape := exporter.Await(t, "the ranks", up(run))
	names := scrape.Values("mpit_objects", harness.Labels{"jobid": run.ID, "kind": "comm"}, "name")
	assert.ElementsMatch(t, []string{"MPI_COMM_WORLD", "MPI_COMM_SELF"}, names)
	over := scrape.Select("mpit_exporter_series_dropped_total", harness.Labels{"reason": "objects_over_bound"})
	require.Len(t, over, 1)
	assert.Positive(t, over[0].Value)
	run.Finish(t, "made", "freed")
}

// Children of a rank aren't ranks: whatever way they leave, the page shows the parent alone, alive.
func TestForkingRank(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			run := suite.Run(t, harness.Job{MPI: mpi, Program: "forks.c", Args: []string{harness.HoldDir},
				Socket: exporter.Socket})
			run.AtHold(t, "forked")
			exporter.Await(t, "the parents", all(up(run), absent("mpit_rank_end_info", nil)))
			run.Finish(t, "forked")
			exporter.Await(t, "the parents' end", all(ended(run, "finalize"), healthy))
		})
	}
}

// The agent's descriptor is neither in the program's way nor in its reach.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			job := harness.Job{MPI: mpi, Program: "descriptors.c", Args: []string{harness.HoldDir},
				Socket: exporter.Socket}
			run := suite.Run(t, job)
			run.AtHold(t, "up")
			exporter.Await(t, "the ranks", up(run))
			run.Release(t, "up")
			run.AtHold(t, "taken")
			exporter.Await(t, "the ranks after the program has closed what it could", up(run))
			observed := run.Finish(t, "taken")
			exporter.Await(t, "the end", all(ended(run, "finalize"), healthy))

			job.Bare, job.Args = true, []string{"-"}
			assert.Equal(t, suite.Run(t, job).Wait(t), observed)
		})
	}
}
