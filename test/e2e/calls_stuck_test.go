package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// inside are a rank's figures of time inside MPI.
type inside struct{ inside, observed, running float64 }

func insideOf(s *harness.Scrape, run *harness.Run, rank int) (i inside, err error) {
	running, err := s.One("mpit_call_running_seconds", run.Labels(rank))
	if err != nil {
		return i, err
	}
	i.running = running.Value
	i.inside, i.observed = timeOf(s, run, rank)
	return i, nil
}

// timeOf is a rank's time inside MPI, and all that was observed.
func timeOf(s *harness.Scrape, run *harness.Run, rank int) (inside, observed float64) {
	for _, state := range s.Select("mpit_rank_seconds_total", run.Labels(rank)) {
		observed += state.Value
		if state.Labels["state"] != "outside" {
			inside += state.Value
		}
	}
	return inside, observed
}

// A rank that is stuck says so while it is, with where it is; when it goes on, its time inside MPI is what it has
// measured by its own clock.
func TestCallsUnderWay(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			run := suite.Run(t, harness.Job{
				MPI: mpi, Program: "profile_stuck.c", Args: []string{harness.HoldDir}, Socket: exporter.Socket,
				Exec: []string{"--calls"}, Env: []string{"MPIT_AGENT_FINAL_WAIT=60000"},
			})
			run.AtHold(t, "late", 1)
			of := func(s *harness.Scrape, rank int) inside {
				t.Helper()
				i, err := insideOf(s, run, rank)
				require.NoError(t, err)
				return i
			}
			barrier := run.Labels(0).With("function", "MPI_Barrier").With("comm", "halo")
			first := exporter.Await(t, "the call", all(up(run), expect("mpit_call_running_info", barrier, 1)))
			call, err := first.One("mpit_call_running_info", barrier)
			require.NoError(t, err)
			assert.Equal(t, suite.Program(t, mpi, "profile_stuck.c"), call.Labels["module"])
			assert.True(t, strings.HasPrefix(call.Labels["offset"], "0x"), "%v", call)
			before, other := of(first, 0), of(first, 1)
			later := exporter.Await(t, "another second of it", func(s *harness.Scrape) error {
				if now, err := insideOf(s, run, 0); err != nil || now.running < before.running+1 {
					return fmt.Errorf("%v after %v: %w", now, before, err)
				}
				return absent("mpit_call_running_info", run.Labels(1))(s)
			})
			now, others := of(later, 0), of(later, 1)
			assert.Greater(t, now.inside-before.inside, 0.9)
			assert.LessOrEqual(t, now.inside-before.inside, now.observed-before.observed+1e-8, "a share is never above 1")
			assert.InDelta(t, now.observed-before.observed, now.inside-before.inside, 1e-6, "and 1 in a hang")
			assert.InDelta(t, other.inside, others.inside, 0, "the other one is in no call")
			assert.Zero(t, others.running)
			assert.Greater(t, others.observed, other.observed+0.9)

			plain := suite.Start(t, []string{suite.Binary(), "top", "--url=" + exporter.URL(""), "--count=1",
				"--interval=1s"}, nil).Wait(t)
			terminal := suite.Terminal(t, []string{suite.Binary(), "top", "--url=" + exporter.URL(""), "--interval=1s"}, nil,
				100, 30)
			shown := terminal.Await(t, "an interval of the hang", contains(" 100 %", " % useful"))
			for _, text := range []string{plain.Stdout, shown} {
				assert.Regexp(t, `(?m)^ *\d+s +MPI_Barrier +halo +0 +waits_for_the_others \(profile_stuck\.c:\d+\)$`, text)
				assert.Regexp(t, `(?m)^ +- +\(in no long call\) +- +1 +-$`, text)
				assert.Regexp(t, busyOr(`LATE RANK  [45]\d % useful; [45]\d % of the time ranks wait in MPI_Barrier on halo at \S+\s\S+ for\s`+
					`rank 1 on |WAITING  rank 0 has waited \d+s in MPI_Barrier on halo at \S+ \S+, for rank 1 on `),
					text)
			}

			run.Release(t, "late")
			run.AtHold(t, "done")
			scrape := exporter.Await(t, "no call", all(up(run), expect("mpit_call_running_seconds", run.Labels(0), 0),
				absent("mpit_call_running_info", run.Labels(0))))
			seconds := 0.0
			for _, calls := range readBooks(t, run, "done")[0] {
				seconds += calls.seconds
			}
			went := of(scrape, 0)
			assert.InEpsilon(t, seconds, went.inside, 0.01, "by the program's own clock")
			assert.LessOrEqual(t, went.inside, went.observed)
			assert.GreaterOrEqual(t, went.inside, now.inside, "it never falls")
			run.Finish(t, "done")
			end := exporter.Await(t, "the end", all(ended(run, "finalize"),
				absent("mpit_call_running_seconds", harness.Labels{"jobid": run.ID}), healthy))
			last, _ := timeOf(end, run, 0)
			assert.GreaterOrEqual(t, last, went.inside)
		})
	}
}

// A place is the program's own also where bindings lie between it and MPI; mpi4py's is none, and its job is called by its
// script.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		for program, place := range map[string]string{
			"stuck_f08.f90": `stuck_f08\.f90:17`,
			"stuck_mpifh.f": `waits_for_the_others_ \(stuck_mpifh\.f:20\)`,
			"stuck.py":      `-$`,
		} {
			if program == "stuck.py" && mpi.Name != "openmpi" { // Debian's mpi4py
				continue
			}
			t.Run(mpi.Name+"/"+program, func(t *testing.T) {
				exporter := suite.Exporter(t)
				run := suite.Run(t, harness.Job{MPI: mpi, Program: program, Args: []string{harness.HoldDir},
					Socket: exporter.Socket, Exec: []string{"--calls"}})
				run.AtHold(t, "late", 1)
				barrier := run.Labels(0).With("function", "MPI_Barrier")
				scrape := exporter.Await(t, "the call", all(up(run), expect("mpit_call_running_info", barrier, 1)))
				process, err := scrape.One("mpit_process_info", run.Labels(0))
				require.NoError(t, err)
				call, err := scrape.One("mpit_call_running_info", barrier)
				require.NoError(t, err)
				if program == "stuck.py" {
					assert.True(t, strings.HasSuffix(process.Labels["executable"], "/stuck.py"), "%v", process.Labels)
					assert.Empty(t, call.Labels["module"])
				} else {
					assert.Equal(t, suite.Program(t, mpi, program), call.Labels["module"])
				}
				top := suite.Start(t, []string{suite.Binary(), "top", "--url=" + exporter.URL(""), "--count=1",
					"--interval=1s"}, nil).Wait(t)
				assert.Regexp(t, `(?m)MPI_Barrier +MPI_COMM_WORLD +0 .*`+place, top.Stdout)
				run.Release(t, "late")
				run.Finish(t)
			})
		}
	}
}
