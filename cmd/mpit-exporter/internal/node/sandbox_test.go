package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	lowlevel "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// patience bounds failures on a loaded machine; no test measures time.
const patience = 2 * time.Minute

// needLandlock skips a test where the kernel has none.
func needLandlock(t *testing.T) {
	t.Helper()
	if _, err := lowlevel.LandlockGetABIVersion(); err != nil {
		t.Skipf("this kernel has no Landlock: %v", err)
	}
}

// withoutOTLP clears what the environment says of OTLP.
func withoutOTLP(t *testing.T) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
}

// envFence makes the test's own program go behind a fence and try what it may do there: it has the directory to work
// in.
const envFence = "MPIT_CMD_TEST_FENCE"

func TestMain(m *testing.M) {
	if os.Getenv(envFence) != "" {
		os.Exit(behindFence())
	}
	goleak.VerifyTestMain(m)
}

// What the tests of the fence find in their directory, and what is named to it.
const (
	fenceRules   = "rules/rules.yaml"
	fenceWeb     = "web/web.yaml"
	fenceCert    = "tls/live/cert.pem" // a link into tls/archive
	fenceSocket  = "run/agent.sock"
	fenceAddress = "address/address"
	fenceOutside = "outside/secret"
	fenceOTLP    = "otlp/authority.pem"
	fenceSSL     = "ssl/bundle.pem" // what SSL_CERT_FILE names
)

func makeFenced(t *testing.T) (dir string) {
	t.Helper()
	dir = mpittest.ShortDir(t)
	for path, text := range map[string]string{
		fenceRules: "rules: []\n", fenceOutside: "secret", "tls/archive/cert1.pem": "old",
		"tls/archive/cert2.pem": "new", "address/address": "here", "made/x/y": "",
		fenceOTLP: "old", fenceSSL: "old",
		fenceWeb: "tls_server_config: {cert_file: ../" + fenceCert + ", key_file: ../" + fenceCert + "}\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o644))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "tls/live"), 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "run"), 0o755))
	require.NoError(t, os.Symlink("../archive/cert1.pem", filepath.Join(dir, fenceCert)))
	program, err := os.ReadFile("/bin/true")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "outside/true"), program, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rules/true"), program, 0o755))
	return dir
}

// attempts are what a process behind the fence tries, each by its name. The files have been changed by others
// meanwhile, as they may be.
func attempts(dir string) map[string]func() error {
	in := func(path string) string { return filepath.Join(dir, path) }
	read := func(path string) func() error {
		return func() error { _, err := os.ReadFile(path); return err }
	}
	write := func(path string) func() error {
		return func() error { return os.WriteFile(path, []byte("mine"), 0o600) }
	}
	return map[string]func() error{
		"read a rule file":                         read(in(fenceRules)),
		"read a rule file that has been replaced":  read(in("rules/replaced.yaml")),
		"read the directory of the rules":          func() error { _, err := os.ReadDir(in("rules")); return err },
		"read the web configuration":               read(in(fenceWeb)),
		"read a certificate":                       read(in(fenceCert)),
		"read a certificate that has been renewed": read(in("tls/live/renewed.pem")),
		"read a receiver's authority":              read(in(fenceOTLP)),
		"read one that has been replaced":          read(in("otlp/replaced.pem")),
		"read the authorities that are named":      read(in(fenceSSL)),
		"read the system's authorities":            readAll(authorityFiles),
		"read what a resolver reads":               readAll(resolverFiles),
		"write a receiver's authority":             write(in(fenceOTLP)),
		"read a file of another process in /proc":  read("/proc/" + strconv.Itoa(os.Getppid()) + "/cgroup"),
		"read the status of another process":       read("/proc/" + strconv.Itoa(os.Getppid()) + "/status"),
		"name a user":                              func() error { return sameText(UserName(0), "root") },
		"ask getent for a user": func() error {
			out, err := exec.Command("getent", "passwd", "0").Output()
			name, _, _ := strings.Cut(string(out), ":")
			return errors.Join(err, sameText(name, "root"))
		},
		"make the socket again, take over a dead one": func() error { return listenAgain(in(fenceSocket)) },
		"remove the address file":                     func() error { return os.Remove(in(fenceAddress)) },
		"remove the directory it has made":            func() error { return os.Remove(in("made/empty")) },

		"read a file outside":                             read(in(fenceOutside)),
		"read a file outside through a link in the rules": read(in("rules/link.yaml")),
		"read a directory outside": func() error {
			_,
				err := os.ReadDir(in("outside"))
			return err
		},
		"write a rule file":             write(in(fenceRules)),
		"make a file among the rules":   write(in("rules/new.yaml")),
		"remove a rule file":            func() error { return os.Remove(in(fenceRules)) },
		"truncate a rule file":          func() error { return os.Truncate(in(fenceRules), 0) },
		"make a file beside the socket": write(in("run/file")),
		"make a directory beside the socket": func() error {
			return os.Mkdir(in("run/directory"),
				0o700)
		},
		"make a link beside the socket": func() error { return os.Symlink("/", in("run/link")) },
		"make a socket among the rules": func() error { return listenAgain(in("rules/socket")) },
		"move the rules to the socket": func() error {
			return os.Rename(in(fenceRules),
				in("run/rules"))
		},
		"make a temporary file": write(in("../mpit-fence-" + strconv.Itoa(os.Getpid()))),
		"run a program outside": func() error {
			return exec.Command(in("outside/true")).
				Run()
		},
		"run a program among the rules": func() error {
			return exec.Command(in("rules/true")).
				Run()
		},
		"let a child read a file outside": func() error {
			return quietly(exec.Command("cat",
				in(fenceOutside)))
		},
		"look into another process' memory": read("/proc/" + strconv.Itoa(os.Getppid()) + "/mem"),
	}
}

