// Package cli is what the subcommands of mpit-exporter share as programs of a command line: the streams they read and
// write, the errors that end them and with which exit status, and how the parser's complaints are put.
//
// It knows no subcommand and no flag. Begin with Error, which is how a subcommand ends with a status of its own, and
// Parse.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

const (
	// ProgramName is what the program calls itself in messages.
	ProgramName = "mpit-exporter"
	// DefaultPort is where an exporter serves HTTP by default.
	DefaultPort = "10093"
)

// Exit statuses. Those of exec are its own, as env(1) and timeout(1) have them, so that a script can tell them from
// the program's.
const (
	Failure = 1
	Usage   = 2
	// Partial is, of cvar set, that a rank failed after it or others were changed, whether it was put back or not; of
	// push, that not all was delivered.
	Partial = 3
	// Differs is, of list --compare, that what there is now is not what was saved.
	Differs       = 4
	ExecFailed    = 125 // exec itself failed: no agent library
	NotExecutable = 126
	NotFound      = 127
)

// Error is an error with an exit status other than Failure.
type Error struct {
	Status int
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without its status.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an error that ends the program with a status.
func Errorf(status int, format string, args ...any) error {
	return &Error{Status: status, Err: fmt.Errorf(format, args...)}
}

// Usagef returns an error that ends the program with the status Usage.
func Usagef(format string, args ...any) error { return Errorf(Usage, format, args...) }

// Stdio is what a command reads and writes, so that tests can look on.
type Stdio struct {
	In       io.Reader
	Out, Err io.Writer
}

// Tell writes a line for the user on stderr.
func (s Stdio) Tell(format string, args ...any) {
	fmt.Fprintf(s.Err, "%s: %s\n", ProgramName, fmt.Sprintf(format, args...))
}

// Report writes one line about err, or its own lines where it has several, and returns the exit status that goes with
// it. An error without text has been shown already.
func Report(w io.Writer, err error) int {
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
		return Failure
	}
	if lines := Lines(err); len(lines) > 0 {
		Stdio{Err: w}.Tell("%s", strings.Join(lines, "; ")) // errors of libraries may span lines
	}
	if exit := (*Error)(nil); errors.As(err, &exit) {
		return exit.Status
	}
	return Failure
}

// Lines are the lines of an error's text, without empty ones.
func Lines(err error) []string {
	return strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' })
}

// Await does something, but returns when ctx ends, whatever it is doing by then. It is for what may be abandoned when
// the program ends.
func Await(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// WriteJSON writes a value so that people can read it.
func WriteJSON(w io.Writer, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err == nil {
		_, err = w.Write(append(mapping.EscapeHidden(text), '\n'))
	}
	return err
}

// WriteFile writes a file with a mode, so that a reader never sees half of it. Until it is whole it has another name,
// which begins with a dot and ends in .tmp.
func WriteFile(path string, text []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*.tmp")
	if err != nil {
		return named(err, path)
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return named(err, path)
}

// named is an error about a file under the name that its user knows it by.
func named(err error, path string) error {
	if cause := syscall.Errno(0); errors.As(err, &cause) {
		return &fs.PathError{Op: "writing", Path: path, Err: cause}
	}
	return err
}
