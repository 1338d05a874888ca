package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// How much memory a rank has to itself: the program alone, and what exec and its call profile add. BENCH_BESIDE is the
// path of another build of the exporter, beside its libraries.
func BenchmarkMemoryOfRanks(b *testing.B) {
	for _, mpi := range []*harness.MPI{harness.OpenMPI(b), harness.MPICH(b)} {
		var alone float64
		measure := func(name string, job harness.Job, less *float64, unit string) {
			b.Run(mpi.Name+"/"+name, func(b *testing.B) {
				sum := 0.0
				for range b.N {
					sum += private(b, job)
				}
				b.ReportMetric(sum/float64(b.N)-*less, unit)
				if job.Bare {
					alone = sum / float64(b.N)
				}
			})
		}
		measure("alone", harness.Job{MPI: mpi, Bare: true}, new(float64), "KiB/rank")
		for _, flag := range []string{"", "--calls=light", "--calls", "--calls=peers", "--calls=sizes,peers"} {
			job := harness.Job{MPI: mpi, Exec: strings.Fields(flag)}
			measure("exec"+flag, job, &alone, "more-KiB/rank")
			if job.Binary = os.Getenv("BENCH_BESIDE"); job.Binary != "" && flag != "--calls=light" { // which it may not know
				measure("beside/exec"+flag, job, &alone, "more-KiB/rank")
			}
		}
	}
}

// private runs a job of two ranks, which are asked three times, and returns what no other process shares of the memory
// of one, in KiB.
func private(b *testing.B, job harness.Job) (kib float64) {
	b.Helper()
	exporter := suite.Exporter(b)
	job.Program, job.Args, job.Socket = "traffic.c", []string{"50", "100", harness.HoldDir}, exporter.Socket
	run := suite.Run(b, job)
	run.AtHold(b, "ready")
	run.Release(b, "ready")
	run.AtHold(b, "half")
	if !job.Bare {
		for range 3 {
			exporter.Await(b, "the ranks", up(run))
		}
	}
	for _, pid := range pidsOf(b, run) {
		rollup := readProc(b, pid, "smaps_rollup")
		for _, kind := range []string{"Clean", "Dirty"} {
			kib += float64(numberIn(b, rollup, `(?m)^Private_`+kind+`:\s+(\d+) kB`)) / float64(run.Ranks)
		}
	}
	run.Finish(b, "half", "done")
	return kib
}

// pidsOf are the processes of a job's ranks: their program has the directory of the hold points as an argument, and
// isn't the launcher or an exporter.
func pidsOf(b *testing.B, run *harness.Run) (pids []int) {
	b.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(b, err)
	for _, path := range all {
		text, err := os.ReadFile(path)
		if args := strings.Split(string(text), "\x00"); err == nil && strings.HasPrefix(filepath.Base(args[0]), "traffic-c.") &&
			strings.Contains(string(text), run.HoldDir()+"\x00") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			require.NoError(b, err)
			pids = append(pids, pid)
		}
	}
	require.Len(b, pids, run.Ranks, fmt.Sprint("processes of ", run.ID))
	return pids
}
