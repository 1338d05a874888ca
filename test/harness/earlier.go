package harness

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// Earlier builds the exporter and its libraries as they were at a commit of the repository, and returns the exporter's
// path. Where the commit isn't to be had, as in a tarball or a shallow clone, the test is skipped.
func (s *Suite) Earlier(tb testing.TB, commit string) string {
	tb.Helper()
	shallow, err := exec.Command("git", "-C", s.root, "rev-parse", "--is-shallow-repository").CombinedOutput()
	if err != nil || string(shallow) != "false\n" {
		tb.Skipf("there is no history to take %s from: %v, shallow: %s", commit, err, shallow)
	}
	dir := s.Dir(tb)
	archive := filepath.Join(dir, "tree.tar")
	// Warnings of a compiler that is newer than the commit are none of its faults.
	for _, command := range [][]string{
		{"git", "-C", s.root, "archive", "-o", archive, commit},
		{"tar", "-xf", archive, "-C", dir},
		{"make", "--no-print-directory", "-C", dir, "build", "WERROR=", "OPTIMISATION=-O0"},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			missing(tb, "building %s: %v: %v\n%s", commit, command, err, out)
		}
	}
	return filepath.Join(dir, "bin", "mpit-exporter")
}
