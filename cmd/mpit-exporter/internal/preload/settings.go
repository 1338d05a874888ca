// Package preload is how a program is started under the agent: which libraries are preloaded, what stands in the
// environment for them, and what of that the program's file makes impossible.
//
// It starts nothing. Begin with Settings, which exec and list fill from their flags: Complete finds what is needed,
// Environ makes the environment.
package preload

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
)

// Settings are what exec and list change in a program's environment.
type Settings struct {
	library      string // absolute path
	Calls        bool   // with the call profile
	CallsSaid    bool   // calls is the command line's word, which goes before the environment's
	CallsWords   string // what it measures besides, with commas; of the command line alone
	callsLibrary string // absolute path
	Socket       string
	JobID        string
	Deny         []string
	Log          bool
	Monitoring   bool
	Events       bool
	AllowWrite   bool
	FinalWait    time.Duration // exec --own's: how long MPI_Finalize waits for the last values to be pushed
	Linger       time.Duration // list's: how long MPI_Finalize waits to be asked
	file         programFile   // the program's
}

// Environ returns env with the settings, and what the user should know about them.
func (s Settings) Environ(env []string) (changed, notes []string) {
	e := Environment(slices.Clone(env))
	e.preload(s)
	if s.file.unobserved != "" {
		notes = append(notes, "the program runs unobserved: "+s.file.unobserved)
	}
	_, opens := e.Lookup(envOpen)
	for _, set := range []struct {
		is          bool
		name, value string
	}{
		{s.Socket != "", sockets.EnvSocket, s.Socket},
		{s.JobID != "", EnvJobID, s.JobID},
		{len(s.Deny) > 0, EnvDeny, "+" + strings.Join(s.Deny, ",")}, // the plus: to what is denied by default
		{s.Calls && s.CallsSaid, EnvCalls, cmp.Or(s.CallsWords, "1")},
		{s.Log, EnvLog, "1"},
		{s.AllowWrite, EnvAllowWrite, "1"},
		{s.FinalWait > 0, envFinalWait, strconv.FormatInt(s.FinalWait.Milliseconds(), 10)},
		{s.Linger > 0, envLinger, strconv.FormatInt(s.Linger.Milliseconds(), 10)},
		{!opens && (s.Monitoring || s.Events), envOpen, s.open()},
	} {
		if set.is {
			e.Set(set.name, set.value)
		}
	}
	if _, decided := e.Lookup(EnvMonitoring); s.Monitoring && !decided {
		notes = append(notes, monitoringNote)
	}
	if !s.file.alone {
		e.sanitizers(s.file)
	}
	return e, notes
}

// monitoringNote is what to know about Open MPI's monitoring component, unless the user has decided about it. It isn't
// switched on here: in every version it ends programs that are correct, and no part of it works without the others
// (docs/no-harm.md).
const monitoringNote = "--monitoring leaves Open MPI's monitoring component off, for it ends programs that are " +
	"correct; if yours is known to run with it, set " + EnvMonitoring + "=2. --calls counts messages and bytes and " +
	"harms nothing"

// open returns what is opened of those variables that are opened on request only. The plus: besides what the
// environment has switched on for Open MPI.
func (s *Settings) open() string {
	var patterns []string
	if s.Monitoring {
		patterns = append(patterns, "runtime_spc_*", "*_monitoring_*")
	}
	if s.Events {
		patterns = append(patterns, "mpit_event*")
	}
	return "+" + strings.Join(patterns, ",")
}

// wantsCalls says whether a call profile is to be made: the command line's word, else the environment's, as the agent
// reads such.
func (s *Settings) wantsCalls(env Environment) bool {
	if s.CallsSaid {
		return s.Calls
	}
	value := env.Get(EnvCalls)
	return value != "" && value != "0"
}

// NeedCalls asks for a call profile unless the command line has said whether there is one. What it measures besides is
// what the environment says.
func (s *Settings) NeedCalls(env Environment) {
	if !s.CallsSaid {
		s.Calls, s.CallsSaid, s.CallsWords = true, true, env.Get(EnvCalls)
	}
}

// callsWords are what --calls can measure besides, and light: only sums stand on /metrics. mpit/agent/calls/asked.c
// knows them too.
var callsWords = []string{"sizes", "peers", "sites", "stacks", "light"}

// callsFlag is the value of --calls.
type callsFlag Settings

// Set takes the switch: true or false.
func (f *callsFlag) Set(value string) (err error) {
	f.Calls, err = strconv.ParseBool(value)
	return err
}

// SetWords takes what is measured besides (cli.Parse).
func (f *callsFlag) SetWords(words string) error {
	for word := range strings.SplitSeq(words, ",") {
		if !slices.Contains(callsWords, word) {
			return fmt.Errorf("%q is not known: the words are %s; several with commas", word,
				strings.Join(callsWords, ", "))
		}
	}
	f.CallsWords = words
	return nil
}

func (f *callsFlag) String() string { return strconv.FormatBool(f.Calls) }

// IsBoolFlag lets it stand without a value.
func (f *callsFlag) IsBoolFlag() bool { return true }

// AddCalls adds the flag --calls.
func (s *Settings) AddCalls(cmd *kingpin.CmdClause, help string) {
	cmd.Flag("calls", help+" --calls=sizes also counts how large messages are, --calls=peers who sends how much to "+
		"whom, --calls=sites from where in the program MPI is called, --calls=stacks also what has called that; "+
		"--calls=sizes,peers two of them. --calls=light has no series for functions on /metrics.").
		IsSetByUser(&s.CallsSaid).SetValue((*callsFlag)(s))
}

// Complete finds the libraries and the program, looks at its file, makes the socket's path one that a change of
// directory doesn't change, and returns the program's path. Errors have the exit statuses of exec.
func (s *Settings) Complete(env Environment, program string) (path string, err error) {
	if err = s.findLibraries(env); err == nil && s.Socket != "" {
		s.Socket, err = absoluteSocket(s.Socket)
	}
	if err != nil {
		return "", cli.Errorf(cli.ExecFailed, "%w", err)
	}
	if path, err = lookProgram(program); err != nil {
		return "", err
	}
	s.file = lookAt(path, s.library)
	return path, nil
}

func (s *Settings) findLibraries(env Environment) error {
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("agent library: finding my own path: %w", err)
	}
	if s.library, err = agentLibrary.find(env.Get(EnvLibrary), executable); err != nil {
		return err
	}
	if s.Calls = s.wantsCalls(env); s.Calls {
		// Beside the agent, wherever that is: both are of one build.
		s.callsLibrary, err = callsLibrary.find(env.Get(EnvCallsLibrary), executable, filepath.Dir(s.library))
	}
	return err
}

func absoluteSocket(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("--socket: %w", err)
	case len(absolute) > sockets.MaxPath:
		return "", fmt.Errorf("--socket %s: the path is longer than the %d bytes that a socket's may have",
			absolute, sockets.MaxPath)
	}
	return absolute, nil
}
