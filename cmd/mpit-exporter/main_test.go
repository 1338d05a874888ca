package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	lowlevel "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/preload"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// patience bounds failures on a loaded machine; no test measures time.
const patience = 2 * time.Minute

// compile makes a program, and skips the test where the compiler can't.
func compile(t *testing.T, dir, name, text string, command ...string) string {
	t.Helper()
	source, path := filepath.Join(dir, name+".c"), filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(source, []byte(text), 0o600))
	args := append(command[1:], "-o", path, source)
	out, err := exec.CommandContext(t.Context(), command[0], args...).CombinedOutput()
	if err != nil {
		t.Skipf("%v can't make a program here: %v\n%s", command, err, out)
	}
	return path
}

// needLandlock skips a test where the kernel has none.
func needLandlock(t *testing.T) {
	t.Helper()
	if _, err := lowlevel.LandlockGetABIVersion(); err != nil {
		t.Skipf("this kernel has no Landlock: %v", err)
	}
}

// built is where the real thing is: mpit-exporter, and beside it libraries that stand for the agent and the call
// profile and do nothing. The first test that needs it has it built; -short is for what needs no program.
func built(t *testing.T) (dir string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it runs the real program")
	}
	dir, err := buildOnce()
	require.NoError(t, err)
	return dir
}

// builtDir is to be removed at the end.
var builtDir string

var buildOnce = sync.OnceValues(func() (dir string, err error) {
	builtDir, err = build()
	return builtDir, err
})

func TestMain(m *testing.M) {
	if os.Getenv(envPlay) != "" {
		os.Exit(playRank())
	}
	if os.Getenv(envFilter) != "" {
		os.Exit(runBehindFilter())
	}
	if signal.Ignored(syscall.SIGINT) { // in a script's background; the programs that tests start must hear it
		signal.Notify(make(chan os.Signal, 1), syscall.SIGINT)
	}
	// Tests that run side by side wait more than they compute, so the number of cores says nothing about how many
	// there can be.
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		if builtDir != "" {
			_ = os.RemoveAll(builtDir)
		}
		unforeign()
		os.Exit(status)
	}))
}

func build() (dir string, err error) {
	dir, err = os.MkdirTemp("", "mpit-cmd-")
	if err != nil {
		return "", fmt.Errorf("making a directory: %w", err)
	}
	program := filepath.Join(dir, cli.ProgramName)
	// without symbols: half the work
	build := []string{"go", "build", "-ldflags=-s -w", "-o", program, "."}
	if os.Getenv("MPIT_TEST_BUILT") == "1" { // by make, outside the tests' time
		build = []string{"cp", filepath.Join("..", "..", "bin", cli.ProgramName), program}
	}
	for _, command := range [][]string{
		build,
		{"cc", "-shared", "-fPIC", "-o", filepath.Join(dir, preload.AgentLibraryName), "-x", "c", os.DevNull},
		{"cc", "-shared", "-fPIC", "-o", filepath.Join(dir, preload.CallsLibraryName), "-x", "c", os.DevNull},
	} {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as make builds it
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", errors.Join(fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out), os.RemoveAll(dir))
		}
	}
	return dir, nil
}

// binary is the path of the real program.
func binary(t *testing.T) string {
	t.Helper()
	return filepath.Join(built(t), cli.ProgramName)
}

// outcome is how the program ended.
type outcome struct {
	stdout, stderr string
	status         int
}

// runBinary runs the real program to its end. Environment variables that agents and exec look at are not inherited.
func runBinary(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(t), args...)
	cmd.Env = append(cleanEnviron(), env...)
	return wait(t, cmd)
}

func wait(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("running %v: %v", cmd.Args, err)
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

func cleanEnviron() []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case strings.HasPrefix(name, "MPIT_"), strings.HasPrefix(name, "OMPI_"), strings.HasPrefix(name, "OTEL_"),
			name == preload.EnvPreload, name == "NOTIFY_SOCKET":
		default:
			env = append(env, entry)
		}
	}
	return env
}

// exporterProcess is a running mpit-exporter.
type exporterProcess struct {
	cmd         *exec.Cmd
	socket      string
	url         string
	addressFile string
	stderr      *os.File
}

// startExporter starts the real program on a port and a socket of its own and waits until it is ready.
func startExporter(t *testing.T, socket string, args ...string) *exporterProcess {
	t.Helper()
	return startCommand(t, exec.Command(binary(t)), socket, args...)
}

func startCommand(t *testing.T, cmd *exec.Cmd, socket string, args ...string) *exporterProcess {
	t.Helper()
	return startCommandIn(t, t.TempDir(), cmd, socket, args...)
}

