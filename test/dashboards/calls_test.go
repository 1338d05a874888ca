package dashboards

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// The jobs of examples/calls/stencil.c: two ranks, of which rank 1 does twice the work, on MPICH, whose ranks spin,
// four times.
const (
	stencilOpenMPI, stencilMPICH = "stencil-openmpi", "stencil-mpich"

	steps, cells, every = 450, 64, 45
	slow                = 1
)

// profiled is a job that has ended, and what its ranks say themselves: how long they were in which function, and how
// long all steps took, by their own clock.
type profiled struct {
	id         string
	spent      []map[string]float64 // by rank; seconds
	took       float64              // seconds
	half, seen time.Time            // amid its steps, and when it was last scraped
}

func startStencil(t *testing.T, mpi *harness.MPI, id string, node *harness.Exporter) *harness.Run {
	t.Helper()
	factor := 2
	if mpi.Name == "mpich" {
		factor = 4
	}
	return suite.Run(t, harness.Job{
		MPI: mpi, Program: "examples/calls/stencil.c", Socket: node.Socket, ID: id, Exec: []string{"--calls=sizes,peers"},
		Args: []string{
			"--seconds=0", fmt.Sprintf("--steps=%d", steps), fmt.Sprintf("--cells=%d", cells), "--pause=20",
			fmt.Sprintf("--slow=%d", slow), fmt.Sprintf("--factor=%d", factor),
			"--output=" + filepath.Join(harness.HoldDir, "plate"), fmt.Sprintf("--every=%d", every), "--report",
		},
	})
}

var said = regexp.MustCompile(`(MPI_\w+) ([0-9.]+) s`)

func endOfStencil(t *testing.T, run *harness.Run) profiled {
	t.Helper()
	job := profiled{id: run.ID}
	result := run.Finish(t)
	for _, line := range regexp.MustCompile(`(?m)^rank \d+: .*$`).FindAllString(result.Stdout, -1) {
		spent := map[string]float64{}
		for _, m := range said.FindAllStringSubmatch(line, -1) {
			seconds, err := strconv.ParseFloat(m[2], 64)
			require.NoError(t, err)
			spent[m[1]] = seconds
		}
		job.spent = append(job.spent, spent)
	}
	require.Len(t, job.spent, 2, result.Stdout)
	step := regexp.MustCompile(`([0-9.]+) us a step`).FindStringSubmatch(result.Stdout)
	require.NotNil(t, step, result.Stdout)
	microseconds, err := strconv.ParseFloat(step[1], 64)
	require.NoError(t, err)
	job.took = steps * microseconds / 1e6
	return job
}

// What the dashboard of the call profile says of jobs that know it themselves, with both libraries.
func (s site) testCalls(t *testing.T) {
	for _, d := range read(t) {
		if d.UID != "mpit-calls" {
			continue
		}
		for _, values := range s.choices(t, d) {
			for _, job := range s.profiled {
				if values["jobid"] != job.id {
					continue
				}
				if s.server.Native && !s.server.LastNative {
					s.to = job.seen // it knows nothing of what has ended
				}
				t.Run(job.id, func(t *testing.T) { s.testProfile(t, d, job, values) })
			}
		}
	}
}

