package preload

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFindAgent(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"beside/" + AgentLibraryName, "lib/mpit-exporter/" + AgentLibraryName,
		"own/agent.so", "with space/agent.so", "directory.so/x"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), nil, 0o600))
	}
	t.Chdir(dir)
	for _, test := range []struct {
		name, named, executable string
		want                    string // in dir
		err                     string
	}{
		{"beside the program", "", "beside/mpit-exporter", "beside/" + AgentLibraryName, ""},
		{"where packages put it", "", "bin/mpit-exporter", "lib/mpit-exporter/" + AgentLibraryName, ""},
		{"where the environment says", "own/agent.so", "beside/mpit-exporter", "own/agent.so", ""},
		{"nowhere", "", "a/b/mpit-exporter", "", "agent library libmpit-agent.so not found (looked for " + dir +
			"/a/b/libmpit-agent.so and " +
			dir + "/a/lib/mpit-exporter/libmpit-agent.so); build it with make, or name it in MPIT_AGENT_LIBRARY"},
		{"a directory", "directory.so", "beside/mpit-exporter", "",
			"agent library: " + dir + "/directory.so, which MPIT_AGENT_LIBRARY names, is not there; correct or " +
				"unset it"},
		{"a path that ld.so would split", "with space/agent.so", "beside/mpit-exporter", "",
			`agent library: the path "` + dir +
				`/with space/agent.so" has a space, colon or dollar in it, which LD_PRELOAD can't express; move it, or name a link to it in MPIT_AGENT_LIBRARY`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := agentLibrary.find(test.named, filepath.Join(dir, test.executable))
			if test.err != "" {
				assert.EqualError(t, err, test.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, filepath.Join(dir, test.want), got)
		})
	}
}

// The call profile is looked for beside the agent first, which may have been named; then where the agent is looked
// for.
func TestFindCalls(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"near/" + CallsLibraryName, "beside/" + CallsLibraryName,
		"lib/mpit-exporter/" + CallsLibraryName, "own/calls.so"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), nil, 0o600))
	}
	for _, test := range []struct {
		name, named, executable, agent string
		want                           string // in dir
		err                            string
	}{
		{"beside the agent", "", "beside/mpit-exporter", "near/agent.so", "near/" + CallsLibraryName, ""},
		{"beside the program", "", "beside/mpit-exporter", "elsewhere/agent.so", "beside/" + CallsLibraryName, ""},
		{"where packages put it", "", "bin/mpit-exporter", "elsewhere/agent.so",
			"lib/mpit-exporter/" + CallsLibraryName, ""},
		{"where the environment says", dir + "/own/calls.so", "beside/mpit-exporter", "near/agent.so",
			"own/calls.so", ""},
		{"nowhere", "", "a/b/mpit-exporter", "a/b/agent.so", "",
			"call profile's library libmpit-calls.so not found (looked for " + dir + "/a/b/libmpit-calls.so and " +
				dir + "/a/lib/mpit-exporter/libmpit-calls.so); build it with make, or name it in MPIT_CALLS_LIBRARY"},
		{"not where the environment says", dir + "/none", "beside/mpit-exporter", "near/agent.so", "",
			"call profile's library: " + dir +
				"/none, which MPIT_CALLS_LIBRARY names, is not there; correct or unset it"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := callsLibrary.find(test.named, filepath.Join(dir, test.executable),
				filepath.Dir(filepath.Join(dir, test.agent)))
			if test.err != "" {
				assert.EqualError(t, err, test.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, filepath.Join(dir, test.want), got)
		})
	}
}

// The command line goes before the environment, whichever way.
func TestWantsCalls(t *testing.T) {
	for _, test := range []struct {
		name     string
		settings Settings
		env      Environment
		want     bool
	}{
		{"nobody says anything", Settings{}, nil, false},
		{"--calls", Settings{Calls: true, CallsSaid: true}, Environment{"MPIT_CALLS=0"}, true},
		{"--no-calls", Settings{CallsSaid: true}, Environment{"MPIT_CALLS=1"}, false},
		{"the environment", Settings{}, Environment{"MPIT_CALLS=1"}, true},
		{"the environment does not want it", Settings{}, Environment{"MPIT_CALLS=0"}, false},
		{"the environment says nothing", Settings{}, Environment{"MPIT_CALLS="}, false},
	} {
		assert.Equal(t, test.want, test.settings.wantsCalls(test.env), test.name)
	}
}

