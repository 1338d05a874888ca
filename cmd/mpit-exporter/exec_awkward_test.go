package main

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const greeting = `#include <stdio.h>
int main(void) { puts("hello"); return 7; }
`

// TestExecOfAwkwardPrograms: a program that can't be observed, or that defends itself against preloaded libraries,
// does what it does without us, by itself and out of a script; one line says what isn't possible.
func TestExecOfAwkwardPrograms(t *testing.T) {
	binary(t) // without it nothing need be compiled
	for _, test := range []struct {
		name    string
		command []string
		note    string
	}{
		{"AddressSanitizer", []string{"cc", "-fsanitize=address"}, ""},
		{"ThreadSanitizer", []string{"cc", "-fsanitize=thread"}, ""},
		{"static", []string{"cc", "-static"}, "mpit-exporter: the program runs unobserved: it is linked statically, " +
			"and nothing can be preloaded into it\n"},
		{"32 bits", []string{"cc", "-m32"}, "mpit-exporter: the program runs unobserved: it is a program for 386 " +
			"with 32 bits, and libmpit-agent.so is for X86_64\n"},
		{"musl", []string{"musl-gcc"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			program := compile(t, dir, "program", greeting, test.command...)
			require.Equal(t, 7, wait(t, exec.CommandContext(t.Context(), program)).status, "without exec")
			env := []string{"MPIT_SOCKET=" + dir} // it is there: no note that no exporter is
			for _, flags := range [][]string{nil, {"--calls"}} {
				args := append(append([]string{"exec"}, flags...), "--")
				assert.Equal(t, outcome{stdout: "hello\n", stderr: test.note, status: 7},
					runBinary(t, env, append(args, program)...))
				if test.name != "32 bits" { // in a script the loader complains, as of any library that it can't use
					assert.Equal(t, outcome{stdout: "hello\n", status: 7},
						runBinary(t, env, append(args, "sh", "-c", program)...))
				}
			}
		})
	}
}
