package e2e

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// Every function of every family, with both libraries: the page shows the calls and the bytes that the program knows
// it has made, in the midst of it and in the end, and no others. See test/programs/books.h.
func TestCallProfile(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		for _, p := range programsOf(t, mpi, "openmpi") {
			t.Run(mpi.Name+"/"+p.name, func(t *testing.T) {
				exporter := suite.Exporter(t)
				p.run(t, exporter, harness.Job{MPI: mpi, Exec: []string{"--calls"}})
			})
		}
	}
}

const asksForSizes = "MPIT_CALLS=sise,sizes"

// The same with sizes, and a word that nobody knows: those are what the programs' buffers have, and without having been
// asked for there are none (the test above). The log tells of the word.
func TestCallSizes(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		for _, p := range programsOf(t, mpi, "mpich") {
			t.Run(mpi.Name+"/"+p.name, func(t *testing.T) {
				exporter := suite.Exporter(t)
				end := p.run(t, exporter, harness.Job{MPI: mpi, Env: []string{asksForSizes, "MPIT_AGENT_LOG=1"}})
				assert.Contains(t, end.Stderr, `nobody knows the word "sise"`)
			})
		}
	}
}

// profileProgram is a program that keeps books.
type profileProgram struct {
	name, file string
	ranks      int
	rounds     int // its first argument; 0: it has none
	restart    bool
	families   []string // none: all
}

var profilePrograms = []profileProgram{
	{name: "messages", file: "profile_messages.c", ranks: 2, restart: true},
	{name: "collectives", file: "profile_collectives.c", ranks: 3},
	{name: "one-sided", file: "profile_onesided.c", ranks: 2},
	{name: "files", file: "profile_files.c", ranks: 2},
	{name: "threads", file: "profile_threads.c", ranks: 1, rounds: 100},
	{name: "churn", file: "profile_churn.c", ranks: 1, rounds: 5000},
}

// programsOf are all programs with one of the libraries, and messages with the other one; in make soak all with both.
// So each function is tried with each library, and with sizes and without.
func programsOf(t *testing.T, mpi *harness.MPI, all string) []profileProgram {
	if mpi.Name == all || soaks(t) > 0 {
		return profilePrograms
	}
	return profilePrograms[:1]
}

// run runs the program as the job says, and compares the page with the books: in the middle, before the end, and
// after it.
func (p profileProgram) run(t *testing.T, exporter *harness.Exporter, job harness.Job) harness.Result {
	t.Helper()
	asked, haveBytes := slices.Contains(job.Env, asksForSizes), functionsWithBytes(t)
	job.Ranks, job.Program, job.Socket = p.ranks, p.file, exporter.Socket
	job.Args = []string{harness.HoldDir}
	if p.rounds > 0 {
		job.Args = []string{strconv.Itoa(p.rounds), harness.HoldDir}
	}
	job.Args = append(job.Args, p.families...)
	job.Env = append(job.Env, "MPIT_AGENT_FINAL_WAIT=60000") // the last sample comes, however busy the machine
	run := suite.Run(t, job)
	run.AtHold(t, "half")
	half := readBooks(t, run, "half")
	scrape := exporter.Await(t, "the calls so far", all(up(run), profiled(run, half), sized(run, half, asked, haveBytes)))
	assertDurations(t, scrape, run, half)
	if p.restart {
		// The ranks keep their figures, so another exporter shows the same.
		exporter.Kill(t)
		exporter.Restart(t)
		again := exporter.Await(t, "the calls so far, by another exporter", all(up(run), profiled(run, half), sized(run,
			half, asked, haveBytes)))
		assertDurations(t, again, run, half)
	}

	run.Release(t, "half")
	run.AtHold(t, "done")
	done := readBooks(t, run, "done")
	scrape = exporter.Await(t, "all calls", all(up(run), profiled(run, done), sized(run, done, asked, haveBytes)))
	assertDurations(t, scrape, run, done)

	result := run.Finish(t, "done")
	end := readBooks(t, run, "end")
	scrape = exporter.Await(t, "the calls of the ended job", all(ended(run, "finalize"), profiled(run, end), sized(run,
		end, asked, haveBytes), healthy))
	assertDurations(t, scrape, run, end)
	return result
}

// Each of Fortran's bindings, and mpi4py: their calls count as C's, once.
func TestCallProfileOfLanguages(t *testing.T) {
	t.Parallel()
	languages := []struct {
		name, program string
		only          string // this MPI; empty: both
	}{
		{name: "mpif.h", program: "profile_mpifh.f"},
		{name: "use mpi", program: "profile_usempi.f90"},
		{name: "use mpi_f08", program: "profile_f08.f90"},
		{name: "Python", program: "profile.py", only: "openmpi"}, // Debian's mpi4py
	}
	for _, mpi := range harness.Both(t) {
		exporter := suite.Exporter(t)
		for _, language := range languages {
			if language.only != "" && language.only != mpi.Name {
				continue
			}
			t.Run(mpi.Name+"/"+language.name, func(t *testing.T) {
				run := suite.Run(t, harness.Job{
					MPI: mpi, Program: language.program, Args: []string{harness.HoldDir}, Socket: exporter.Socket,
					Exec: []string{"--calls"},
				})
				run.AtHold(t, "done")
				exporter.Await(t, "all calls", all(up(run), profiled(run, readBooks(t, run, "done"))))
				assert.Contains(t, run.Finish(t, "done").Stdout, "profile: done\n")
				exporter.Await(t, "the calls of the ended job",
					all(ended(run, "finalize"), profiled(run, readBooks(t, run, "end")), healthy))
			})
		}
	}
}
