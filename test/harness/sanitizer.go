package harness

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Sanitizer is one of the compiler's. Agent and program are compiled with it, MPI libraries and the exporter are not.
type Sanitizer struct {
	Name    string
	Flags   []string // of the compiler
	options []string // environment; REPORTS is the beginning of the names of files that reports go to
}

// Sanitizers returns those that the agent is run under. The agent comes before their own libraries, so that these
// aren't the first ones as they would like to be; what they have to take over they do all the same, because the
// program is linked with them. MPI libraries leak, and what isn't compiled for it looks racy, wherever it uses other
// locks than the C library's. UCX patches mmap, and TSan crashes.
func Sanitizers(root string) []Sanitizer {
	return []Sanitizer{
		{"addresses", []string{"-fsanitize=address,undefined", "-fno-sanitize-recover=all",
			"-fno-omit-frame-pointer"}, []string{
			"ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0:log_path=REPORTS",
			"UBSAN_OPTIONS=print_stacktrace=1:log_path=REPORTS",
		}},
		{"threads", []string{"-fsanitize=thread"}, []string{
			"TSAN_OPTIONS=ignore_noninstrumented_modules=1:detect_deadlocks=0:exitcode=0:log_path=REPORTS:suppressions=" + filepath.Join(root, "mpit", "agent", "test", "threads.supp"),
			"UCX_MEM_EVENTS=n",
		}},
	}
}

// SanitizedAgent compiles the agent, and if that is wanted the call profile's library, with a sanitizer and returns
// what a job with them needs in the environment. What is compiled stays in mpit/agent/build, for the next package that
// asks. In the end the test fails for each report that one of them has part in.
func (s *Suite) SanitizedAgent(tb testing.TB, sanitizer Sanitizer, calls bool) (env []string) {
	tb.Helper()
	build := filepath.Join("build", "sanitized-"+sanitizer.Name)
	into := filepath.Join(s.root, "mpit", "agent", build)
	library, callsLibrary := filepath.Join(into, "libmpit-agent.so"), filepath.Join(into, "libmpit-calls.so")
	if err := os.MkdirAll(into, 0o755); err != nil {
		tb.Fatalf("making a directory for what is compiled: %v", err)
	}
	// Two packages may want it at the same time.
	command := []string{filepath.Join(into, "lock"), "make", "-s", "-j" + strconv.Itoa(runtime.NumCPU()), "-C",
		filepath.Join(s.root, "mpit", "agent"), "BUILD=" + build, "OUT=" + library, "CALLS_OUT=" + callsLibrary,
		"OPTIMISATION=-O0", library}
	if calls {
		command = append(command, callsLibrary)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), 5*time.Minute) // it is much to compile
	defer cancel()
	cmd := exec.CommandContext(ctx, "flock", command...)
	flags := strings.Join(sanitizer.Flags, " ")
	// the makefile adds to them, which it couldn't on the command line
	cmd.Env = append(os.Environ(), "CFLAGS="+flags, "LDFLAGS="+flags)
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("compiling the agent with %s: %v\n%s", flags, err, out)
	}
	reports := filepath.Join(s.Dir(tb), "report")
	tb.Cleanup(func() { expectNoReports(tb, reports) })
	env = []string{"MPIT_AGENT_LIBRARY=" + library}
	for _, option := range sanitizer.options {
		env = append(env, strings.ReplaceAll(option, "REPORTS", reports))
	}
	return env
}

// expectNoReports looks at files, because the agent's thread has no stderr.
func expectNoReports(tb testing.TB, reports string) {
	tb.Helper()
	files, err := filepath.Glob(reports + ".*")
	if err != nil {
		tb.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		if strings.Contains(string(text), "libmpit-") {
			tb.Errorf("a sanitizer's report:\n%s", text)
		} else {
			tb.Logf("a sanitizer's report that has nothing to do with the agent or the call profile:\n%s", text)
		}
	}
}
