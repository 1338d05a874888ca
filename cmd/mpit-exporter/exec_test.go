package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/preload"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// TestExecBecomesTheProgram: same process, same status, and the limits and signals that the program would have had.
func TestExecBecomesTheProgram(t *testing.T) {
	script := `echo $$; ulimit -Sn; grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; exit 7`
	// As it is started by hand, and in a script's background.
	for _, trap := range []string{"", "trap '' INT HUP; "} {
		direct := exec.Command("sh", "-c", trap+`exec "$@"`, "sh", "sh", "-c", script)
		direct.Env = cleanEnviron()
		want := wait(t, direct)

		cmd := exec.Command("sh", "-c", trap+`exec "$@"`, "sh", binary(t), "exec", "--", "sh", "-c", script)
		cmd.Env = cleanEnviron()
		got := wait(t, cmd)
		assert.Equal(t, 7, got.status)
		assert.Empty(t, got.stderr)
		pid, rest, _ := strings.Cut(got.stdout, "\n")
		assert.Equal(t, strconv.Itoa(cmd.Process.Pid), pid)
		_, wantRest, _ := strings.Cut(want.stdout, "\n")
		assert.Equal(t, wantRest, rest)
	}
}

func TestExecSetsTheEnvironment(t *testing.T) {
	dir := mpittest.ShortDir(t)
	cmd := exec.Command(binary(t), "exec", "--socket=agent.sock", "--job-id=job 1", "--deny=osc_*", "--deny=x",
		"--log", "--allow-write", "--monitoring", "--", "env")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PWD=" + dir, "KEPT=yes"}
	got := wait(t, cmd)
	require.Zero(t, got.status, got.stderr)
	assert.ElementsMatch(t, []string{
		"PATH=" + os.Getenv("PATH"),
		"PWD=" + dir,
		"KEPT=yes",
		"LD_PRELOAD=" + filepath.Join(built(t), preload.AgentLibraryName),
		"MPIT_SOCKET=" + filepath.Join(dir, "agent.sock"), // the program may change its directory
		"MPIT_JOB_ID=job 1",
		"MPIT_AGENT_DENY=+osc_*,x",
		"MPIT_AGENT_LOG=1",
		"MPIT_AGENT_ALLOW_WRITE=1",
		"MPIT_AGENT_OPEN=+runtime_spc_*,*_monitoring_*",
		"ASAN_OPTIONS=verify_asan_link_order=0",
	}, strings.Split(strings.TrimSpace(got.stdout), "\n"))
}

// TestExecWithTheCallProfile: the flag or the environment, with all else that exec can do; without the library
// nothing is run.
func TestExecWithTheCallProfile(t *testing.T) {
	agent, calls := filepath.Join(built(t), preload.AgentLibraryName), filepath.Join(built(t), preload.CallsLibraryName)
	alone := filepath.Join(t.TempDir(), preload.AgentLibraryName) // the agent, and nothing beside it
	other := filepath.Join(t.TempDir(), "calls.so")
	pair := t.TempDir() // both of another build
	text, err := os.ReadFile(agent)
	require.NoError(t, err)
	for _, path := range []string{alone, other, filepath.Join(pair, preload.AgentLibraryName),
		filepath.Join(pair, preload.CallsLibraryName)} {
		require.NoError(t, os.WriteFile(path, text, 0o600))
	}
	for _, test := range []struct {
		name string
		env  []string
		args []string
		want string
	}{
		{"asked for", nil, []string{"--calls"}, calls + ":" + agent},
		{"beside other flags", nil, []string{"--monitoring", "--calls", "--deny=osc_*", "--log"}, calls + ":" + agent},
		{"by the environment", []string{"MPIT_CALLS=1"}, nil, calls + ":" + agent},
		{"not asked for", nil, nil, agent},
		{"the environment's word taken back", []string{"MPIT_CALLS=1", "LD_PRELOAD=" + calls},
			[]string{"--no-calls"}, agent},
		{"by a module", []string{"LD_PRELOAD=" + calls + ":" + agent}, nil, agent + ":" + calls},
		{"beside the agent that is named", []string{"MPIT_AGENT_LIBRARY=" + filepath.Join(pair,
			preload.AgentLibraryName)}, []string{"--calls"},
			filepath.Join(pair, preload.CallsLibraryName) + ":" + filepath.Join(pair, preload.AgentLibraryName)},
		{"not beside the agent", []string{"MPIT_AGENT_LIBRARY=" + alone}, []string{"--calls"}, calls + ":" + alone},
		{"named", []string{"MPIT_CALLS_LIBRARY=" + other}, []string{"--calls"}, other + ":" + agent},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := runBinary(t, test.env, slices.Concat([]string{"exec"}, test.args,
				[]string{"--", "printenv", "LD_PRELOAD"})...)
			assert.Zero(t, got.status, got.stderr)
			assert.Equal(t, test.want+"\n", got.stdout)
		})
	}
	for _, test := range []struct{ name, flag, environment, want string }{
		{"nothing besides", "--calls", "sizes", "1"}, // the command line goes before the environment
		{"one", "--calls=sizes", "1", "sizes"},
		{"all", "--calls=sizes,peers", "", "sizes,peers"},
		{"as the environment says", "--log", "sizes,peers", "sizes,peers"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := runBinary(t, []string{"MPIT_CALLS=" + test.environment}, "exec", test.flag, "--", "printenv",
				"MPIT_CALLS", "LD_PRELOAD")
			assert.Zero(t, got.status, got.stderr)
			assert.Equal(t, test.want+"\n"+calls+":"+agent+"\n", got.stdout)
		})
	}
	for _, command := range []string{"exec", "list"} {
		got := runBinary(t, []string{"MPIT_CALLS_LIBRARY=/no/such.so"}, command, "--calls", "--", "echo", "run")
		assert.Equal(t, outcome{stderr: "mpit-exporter: call profile's library: /no/such.so, which " +
			"MPIT_CALLS_LIBRARY names, is not there; correct or unset it\n", status: cli.ExecFailed}, got)
	}
}