// startCommandIn keeps the program's log and addresses in a directory that it can write to.
func startCommandIn(t *testing.T, dir string, cmd *exec.Cmd, socket string, args ...string) *exporterProcess {
	t.Helper()
	e := launchExporter(t, dir, cmd, socket, args...)
	require.Eventually(t, func() bool {
		status, _, err := e.try("/-/ready")
		return err == nil && status == http.StatusOK
	}, patience, 10*time.Millisecond, "never ready")
	return e
}

// launchExporter starts it and waits until it listens.
func launchExporter(t *testing.T, dir string, cmd *exec.Cmd, socket string, args ...string) *exporterProcess {
	t.Helper()
	addressFile := filepath.Join(dir, "address")
	stderr, err := os.Create(filepath.Join(dir, "stderr"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = stderr.Close() })
	cmd.Args = append(cmd.Args, append([]string{
		"--agent.socket=" + socket, "--web.listen-address=127.0.0.1:0", "--web.address-file=" + addressFile,
	}, args...)...)
	cmd.Stderr = stderr
	if cmd.Env == nil {
		cmd.Env = cleanEnviron()
	}
	require.NoError(t, cmd.Start())
	e := &exporterProcess{cmd: cmd, socket: socket, addressFile: addressFile, stderr: stderr}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		if t.Failed() {
			t.Logf("the exporter's log:\n%s", e.log(t))
		}
	})
	require.Eventually(t, func() bool {
		address, err := os.ReadFile(addressFile)
		e.url = "http://" + strings.TrimSpace(string(address))
		return err == nil
	}, patience, 10*time.Millisecond, "no address file")
	return e
}

func (e *exporterProcess) log(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(e.stderr.Name())
	require.NoError(t, err)
	return string(text)
}

func (e *exporterProcess) try(path string) (status int, body string, err error) {
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(e.url + path)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

func (e *exporterProcess) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	status, body, err := e.try(path)
	require.NoError(t, err)
	return status, body
}

// end sends a signal and returns the exit status, -1 for a death by signal.
func (e *exporterProcess) end(t *testing.T, signal syscall.Signal) int {
	t.Helper()
	require.NoError(t, e.cmd.Process.Signal(signal))
	err := e.cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return e.cmd.ProcessState.ExitCode()
}