// What needs a call profile takes no words away.
func TestNeedCalls(t *testing.T) {
	for _, test := range []struct {
		name     string
		settings Settings
		env      Environment
		want     Settings
	}{
		{"nobody says anything", Settings{}, nil, Settings{Calls: true, CallsSaid: true}},
		{"the environment has words", Settings{}, Environment{"MPIT_CALLS=sizes"},
			Settings{Calls: true, CallsSaid: true, CallsWords: "sizes"}},
		{"so has the command line", Settings{Calls: true, CallsSaid: true, CallsWords: "peers"},
			Environment{"MPIT_CALLS=sizes"}, Settings{Calls: true, CallsSaid: true, CallsWords: "peers"}},
		{"--no-calls", Settings{CallsSaid: true}, Environment{"MPIT_CALLS=sizes"}, Settings{CallsSaid: true}},
	} {
		test.settings.NeedCalls(test.env)
		assert.Equal(t, test.want, test.settings, test.name)
	}
}

func TestAgentEnvironment(t *testing.T) {
	const library = "/lib/agent.so"
	for _, test := range []struct {
		name     string
		settings Settings
		env      []string
		want     []string
		notes    []string
	}{
		{"nothing but the library", Settings{}, []string{"A=1"}, []string{"A=1", "LD_PRELOAD=/lib/agent.so"}, nil},
		{"in front of other libraries", Settings{}, []string{"LD_PRELOAD=a.so b.so:c.so"},
			[]string{"LD_PRELOAD=/lib/agent.so:a.so:b.so:c.so"}, nil},
		{"there already", Settings{}, []string{"LD_PRELOAD=a.so:/lib/agent.so"},
			[]string{"LD_PRELOAD=/lib/agent.so:a.so"}, nil},
		{"the call profile in front of the agent", Settings{Calls: true}, []string{"LD_PRELOAD=a.so"},
			[]string{"LD_PRELOAD=/lib/calls.so:/lib/agent.so:a.so"}, nil},
		{"both there already", Settings{Calls: true}, []string{"LD_PRELOAD=a.so:/lib/agent.so:/lib/calls.so"},
			[]string{"LD_PRELOAD=/lib/calls.so:/lib/agent.so:a.so"}, nil},
		{"another call profile there already", Settings{Calls: true}, []string{"LD_PRELOAD=/other/libmpit-calls.so " +
			"a.so"}, []string{"LD_PRELOAD=/lib/calls.so:/lib/agent.so:a.so"}, nil},
		{"a call profile that the environment has brought", Settings{},
			[]string{"LD_PRELOAD=/other/libmpit-calls.so:/lib/agent.so:a.so"},
			[]string{"LD_PRELOAD=/lib/agent.so:/other/libmpit-calls.so:a.so"}, nil},
		{"and that is not wanted", Settings{CallsSaid: true},
			[]string{"LD_PRELOAD=/other/libmpit-calls.so:/lib/agent.so:a.so"},
			[]string{"LD_PRELOAD=/lib/agent.so:a.so"}, nil},
		{"everything", Settings{Socket: "/s", JobID: "j", Deny: []string{"a*", "b"}, Log: true, Monitoring: true},
			[]string{"MPIT_SOCKET=/other", "MPIT_JOB_ID=other", "MPIT_JOB_ID=twice", "MPIT_AGENT_DENY=other",
				"MPIT_AGENT_LOG=0"},
			[]string{"LD_PRELOAD=/lib/agent.so", "MPIT_SOCKET=/s", "MPIT_JOB_ID=j", "MPIT_AGENT_DENY=+a*,b",
				"MPIT_AGENT_LOG=1", "MPIT_AGENT_OPEN=+runtime_spc_*,*_monitoring_*"},
			[]string{"--monitoring leaves Open MPI's monitoring " +
				"component off, for it ends programs that are correct; if yours is known to run with it, set " +
				"OMPI_MCA_pml_monitoring_enable=2. --calls counts messages and bytes and harms nothing"}},
		{"events", Settings{Events: true}, nil, []string{"LD_PRELOAD=/lib/agent.so", "MPIT_AGENT_OPEN=+mpit_event*"}, nil},
		{"events and monitoring", Settings{Events: true, Monitoring: true}, []string{"OMPI_MCA_pml_monitoring_enable=2"},
			[]string{"OMPI_MCA_pml_monitoring_enable=2", "LD_PRELOAD=/lib/agent.so",
				"MPIT_AGENT_OPEN=+runtime_spc_*,*_monitoring_*,mpit_event*"}, nil},
		{"what is not asked for stays", Settings{}, []string{"MPIT_SOCKET=/other", "MPIT_AGENT_DENY=other"},
			[]string{"MPIT_SOCKET=/other", "MPIT_AGENT_DENY=other", "LD_PRELOAD=/lib/agent.so"}, nil},
		{"monitoring is on already", Settings{Monitoring: true}, []string{"OMPI_MCA_pml_monitoring_enable=2"},
			[]string{"OMPI_MCA_pml_monitoring_enable=2", "LD_PRELOAD=/lib/agent.so",
				"MPIT_AGENT_OPEN=+runtime_spc_*,*_monitoring_*"}, nil},
		{"what is to be opened has been said", Settings{Monitoring: true},
			[]string{"MPIT_AGENT_OPEN=runtime_*", "OMPI_MCA_pml_monitoring_enable=2"},
			[]string{"MPIT_AGENT_OPEN=runtime_*", "OMPI_MCA_pml_monitoring_enable=2", "LD_PRELOAD=/lib/agent.so"},
			nil},
		{"the user has decided about monitoring", Settings{Monitoring: true},
			[]string{"OMPI_MCA_pml_monitoring_enable=0"},
			[]string{"OMPI_MCA_pml_monitoring_enable=0", "LD_PRELOAD=/lib/agent.so",
				"MPIT_AGENT_OPEN=+runtime_spc_*,*_monitoring_*"}, nil},
		{"monitoring stays off", Settings{Monitoring: true}, nil,
			[]string{"LD_PRELOAD=/lib/agent.so", "MPIT_AGENT_OPEN=+runtime_spc_*,*_monitoring_*"},
			[]string{"--monitoring leaves Open MPI's monitoring component off, for it ends programs that are " +
				"correct; if yours is known to run with it, set OMPI_MCA_pml_monitoring_enable=2. --calls counts " +
				"messages and bytes and harms nothing"}},
		{"nothing can be preloaded", Settings{file: programFile{unobserved: "why"}}, nil,
			[]string{"LD_PRELOAD=/lib/agent.so"},
			[]string{"the program runs unobserved: why"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.settings.library, test.settings.callsLibrary = library, "/lib/calls.so"
			before := append([]string(nil), test.env...)
			got, notes := test.settings.Environ(test.env)
			assert.Equal(t, append(test.want, "ASAN_OPTIONS=verify_asan_link_order=0"), got)
			assert.Equal(t, test.notes, notes)
			assert.Equal(t, before, test.env, "the caller's environment is its own")
		})
	}
}

