package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
)

// agentSettings are what exec and list change in a program's environment.
type agentSettings struct {
	library      string // absolute path
	calls        bool   // with the call profile
	callsSaid    bool   // calls is the command line's word, which goes before the environment's
	callsLibrary string // absolute path
	socket       string
	jobID        string
	deny         []string
	log          bool
	monitoring   bool
	allowWrite   bool
	finalWait    time.Duration // exec --own's: how long MPI_Finalize waits for the last values to be pushed
	linger       time.Duration // list's: how long MPI_Finalize waits to be asked
	file         programFile   // the program's
}

// environ returns env with the settings, and what the user should know about them.
func (s agentSettings) environ(env []string) (changed, notes []string) {
	e := environment(slices.Clone(env))
	e.preload(s)
	if s.file.unobserved != "" {
		notes = append(notes, "the program runs unobserved: "+s.file.unobserved)
	}
	if s.socket != "" {
		e.set(envSocket, s.socket)
	}
	if s.jobID != "" {
		e.set(envJobID, s.jobID)
	}
	if len(s.deny) > 0 {
		e.set(envDeny, "+"+strings.Join(s.deny, ",")) // the plus: to what is denied by default
	}
	if s.log {
		e.set(envLog, "1")
	}
	if s.allowWrite {
		e.set(envAllowWrite, "1")
	}
	if s.finalWait > 0 {
		e.set(envFinalWait, strconv.FormatInt(s.finalWait.Milliseconds(), 10))
	}
	if s.linger > 0 {
		e.set(envLinger, strconv.FormatInt(s.linger.Milliseconds(), 10))
	}
	if s.monitoring {
		if _, ok := e.lookup(envOpen); !ok {
			e.set(envOpen, "*") // what is opened on request only
		}
		notes = append(notes, e.monitor()...)
	}
	if !s.file.alone {
		e.sanitizers(s.file)
	}
	return e, notes
}

// wantsCalls says whether a call profile is to be made: the command line's word, else the environment's, as the agent reads such.
func (s *agentSettings) wantsCalls(env environment) bool {
	if s.callsSaid {
		return s.calls
	}
	value := env.get(envCalls)
	return value != "" && value != "0"
}

// addCalls adds the flag --calls.
func (s *agentSettings) addCalls(cmd *kingpin.CmdClause, help string) {
	cmd.Flag("calls", help).IsSetByUser(&s.callsSaid).BoolVar(&s.calls)
}

// complete finds the libraries and the program, looks at its file, makes the socket's path one that a change of
// directory doesn't change, and returns the program's path. Errors have the exit statuses of exec.
func (s *agentSettings) complete(env environment, program string) (path string, err error) {
	if err := s.findLibraries(env); err != nil {
		return "", &exitError{status: exitExecFailed, err: err}
	}
	if s.socket != "" {
		if s.socket, err = absoluteSocket(s.socket); err != nil {
			return "", &exitError{status: exitExecFailed, err: err}
		}
	}
	if path, err = lookProgram(program, env); err != nil {
		return "", err
	}
	s.file = lookAt(path, s.library)
	return path, nil
}

func (s *agentSettings) findLibraries(env environment) error {
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("agent library: finding my own path: %w", err)
	}
	if s.library, err = agentLibrary().find(env.get(envLibrary), executable); err != nil {
		return err
	}
	if s.calls = s.wantsCalls(env); s.calls {
		// Beside the agent, wherever that is: both are of one build.
		s.callsLibrary, err = callsLibrary().find(env.get(envCallsLibrary), executable, filepath.Dir(s.library))
	}
	return err
}

func absoluteSocket(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("--socket: %w", err)
	case len(absolute) > maxSocketPath:
		return "", fmt.Errorf("--socket %s: the path is longer than the %d bytes that a socket's may have", absolute, maxSocketPath)
	}
	return absolute, nil
}
