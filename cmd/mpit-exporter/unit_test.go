package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
	"github.com/mpit-exporter/mpit-exporter/exporter/otlp/otlptest"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// envFilter makes the test's own program become another one behind a filter of system calls.
const envFilter = "MPIT_CMD_TEST_FILTER"

// Parts of filters.
var (
	loadCall     = unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS} // its number
	loadArgument = unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16}
	allowCall    = unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
)

func refuseWith(number syscall.Errno) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(number)}
}

// filtered is a command that runs a program behind a filter; self is the test's own program. Memory that is written
// can't be made executable either, where the kernel has a switch for it.
func filtered(t *testing.T, self, program string, filter []unix.SockFilter) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(filter)
	require.NoError(t, err)
	cmd := exec.Command(self, program)
	cmd.Env = append(cleanEnviron(), envFilter+"="+string(text))
	return cmd
}

func runBehindFilter() (status int) {
	var filter []unix.SockFilter
	runtime.LockOSThread() // what is set is this thread's, and then the new program's
	err := json.Unmarshal([]byte(os.Getenv(envFilter)), &filter)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: unsafe.SliceData(filter)}
	if err == nil {
		err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}
	if err == nil {
		if err = unix.Prctl(unix.PR_SET_MDWE, unix.PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0); errors.Is(err, unix.EINVAL) {
			err = nil // before Linux 6.3
		}
	}
	if err == nil {
		err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	}
	if err == nil {
		own := func(entry string) bool { return strings.HasPrefix(entry, envFilter+"=") }
		err = unix.Exec(os.Args[1], os.Args[1:], slices.DeleteFunc(os.Environ(), own))
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// unitFile is the unit that is meant for systemd, and what it sets: the words of all lines of a key together.
func unitFile(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "systemd", "mpit-exporter.service"))
	require.NoError(t, err)
	settings := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(strings.TrimSpace(line), "="); found && !strings.HasPrefix(key, "#") {
			if key == "SystemCallFilter" && strings.HasPrefix(value, "~") {
				key, value = "~"+key, value[1:]
			}
			settings[key] = append(settings[key], strings.Fields(value)...)
		}
	}
	return settings
}

// systemCalls are those that names of systemd's stand for, groups among them, as its own tool says.
func systemCalls(t *testing.T, names []string) map[string]bool {
	t.Helper()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed: nobody says what its groups of system calls are")
	}
	calls := map[string]bool{}
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		if !strings.HasPrefix(name, "@") {
			calls[name] = true
			continue
		}
		out, err := exec.Command("systemd-analyze", "--no-pager", "syscall-filter", name).Output()
		require.NoError(t, err, name)
		for line := range strings.Lines(string(out)) {
			if member := strings.TrimSpace(line); member != "" && member != name && member[0] != '#' {
				names = append(names, member)
			}
		}
	}
	return calls
}

// callNumbers are this machine's, from the C library's header.
func callNumbers(t *testing.T) map[string]uint32 {
	t.Helper()
	cmd := exec.Command("cc", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", os.DevNull)
	out, err := cmd.Output()
	require.NoError(t, err)
	numbers := map[string]uint32{}
	for _, m := range regexp.MustCompile(`(?m)^#define __NR_(\w+) (\d+)$`).FindAllStringSubmatch(string(out), -1) {
		number, err := strconv.ParseUint(m[2], 10, 32)
		require.NoError(t, err)
		numbers[m[1]] = uint32(number)
	}
	require.NotEmpty(t, numbers)
	return numbers
}

// filterOfUnit does what systemd makes of the unit's SystemCallFilter, SystemCallErrorNumber and
// RestrictAddressFamilies.
func filterOfUnit(t *testing.T, unit map[string][]string) []unix.SockFilter {
	t.Helper()
	allowed, refused := systemCalls(t, unit["SystemCallFilter"]), systemCalls(t, unit["~SystemCallFilter"])
	numbers := callNumbers(t)
	equals := func(k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: yes, Jf: no}
	}
	require.Equal(t, []string{"AF_UNIX", "AF_INET", "AF_INET6"}, unit["RestrictAddressFamilies"])
	require.Equal(t, []string{"EPERM"}, unit["SystemCallErrorNumber"])
	filter := []unix.SockFilter{
		loadCall, equals(unix.SYS_SOCKET, 0, 6),
		loadArgument, equals(unix.AF_UNIX, 3, 0), equals(unix.AF_INET, 2, 0), equals(unix.AF_INET6, 1, 0),
		refuseWith(unix.EAFNOSUPPORT), allowCall,
	}
	for name := range allowed {
		if number, known := numbers[name]; known && !refused[name] {
			filter = append(filter, equals(number, 0, 1), allowCall)
		}
	}
	return append(filter, refuseWith(unix.EPERM))
}

