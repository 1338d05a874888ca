package e2e

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// "make demo" shows live series of a real job, ends by itself and leaves nothing behind.
func TestDemo(t *testing.T) {
	t.Parallel()
	address := harness.FreeAddress(t)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	demo := suite.Start(t, []string{"make", "--no-print-directory", "-C", suite.Root(), "demo"},
		[]string{"DEMO_SECONDS=9", "DEMO_EVERY=2", "DEMO_PORT=" + port})
	result := demo.Wait(t)
	require.Zero(t, result.Status, "%s\n%s", result.Stdout, result.Stderr)
	output := result.Stdout + result.Stderr
	assert.Contains(t, output, "localhost:"+port+"/metrics")
	assert.Regexp(t, `4 ranks up`, output)
	// On a machine whose cores others use, ranks without one come first.
	assert.Regexp(t, `the verdict: (LATE RANK .* for rank 2|NO CORE) `, output)
	assert.Regexp(t, `rank 0: MPI_\w+.* \d+ calls of [\d.]+ us each`, output)
	assert.Empty(t, demo.Leftovers(), "processes of the demo still run")
	_, err = net.Dial("tcp", address)
	assert.Error(t, err, "somebody still listens")
}

// The jobs of docker-compose.yml have what all dashboards show: queues, and a call profile with sizes and peers; and
// one of them a rank that is late. They end at the first signal.
func TestComposeJobs(t *testing.T) {
	t.Parallel()
	mpi := harness.OpenMPI(t)
	bin := suite.Dir(t)
	for name, path := range map[string]string{
		"halo":          suite.Program(t, mpi, "examples/demo/halo.c"),
		"stencil":       suite.Program(t, mpi, "examples/calls/stencil.c"),
		"mpit-exporter": suite.Binary(),
	} {
		require.NoError(t, os.Symlink(path, filepath.Join(bin, name)))
	}
	exporter := suite.Exporter(t)
	jobs := suite.Start(t, []string{"bash", filepath.Join(suite.Root(), "examples/compose/job.sh")}, append(mpi.Env(),
		"PATH="+bin+":"+os.Getenv("PATH"), "MPIT_SOCKET="+exporter.Socket, "JOB_SECONDS=2", "TMPDIR="+suite.Dir(t)))
	has := func(name string, labels harness.Labels) check {
		return func(s *harness.Scrape) error {
			_, err := s.One(name, labels)
			return err
		}
	}
	// A job that has ended has no queues any more, but the next one has.
	exporter.Await(t, "a queue", has("mpit_pml_ob1_unexpected_msgq_length", harness.Labels{"rank": "0", "comm": "grid"}))
	exporter.Await(t, "both jobs", all(
		has("mpit_call_peer_bytes_total", harness.Labels{"jobid": "demo-1", "rank": "0", "peer": "1"}),
		has("mpit_call_size_bytes", harness.Labels{"jobid": "demo-1", "rank": "0", "function": "MPI_Isend"}),
		has("mpit_call_time_seconds", harness.Labels{"jobid": "demo-2", "rank": "0", "function": "MPI_File_open"}),
		has("mpit_call_time_seconds", harness.Labels{"jobid": "demo-2", "rank": "0", "function": "MPI_Allreduce"}),
	))
	jobs.Signal(t, syscall.SIGTERM)
	assert.Zero(t, jobs.Wait(t).Status)
}
