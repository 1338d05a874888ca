package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/otlp/otlptest"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// own is where jobs of one test have their own exporters. All of them run on one node, this machine: a second node
// would have a directory of its own, of which its processes know nothing more than these do of each other's.
type own struct{ dir string }

func newOwn(t *testing.T) own { return own{dir: suite.Dir(t)} }

// job is one of ranks that start their exporter themselves.
func (o own) job(mpi *harness.MPI, ranks int, flags ...string) harness.Job {
	flags = append([]string{"--own", "--own.dir=" + o.dir}, flags...)
	return harness.Job{MPI: mpi, Ranks: ranks, Exec: flags, Program: "ends.c",
		Args: []string{"finalize", harness.HoldDir}}
}

// exporters are the exporters of a job, among all that it has started.
func exporters(run *harness.Run) (pids []int) {
	for _, pid := range run.Leftovers() {
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil &&
			bytes.Contains(line, []byte("\x00own\x00serve\x00")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// nothingLeft waits until no process of the job is left, nor any file.
func (o own) nothingLeft(t *testing.T, run *harness.Run) {
	t.Helper()
	harness.Await(t, "the end of all of it", func(context.Context) error {
		if left := run.Leftovers(); len(left) > 0 {
			return fmt.Errorf("processes %v are left", left)
		}
		files, err := os.ReadDir(o.dir)
		if err == nil && len(files) > 0 {
			err = fmt.Errorf("%s is left in %s", files[0].Name(), o.dir)
		}
		return err
	})
}

// pageOf is the page of a job's exporter.
func pageOf(t *testing.T, run *harness.Run) *harness.Exporter {
	t.Helper()
	pids := exporters(run)
	require.Len(t, pids, 1)
	listening := ports(t, pids[0])
	require.Len(t, listening, 1)
	_, digits, _ := strings.Cut(listening[0], ":")
	port, err := strconv.ParseUint(digits, 16, 16)
	require.NoError(t, err)
	return &harness.Exporter{Address: fmt.Sprintf("127.0.0.1:%d", port)}
}

// TestOwn: four ranks that begin at once have one exporter. It has nothing of theirs open, its page is there
// while it runs, and it ends when the last values have been scraped.
func TestOwn(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			o := newOwn(t)
			run := suite.Run(t, o.job(mpi, 4))
			run.AtHold(t, "up")
			page := pageOf(t, run)
			page.Await(t, "the ranks", up(run))

			pids := exporters(run)
			require.Len(t, pids, 1)
			assert.Empty(t, inherited(t, pids[0], run), "descriptors of the job's are open in the exporter")

			result := run.Finish(t, "up")
			assert.Equal(t, 1, strings.Count(result.Stderr, "mpit-exporter: metrics of this job at http://"),
				result.Stderr)
			assert.Equal(t, pids, exporters(run), "mpirun has ended, and nobody has the last values yet")
			// A page on which one end is missing is not the last: the exporter waits for the next.
			page.Await(t, "the ends", ended(run, "finalize"))
			o.nothingLeft(t, run)
		})
	}
}

// inherited are the files, pipes and sockets that a process has open and others of the job, too.
func inherited(t *testing.T, pid int, run *harness.Run) (both []string) {
	t.Helper()
	mine := openFiles(pid)
	require.NotEmpty(t, mine)
	for _, other := range run.Leftovers() {
		if other == pid {
			continue
		}
		for _, file := range openFiles(other) {
			if file != os.DevNull && !strings.HasPrefix(file, "anon_inode:") && slices.Contains(mine, file) {
				both = append(both, file)
			}
		}
	}
	return both
}

func openFiles(pid int) (files []string) {
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, link := range links {
		if file, err := os.Readlink(link); err == nil {
			files = append(files, file)
		}
	}
	return files
}

// TestOwnHoldsNoPipe: who reads mpirun's output to its end is not kept by an exporter that lives on.
func TestOwnHoldsNoPipe(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			o := newOwn(t)
			out := filepath.Join(suite.Dir(t), "out")
			flags := strings.Join(o.job(mpi, 2).Exec, " ")
			line := fmt.Sprintf("{ mpirun.%s -n 2 %s exec %s -- %s finalize - 2>&1; echo status $?; } | cat > %s",
				mpi.Name, suite.Binary(), flags, suite.Program(t, mpi, "ends.c"), out)
			run := &harness.Run{Process: suite.Start(t, []string{"sh", "-c", line},
				append(mpi.Env(), "MPIT_JOB_ID=piped"))}
			run.Wait(t)
			text, err := os.ReadFile(out)
			require.NoError(t, err)
			assert.Contains(t, string(text), "status 0\n")
			require.Len(t, exporters(run), 1, "it waits for a scrape, and cat for nobody:\n%s", text)
			_, err = pageOf(t, run).ScrapeContext(t.Context())
			require.NoError(t, err)
			o.nothingLeft(t, run)
		})
	}
}