// A program that our libraries must not be in gets none of them, wherever they come from; what else is preloaded
// stays.
func TestAloneEnvironment(t *testing.T) {
	settings := Settings{library: "/lib/agent.so", callsLibrary: "/lib/calls.so", Calls: true,
		file: programFile{unobserved: "why", alone: true}}
	got, notes := settings.Environ([]string{"LD_PRELOAD=/other/libmpit-calls.so a.so:/other/libmpit-agent.so", "A=1"})
	assert.Equal(t, []string{"A=1", "LD_PRELOAD=a.so"}, got)
	assert.Equal(t, []string{"the program runs unobserved: why"}, notes)
	got, _ = settings.Environ([]string{"A=1"})
	assert.Equal(t, []string{"A=1"}, got)
}

func TestSanitizersEnvironment(t *testing.T) {
	for _, test := range []struct {
		name string
		file programFile
		env  Environment
		want Environment
	}{
		{"nothing set", programFile{}, nil, Environment{"ASAN_OPTIONS=verify_asan_link_order=0"}},
		{"empty", programFile{}, Environment{"ASAN_OPTIONS="}, Environment{"ASAN_OPTIONS=verify_asan_link_order=0"}},
		{"other options", programFile{}, Environment{"ASAN_OPTIONS=detect_leaks=0"},
			Environment{"ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0"}},
		{"the user's word", programFile{}, Environment{"ASAN_OPTIONS=verify_asan_link_order=1"},
			Environment{"ASAN_OPTIONS=verify_asan_link_order=1"}},
		{"of threads", programFile{threadSanitizer: true}, nil,
			Environment{"ASAN_OPTIONS=verify_asan_link_order=0", "UCX_MEM_EVENTS=n"}},
		{"of threads, and the user's word", programFile{threadSanitizer: true}, Environment{"UCX_MEM_EVENTS=y"},
			Environment{"UCX_MEM_EVENTS=y", "ASAN_OPTIONS=verify_asan_link_order=0"}},
	} {
		test.env.sanitizers(test.file)
		assert.Equal(t, test.want, test.env, test.name)
	}
}

func TestFirstRank(t *testing.T) {
	for _, test := range []struct {
		env  Environment
		want bool
	}{
		{nil, true},
		{Environment{"OMPI_COMM_WORLD_RANK=0", "SLURM_PROCID=3"}, true},
		{Environment{"OMPI_COMM_WORLD_RANK=1"}, false},
		{Environment{"PMI_RANK=0"}, true},
		{Environment{"PMI_RANK=2"}, false},
		{Environment{"SLURM_PROCID=1"}, false},
	} {
		assert.Equal(t, test.want, test.env.FirstRank(), "%v", test.env)
	}
}
