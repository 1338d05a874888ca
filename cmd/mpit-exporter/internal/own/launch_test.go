package own

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// processes is a /proc with these, "name parent" by pid. They were started at a hundred times their number.
func processes(t *testing.T, all map[int]string) (dir string) {
	t.Helper()
	proc := fstest.MapFS{}
	for pid, text := range all {
		var name string
		var parent int
		if _, err := fmt.Sscan(text, &name, &parent); err != nil {
			panic(err)
		}
		proc[fmt.Sprintf("%d/stat", pid)] = &fstest.MapFile{Data: fmt.Appendf(nil,
			"%d (%s) S %d 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 %d 1 1%s", pid, name, parent, 100*pid,
			strings.Repeat(" 0", 40))}
	}
	dir = t.TempDir()
	require.NoError(t, os.CopyFS(dir, proc))
	return dir
}

// TestLaunch: the processes of one launch on one node agree, and nobody else with them.
func TestLaunch(t *testing.T) {
	proc := processes(t, map[int]string{
		1: "systemd 0", 50: "slurmstepd 1", 51: "slurmstepd 1",
		100: "mpirun 1", 101: "app 100", 102: "app 100", 103: "wrapper.sh 100", 104: "app) 103",
		105: "wrapper.sh 100", 106: "app 105",
		200: "hydra_pmi_proxy 1", 201: "app 200", 202: "sh 200", 203: "app 202",
		300: "bash 1", 301: "app 300", 302: "app 300", 310: "bash 1", 311: "app 310",
	})
	key := func(host string, pid int, env ...string) string { return launchOf(env, host, pid, proc) }
	pmix := func(namespace, port string) []string {
		return []string{"PMIX_NAMESPACE=" + namespace,
			"PMIX_SERVER_URI2=" + namespace + ".0;tcp4://127.0.0.1:" + port, "PMIX_RANK=1"}
	}
	slurm := func(job, step string) []string { return []string{"SLURM_JOB_ID=" + job, "SLURM_STEP_ID=" + step} }

	one := key("node", 101, pmix("77", "4000")...)
	assert.True(t, isKey(one), one)
	assert.Equal(t, one, key("node", 102, append(pmix("77", "4000"), "OTHER=1")...), "another rank")
	assert.Equal(t, one, key("node", 104, pmix("77", "4000")...), "behind a script of its own")
	for what, other := range map[string]string{
		"another node":   key("other", 101, pmix("77", "4000")...),
		"another launch": key("node", 101, pmix("78", "4000")...),
		"a launch that happens to have the same name": key("node", 101, pmix("77", "4001")...),
	} {
		assert.NotEqual(t, one, other, what)
	}

	step := key("node", 101, slurm("17", "0")...)
	assert.Equal(t, step, key("node", 201, slurm("17", "0")...))
	assert.NotEqual(t, step, key("node", 101, slurm("17", "1")...), "another step")
	assert.NotEqual(t, step, key("node", 101, slurm("18", "0")...), "another job")

	// MPICH's Hydra gives its processes no name of their launch.
	hydra := key("node", 201, "PMI_RANK=0", "PMI_FD=6")
	assert.Equal(t, hydra, key("node", 203, "PMI_RANK=1", "PMI_FD=8"), "behind a script of its own")
	assert.NotEqual(t, hydra, key("node", 101, "PMI_RANK=0", "PMI_FD=6"), "another launcher")
	batch := key("node", 201, append(slurm("17", "4294967291"), "PMI_RANK=0")...)
	assert.Equal(t, batch, key("node", 203, append(slurm("17", "4294967291"), "PMI_RANK=1")...))
	assert.NotEqual(t, batch, key("node", 101, append(slurm("17", "4294967291"), "PMI_RANK=0")...),
		"a second mpirun in the same script")

	alone := key("node", 301)
	assert.Equal(t, alone, key("node", 302), "two programs of one shell share one")
	assert.NotEqual(t, alone, key("node", 311), "another shell")
	assert.NotEqual(t, alone, key("node", 301, "MPIT_JOB_ID=mine"))
}

// TestLaunchWithoutProc: where /proc can't be read, there is one all the same.
func TestLaunchWithoutProc(t *testing.T) {
	assert.True(t, isKey(launchOf(nil, "node", 1, t.TempDir())))
	assert.True(t, isKey(launchOf(nil, "node", 1, "/none")))
}

func TestLauncherIsNotLookedForForEver(t *testing.T) {
	loop := processes(t, map[int]string{10: "a 11", 11: "b 10"})
	assert.Equal(t, "11@1100", launcherOf(loop, 10))
}