// A Prometheus that isn't told when a file is gone, as on NFS, asks the address of an exporter that has ended with its
// job until it looks again. No alert says that it is down; that of a node is, as long after its end.
func TestOwnIsNotDown(t *testing.T) {
	t.Parallel()
	o := newOwn(t)
	run := suite.Run(t, o.job(harness.OpenMPI(t), 1))
	run.AtHold(t, "up")
	page := pageOf(t, run)
	stale := filepath.Join(suite.Dir(t), "stale.json")
	writeFile(t, stale, fmt.Sprintf(`[{"targets": [%q]}]`, page.Address))
	node := suite.Exporter(t)
	prometheus := suite.PrometheusWith(t, harness.PrometheusConfig{
		Rules: suite.RulesInSeconds(t), Exporters: []*harness.Exporter{node}, Discovery: stale,
	})
	prometheus.Await(t, `sum(up)`, single(2))
	prometheus.Await(t, `sum(mpit_exporter_own)`, single(1))
	prometheus.Await(t, fmt.Sprintf(`mpit_node:exporter:known{instance=%q}`, node.Address), number(1))

	run.Finish(t, "up")
	o.nothingLeft(t, run)
	prometheus.Await(t, fmt.Sprintf(`up{instance=%q}`, page.Address), single(0))
	node.Kill(t)
	harness.Await(t, "the alert on the node's exporter", func(ctx context.Context) error {
		alerts, err := prometheus.Alerts(ctx)
		if err != nil {
			return err
		}
		return findAlert(alerts, "MPITExporterDown", harness.Labels{"instance": node.Address}, "no page")
	})
	expectAlerts(t, prometheus, "", map[string]string{"MPITExporterDown": node.Address})
}

// TestOwnUnscraped: an exporter that nobody asks ends by itself.
func TestOwnUnscraped(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			o := newOwn(t)
			run := suite.Run(t, o.job(mpi, 2, "--own.linger=500ms"))
			run.AtHold(t, "up")
			run.Finish(t, "up")
			o.nothingLeft(t, run)
		})
	}
}

// TestOwnEnds: a job ends as it does without.
func TestOwnEnds(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		for _, how := range []string{"exit", "abort", "kill", "segv"} {
			t.Run(mpi.Name+"/"+how, func(t *testing.T) {
				t.Parallel()
				o := newOwn(t)
				job := o.job(mpi, 2, "--own.linger=500ms")
				job.Args[0] = how
				run := suite.Run(t, job)
				run.AtHold(t, "up")
				run.Release(t, "up")
				observed := run.Wait(t)
				o.nothingLeft(t, run)

				job.Bare = true
				bare := suite.Run(t, job)
				bare.AtHold(t, "up")
				bare.Release(t, "up")
				want := bare.Wait(t)
				sameEnd(t, mpi, how, want, observed)
			})
		}
	}
}

// TestOwnLauncherKilled: a launcher that is killed leaves nothing of this behind.
func TestOwnLauncherKilled(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			o := newOwn(t)
			run := suite.Run(t, o.job(mpi, 2, "--own.linger=500ms"))
			run.AtHold(t, "up")
			require.Len(t, exporters(run), 1)
			run.Signal(t, syscall.SIGKILL)
			run.Wait(t)
			// What the ranks do without a launcher is their library's matter: some notice in an MPI call only.
			for _, pid := range run.Leftovers() {
				if !slices.Contains(exporters(run), pid) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			o.nothingLeft(t, run)
		})
	}
}

// TestOwnExporterTerminated: the exporter ends when it is told to, and the job runs on.
func TestOwnExporterTerminated(t *testing.T) {
	t.Parallel()
	mpi := harness.OpenMPI(t)
	o := newOwn(t)
	run := suite.Run(t, o.job(mpi, 2))
	run.AtHold(t, "up")
	pids := exporters(run)
	require.Len(t, pids, 1)
	require.NoError(t, syscall.Kill(pids[0], syscall.SIGTERM))
	harness.Await(t, "the exporter's end", func(context.Context) error {
		if len(exporters(run)) > 0 {
			return errors.New("it is there")
		}
		return nil
	})
	run.Finish(t, "up")
	o.nothingLeft(t, run)
}

// TestOwnTwoJobs: two jobs of one user at once have two exporters, each with its own ranks alone.
func TestOwnTwoJobs(t *testing.T) {
	t.Parallel()
	mpi := harness.MPICH(t)
	o := newOwn(t)
	runs := []*harness.Run{suite.Run(t, o.job(mpi, 2)), suite.Run(t, o.job(mpi, 2))}
	for _, run := range runs {
		run.AtHold(t, "up")
	}
	for _, run := range runs {
		page := pageOf(t, run)
		s := page.Await(t, "its ranks", up(run))
		assert.Len(t, s.Select("mpit_rank_up", nil), 2, "no other job's")
		require.Len(t, exporters(run), 1)
		run.Finish(t, "up")
		_, err := page.ScrapeContext(t.Context())
		require.NoError(t, err)
	}
	for _, run := range runs {
		o.nothingLeft(t, run)
	}
}

