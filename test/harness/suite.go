// Package harness starts the real thing for tests: the exporter's binary, MPI jobs under "mpit-exporter exec",
// Prometheus. It picks free ports and private sockets, never the default ones, waits for conditions instead of
// sleeping, and ends every process that it started.
//
// The programs of test/programs are compiled when they are first asked for. What a test needs and can't be found
// fails the test; with MPIT_TEST_ALLOW_MISSING=1 in the environment it skips it. MPIT_TEST_KEEP=1 leaves the
// temporary directory behind, and MPIT_TEST_PATIENCE=5s makes failing tests fail sooner than after minutes. With
// MPIT_TEST_BUILT=1 what is in bin is tested as it is.
package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// patience is how long a condition may take to come true on a loaded machine. No test measures time: it only bounds
// failures.
var patience = sync.OnceValue(func() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("MPIT_TEST_PATIENCE")); err == nil {
		return d
	}
	return 5 * time.Minute
})

// Patient returns a context for one wait of a test, which only a hang makes longer.
func Patient(tb testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(tb.Context(), patience())
}

// Suite owns what the tests of one process share: the binaries and the compiled programs. It is safe for concurrent
// use.
type Suite struct {
	root string // of the repository
	dir  string // ours alone; short, for socket paths end at 107 bytes
	next atomic.Int64

	crowd sync.Mutex // held by a test with a crowd

	mutex    sync.Mutex
	programs map[string]*compilation
}

// New brings the binaries of the repository up to date with "make build" and makes a temporary directory, which Close
// removes.
func New(ctx context.Context) (*Suite, error) {
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	if os.Getenv("MPIT_TEST_BUILT") != "1" {
		build := exec.CommandContext(ctx, "make", "--no-print-directory", "-C", root, "build")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("make build: %w\n%s", err, out)
		}
	}
	dir, err := os.MkdirTemp("", "mpit-e2e-")
	if err != nil {
		return nil, fmt.Errorf("making a temporary directory: %w", err)
	}
	return &Suite{root: root, dir: dir, programs: make(map[string]*compilation)}, nil
}

// Main runs a package's tests with a suite of its own, which it hands to use first, and returns the status to exit
// with.
func Main(m *testing.M, use func(*Suite)) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s, err := New(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer s.Close()
	use(s)
	return m.Run()
}

// Close removes the suite's directory.
func (s *Suite) Close() error {
	if os.Getenv("MPIT_TEST_KEEP") == "1" {
		fmt.Fprintln(os.Stderr, "kept", s.dir)
		return nil
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("removing the temporary directory: %w", err)
	}
	return nil
}

// Root is the repository's directory.
func (s *Suite) Root() string { return s.root }

// Binary is the exporter's path.
func (s *Suite) Binary() string { return filepath.Join(s.root, "bin", "mpit-exporter") }

// Agent is the path of the library that is preloaded into ranks.
func (s *Suite) Agent() string { return filepath.Join(s.root, "bin", "libmpit-agent.so") }

// Calls is the path of the library that is preloaded with it for a profile of MPI calls.
func (s *Suite) Calls() string { return filepath.Join(s.root, "bin", "libmpit-calls.so") }

// Dir makes a new directory with a short path, which goes with the suite.
func (s *Suite) Dir(tb testing.TB) string {
	tb.Helper()
	dir := filepath.Join(s.dir, strconv.FormatInt(s.next.Add(1), 10))
	if err := os.Mkdir(dir, 0o755); err != nil {
		tb.Fatalf("making a directory: %v", err)
	}
	return dir
}

// Crowd has a test wait for its turn if it starts more ranks than there are cores and wants to see how they get on: one
// such test runs at a time, beside others.
func (s *Suite) Crowd(tb testing.TB) {
	s.crowd.Lock()
	tb.Cleanup(s.crowd.Unlock)
}

// Tool finds a program of the system by its name; the test fails, or is skipped where that is allowed, if there is
// none.
func Tool(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(tb, "%s is not installed", name)
	}
	return path
}

func missing(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if os.Getenv("MPIT_TEST_ALLOW_MISSING") == "1" {
		tb.Skipf(format, args...)
	}
	tb.Fatalf(format+" (MPIT_TEST_ALLOW_MISSING=1 skips the tests that need it)", args...)
}

// findRoot goes up from the working directory, a package of the module test, to the repository's directory.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "test", "programs")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("finding the repository: no directory above has test/programs")
		}
		dir = up
	}
}

// LeftToCI skips a test that make test leaves to make test-more.
func LeftToCI(tb testing.TB) {
	tb.Helper()
	if os.Getenv("MPIT_TEST_MORE") == "" {
		tb.Skip("make test-more")
	}
}
