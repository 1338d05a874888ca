package e2e

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// Memcheck finds nothing in a rank that the agent or the call profile has done: one whose calls have statuses, derived
// datatypes, errors and requests of all kinds. Open MPI itself gives it much to say. A leak is ours if we allocated it;
// any other error is, if its stack goes through the agent or the profile and what lies below isn't reported without
// them, too. TestStormUnderMemcheck has objects of all kinds that come and go.
func TestMemcheck(t *testing.T) {
	harness.LeftToCI(t)
	t.Parallel()
	valgrind := harness.Tool(t, "valgrind")
	exporter := suite.Exporter(t)
	memcheck := func(bare bool) []memcheckError {
		dir := suite.Dir(t)
		run := suite.Run(t, harness.Job{
			MPI: harness.OpenMPI(t), Program: "profile_messages.c",
			Args: []string{harness.HoldDir, "blocking", "types", "errors", "completion", "probes"},
			Wrap: memcheckCommand(valgrind, dir),
			Bare: bare, Socket: exporter.Socket, Exec: []string{"--monitoring", "--calls=peers"},
		})
		run.AtHold(t, "half")
		if !bare {
			exporter.Await(t, "calls from under valgrind", all(up(run), profiled(run, readBooks(t, run, "half"))))
		}
		run.Finish(t, "half", "done")
		if !bare {
			exporter.Await(t, "the end under valgrind",
				all(ended(run, "finalize"), profiled(run, readBooks(t, run, "end"))))
		}
		return readMemcheck(t, dir, run.Ranks)
	}
	assertAgentClean(t, memcheck(true), memcheck(false))
}

// memcheckCommand runs a program under valgrind, which leaves a report for each process in dir.
func memcheckCommand(valgrind, dir string) []string {
	return []string{
		valgrind, "--quiet", "--leak-check=full", "--show-leak-kinds=definite", "--num-callers=40",
		"--xml=yes", "--xml-file=" + dir + "/%p.xml", "--child-silent-after-fork=yes",
	}
}

// assertAgentClean fails the test for what is the agent's among the errors of a run with it; bare are those of one
// without.
func assertAgentClean(t *testing.T, bare, found []memcheckError) {
	t.Helper()
	known := map[string]bool{}
	for _, e := range bare {
		for depth := range e.frames {
			known[e.signature(depth+1)] = true
		}
	}
	for _, e := range found {
		depth := e.agentDepth()
		leak := strings.HasPrefix(e.Kind, "Leak_")
		switch {
		// asks the kernel whether an address is memory: no is an answer
		case depth > 0 && e.frames[depth].Function == "memory_readable":
		case depth < 0, depth > 0 && known[e.signature(depth)], leak && !e.allocatedBy(depth):
		default:
			assert.Fail(t, "an error in the agent", e.String())
		}
	}
}

// memcheckError is one error of Valgrind's XML output.
type memcheckError struct {
	Kind  string `xml:"kind"`
	What  string `xml:"what"`
	XWhat string `xml:"xwhat>text"`
	Stack struct {
		Frames []memcheckFrame `xml:"frame"`
	} `xml:"stack"`
	frames []memcheckFrame // of the first stack, which is where it happened
}

type memcheckFrame struct {
	Object   string `xml:"obj"`
	Function string `xml:"fn"`
	File     string `xml:"file"`
	Line     int    `xml:"line"`
}

// agentDepth is the number of frames below the innermost one of the agent or the call profile; -1: they have nothing
// to do with it.
func (e memcheckError) agentDepth() int {
	for i, f := range e.frames {
		if strings.HasPrefix(filepath.Base(f.Object), "libmpit-") {
			return i
		}
	}
	return -1
}

// allocatedBy says whether nothing but the C library lies below the frame at depth.
func (e memcheckError) allocatedBy(depth int) bool {
	for _, f := range e.frames[:depth] {
		object := filepath.Base(f.Object)
		if !strings.HasPrefix(object, "libc.") && !strings.HasPrefix(object, "vgpreload_") &&
			!strings.HasPrefix(object, "ld-linux") {
			return false
		}
	}
	return true
}

// signature names the innermost frames of the error.
func (e memcheckError) signature(depth int) string {
	s := e.Kind
	for _, f := range e.frames[:depth] {
		s += "|" + filepath.Base(f.Object) + ":" + f.Function
	}
	return s
}

func (e memcheckError) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s%s\n", e.Kind, e.What, e.XWhat)
	for _, f := range e.frames {
		fmt.Fprintf(&b, "  %s %s %s:%d\n", filepath.Base(f.Object), f.Function, f.File, f.Line)
	}
	return b.String()
}

func readMemcheck(t *testing.T, dir string, ranks int) []memcheckError {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.xml"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), ranks, "one report for each rank")
	var errors []memcheckError
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var report struct {
			Errors []memcheckError `xml:"error"`
		}
		require.NoError(t, xml.Unmarshal(text, &report), file)
		for _, e := range report.Errors {
			e.frames = e.Stack.Frames
			errors = append(errors, e)
		}
	}
	return errors
}
