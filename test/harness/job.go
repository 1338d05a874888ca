package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// HoldDir is an argument of a job's program that stands for the directory of the job's hold points (see
// test/programs/README.md).
const HoldDir = "@hold"

// python is Debian's interpreter, which knows Debian's mpi4py; another one may come first in PATH.
const python = "/usr/bin/python3"

// Job is an MPI program to be run.
type Job struct {
	MPI     *MPI
	Ranks   int      // 0: 2
	Alone   bool     // without a launcher: one rank, whose status is the command's
	Program string   // a file of test/programs, or with its folder one of examples or of the zoo
	Command []string // an installed program with its arguments, in place of Program and Args
	Dir     string   // where it runs; empty: in the suite's directory
	Link    []string // libraries that the program is linked with, beside MPI's, as Suite.Library makes them
	Flags   []string // of the compiler, beside the usual ones; of programs in C
	Args    []string // HoldDir is replaced
	Bare    bool     // without the agent
	Socket  string   // where the agent looks for an exporter
	Exec    []string // flags of "mpit-exporter exec"
	Binary  string   // the exporter that exec is of, beside its libraries; empty: Suite.Binary
	Before  []string // a command in front of "mpit-exporter exec"
	Wrap    []string // a command in front of the program, such as valgrind
	ID      string   // MPIT_JOB_ID; empty: one of its own
	NoID    bool     // no MPIT_JOB_ID at all
	Env     []string
	As      uint32 // the user who starts it; 0: who runs the test
}

// Run is a running job.
type Run struct {
	*Process
	ID    string
	Ranks int
	hold  string
}

// Run starts a job. It doesn't wait for anything.
func (s *Suite) Run(tb testing.TB, job Job) *Run {
	tb.Helper()
	switch {
	case job.Alone:
		job.Ranks = 1
	case job.Ranks == 0:
		job.Ranks = 2
	}
	run := &Run{ID: job.ID, Ranks: job.Ranks, hold: s.Dir(tb)}
	if run.ID == "" {
		run.ID = "job-" + filepath.Base(run.hold)
	}

	var command []string
	if !job.Alone {
		command = append(job.MPI.launcher(), "-n", strconv.Itoa(job.Ranks))
	}
	command = append(command, job.Before...)
	if !job.Bare {
		command = append(command, execCommand(cmp.Or(job.Binary, s.Binary()), job.Exec...)...)
	}
	command = append(command, job.Wrap...)
	switch {
	case job.Command != nil:
		command = append(command, job.Command...)
		job.Args = nil
	case filepath.Ext(job.Program) == ".py":
		if _, err := os.Stat(python); err != nil {
			missing(tb, "%s is not installed", python)
		}
		command = append(command, python, s.source(job.Program))
	case job.Flags != nil:
		path := filepath.Join(s.root, "test", "programs", job.Program)
		compiler := append(append(job.MPI.compiler(path), job.Flags...), path)
		command = append(command, s.compile(tb, job.Program, job.MPI.Name+strings.Join(job.Flags, ""), compiler...))
	case job.Link != nil:
		command = append(command, s.Linked(tb, job.MPI, job.Program, job.Link...))
	default:
		command = append(command, s.Program(tb, job.MPI, job.Program))
	}
	for _, arg := range job.Args {
		command = append(command, strings.ReplaceAll(arg, HoldDir, run.hold))
	}

	env := append([]string{}, job.MPI.env...)
	env = append(env, "MPIT_SOCKET="+job.Socket)
	if !job.NoID {
		env = append(env, "MPIT_JOB_ID="+run.ID)
	}
	if job.As != 0 {
		command = append(As(job.As, job.As), command...)
		if err := os.Chmod(run.hold, 0o777); err != nil {
			tb.Fatalf("letting another user write to %s: %v", run.hold, err)
		}
	}
	if job.Dir != "" {
		command = append([]string{"env", "--chdir=" + job.Dir}, command...)
	}
	run.Process = s.Start(tb, command, append(env, job.Env...))
	return run
}

// As begins a command line that another user runs, with one group.
func As(uid, gid uint32) []string {
	return []string{"setpriv", fmt.Sprintf("--reuid=%d", uid), fmt.Sprintf("--regid=%d", gid), "--clear-groups"}
}

// ExecCommand returns the beginning of a command line that runs a program under the agent. With --monitoring, Open
// MPI's component is on: exec leaves that to those who know that their program runs with it.
func (s *Suite) ExecCommand(flags ...string) []string { return execCommand(s.Binary(), flags...) }

func execCommand(binary string, flags ...string) []string {
	var command []string
	if slices.Contains(flags, "--monitoring") {
		command = []string{"env", "OMPI_MCA_pml_monitoring_enable=2"}
	}
	return append(append(append(command, binary, "exec"), flags...), "--")
}

// HoldDir is the directory that stands for HoldDir in the job's arguments.
func (r *Run) HoldDir() string { return r.hold }

// File returns the path of a file in the directory of the job's hold points, which the program may use too.
func (r *Run) File(name string) string { return filepath.Join(r.hold, name) }

// Labels returns the labels that the series of a rank of the job have.
func (r *Run) Labels(rank int) Labels {
	return Labels{"jobid": r.ID, "rank": strconv.Itoa(rank)}
}

// AtHold waits until the given ranks of the job, all of them if none is given, have come to a hold point.
func (r *Run) AtHold(tb testing.TB, name string, ranks ...int) {
	tb.Helper()
	if ranks == nil {
		for rank := range r.Ranks {
			ranks = append(ranks, rank)
		}
	}
	Await(tb, "the hold point "+name, func(context.Context) error {
		var missing []error
		for _, rank := range ranks {
			if _, err := os.Stat(filepath.Join(r.hold, fmt.Sprintf("%s.%d", name, rank))); err != nil {
				missing = append(missing, fmt.Errorf("rank %d: %w", rank, err))
			}
		}
		if missing != nil && r.Ended() {
			tb.Fatalf("the job has ended before the hold point %s: %+v", name, r.Wait(tb))
		}
		return errors.Join(missing...)
	})
}

// Release lets the ranks go on from a hold point.
func (r *Run) Release(tb testing.TB, name string) {
	tb.Helper()
	if err := os.WriteFile(filepath.Join(r.hold, name+".go"), nil, 0o644); err != nil {
		tb.Fatalf("releasing the job: %v", err)
	}
}

// Finish lets the ranks go on from the named hold points, waits for the job's end and fails the test if it wasn't
// regular.
func (r *Run) Finish(tb testing.TB, holds ...string) Result {
	tb.Helper()
	for _, name := range holds {
		r.Release(tb, name)
	}
	result := r.Wait(tb)
	if result.Status != 0 {
		tb.Fatalf("the job ended with %+v", result)
	}
	return result
}
