package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// standardProgram compiles test/programs/standard.c with libstandard.c as libmpi_abi.so.1 and returns its path.
func standardProgram(t *testing.T, variant string, flags ...string) string {
	t.Helper()
	programs, agent := filepath.Join(suite.Root(), "test", "programs"), filepath.Join(suite.Root(), "mpit", "agent")
	flags = append([]string{"-I" + agent}, flags...)
	library := filepath.Join(suite.Dir(t), "libmpi_abi.so.1")
	shared := append(flags, filepath.Join(programs, "libstandard_rest.c"), "-shared", "-fPIC",
		"-Wl,-soname,libmpi_abi.so.1")
	built := suite.PlainProgram(t, "libstandard.c", variant, shared...)
	require.NoError(t, os.Link(built, library))
	return suite.PlainProgram(t, "standard.c", variant, append(flags, library, "-Wl,-rpath,"+filepath.Dir(library))...)
}

// A library that says that it has version 1 of MPI-5's own ABI is observed through it, whatever its version string;
// the library is asked how much a status tells of. Where a library doesn't say so (MPICH 4.3's libmpi_abi.so), or has
// a version that there is not yet, the program runs on unobserved. scripts/test-standard-abi has the real libraries.
func TestStandardABI(t *testing.T) {
	t.Run("version 1", func(t *testing.T) {
		exporter := suite.Exporter(t)
		program := standardProgram(t, "one", "-DABI_VERSION=1")
		// however busy the machine
		env := []string{"MPIT_SOCKET=" + exporter.Socket, "MPIT_JOB_ID=standard", "MPIT_AGENT_FINAL_WAIT=60000"}
		run := suite.Start(t, append(suite.ExecCommand("--calls"), program), env)
		assert.Equal(t, harness.Result{Stdout: "standard: done\n"}, run.Wait(t))
		received := harness.Labels{"jobid": "standard", "rank": "0", "function": "MPI_Recv", "direction": "received"}
		exporter.Await(t, "the last sample", func(s *harness.Scrape) error {
			return s.Expect("mpit_call_bytes_total", received, 2*40)
		})
	})
	t.Run("its number", func(t *testing.T) {
		l := tool(t)
		program := standardProgram(t, "one", "-DABI_VERSION=1")
		run := suite.Start(t, append(suite.ExecCommand(), program), []string{"MPIT_SOCKET=" + l.Path()})
		s, err := l.Accept(toolContext(t))
		require.NoError(t, err)
		assert.Equal(t, mpit.ABIStandard, s.Hello().ABI)
		require.NoError(t, s.Close())
		assert.Zero(t, run.Wait(t).Status)
	})
	for variant, flags := range map[string][]string{"later": {"-DABI_VERSION=2"}, "earlier": nil} {
		t.Run(variant, func(t *testing.T) {
			program := standardProgram(t, variant, flags...)
			run := suite.Start(t, append(suite.ExecCommand("--calls"), program), []string{"MPIT_AGENT_LOG=1"}).Wait(t)
			assert.Equal(t, "standard: done\n", run.Stdout)
			assert.Zero(t, run.Status)
			assert.Contains(t, run.Stderr,
				`no ABI that the agent knows fits "MPICH Version: 5.99"; the program runs on unobserved`)
		})
	}
}
