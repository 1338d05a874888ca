package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// contains says whether a screen has all of these texts. One that begins with a newline stands at a line's beginning.
func contains(texts ...string) func(screen string) bool {
	return func(screen string) bool {
		for _, text := range texts {
			if !strings.Contains("\n"+screen, text) {
				return false
			}
		}
		return true
	}
}

// startTop is top in a terminal.
func startTop(t *testing.T, exporter *harness.Exporter, columns, lines int, env ...string) *harness.Terminal {
	t.Helper()
	return suite.Terminal(t, []string{suite.Binary(), "top", "--url=" + exporter.URL(""), "--interval=1s"}, env, columns,
		lines)
}

// A real job in a real terminal: who is late, and where it costs, whatever the terminal's size; keys do what the help
// says; of a rank that is killed it says so.
func TestTopInATerminal(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			t.Parallel()
			exporter := suite.Exporter(t)
			for _, locale := range []string{"C.UTF-8", "de_DE.ISO-8859-1", "C"} {
				empty := startTop(t, exporter, 80, 24, "LC_ALL="+locale)
				empty.Await(t, "that there is nothing", contains("No rank has come yet."))
				empty.Type(t, "q")
				assert.Zero(t, empty.Wait(t), locale)
			}

			job := uneven(mpi, "--calls")
			job.Socket, job.Args = exporter.Socket, append(job.Args, "--steps=1000000", "--seconds=0", "--pause=30")
			run := suite.Run(t, job)
			exporter.Await(t, "the ranks", up(run))
			top := startTop(t, exporter, 120, 40)
			screen := top.Await(t, "the verdict", contains("  last ", "\n2      █"))
			assert.Regexp(t, busyOr(`ranks wait in MPI_Allreduce on residual (probably )?for rank 2 on `), screen)
			assert.Regexp(t, `(?m)^ *\d+ %  +[\d.]+  +[\d.]+ms  MPI_Allreduce +residual +[013]\S*: \d+ %$`, screen)

			assertAsDocumented(t, screen)

			top.Type(t, "?")
			top.Await(t, "the help", contains("\nKeys\n"))
			top.Type(t, "x")
			top.Await(t, "no help", contains("CALLS/s "))

			top.Resize(t, 60, 14)
			small := top.Await(t, "a small screen", contains("? help\n", "\n2 "))
			assert.LessOrEqual(t, strings.Count(small, "\n"), 14)
			for line := range strings.Lines(small) {
				assert.LessOrEqual(t, utf8.RuneCountInString(line)-1, 60, line)
			}
			top.Resize(t, 120, 40)

			// A second job is in order: it comes after the first, until it is picked.
			job = harness.Job{MPI: mpi, Program: "profile_stuck.c", Args: []string{harness.HoldDir}, Socket: exporter.Socket}
			other := suite.Run(t, job)
			top.Await(t, "two jobs", contains("\n> "+run.ID+" ", "\n  "+other.ID+" "))
			top.Type(t, "\x1b[B")
			top.Await(t, "the other one", contains("\n> "+other.ID+" ", "\nJob "+other.ID+":"))
			top.Type(t, "\x1b")
			top.Await(t, "the first one again", contains("\n> "+run.ID+" "))

			for _, pid := range run.Leftovers() {
				name, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
				if strings.HasPrefix(string(name), "examples-calls") {
					require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
					break
				}
			}
			top.Await(t, "the end", contains("CRASHED ", " ended without MPI_Finalize"))
			other.Finish(t, "late", "done")
			top.Type(t, "q")
			assert.Zero(t, top.Wait(t))
			assert.Contains(t, top.Stream(), "\x1b[31", "what is broken is red")
		})
	}
}

// assertAsDocumented compares a screen with the picture in docs/top.md, but for numbers, bars and names.
func assertAsDocumented(t *testing.T, screen string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(suite.Root(), "docs", "top.md"))
	require.NoError(t, err)
	picture := strings.Split(string(page), "```")[1]
	numbers := regexp.MustCompile(`[\d.,-]+[kmµ]?s?|[█▒░]+`)
	lines := func(text string) (all []string) {
		for line := range strings.Lines(text) {
			all = append(all, strings.Join(strings.Fields(numbers.ReplaceAllString(line, "")), " "))
		}
		return all
	}
	shown := lines(screen)
	for _, line := range lines(picture) {
		for _, beginning := range []string{"SHARE", "RANKS", "% useful"} {
			if strings.HasPrefix(line, beginning) {
				beginning, _, _ = strings.Cut(line, " residual for rank") // where it is broken depends on the width
				assert.True(t, slices.ContainsFunc(shown, func(s string) bool { return strings.HasPrefix(s, beginning) }),
					"docs/top.md has %q, but the screen is:\n%s", line, screen)
			}
		}
	}
}

// Whichever way it ends, the terminal is given back; where there should be no colours there are none; an exporter that
// has gone away ends nothing.
func TestTopGivesTheTerminalBack(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		end  func(top *harness.Terminal)
	}{
		{"q", func(top *harness.Terminal) { top.Type(t, "q") }},
		{"Ctrl-C", func(top *harness.Terminal) { top.Type(t, "\x03") }},
		{"SIGTERM", func(top *harness.Terminal) { top.Signal(t, syscall.SIGTERM) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			top := startTop(t, exporter, 80, 24, "NO_COLOR=1")
			top.Await(t, "something", contains("No rank has come yet."))
			exporter.Kill(t)
			top.Await(t, "what is wrong", contains("no exporter answers"))
			test.end(top)
			assert.Zero(t, top.Wait(t))
			stream := top.Stream()
			assert.Contains(t, stream, "\x1b[?1049h")
			assert.Greater(t, strings.LastIndex(stream, "\x1b[?1049l"), strings.LastIndex(stream, "\x1b[?1049h"))
			assert.NotRegexp(t, `\x1b\[3\d`, stream)
		})
	}
}