// TestOwnOfSomeRanks: the others go their own way.
func TestOwnOfSomeRanks(t *testing.T) {
	t.Parallel()
	mpi := harness.OpenMPI(t)
	o := newOwn(t)
	dir := suite.Dir(t)
	program := suite.Program(t, mpi, "ends.c")
	// One command for all ranks: Open MPI 5's mpirun can hang at two with a colon between.
	command := []string{"mpirun.openmpi", "-n", "3", "sh", "-c",
		`[ "$OMPI_COMM_WORLD_RANK" != 0 ] || exec "$0" finalize "$1"; shift; exec "$@"`, program, dir}
	command = append(append(command, suite.ExecCommand(o.job(mpi, 2).Exec...)...), program, "finalize", dir)
	run := &harness.Run{Process: suite.Start(t, command, append(mpi.Env(), "MPIT_JOB_ID=some")), ID: "some", Ranks: 3}
	harness.Await(t, "the ranks", func(context.Context) error {
		for rank := range 3 {
			if _, err := os.Stat(filepath.Join(dir, "up."+strconv.Itoa(rank))); err != nil {
				return err
			}
		}
		return nil
	})
	page := pageOf(t, run)
	page.Await(t, "two of them", func(s *harness.Scrape) error {
		if n := len(s.Select("mpit_rank_up", nil)); n != 2 {
			return fmt.Errorf("%d ranks", n)
		}
		return nil
	})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "up.go"), nil, 0o644))
	assert.Zero(t, run.Wait(t).Status)
	_, err := page.ScrapeContext(t.Context())
	require.NoError(t, err)
	o.nothingLeft(t, run)
}

// TestOwnPushed: with a receiver of OTLP there is no page, and ranks do not return from MPI_Finalize before their
// last values have been taken: whoever kills all that is left at that moment, as batch systems do, loses nothing.
func TestOwnPushed(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		for _, protocol := range []string{otlptest.GRPC, otlptest.HTTP} {
			t.Run(mpi.Name+"/"+strings.ReplaceAll(protocol, "/", "-"), func(t *testing.T) {
				asked, taken := make(chan struct{}), make(chan struct{})
				once := sync.OnceFunc(func() { close(asked) })
				receiver := receive(t, otlptest.Options{Protocol: protocol,
					Answer: func(*otlptest.Request) otlptest.Answer {
						once()
						return otlptest.Accept().When(taken)
					}})
				o := newOwn(t)
				run := suite.Run(t, o.job(mpi, 2, "--otlp.endpoint="+receiver.URL(), "--otlp.protocol="+protocol,
					never, "--own.wait=1m", "--own.linger=1m"))
				run.AtHold(t, "up")
				pids := exporters(run)
				require.Len(t, pids, 1)
				assert.Empty(t, ports(t, pids[0]), "there is no page")
				run.Release(t, "up")
				harness.Await(t, "a push", func(context.Context) error {
					select {
					case <-asked:
						return nil
					default:
						return errors.New("none has come")
					}
				})
				// Something has been pushed, so a rank has ended for its exporter; but no answer has come, so none
				// has for the system.
				assert.Len(t, programs(run), 2)
				assert.False(t, run.Ended())
				close(taken)
				result := run.Wait(t)
				if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
					require.ErrorIs(t, err, syscall.ESRCH, "it may have ended by itself")
				}
				assert.Zero(t, result.Status)
				assert.Contains(t, result.Stderr, "mpit-exporter: metrics of this job are pushed to "+receiver.URL())
				for rank := range 2 {
					end, _, err := one(t, receiver, "mpit_rank_end_info", run.ID, strconv.Itoa(rank), "finalize")
					require.NoError(t, err)
					assert.Equal(t, 1.0, end.value)
				}
			})
		}
	}
}

// programs are the processes of a job that have become its program.
func programs(run *harness.Run) (pids []int) {
	for _, pid := range run.Leftovers() {
		if path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil &&
			strings.Contains(filepath.Base(path), "ends-c") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestOwnReceiverAway: nobody waits longer than he is told to for a receiver that isn't there, and the exporter not
// for ever.
func TestOwnReceiverAway(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			o := newOwn(t)
			job := o.job(mpi, 2, "--otlp.endpoint=http://"+harness.FreeAddress(t), never, "--own.wait=300ms",
				"--own.linger=500ms")
			job.Env = append(job.Env, "OTEL_EXPORTER_OTLP_TIMEOUT=500")
			run := suite.Run(t, job)
			run.AtHold(t, "up")
			run.Finish(t, "up")
			o.nothingLeft(t, run)
		})
	}
}
