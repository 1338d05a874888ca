package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/own"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// ownExporters are the exporters whose directories lie in parent.
func ownExporters(t *testing.T, parent string) (pids []int) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, path := range lines {
		line, _ := os.ReadFile(path) // it may have ended
		if bytes.Contains(line, []byte("\x00"+own.Command+"\x00"+own.ServeStep+"\x00"+parent)) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			require.NoError(t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

func awaitNoExporter(t *testing.T, parent string) {
	t.Helper()
	var left []string
	if !assert.Eventually(t, func() bool {
		left = nil
		_ = filepath.WalkDir(parent, func(path string, _ fs.DirEntry, _ error) error {
			left = append(left, path)
			return nil
		})
		return len(ownExporters(t, parent)) == 0 && len(left) == 1
	}, patience, 10*time.Millisecond) {
		t.Fatalf("exporters %v are left, and %q", ownExporters(t, parent), left[1:])
	}
}

func withOwnEnvironment(cmd *exec.Cmd, more ...string) {
	for _, entry := range cleanEnviron() {
		if !strings.HasPrefix(entry, "OTEL_") && !strings.HasPrefix(entry, "PMI") &&
			!strings.HasPrefix(entry, "SLURM") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env = append(cmd.Env, more...)
}

// awaitProgram waits until a process has become its program.
func awaitProgram(t *testing.T, cmd *exec.Cmd, name string) {
	t.Helper()
	require.Eventually(t, func() bool { return own.StatOf("/proc", cmd.Process.Pid).Comm == name },
		2*patience, 10*time.Millisecond)
}

// TestElection: of many processes that begin at once, one starts an exporter; all others find it.
func TestElection(t *testing.T) {
	parent := mpittest.ShortDir(t)
	type started struct {
		cmd            *exec.Cmd
		stdout, stderr bytes.Buffer
		end            func() error
	}
	all := make([]started, 100)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	for i := range all {
		s := &all[i]
		s.cmd = exec.CommandContext(ctx, binary(t), "exec", "--own", "--own.dir="+parent, "--own.listen=127.0.0.1:0",
			"--", "sh", "-c", "echo $MPIT_SOCKET; read line")
		s.cmd.Stdout, s.cmd.Stderr = &s.stdout, &s.stderr
		withOwnEnvironment(s.cmd)
		stdin, err := s.cmd.StdinPipe()
		require.NoError(t, err)
		s.end = stdin.Close
		require.NoError(t, s.cmd.Start())
	}
	for i := range all {
		awaitProgram(t, all[i].cmd, "sh")
	}
	assert.Len(t, ownExporters(t, parent), 1)
	sockets, told := map[string]bool{}, ""
	for i := range all {
		require.NoError(t, all[i].end())
		_ = all[i].cmd.Wait() // read finds the end of file, and says so
		sockets[strings.TrimSpace(all[i].stdout.String())] = true
		told += all[i].stderr.String()
	}
	assert.Len(t, sockets, 1)
	assert.Regexp(t,
		`^mpit-exporter: metrics of this job at http://127\.0\.0\.1:[0-9]+/metrics \(live page: http://127\.0\.0\.1:[0-9]+/\)\n$`, told)
	awaitNoExporter(t, parent)
}

// TestOwnLeavesTheProgramAlone: no child of which it doesn't know, none of its descriptors elsewhere, its own status.
func TestOwnLeavesTheProgramAlone(t *testing.T) {
	parent := mpittest.ShortDir(t)
	reads, writes, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = reads.Close() }()
	cmd := exec.Command(binary(t), "exec", "--own", "--own.dir="+parent, "--own.listen=127.0.0.1:0", "--",
		"sh", "-c", `cat /proc/$$/task/$$/children; ls /proc/$$/fd; taskset -p $$ 2>/dev/null; read line; exit 7`)
	withOwnEnvironment(cmd)
	cmd.ExtraFiles = []*os.File{writes}
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	require.NoError(t, cmd.Start())
	_ = writes.Close()
	require.Eventually(t, func() bool { return len(ownExporters(t, parent)) == 1 }, patience,
		10*time.Millisecond)
	awaitProgram(t, cmd, "sh")
	pid := ownExporters(t, parent)[0]

	mine := map[string]bool{}
	for _, link := range links(t, cmd.Process.Pid) {
		mine[link] = true
	}
	require.Contains(t, mine, links(t, os.Getpid())[strconv.Itoa(int(reads.Fd()))], "the program has the pipe")
	var other []string
	for number, link := range links(t, pid) {
		if mine[link] && link != os.DevNull && !strings.HasPrefix(link, "anon_inode:") {
			other = append(other, number+" "+link)
		}
	}
	assert.Empty(t, other, "the exporter has them too")
	status := own.StatOf("/proc", pid)
	assert.NotEqual(t, cmd.Process.Pid, status.PPID)
	cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	require.NoError(t, err)
	assert.Equal(t, "/", cwd)

	require.NoError(t, stdin.Close())
	_ = cmd.Wait()
	assert.Equal(t, 7, cmd.ProcessState.ExitCode())
	children, _, _ := strings.Cut(stdout.String(), "\n")
	assert.NotContains(t, strings.Fields(children), strconv.Itoa(pid))
	awaitNoExporter(t, parent)
}

// links are the descriptors of a process.
func links(t *testing.T, pid int) map[string]string {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	all := map[string]string{}
	for _, entry := range entries {
		if link, err := os.Readlink(filepath.Join(dir, entry.Name())); err == nil {
			all[entry.Name()] = link
		}
	}
	return all
}

// TestOwnThatCannotStart: the program runs on, and one process of the node says why.
func TestOwnThatCannotStart(t *testing.T) {
	for _, test := range []struct{ name, flag, err string }{
		{"an address that is no address", "--own.listen=nowhere:1:2", "cannot listen on nowhere:1:2: listen tcp: " +
			"address nowhere:1:2: too many colons in address; choose another address with --own.listen"},
		{"no directory at all", "--own.dir=/nowhere", "name another directory with --own.dir"},
		{"no TLS configuration", "--own.web-config=/nowhere.yml", "--own.web-config /nowhere.yml"},
		{"rules that are wrong", "--own.config=/nowhere.yaml", "/nowhere.yaml"},
		{"no log", "--own.log=/nowhere/log", "name another file with --own.log"},
	} {
		t.Run(test.name, func(t *testing.T) {
			told, parent := "", mpittest.ShortDir(t)
			for rank := range 3 {
				cmd := exec.Command(binary(t), "exec", "--own", test.flag, "--", "sh", "-c", "exit 7")
				if !strings.HasPrefix(test.flag, "--own.dir=") {
					cmd.Args = slices.Insert(cmd.Args, 3, "--own.dir="+parent)
				}
				withOwnEnvironment(cmd, fmt.Sprintf("OMPI_COMM_WORLD_LOCAL_RANK=%d", rank))
				got := wait(t, cmd)
				assert.Equal(t, 7, got.status)
				told += got.stderr
			}
			assert.Equal(t, 1, strings.Count(told, "\n"), told)
			assert.Contains(t, told, "mpit-exporter: --own: ")
			assert.Contains(t, told, test.err)
			assert.Contains(t, told, "; the program runs on unobserved\n")
		})
	}
}

// TestOwnWhereOthersHaveTheDirectory: who makes another user's directory in /tmp keeps nobody from anything.
func TestOwnWhereOthersHaveTheDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be two users")
	}
	require.NoError(t, os.Chmod(built(t), 0o755))
	const user = 12346
	taken := fmt.Sprintf("/tmp/%s-%d", cli.ProgramName, user)
	require.NoError(t, os.Mkdir(taken, 0o700))
	defer func() { assert.NoError(t, os.Remove(taken)) }()
	home := mpittest.ShortDir(t)
	require.NoError(t, os.Chown(home, user, user))
	for _, variable := range []string{"XDG_RUNTIME_DIR", "HOME"} {
		cmd := exec.Command(binary(t), "exec", "--own", "--own.listen=127.0.0.1:0", "--", "sh", "-c", "echo $MPIT_SOCKET")
		for _, entry := range cleanEnviron() {
			if !strings.HasPrefix(entry, "HOME=") && !strings.HasPrefix(entry, "XDG_RUNTIME_DIR=") {
				cmd.Env = append(cmd.Env, entry)
			}
		}
		cmd.Env = append(cmd.Env, variable+"="+home)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		got := wait(t, cmd)
		assert.Contains(t, got.stderr, "metrics of this job at", variable)
		assert.True(t, strings.HasPrefix(got.stdout, home+"/"), got.stdout)
		awaitNoExporter(t, home)
	}
}