// TestErrorLines: whatever is wrong is said in one line that names the place and the remedy.
func TestErrorLines(t *testing.T) {
	t.Parallel() // one of its programs waits for ranks
	dir := mpittest.ShortDir(t)
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("no program\n"), 0o600))
	socket := filepath.Join(dir, "agent.sock")
	long := filepath.Join(dir, strings.Repeat("x", 108))
	noLibrary := []string{preload.EnvLibrary + "=" + filepath.Join(dir, "none.so")}

	busy := startExporter(t, filepath.Join(dir, "busy.sock"))
	busyAddress := strings.TrimPrefix(busy.url, "http://")
	lone := filepath.Join(mpittest.ShortDir(t), "agent.sock") // nobody has a control socket beside it

	for _, test := range []struct {
		name   string
		env    []string
		args   []string
		status int
		want   string
	}{
		{"unknown flag", nil, []string{"--bogus"}, cli.Usage,
			"unknown long flag '--bogus' (see mpit-exporter serve --help)"},
		{"unknown command", nil, []string{"bogus"}, cli.Usage,
			"unexpected bogus (see mpit-exporter --help)"},
		{"a value for a switch", nil, []string{"exec", "--job-id", "7", "--log=yes", "--", "true"}, cli.Usage,
			"--log takes no value: write --log or --no-log (see mpit-exporter exec --help)"},
		{"an unknown word for the call profile", nil, []string{"exec", "--calls=sizes,yes", "--", "true"}, cli.Usage,
			`--calls=sizes,yes: "yes" is not known: the words are sizes, peers, sites, stacks, light; several with commas (see ` +
				"mpit-exporter exec --help)"},
		{"no word for the call profile", nil, []string{"list", "--calls=", "--", "true"}, cli.Usage,
			`--calls=: "" is not known: the words are sizes, peers, sites, stacks, light; several with commas (see ` +
				"mpit-exporter list --help)"},
		{"a word for no call profile", nil, []string{"exec", "--no-calls=sizes", "--", "true"}, cli.Usage,
			"--no-calls takes no value: write --calls or --no-calls (see mpit-exporter exec --help)"},
		{"a value for a switch that is off", nil, []string{"--no-otlp=1"}, cli.Usage,
			"--no-otlp takes no value: write --otlp or --no-otlp (see mpit-exporter serve --help)"},
		{"no value for a switch of the program's", noLibrary, []string{"exec", "./app", "--calls=yes"}, cli.ExecFailed,
			"agent library: " + filepath.Join(dir, "none.so") + ", which " + preload.EnvLibrary +
				" names, is not there; correct or unset it"},
		{"no duration", nil, []string{"--retention=soon"}, cli.Usage,
			`--retention: time: invalid duration "soon" (see mpit-exporter serve --help)`},
		{"negative duration", nil, []string{"--retention=-1s"}, cli.Usage,
			"--retention -1s: must not be negative"},
		{"no interval", nil, []string{"--timer-interval=0s"}, cli.Usage,
			"--timer-interval 0s: must be more than nothing, such as 10s"},
		{"no requests", nil, []string{"--web.max-requests=0"}, cli.Usage,
			"--web.max-requests 0: must be at least 1"},
		{"no path", nil, []string{"--web.telemetry-path=metrics"}, cli.Usage,
			`--web.telemetry-path "metrics": a path such as /metrics is needed`},
		{"taken path", nil, []string{"--web.telemetry-path=/api/v1/ranks"}, cli.Usage,
			`--web.telemetry-path "/api/v1/ranks": something else is served there; choose another path, such as /metrics`},
		{"unknown level", nil, []string{"--log.level=loud"}, cli.Usage,
			"--log.level: unrecognized log level loud (see mpit-exporter serve --help)"},
		{"no web configuration", nil, []string{"--agent.socket=" + socket, "--web.config.file=" + dir + "/none.yml"},
			cli.Failure,
			"--web.config.file " + dir + "/none.yml: open " + dir + "/none.yml: no such file or directory"},
		{"no directory for the socket", nil, []string{"--agent.socket=" + dir + "/none/agent.sock"}, cli.Failure,
			"agent socket " + dir + "/none/agent.sock: its directory does not exist; make it or choose another " +
				"place with --agent.socket"},
		{"socket path too long", nil, []string{"--agent.socket=" + long}, cli.Failure,
			"agent socket " + long + ": the path is longer than the 107 bytes that a socket's may have; choose " +
				"another place with --agent.socket"},
		{"socket in use", nil, []string{"--agent.socket=" + busy.socket}, cli.Failure,
			"agent socket " + busy.socket + ": another exporter that is alive listens there; stop it or choose " +
				"another place with --agent.socket"},
		{"port in use", nil, []string{"--agent.socket=" + socket, "--web.listen-address=" + busyAddress}, cli.Failure,
			"cannot listen on " + busyAddress + ": the address is in use; stop what holds it or choose another " +
				"address with --web.listen-address"},
		{"no systemd socket", nil, []string{"--agent.socket=" + socket, "--web.systemd-socket"}, cli.Failure,
			"systemd has handed over no socket; start from a .socket unit or leave --web.systemd-socket out"},
		{"control socket in use", nil, []string{"--agent.socket=" + socket, "--web.listen-address=127.0.0.1:0",
			"--control.socket=" + filepath.Join(dir, sockets.ControlFile)}, cli.Failure,
			"control socket " + dir + "/control.sock: another exporter that is alive listens there; stop it or " +
				"choose another place with --control.socket"},
		{"no directory for the control socket", nil, []string{"--agent.socket=" + socket,
			"--web.listen-address=127.0.0.1:0", "--control.socket=" + dir + "/none/c.sock"}, cli.Failure,
			"control socket " + dir + "/none/c.sock: its directory does not exist; make it or choose another place " +
				"with --control.socket"},
		{"top: longer than is remembered", nil, []string{"top", "--interval=11s"}, cli.Usage,
			"top: --interval 11s: must be from 100ms to 10s"},
		{"push: no interval", nil, []string{"push", "--otlp.interval=0s"}, cli.Usage,
			"--otlp.interval 0s: must be more than nothing, such as 60s"},
		{"OTLP: no endpoint", nil, []string{"--otlp.endpoint="}, cli.Usage,
			"--otlp.endpoint: a URL is needed, such as http://collector:4318"},
		{"exec: an exporter's flag, but no exporter", nil,
			[]string{"exec", "--otlp.endpoint=http://here:4318", "--", "true"}, cli.Usage,
			"exec: --otlp.endpoint is for an exporter that exec starts: add --own, or give it to the exporter of " +
				"the node"},
		{"exec: a directory, but no exporter", nil, []string{"exec", "--own.dir=" + dir, "--", "true"}, cli.Usage,
			"exec: --own.dir is for an exporter that exec starts: add --own, or give it to the exporter of the node"},
		{"OTLP: no protocol", nil, []string{"--otlp.protocol=http/json"}, cli.Usage,
			"--otlp.protocol: enum value must be one of http/protobuf,grpc, got 'http/json' (see mpit-exporter " +
				"serve --help)"},
		{"OTLP: half a certificate", []string{"OTEL_EXPORTER_OTLP_CLIENT_KEY=/x"}, []string{"--agent.socket=" + socket,
			"--web.listen-address=127.0.0.1:0", "--control.socket=", "--otlp.endpoint=https://x"}, cli.Failure,
			"OTEL_EXPORTER_OTLP_CLIENT_KEY: a client's certificate needs its key, and a key its certificate: set both " +
				"variables"},
		{"OTLP: no URL", nil, []string{"--agent.socket=" + socket, "--web.listen-address=127.0.0.1:0",
			"--control.socket=", "--otlp.endpoint=collector:4318"}, cli.Failure,
			"--otlp.endpoint is no URL that begins with http:// or https:// and a host: write one like " +
				"http://collector:4318, with %2F, %23, %3F and %25 for /, #, ? and % in a password"},
		{"OTLP: no URL in the environment", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=collector"},
			[]string{"--agent.socket=" + socket, "--web.listen-address=127.0.0.1:0", "--control.socket="}, cli.Failure,
			"OTEL_EXPORTER_OTLP_ENDPOINT is no URL that begins with http:// or https:// and a host: write one like " +
				"http://collector:4318, with %2F, %23, %3F and %25 for /, #, ? and % in a password"},
		{"OTLP: no header", []string{"OTEL_EXPORTER_OTLP_HEADERS=Authorization: Bearer s3cret"},
			[]string{"--agent.socket=" + socket, "--web.listen-address=127.0.0.1:0", "--control.socket=", "--otlp"},
			cli.Failure, "OTEL_EXPORTER_OTLP_HEADERS: entry 1 has no =, or nothing before it; write it as " +
				"key=value,key=value with %2C for a comma within a value"},
		{"push: socket in use", nil, []string{"push", "--agent.socket=" + busy.socket,
			"--otlp.endpoint=http://127.0.0.1:1"}, cli.Failure,
			"agent socket " + busy.socket + ": another exporter that is alive listens there; stop it or choose " +
				"another place with --agent.socket"},
		{"push once: an exporter that doesn't push", nil,
			[]string{"push", "--once", "--agent.socket=" + busy.socket}, cli.Failure,
			"push: the exporter of this node: refused: this exporter does not push: start it with --otlp, or with " +
				"OTEL_EXPORTER_OTLP_ENDPOINT in its environment"},
		{"push once: an exporter that has its own flags", nil, []string{"push", "--once",
			"--agent.socket=" + busy.socket, "--otlp.endpoint=http://127.0.0.1:1"}, cli.Usage,
			"push: the exporter of this node pushes where and how it has been told when it was started: leave the " +
				"flags of --otlp… out"},
		{"push once: no exporter", nil, []string{"push", "--once", "--agent.socket=" + lone}, cli.Failure,
			"push: no exporter answers at " + filepath.Join(filepath.Dir(lone), sockets.ControlFile) + "; start one on " +
				"this node, or say with --control.socket where it listens"},
		{"list: a comparison of a part", nil, []string{"list", "--compare=old.json", "--cvars"}, cli.Usage,
			"list: --save and --compare are about all that there is, and have a form of their own; leave out --all, " +
				"--cvars, --objects, --categories, --category and --output"},
		{"list: nothing to compare with", nil, []string{"list", "--compare=" + file, "--", "true"}, cli.Failure,
			"list: --compare " + file + ": this is not a file that list --save has written; invalid character 'o' in " +
				"literal null (expecting 'u')"},
		{"list: no file to compare with", nil, []string{"list", "--compare=", "--", "true"}, cli.Failure,
			"list: --compare : open : no such file or directory"},
		{"cvar: which?", nil, []string{"cvar"}, cli.Usage,
			"must select a subcommand of 'cvar' (see mpit-exporter cvar --help)"},
		{"cvar: no value", nil, []string{"cvar", "set", "limit"}, cli.Usage,
			`cvar set: "limit": a name and a value are needed, NAME=VALUE`},
		{"cvar: no name", nil, []string{"cvar", "set", "=1"}, cli.Usage,
			`cvar set: "=1": a name and a value are needed, NAME=VALUE`},
		{"cvar: a value to be read", nil, []string{"cvar", "get", "limit=1"}, cli.Usage,
			`cvar get: "limit=1": the name of a variable is needed`},
		{"cvar: no ranks", nil, []string{"cvar", "set", "--rank=0-", "limit=1"}, cli.Usage,
			`cvar set: --rank: "0-" is no list of ranks such as 0,2-5`},
		{"cvar: no object", nil, []string{"cvar", "set", "--object=halo", "limit=1"}, cli.Usage,
			`cvar set: --object: "halo" is no object such as comm:MPI_COMM_WORLD`},
		{"cvar: no user", nil, []string{"cvar", "set", "--uid=me", "limit=1"}, cli.Usage,
			`cvar set: --uid: "me" is no number of a user`},
		{"cvar: no exporter", nil, []string{"cvar", "set", "--control.socket=" + socket, "limit=1"}, cli.Failure,
			"cvar set: no exporter answers at " + socket + "; start one on this node, or say with --control.socket " +
				"where it listens"},
		{"exec: no program", nil, []string{"exec"}, cli.Usage,
			"exec: no program named; usage: mpit-exporter exec [flags] -- program arguments"},
		{"exec: no agent library", noLibrary, []string{"exec", "--", "true"}, cli.ExecFailed,
			"agent library: " + dir + "/none.so, which MPIT_AGENT_LIBRARY names, is not there; correct or unset it"},
		{"exec: socket path too long", nil, []string{"exec", "--socket=" + long, "--", "true"}, cli.ExecFailed,
			"--socket " + long + ": the path is longer than the 107 bytes that a socket's may have"},
		{"exec: not found in PATH", nil, []string{"exec", "--", "no-such-program"}, cli.NotFound,
			"exec: no-such-program: not found in PATH"},
		{"exec: no such file", nil, []string{"exec", "--", dir + "/none"}, cli.NotFound,
			"exec: " + dir + "/none: no such file"},
		{"exec: not executable", nil, []string{"exec", "--", file}, cli.NotExecutable,
			"exec: " + file + ": permission denied; is it executable?"},
		{"exec: a directory", nil, []string{"exec", "--", dir}, cli.NotExecutable,
			"exec: " + dir + ": is a directory"},
		{"list: no exporter", nil, []string{"list", "--url=http://127.0.0.1:1"}, cli.Failure,
			"list: no exporter answers at http://127.0.0.1:1; start one, or say with --url where it is; or list the " +
				"variables of a program: mpit-exporter list -- ./program"},
		{"list: no address", nil, []string{"list", "--url=localhost:10093"}, cli.Usage,
			`list: --url "localhost:10093": an address such as http://localhost:10093 is needed`},
		{"list: no rank", nil, []string{"list", "--url=" + busy.url}, cli.Failure,
			"list: no rank is connected to the exporter at " + busy.url},
		{"list: no such rank", nil, []string{"list", "--url=" + busy.url, "--rank=7"}, cli.Failure,
			"list: " + busy.url + "/api/v1/values answers 404 Not Found: no rank of this node has these labels"},
		{"list: a program and a rank", nil, []string{"list", "--rank=0", "--", "true"}, cli.Usage,
			"list: --jobid, --world, --user and --rank choose among the ranks of an exporter; they can't be used " +
				"with a program"},
		{"list: the call profile of no program", nil, []string{"list", "--calls"}, cli.Usage,
			"list: --calls, --monitoring and --deny are about a program that list runs; name one: mpit-exporter " +
				"list [flags] -- program arguments"},
		{"list: no MPI program", nil, []string{"list", "--", "true"}, cli.Failure,
			"list: true has brought no MPI rank; is it a dynamically linked program that calls MPI_Init? " +
				"(MPIT_AGENT_LOG=1 makes the agent say what it does)"},
		{"list: no program", nil, []string{"list", "--", "no-such-program"}, cli.NotFound,
			"exec: no-such-program: not found in PATH"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := runBinary(t, test.env, test.args...)
			assert.Equal(t, outcome{stderr: cli.ProgramName + ": " + test.want + "\n", status: test.status}, got)
		})
	}
	assert.NoFileExists(t, socket, "a failed start leaves no socket")
	_, body := busy.get(t, "/-/healthy")
	assert.Equal(t, "healthy\n", body, "the exporter that was there has not been disturbed")
}

func TestHelpAndVersionGoToStdout(t *testing.T) {
	help := runBinary(t, nil, "--help")
	assert.Equal(t, 0, help.status)
	assert.Contains(t, help.stdout, "exec")
	assert.Empty(t, help.stderr)
	version := runBinary(t, nil, "--version")
	assert.Equal(t, 0, version.status)
	assert.Contains(t, version.stdout, "mpit-exporter, version ")
	assert.Empty(t, version.stderr)
}
