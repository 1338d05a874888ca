package e2e

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// The same tour in every language: the page shows the job while it runs, what it has made, and how it ended; and the
// job notices nothing.
func TestLanguages(t *testing.T) {
	t.Parallel()
	languages := []struct {
		name, program string
		only          string // this MPI; empty: both
	}{
		{name: "C", program: "tour.c"},
		{name: "C++", program: "tour.cpp"},
		{name: "mpif.h", program: "tour_mpifh.f"},
		{name: "use mpi", program: "tour_usempi.f90"},
		{name: "use mpi_f08", program: "tour_f08.f90"},
		{name: "Python", program: "tour.py", only: "openmpi"}, // Debian's mpi4py
	}
	for _, mpi := range harness.Both(t) {
		exporter := suite.Exporter(t)
		for _, language := range languages {
			if language.only != "" && language.only != mpi.Name {
				continue
			}
			t.Run(mpi.Name+"/"+language.name, func(t *testing.T) {
				bare := suite.Run(t, harness.Job{MPI: mpi, Program: language.program, Args: []string{"-"},
					Bare: true}).Wait(t)
				require.Zero(t, bare.Status, bare.Stderr)

				run := suite.Run(t, harness.Job{
					MPI: mpi, Program: language.program, Args: []string{harness.HoldDir}, Socket: exporter.Socket,
				})
				run.AtHold(t, "made")
				scrape := exporter.Await(t, "what the tour has made", all(
					up(run),
					objects(run, "comm", "MPI_COMM_WORLD", 1),
					objects(run, "comm", "ring", 1),
					objects(run, "comm", "half", 0), // freed
					objects(run, "win", "box", 1),
				))
				for rank := range run.Ranks {
					checkProcess(t, scrape, run, mpi, rank, language.program)
					ring, err := scrape.One("mpit_object_info",
						run.Labels(rank).With("kind", "comm").With("name", "ring"))
					require.NoError(t, err)
					assert.Equal(t, "2", ring.Labels["size"])
					assert.Equal(t, strconv.Itoa(rank), ring.Labels["object_rank"])
				}

				run.Release(t, "made")
				run.AtHold(t, "freed")
				exporter.Await(t, "objects that are gone",
					all(up(run), objects(run, "comm", "ring", 0), objects(run, "win", "box", 0)))

				assert.Equal(t, bare, run.Finish(t, "freed"))
				exporter.Await(t, "a regular end", all(ended(run, "finalize"),
					objects(run, "comm", "MPI_COMM_WORLD", 0), healthy))
			})
		}
	}
}

// checkProcess compares mpit_process_info with what the kernel and the job know.
func checkProcess(t *testing.T, scrape *harness.Scrape, run *harness.Run, mpi *harness.MPI, rank int, program string) {
	t.Helper()
	info, err := scrape.One("mpit_process_info", run.Labels(rank))
	require.NoError(t, err)
	assert.Equal(t, 1.0, info.Value)
	assert.Equal(t, mpi.Name, info.Labels["library"])
	assert.Regexp(t, `^\d+\.\d+`, info.Labels["library_version"])
	assert.Equal(t, strconv.Itoa(run.Ranks), info.Labels["world_size"])

	host, err := os.Hostname()
	require.NoError(t, err)
	assert.Equal(t, host, info.Labels["host"])
	me, err := user.Current()
	require.NoError(t, err)
	assert.Equal(t, me.Uid, info.Labels["uid"])
	assert.Equal(t, me.Username, info.Labels["user"])

	pid, err := strconv.Atoi(info.Labels["pid"])
	require.NoError(t, err)
	assert.True(t, slices.Contains(run.Leftovers(), pid), "pid %d isn't one of the job's processes", pid)
	executable, err := os.Readlink("/proc/" + info.Labels["pid"] + "/exe")
	require.NoError(t, err)
	if filepath.Ext(program) == ".py" { // called by its script, not by what interprets it
		executable = filepath.Join(suite.Root(), "test", "programs", program)
	}
	assert.Contains(t, []string{executable, filepath.Base(executable)}, info.Labels["executable"])
}