// refusedOutside are the attempts that must fail.
var refusedOutside = []string{
	"read a file outside", "read a file outside through a link in the rules", "read a directory outside",
	"write a rule file", "make a file among the rules",
	"remove a rule file", "truncate a rule file", "make a file beside the socket",
	"make a directory beside the socket", "make a link beside the socket",
	"make a socket among the rules", "move the rules to the socket", "make a temporary file",
	"run a program outside", "run a program among the rules",
	"let a child read a file outside", "look into another process' memory", "write a receiver's authority",
}

// readAll reads those files that are there.
func readAll(paths []string) func() error {
	return func() error {
		var failed []error
		for _, path := range paths {
			if _, err := os.ReadFile(path); !errors.Is(err, fs.ErrNotExist) {
				failed = append(failed, err)
			}
		}
		return errors.Join(failed...)
	}
}

func sameText(got, want string) error {
	if got != want {
		return fmt.Errorf("%q, not %q", got, want)
	}
	return nil
}

func quietly(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err != nil && bytes.Contains(out, []byte("Permission denied")) {
		return fs.ErrPermission
	}
	return err
}

// listenAgain takes the place of a dead socket.
func listenAgain(path string) error {
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		return err
	}
	s, err := mpit.ListenUnix(path, 0o666)
	if err != nil {
		return err
	}
	return s.Close()
}

// attempted is what came of everything: of the fence itself, and of the attempts by name. Empty: it went well.
type attempted struct {
	Version int
	Err     string
	Results map[string]string
}

// behindFence is the process of its own that goes behind a fence. Each attempt is made in a thread that was there
// before the fence, and in another one.
func behindFence() (status int) {
	dir := os.Getenv(envFence)
	const old = 3
	start, stop := make(chan func() error), make(chan struct{})
	results := make(chan error)
	for range old {
		go func() {
			runtime.LockOSThread()
			for {
				select {
				case try := <-start:
					results <- try()
				case <-stop:
					return
				}
			}
		}()
	}
	outcome := attempted{Results: map[string]string{}}
	needs := Needs{
		Rules: []string{filepath.Join(dir, fenceRules)}, WebConfig: filepath.Join(dir, fenceWeb),
		Sockets: []string{filepath.Join(dir, fenceSocket)},
		Dirs:    []string{filepath.Join(dir, "made/x")}, Removed: []string{filepath.Join(dir, fenceAddress)},
		Receiver: true, Certificates: []string{filepath.Join(dir, fenceOTLP), ""},
	}
	reads := needs.reads(resolverFiles, func(name string) string {
		return map[string]string{"SSL_CERT_FILE": filepath.Join(dir, fenceSSL)}[name]
	})
	change := exec.Command("/bin/sh", "-c", fmt.Sprintf(`cd %q && read -r go && echo renewed >tls/archive/cert3.pem && ln -s ../archive/cert3.pem tls/live/renewed.pem &&
		cp rules/rules.yaml rules/.new && mv rules/.new rules/replaced.yaml && ln -s ../outside/secret rules/link.yaml && mkdir made/empty &&
		cp otlp/authority.pem otlp/.new && mv otlp/.new otlp/replaced.pem`, dir))
	begin, err := change.StdinPipe()
	if err == nil {
		err = change.Start() // outside of the fence
	}
	if err == nil {
		outcome.Version, err = raise(needs.rules(os.Geteuid(), reads))
	}
	if err != nil {
		outcome.Err = err.Error()
	}
	fmt.Fprintln(begin, "go")
	if err := change.Wait(); err != nil {
		fmt.Fprintln(os.Stderr, "changing files:", err)
		return 1
	}
	for name, try := range attempts(dir) {
		start <- try
		err := <-results
		if again := try(); err == nil && errors.Is(again, fs.ErrPermission) {
			err = fmt.Errorf("in another thread: %w", again)
		}
		outcome.Results[name] = ""
		if err != nil {
			outcome.Results[name] = err.Error()
		}
	}
	close(stop)
	if err := json.NewEncoder(os.Stdout).Encode(outcome); err != nil {
		return 1
	}
	return 0
}

