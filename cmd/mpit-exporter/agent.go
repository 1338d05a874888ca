package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The libraries that are preloaded into programs: the agent, and the call profile, which is of use beside the agent only.
const (
	agentLibraryName = "libmpit-agent.so"
	callsLibraryName = "libmpit-calls.so"
)

// Environment variables that the agent reads, and that make its host tell more. docs/protocol.md is not concerned with them.
const (
	envLibrary      = "MPIT_AGENT_LIBRARY" // read here, not by the agent; so are the next two
	envCallsLibrary = "MPIT_CALLS_LIBRARY"
	envCalls        = "MPIT_CALLS"
	envSocket       = "MPIT_SOCKET"
	envJobID        = "MPIT_JOB_ID"
	envDeny         = "MPIT_AGENT_DENY"
	envOpen         = "MPIT_AGENT_OPEN"
	envLog          = "MPIT_AGENT_LOG"
	envFinalWait    = "MPIT_AGENT_FINAL_WAIT"
	envLinger       = "MPIT_AGENT_LINGER"
	envPreload      = "LD_PRELOAD"
	envAllowWrite   = "MPIT_AGENT_ALLOW_WRITE"
	envMonitoring   = "OMPI_MCA_pml_monitoring_enable"
	envASan         = "ASAN_OPTIONS"
	envUCXEvents    = "UCX_MEM_EVENTS"
)

// library is one that is preloaded.
type library struct {
	what string // for errors
	file string
	env  string // variable that names it
}

func agentLibrary() library { return library{"agent library", agentLibraryName, envLibrary} }

func callsLibrary() library {
	return library{"call profile's library", callsLibraryName, envCallsLibrary}
}

// find returns the absolute path of the library: where its variable says, in one of the directories near, beside the program, or in
// ../lib/mpit-exporter/ of it.
func (l library) find(named, executable string, near ...string) (string, error) {
	var places []string
	if named != "" {
		path, err := filepath.Abs(named)
		if err != nil {
			return "", fmt.Errorf("%s: %w", l.env, err)
		}
		places = []string{path}
	} else {
		dir := filepath.Dir(executable)
		for _, dir := range append(near, dir, filepath.Join(filepath.Dir(dir), "lib", programName)) {
			if path := filepath.Join(dir, l.file); !slices.Contains(places, path) {
				places = append(places, path)
			}
		}
	}
	i := slices.IndexFunc(places, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.Mode().IsRegular()
	})
	switch {
	case i < 0 && named != "":
		return "", fmt.Errorf("%s: %s, which %s names, is not there; correct or unset it", l.what, places[0], l.env)
	case i < 0:
		return "", fmt.Errorf("%s %s not found (looked for %s); build it with make, or name it in %s",
			l.what, l.file, strings.Join(places, " and "), l.env)
	case strings.ContainsAny(places[i], " :$"):
		// ld.so splits LD_PRELOAD at spaces and colons, and expands what follows a dollar; there is no way to quote.
		return "", fmt.Errorf("%s: the path %q has a space, colon or dollar in it, which %s can't express; move it, or name a link to it in %s",
			l.what, places[i], envPreload, l.env)
	}
	return places[i], nil
}

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

// environment is a list as os.Environ returns it.
type environment []string

// get returns what getenv(3) finds: the first of several.
func (e environment) get(name string) string {
	value, _ := e.lookup(name)
	return value
}

func (e environment) lookup(name string) (value string, ok bool) {
	for _, entry := range e {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

func (e *environment) set(name, value string) {
	*e = append(slices.DeleteFunc(*e, func(entry string) bool { return strings.HasPrefix(entry, name+"=") }), name+"="+value)
}

// preload names the libraries to the dynamic loader, or takes them away from a program that must not have them.
func (e *environment) preload(s agentSettings) {
	var preload []string
	switch {
	case s.file.alone:
	case s.calls:
		preload = []string{s.callsLibrary, s.library}
	default:
		preload = []string{s.library}
	}
	// A library that stands there already comes to the front; loading it once is enough. Of the call profile one is enough wherever it
	// is, and none where it is not wanted.
	ours := len(preload)
	before, ok := e.lookup(envPreload)
	for _, other := range strings.FieldsFunc(before, func(r rune) bool { return r == ':' || r == ' ' }) {
		name := filepath.Base(other)
		unwanted := name == callsLibraryName && (s.calls || s.callsSaid || s.file.alone) || name == agentLibraryName && s.file.alone
		if !unwanted && !slices.Contains(preload[:ours], other) {
			preload = append(preload, other)
		}
	}
	if len(preload) > 0 || ok {
		e.set(envPreload, strings.Join(preload, ":"))
	}
}

// sanitizers tells those of the compiler to let the agent be.
func (e *environment) sanitizers(file programFile) {
	// AddressSanitizer ends a program in which a library comes before its own, unless it is told not to look. All programs are told: a
	// script's children are not known.
	const order = "verify_asan_link_order"
	if options := e.get(envASan); !strings.Contains(options, order) {
		e.set(envASan, strings.TrimPrefix(options+":"+order+"=0", ":"))
	}
	// MPI_T, started by the agent, opens UCX where Open MPI doesn't use it; its hooks in memory functions crash ThreadSanitizer.
	if _, ok := e.lookup(envUCXEvents); file.threadSanitizer && !ok {
		e.set(envUCXEvents, "n")
	}
}

// monitor says what there is to know of Open MPI's monitoring component, unless somebody has decided about it. It isn't switched on here:
// on every version it ends programs that are correct, and no part of it works without the others (docs/no-harm.md).
func (e *environment) monitor() (notes []string) {
	if _, ok := e.lookup(envMonitoring); ok {
		return nil
	}
	return []string{fmt.Sprintf("--monitoring leaves Open MPI's monitoring component off, for it ends programs that are correct; "+
		"if yours is known to run with it, set %s=2. --calls counts messages and bytes and harms nothing", envMonitoring)}
}

// firstRank says whether this process is the one of a job that should speak for all.
func (e environment) firstRank() bool {
	for _, name := range []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"} {
		if rank, ok := e.lookup(name); ok {
			return rank == "0"
		}
	}
	return true
}

var errNoProgram = errors.New("no program named")
