package zoo

import (
	"fmt"
	"testing"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// Job is what starts the program in a directory, with flags of exec. far is the socket of the upper half of its ranks,
// if that is another one.
func (k *Kind) Job(tb testing.TB, mpi *harness.MPI, d Draw, near, far, dir string, exec ...string) harness.Job {
	tb.Helper()
	run := harness.Job{MPI: mpi, Ranks: k.Ranks, Program: "zoo/" + k.Program, Args: k.Args(d), Socket: near, Dir: dir,
		Exec: exec}
	if k.Command != nil {
		run.Program, run.Command = "", append([]string{harness.Tool(tb, k.Command[0])}, k.Command[1:]...)
	}
	script := `rank="${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"; `
	if far != "" {
		script += fmt.Sprintf("test $((2 * rank)) -lt %d || export MPIT_SOCKET='%s'; ", k.Ranks, far)
	}
	switch {
	case k.Pinned:
		script += `exec taskset -c $((rank % 2)) "$@"`
		run.Env = append(run.Env, "OMPI_MCA_mpi_yield_when_idle=0")
	case k.Cores != "":
		script += `exec taskset -c ` + k.Cores + ` "$@"`
	default:
		script += `exec "$@"`
	}
	run.Wrap = []string{"sh", "-c", script, "sh"}
	return run
}
