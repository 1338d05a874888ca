// Package uptodate is for tests of files that are generated.
package uptodate

import (
	"fmt"
	"strings"
	"testing"
)

// Check fails the test if a file doesn't say what it should. It shows the first line that differs and the command that
// writes the file anew: both would be lost in a comparison of the whole.
func Check(t testing.TB, file, says, should, command string) {
	t.Helper()
	if says != should {
		t.Errorf("%s is out of date. To write it anew: %s\n%s", file, command, difference(says, should))
	}
}

// difference is the first line in which two texts differ.
func difference(says, should string) string {
	is, want := strings.Split(says, "\n"), strings.Split(should, "\n")
	n := 0
	for n < len(is) && n < len(want) && is[n] == want[n] {
		n++
	}
	line := func(of []string) string {
		if n == len(of) {
			return "(the end)"
		}
		return of[n]
	}
	return fmt.Sprintf("It says\n\t%s\nwhere it should say\n\t%s", line(is), line(want))
}