// TestLandlock: behind the fence that serve puts up, what the exporter needs works, also with files that have been
// replaced since, and all else is refused, in every thread and in children.
func TestLandlock(t *testing.T) {
	needLandlock(t)
	for _, test := range []struct {
		name string
		user uint32
	}{{"as root", 0}, {"as a user of its own", 65534}} {
		t.Run(test.name, func(t *testing.T) {
			dir := makeFenced(t)
			got := tryBehindFence(t, dir, test.user)
			assert.Empty(t, got.Err)
			assert.Positive(t, got.Version)
			refused := map[string]bool{}
			for _, name := range refusedOutside {
				refused[name] = true
				assert.Contains(t, got.Results[name], "ermission denied", name)
			}
			for name, result := range got.Results {
				if !refused[name] {
					assert.Empty(t, result, name)
				}
			}
			assert.Len(t, got.Results, len(attempts(dir)))
		})
	}
}

// tryBehindFence runs behindFence as a user, to whom the directory is given.
func tryBehindFence(t *testing.T, dir string, user uint32) attempted {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envFence+"="+dir)
	if os.Getuid() != 0 && user == 0 {
		t.Skip("needs root")
	}
	if os.Getuid() == 0 {
		// The program lies in a directory that is another user's.
		program := filepath.Join(dir, "program")
		text, err := os.ReadFile(os.Args[0])
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(program, text, 0o755))
		require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, int(user), int(user)))
		}))
		cmd.Path = program
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s", &stderr)
	var got attempted
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &got), "%s", &stdout)
	return got
}

// TestFencePlaces: directories are named, not files, for these may be replaced; of links those that they lead to as
// well.
func TestFencePlaces(t *testing.T) {
	dir := makeFenced(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "set"), 0o755))
	require.NoError(t, os.Symlink("../outside/secret", filepath.Join(dir, "set/1.yaml")))
	require.NoError(t, os.Symlink("../tls/archive/cert1.pem", filepath.Join(dir, "set/no.rules")))
	in := func(paths ...string) []string {
		for i := range paths {
			paths[i] = filepath.Join(dir, paths[i])
		}
		return paths
	}
	for _, test := range []struct {
		name  string
		rules []string
		web   string
		want  []string
	}{
		{"nothing", nil, "", nil},
		{"a rule file", in(fenceRules), "", in("rules")},
		{"a directory of rule files, one of them a link", in("set"), "", in("outside", "set")},
		{"a certificate that is a link", nil, filepath.Join(dir, fenceWeb), in("tls/archive", "tls/live", "web")},
		{"what is not there", in("none/rules.yaml"), "", in("none")},
	} {
		t.Run(test.name, func(t *testing.T) {
			needs := Needs{Rules: test.rules, WebConfig: test.web}
			assert.Equal(t, test.want, needs.reads(nil, os.Getenv))
		})
	}
}

// TestFenceOfReceiver: nothing of a receiver is read where nothing is pushed, and a resolver's file that a link leads
// to is found where it is.
func TestFenceOfReceiver(t *testing.T) {
	dir := makeFenced(t)
	needs := Needs{Certificates: []string{filepath.Join(dir, fenceOTLP), "", filepath.Join(dir, fenceCert)}}
	assert.Empty(t, needs.reads(resolverFiles, os.Getenv))
	needs.Receiver = true
	link := filepath.Join(dir, "resolv.conf")
	require.NoError(t, os.Symlink(fenceOutside, link))
	reads := needs.reads([]string{link, filepath.Join(dir, "none"), "/etc/passwd"}, func(name string) string {
		return map[string]string{"SSL_CERT_FILE": filepath.Join(dir, fenceSSL),
			"SSL_CERT_DIR": "/a/certs:/b/certs"}[name]
	})
	for _, path := range []string{"otlp", "ssl", "tls/live", "tls/archive", "outside"} {
		assert.Contains(t, reads, filepath.Join(dir, path))
	}
	assert.Subset(t, reads, []string{"/a/certs", "/b/certs", "/etc/ssl/certs"})
	assert.NotContains(t, reads, "/etc")
	assert.Equal(t, []string{"/run/x"}, dirsOf([]string{"/run/x/agent.sock", "/run/x/control.sock"}))
}