func (s site) testProfile(t *testing.T, d dashboard, job profiled, values map[string]string) {
	for _, p := range d.all() {
		found := 0
		for _, q := range p.Targets {
			samples, err := s.ask(t.Context(), q, values)
			require.NoError(t, err)
			found += len(samples)
		}
		assert.Positive(t, found, "%s has no data", p.Title)
	}

	const ranks, sides = 2, 4
	of := func(function string) (all float64) {
		for _, spent := range job.spent {
			all += spent[function]
		}
		return all
	}
	functions := panelOf(t, d.UID, "Functions and communicators")
	rows := map[string]tableRow{}
	for _, row := range s.rows(t, functions, values) {
		rows[row.labels["function"]+" "+row.labels["comm"]+row.labels["file"]] = row
	}
	for _, want := range []struct {
		row          string
		calls, bytes float64 // of all ranks
		spent        float64
	}{
		{"MPI_Irecv grid", ranks * sides * steps, ranks * sides * steps * cells * 8, 0},
		{"MPI_Isend grid", ranks * sides * steps, ranks * sides * steps * cells * 8, 0},
		{"MPI_Waitall ", ranks * steps, 0, 0},
		{"MPI_Allreduce residual", ranks * steps, ranks * steps * 2 * 2 * 8, of("MPI_Allreduce")},
		{"MPI_Comm_dup grid", ranks, 0, 0},
	} {
		row := rows[want.row]
		assert.Equal(t, want.calls, row.values[letter(t, functions, "Calls")], "calls of %s", want.row)
		assert.Equal(t, want.bytes, row.values[letter(t, functions, "Bytes")], "bytes of %s", want.row)
		if want.spent > 0 {
			assert.InEpsilon(t, want.spent, row.values[letter(t, functions, "Time")], 0.1, "time in %s", want.row)
		}
	}
	written := rows["MPI_File_write_all "+job.file(rows)]
	assert.Equal(t, ranks*steps/every*1.0, written.values[letter(t, functions, "Calls")])
	assert.Equal(t, ranks*steps/every*(cells+2)*(cells+2)*8.0, written.values[letter(t, functions, "Bytes")])

	s.testSizes(t, panelOf(t, d.UID, "Sizes of calls"), values)

	// In one dimension each rank has the other one at both sides, in the other dimension itself.
	pairs := panelOf(t, d.UID, "Busiest pairs")
	sent := s.rows(t, pairs, values)
	assert.Len(t, sent, ranks*ranks)
	for _, row := range sent {
		assert.Equal(t, sides/2*steps*cells*8.0, row.values[letter(t, pairs, "Bytes")], "%v", row.labels)
		assert.Equal(t, sides/2*steps*1.0, row.values[letter(t, pairs, "Messages")], "%v", row.labels)
	}

	// A rank waits as long as its allreduces take longer than those of the other one: for rank 1, if the machine is idle.
	// Making communicators takes next to nothing.
	balance := panelOf(t, d.UID, "Rank by rank")
	seen := 0
	for _, row := range s.rows(t, balance, values) {
		seen++
		waited := row.values[letter(t, balance, "Waited at least")]
		rank, err := strconv.Atoi(row.labels["rank"])
		require.NoError(t, err)
		want := max(0, job.spent[rank]["MPI_Allreduce"]-job.spent[1-rank]["MPI_Allreduce"])
		assert.InDelta(t, want, waited, max(0.1*want, 0.05), "rank %d", rank)
	}
	assert.Equal(t, ranks, seen)
	least := 0
	if job.spent[1]["MPI_Allreduce"] < job.spent[0]["MPI_Allreduce"] {
		least = 1
	}
	late := panelOf(t, d.UID, "Who is late, by communicator")
	for _, row := range s.rows(t, late, values) {
		if row.labels["comm"] == "residual" {
			assert.Equal(t, strconv.Itoa(least), row.labels["rank"])
		}
	}
}

// All calls of a function have the same size here, so that any quantile lies between the bounds around it.
func (s site) testSizes(t *testing.T, p panel, values map[string]string) {
	between := map[string][2]float64{ // on /metrics, the factor between two bounds is 4
		"MPI_Isend grid": {256, 1024}, "MPI_Irecv grid": {256, 1024}, "MPI_Allreduce residual": {4, 16},
	}
	seen := map[string]int{}
	for _, q := range p.Targets {
		samples, err := s.ask(t.Context(), q, values)
		require.NoError(t, err)
		for _, sample := range samples {
			of := sample.Labels["function"] + " " + sample.Labels["comm"]
			bounds, known := between[of]
			if !known {
				continue
			}
			seen[of]++
			assert.True(t, sample.Value > bounds[0] && sample.Value <= bounds[1], "%s of %v bytes", of, sample.Value)
		}
	}
	for of := range between {
		assert.Positive(t, seen[of], "sizes of %s", of)
	}
}

// file is the name that the job's file has.
func (job profiled) file(rows map[string]tableRow) string {
	for _, row := range rows {
		if row.labels["function"] == "MPI_File_write_all" {
			return row.labels["file"]
		}
	}
	return ""
}