// TestOwnAfterAKilledOne: what it has left is in nobody's way.
func TestOwnAfterAKilledOne(t *testing.T) {
	parent := mpittest.ShortDir(t)
	for range 2 {
		cmd := exec.Command(binary(t), "exec", "--own", "--own.dir="+parent,
			"--own.listen=127.0.0.1:0", "--", "sh", "-c", "echo up; read line")
		withOwnEnvironment(cmd)
		stdin, err := cmd.StdinPipe()
		require.NoError(t, err)
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		// Before the program runs, an exporter that is killed is one that could not be started.
		_, err = stdout.Read(make([]byte, len("up\n")))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return len(ownExporters(t, parent)) == 1 }, patience,
			10*time.Millisecond)
		// Until then exec would start another one, or note that none can be started.
		awaitProgram(t, cmd, "sh")
		process, err := os.FindProcess(ownExporters(t, parent)[0])
		require.NoError(t, err)
		require.NoError(t, process.Kill())
		// Its lock goes a little later than all that is seen of it in /proc.
		locks, err := filepath.Glob(filepath.Join(parent, "*", "*", "lock"))
		require.NoError(t, err)
		require.Len(t, locks, 1)
		lock, err := os.Open(locks[0])
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			return unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
		}, patience, 10*time.Millisecond)
		require.NoError(t, lock.Close())
		_ = stdin.Close()
		_ = cmd.Wait()
	}
	cmd := exec.Command(binary(t), "exec", "--own", "--own.dir="+parent,
		"--own.listen=127.0.0.1:0", "--job-id=another", "--", "true")
	withOwnEnvironment(cmd)
	got := wait(t, cmd)
	assert.Zero(t, got.status)
	assert.Contains(t, got.stderr, "metrics of this job")
	awaitNoExporter(t, parent)
}

