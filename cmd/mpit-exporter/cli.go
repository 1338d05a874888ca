// Package cli is what the subcommands of mpit-exporter share as programs of a command line: the streams they read and
// write, the errors that end them and with which exit status, and how the parser's complaints are put.
//
// It knows no subcommand and no flag. Begin with Error, which is how a subcommand ends with a status of its own.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	// programName is what the program calls itself in messages.
	programName = "mpit-exporter"
	// defaultPort is where an exporter serves HTTP by default.
	defaultPort = "10093"
)

// Exit statuses. Those of exec are its own, as env(1) and timeout(1) have them, so that a script can tell them from the
// program's.
const (
	exitFailure = 1
	exitUsage   = 2
	// exitPartial: cvar set: a rank failed after it or others were changed, be it put back or not; push: not all was
	// delivered.
	exitPartial       = 3
	exitExecFailed    = 125 // exec itself failed: no agent library
	exitNotExecutable = 126
	exitNotFound      = 127
)

// exitError is an error with an exit status other than Failure.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string { return e.err.Error() }

// Unwrap returns the error without its status.
func (e *exitError) Unwrap() error { return e.err }

// usageErrorf returns an error that ends the program with the status Usage.
func usageErrorf(format string, args ...any) error {
	return &exitError{status: exitUsage, err: fmt.Errorf(format, args...)}
}

// stdio is what a command reads and writes, so that tests can look on.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// tell writes a line for the user on stderr.
func (s stdio) tell(format string, args ...any) {
	fmt.Fprintf(s.err, "%s: %s\n", programName, fmt.Sprintf(format, args...))
}

// report writes one line about err, or its own lines where it has several, and returns the exit status that goes with
// it.
func report(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	var many interface {
		error
		Lines() []string
	}
	if errors.As(err, &many) {
		for _, line := range many.Lines() {
			fmt.Fprintln(w, line)
		}
		return exitFailure
	}
	stdio{err: w}.tell("%s", strings.Join(linesOf(err), "; ")) // errors of libraries may span lines
	if exit := (*exitError)(nil); errors.As(err, &exit) {
		return exit.status
	}
	return exitFailure
}

// linesOf are the lines of an error's text, without empty ones.
func linesOf(err error) []string {
	return strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' })
}

// writeJSON writes a value so that people can read it.
func writeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