// TestExecLeavesArgumentsAlone: what follows the program's name is not ours, with or without --.
func TestExecLeavesArgumentsAlone(t *testing.T) {
	for _, args := range [][]string{
		{"exec", "--", "printf", "%s\n"},
		{"exec", "printf", "%s\n"},
		{"exec", "--log", "printf", "%s\n"},
	} {
		arguments := []string{"--log", "-h", "--", "@file", "", "-", "--help", "a b"}
		got := runBinary(t, nil, append(args, arguments...)...)
		assert.Equal(t, strings.Join(arguments, "\n")+"\n", got.stdout, "%v", args)
		assert.Empty(t, got.stderr)
	}
}

// TestOnlyOneRankExplains: of a job of a thousand ranks one says it.
func TestOnlyOneRankExplains(t *testing.T) {
	for rank, want := range map[string]int{"0": 1, "1": 0} {
		got := runBinary(t, []string{"OMPI_COMM_WORLD_RANK=" + rank}, "exec", "--monitoring", "--", "true")
		assert.Zero(t, got.status)
		assert.Equal(t, want, strings.Count(got.stderr, "--monitoring leaves"), "rank %s", rank)
	}
}

// TestExecRunsWhatAShellWouldRun: scripts without a first line, programs in the second directory of PATH.
func TestExecRunsWhatAShellWouldRun(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	bare := write("bare", "echo bare $1\n", 0o755)
	write("first/prog", "echo first\n", 0o644) // not executable: PATH goes on
	write("second/prog", "#!/bin/sh\necho second\n", 0o755)
	lost := write("lost", "#!/no/such/interpreter\n", 0o755)

	assert.Equal(t, outcome{stdout: "bare x\n"}, runBinary(t, nil, "exec", "--", bare, "x"))
	path := "PATH=" + dir + "/first:" + dir + "/second:" + os.Getenv("PATH")
	assert.Equal(t, outcome{stdout: "second\n"}, runBinary(t, []string{path}, "exec", "--", "prog"))
	only := "PATH=" + dir + "/first"
	assert.Equal(t, outcome{stderr: "mpit-exporter: exec: prog: not found in PATH\n", status: cli.NotFound},
		runBinary(t, []string{only}, "exec", "--", "prog"))
	assert.Equal(t, outcome{stderr: "mpit-exporter: exec: " + lost + ": its interpreter (#! line or dynamic loader) " +
		"does not exist\n", status: cli.NotExecutable},
		runBinary(t, nil, "exec", "--", lost))

	t.Chdir(filepath.Join(dir, "second"))
	assert.Equal(t, outcome{stderr: "mpit-exporter: exec: prog: not found in PATH; if the one in this directory is " +
		"meant, write ./prog\n", status: cli.NotFound},
		runBinary(t, []string{"PATH=/usr/bin:/bin"}, "exec", "--", "prog"))
}
