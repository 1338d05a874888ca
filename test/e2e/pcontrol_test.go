package e2e

import (
	"errors"
	"strconv"
	"testing"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// called: how often the ranks have called MPI_Pcontrol.
func called(run *harness.Run, calls float64) check {
	return func(s *harness.Scrape) error {
		var failed []error
		for rank := range run.Ranks {
			failed = append(failed, s.Expect("mpit_pcontrol_calls_total", run.Labels(rank), calls))
		}
		return errors.Join(failed...)
	}
}

// controlled: the same of ranks that are there, and their present level.
func controlled(run *harness.Run, level, calls float64) check {
	return all(called(run, calls), func(s *harness.Scrape) error {
		var failed []error
		for rank := range run.Ranks {
			failed = append(failed, s.Expect("mpit_pcontrol_level", run.Labels(rank), level))
		}
		return errors.Join(failed...)
	})
}

// What a program counts while it has switched observation off does not show: not then, not later, not under another
// name, not of an object that came or went meanwhile.
func TestPcontrolSubtractsWhatIsCountedMeanwhile(t *testing.T) {
	t.Parallel()
	const n = 12
	exporter := suite.Exporter(t)
	run := suite.Run(t, harness.Job{
		MPI: harness.OpenMPI(t), Program: "pcontrol.c", Args: []string{strconv.Itoa(n), harness.HoldDir},
		Exec: []string{"--monitoring"}, Socket: exporter.Socket,
	})
	sums := func(comm string, want float64) check { return counted(run, allToAllCalls, comm, always(want)) }
	steps := []struct {
		hold string
		want check
	}{
		{"on", all(sums("sums", n), absent("mpit_pcontrol_level", run.Labels(0)))},
		{"off", all(sums("sums", n), sums("quiet", 0), sums("gone", 0), controlled(run, 0, 1))},
		{"back", all(sums("sums", n), sums("quiet", 0), sums("gone", 0), controlled(run, 1, 2))},
		{"counted", all(sums("sums", 2*n), sums("quiet", n), controlled(run, 1, 2))},
		{"two", all(sums("sums", 2*n), controlled(run, 2, 3))},
		{"level", all(sums("sums", 3*n), controlled(run, 7, 4))},
		{"renamed", all(sums("sums", 3*n), sums("later", n), controlled(run, 1, 6))},
		{"again", all(sums("sums", 3*n), sums("later", 2*n), controlled(run, -5, 11))},
		{"last", all(sums("sums", 3*n), sums("later", 2*n), controlled(run, 0, 12))},
	}
	for _, step := range steps {
		run.AtHold(t, step.hold)
		exporter.Await(t, "the figures at "+step.hold, all(up(run), step.want))
		run.Release(t, step.hold)
	}
	run.Finish(t)
	exporter.Await(t, "the figures of the ended job", all(ended(run, "finalize"),
		sums("sums", 3*n), sums("later", 2*n), sums("quiet", n), sums("gone", 0), called(run, 12), healthy))
}

// The calls come through from each language, with both libraries.
func TestPcontrolOfEachLanguage(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		for _, program := range []string{"pcontrol_f08.f90", "pcontrol_mpifh.f90"} {
			t.Run(mpi.Name+" "+program, func(t *testing.T) {
				exporter := suite.Exporter(t)
				run := suite.Run(t, harness.Job{MPI: mpi, Program: program, Args: []string{harness.HoldDir},
					Socket: exporter.Socket})
				run.AtHold(t, "said")
				exporter.Await(t, "each call once", all(up(run), controlled(run, 41, 4)))
				run.Finish(t, "said")
				exporter.Await(t, "the end", all(ended(run, "finalize"), called(run, 4), healthy))
			})
		}
	}
	t.Run("mpich pcontrol.c", func(t *testing.T) {
		exporter := suite.Exporter(t)
		run := suite.Run(t, harness.Job{MPI: harness.MPICH(t), Program: "pcontrol.c", Args: []string{"3", "-"},
			Socket: exporter.Socket})
		run.Finish(t)
		exporter.Await(t, "all calls of a program that has ended",
			all(ended(run, "finalize"), called(run, 12), healthy))
	})
}