// TestUnitsRestrictions: under what the unit for systemd asks for, as far as it can be had without systemd (a user of
// its own, no capabilities, no new privileges, the filters of system calls and address families, no memory both
// written and executed), with Landlock on top, everything works: ranks of other users connect and are named, rules
// are read anew, profiles and TLS apart the pages are there, and a push arrives at a receiver with TLS.
func TestUnitsRestrictions(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	unit := unitFile(t)
	dir := mpittest.ShortDir(t)
	for name, from := range map[string]string{"self": os.Args[0], cli.ProgramName: binary(t)} {
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o755))
	}
	const nobody = 65534
	rules, run, out := filepath.Join(dir, "rules.d", "rules.yaml"), filepath.Join(dir, "run"),
		filepath.Join(dir, "out")
	for _, path := range []string{run, out, filepath.Dir(rules)} {
		require.NoError(t, os.Mkdir(path, 0o755))
		require.NoError(t, os.Chown(path, nobody, nobody))
	}
	require.NoError(t, os.WriteFile(rules, []byte(goodRules), 0o644))
	require.NoError(t, os.Chmod(dir, 0o755))

	authority, err := otlptest.NewAuthority()
	require.NoError(t, err)
	serverTLS, err := authority.ServerTLS(false)
	require.NoError(t, err)
	receiver, err := otlptest.Start(otlptest.Options{Protocol: otlptest.GRPC, TLS: serverTLS})
	require.NoError(t, err)
	defer receiver.Close()
	certificate, _, _, err := authority.WriteFiles(filepath.Dir(rules), "nobody")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(certificate, 0o644))

	cmd := filtered(t, filepath.Join(dir, "self"), filepath.Join(dir, cli.ProgramName), filterOfUnit(t, unit))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_CERTIFICATE="+certificate)
	e := startCommandIn(t, out, cmd, filepath.Join(run, "agent.sock"), "--config.file="+rules,
		"--otlp.protocol=grpc", "--otlp.endpoint=https://localhost:"+portOf(receiver.Addr()),
		"--otlp.interval=24h")
	for path, mode := range map[string]fs.FileMode{run: 0o755, filepath.Join(run, "agent.sock"): 0o666,
		filepath.Join(run, sockets.ControlFile): 0o666} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode().Perm(), path)
	}
	connect(t, e) // as root, who is another user
	page := awaitPage(t, e, "\nmpit_rank_up{", `user="root"`, "\nprocess_start_time_seconds ", "\nprocess_open_fds ")
	assert.Contains(t, page, `mpit_exporter_connections_accepted_total{user="root"} 1`)
	if !strings.Contains(e.log(t), "Landlock is in force") {
		needLandlock(t)
		t.Error("Landlock is not in force")
	}
	status := map[string]string{}
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", e.cmd.Process.Pid))
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		status[key] = strings.TrimSpace(value)
	}
	assert.Equal(t, "65534\t65534\t65534\t65534", status["Uid"])
	assert.Equal(t, "0000000000000000", status["CapEff"])
	assert.Equal(t, "1", status["NoNewPrivs"])
	assert.Equal(t, "2", status["Seccomp"])

	got := runBinary(t, nil, "push", "--once", "--agent.socket="+e.socket)
	assert.Zero(t, got.status, got.stderr)
	assert.NotEmpty(t, receiver.Requests(), "the receiver's name is looked up and its certificate checked behind "+
		"all that")

	require.NoError(t, os.WriteFile(rules, []byte("rules:\n- match: {name: each_aggregate_unsigned_long}\n  name: "+
		"renamed\n"), 0o644))
	require.NoError(t, e.cmd.Process.Signal(syscall.SIGHUP))
	awaitPage(t, e, "\n"+renamed+"{", reloaded)
	assert.Zero(t, e.end(t, syscall.SIGTERM))
	left, err := os.ReadDir(run)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func portOf(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// TestUnitFile: what must not be set, or must, whoever makes the unit stricter.
func TestUnitFile(t *testing.T) {
	unit := unitFile(t)
	for key, want := range map[string][]string{
		"PrivateUsers": {"no"}, "ProtectProc": {"default"}, "ProcSubset": nil, // who the peers are must be seen
		"RuntimeDirectory": {sockets.Dir}, "RuntimeDirectoryMode": {"0755"}, "Type": {"notify"},
		"NoNewPrivileges": {"yes"}, "CapabilityBoundingSet": nil,
	} {
		assert.Equal(t, want, unit[key], key)
	}
}
