package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// MPI in the scope of a plug-in alone, as in Python: of the two preloaded libraries, one is called by the other,
// which can't see MPI either, and must not find the one in front of it. In any order the program runs as without
// them.
func TestPluginsMPI(t *testing.T) {
	t.Parallel()
	agent, calls := suite.Agent(), filepath.Join(suite.Root(), "bin", "libmpit-calls.so")
	program := suite.PlainProgram(t, "plugin.c", "any", "-ldl")
	for _, mpi := range harness.Both(t) {
		library := suite.Library(t, mpi, "libplugin.c")
		for name, preloaded := range map[string][]string{
			"nothing":      {},
			"agent":        {agent},
			"calls":        {calls},
			"calls, agent": {calls, agent},
			"agent, calls": {agent, calls},
		} {
			t.Run(mpi.Name+"/"+name, func(t *testing.T) {
				env := append(mpi.Env(), "LD_PRELOAD="+strings.Join(preloaded, ":"),
					"MPIT_SOCKET="+filepath.Join(suite.Dir(t), "nobody.sock"))
				end := suite.Start(t, []string{program, library}, env).Wait(t)
				assert.Zero(t, end.Status, end.Stderr)
				assert.Equal(t, "plugin: codes 0 0 0 0 0 0 0, received 4\n", end.Stdout)
			})
		}
	}
}
