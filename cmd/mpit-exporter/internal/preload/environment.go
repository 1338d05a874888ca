package preload

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Environment variables that the agent reads, or that make libraries around it behave.
const (
	EnvLibrary      = "MPIT_AGENT_LIBRARY" // read here, not by the agent; so are the next two
	EnvCallsLibrary = "MPIT_CALLS_LIBRARY"
	EnvCalls        = "MPIT_CALLS"
	EnvJobID        = "MPIT_JOB_ID"
	EnvDeny         = "MPIT_AGENT_DENY"
	envOpen         = "MPIT_AGENT_OPEN"
	EnvLog          = "MPIT_AGENT_LOG"
	envFinalWait    = "MPIT_AGENT_FINAL_WAIT"
	envLinger       = "MPIT_AGENT_LINGER"
	EnvPreload      = "LD_PRELOAD"
	EnvAllowWrite   = "MPIT_AGENT_ALLOW_WRITE"
	EnvMonitoring   = "OMPI_MCA_pml_monitoring_enable"
	envASan         = "ASAN_OPTIONS"
	envUCXEvents    = "UCX_MEM_EVENTS"
)

// Environment is a list as os.Environ returns it.
type Environment []string

// Get returns what getenv(3) finds: the first of several.
func (e Environment) Get(name string) string {
	value, _ := e.Lookup(name)
	return value
}

// Lookup is Get, and says whether there is such a variable.
func (e Environment) Lookup(name string) (value string, ok bool) {
	for _, entry := range e {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// Set sets a variable, however often it was there.
func (e *Environment) Set(name, value string) {
	*e = append(slices.DeleteFunc(*e, func(entry string) bool { return strings.HasPrefix(entry, name+"=") }),
		name+"="+value)
}

// preload names the libraries to the dynamic loader, or removes them for a program that must not have them.
func (e *Environment) preload(s Settings) {
	var preload []string
	switch {
	case s.file.alone:
	case s.Calls:
		preload = []string{s.callsLibrary, s.library}
	default:
		preload = []string{s.library}
	}
	// A library that stands there already comes to the front; loading it once is enough. Of the call profile one is
	// enough wherever it is, and none where it is not wanted.
	ours := len(preload)
	before, ok := e.Lookup(EnvPreload)
	for _, other := range strings.FieldsFunc(before, func(r rune) bool { return r == ':' || r == ' ' }) {
		name := filepath.Base(other)
		unwanted := name == CallsLibraryName && (s.Calls || s.CallsSaid || s.file.alone) ||
			name == AgentLibraryName && s.file.alone
		if !unwanted && !slices.Contains(preload[:ours], other) {
			preload = append(preload, other)
		}
	}
	if len(preload) > 0 || ok {
		e.Set(EnvPreload, strings.Join(preload, ":"))
	}
}

// sanitizers lets programs that are compiled with sanitizers run with the agent.
func (e *Environment) sanitizers(file programFile) {
	// AddressSanitizer ends a program in which a library comes before its own, unless it is told not to look. All
	// programs are told: a script's children are not known.
	const order = "verify_asan_link_order"
	if options := e.Get(envASan); !strings.Contains(options, order) {
		e.Set(envASan, strings.TrimPrefix(options+":"+order+"=0", ":"))
	}
	// MPI_T, started by the agent, opens UCX where Open MPI doesn't use it; its hooks in memory functions crash
	// ThreadSanitizer.
	if _, ok := e.Lookup(envUCXEvents); file.threadSanitizer && !ok {
		e.Set(envUCXEvents, "n")
	}
}

// FirstRank says whether this process is the one of a job that should speak for all.
func (e Environment) FirstRank() bool {
	for _, name := range []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"} {
		if rank, ok := e.Lookup(name); ok {
			return rank == "0"
		}
	}
	return true
}

// FirstOnNode says whether this process is the one of its launch on this node that should speak for all.
func (e Environment) FirstOnNode() bool {
	for _, name := range []string{
		"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", "PALS_LOCAL_RANKID", "PMIX_LOCAL_RANK",
		"FLUX_TASK_LOCAL_ID",
	} {
		if rank, err := strconv.Atoi(e.Get(name)); err == nil {
			return rank == 0
		}
	}
	return true
}