// TestOwnFlagsThatAreRefused: before anything is started.
func TestOwnFlagsThatAreRefused(t *testing.T) {
	for _, test := range []struct {
		args []string
		err  string
	}{
		{[]string{"--socket=/x"}, "leave one of them out"},
		{[]string{"--own.linger=-1s"}, "--own.linger"},
		{[]string{"--own.wait=2m"}, "--own.wait"},
		{[]string{"--own.wait=-1s"}, "--own.wait"},
		{[]string{"--own.listen="}, "--own.listen"},
		{[]string{"--own.listen=none"}, "add --otlp"},
		{[]string{"--otlp.interval=0s"}, "--otlp.interval"},
	} {
		got := runBinary(t, nil, append(append([]string{"exec", "--own"}, test.args...), "--", "true")...)
		assert.Equal(t, cli.Usage, got.status, test.args)
		assert.Contains(t, got.stderr, test.err)
	}
}

// TestOwnCommandIsNotForPeople: what exec starts says so to whoever starts it by hand.
func TestOwnCommandIsNotForPeople(t *testing.T) {
	got := runBinary(t, nil, own.Command, own.ServeStep, "/nowhere/x/y")
	assert.Equal(t, cli.Failure, got.status)
	assert.Contains(t, got.stderr, "mpit-exporter own is for mpit-exporter exec --own alone")
}
