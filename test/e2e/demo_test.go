package e2e

import (
	"net"
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
	assert.Contains(t, output, unexpectedQueue)
	assert.Regexp(t, `4 ranks up`, output)
	assert.Regexp(t, `rank 3: \d+`, output)
	assert.Regexp(t, `rank 0: MPI_\w+.* \d+ calls of [\d.]+ us each`, output)
	assert.Empty(t, demo.Leftovers(), "processes of the demo still run")
	_, err = net.Dial("tcp", address)
	assert.Error(t, err, "somebody still listens")
}
