package exporter

import (
	"cmp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Bounds of what comes from a rank and is kept or shown, in bytes.
const (
	maxLabelValue = 256
	maxExecutable = 1024 // what tells programs apart is at a path's end
)

// Identity is what tells the series of one rank from those of all others on the node: three labels, and a fourth where
// two processes claim the same three. All values are valid UTF-8 and at most 256 bytes long.
type Identity struct {
	JobID string // the scheduler's job, else the launcher's
	World string // which MPI_COMM_WORLD of that job
	Rank  int    // in that MPI_COMM_WORLD
	Dup   int    // 0: the first with these labels; else its number, label `dup`
}

// compare orders ranks on the page: by job, world, rank, dup.
func (id Identity) compare(other Identity) int {
	return cmp.Or(
		strings.Compare(id.JobID, other.JobID),
		strings.Compare(id.World, other.World),
		cmp.Compare(id.Rank, other.Rank),
		cmp.Compare(id.Dup, other.Dup),
	)
}

// identify derives a rank's identity (without Dup) from what its agent found in the environment.
func identify(h *mpit.Hello) Identity {
	env := environment(h.Attributes)
	local := localName(h)
	return Identity{
		JobID: cleanValue(cmp.Or(env.schedulerJob(), env.get("MPIT_JOB_ID"), env.get("PMIX_NAMESPACE"), local)),
		World: cleanValue(cmp.Or(env.get("PMIX_NAMESPACE"), env.schedulerStep(), local)),
		Rank:  h.Rank,
	}
}

// localName names the launcher where nothing else does: the processes that one launcher started on this host
// have one parent.
func localName(h *mpit.Hello) string {
	host := cleanValue(h.Host)
	// A number of at most 20 digits always has room behind the host's name.
	if len(host) > maxLabelValue-21 {
		host = truncate(host, maxLabelValue-21)
	}
	ppid := environment(h.Attributes).get("ppid")
	if _, err := strconv.ParseUint(ppid, 10, 64); err != nil {
		ppid = "0"
	}
	return host + "-" + ppid
}

// environment is the part of a rank's environment that its agent sends. A variable that is set to nothing counts as unset.
type environment map[string]string

func (e environment) get(keys ...string) string {
	for _, key := range keys {
		if v := strings.TrimSpace(e[key]); v != "" {
			return v
		}
	}
	return ""
}

// schedulerJob returns the job's id as the scheduler's own commands print and accept it, "" where no scheduler is seen.
// A task of an array job is a job of its own.
func (e environment) schedulerJob() string {
	if array, task := e.get("SLURM_ARRAY_JOB_ID"), e.get("SLURM_ARRAY_TASK_ID"); array != "" && task != "" {
		return array + "_" + task
	}
	if id := e.get("SLURM_JOB_ID", "SLURM_JOBID"); id != "" {
		return id
	}
	if id := e.get("PBS_JOBID"); id != "" { // 12[3].server in arrays
		return id
	}
	if id := e.get("LSB_JOBID"); id != "" {
		if index := e.get("LSB_JOBINDEX"); index != "" && index != "0" {
			return id + "[" + index + "]"
		}
		return id
	}
	if id := e.get("FLUX_JOB_ID"); id != "" {
		return id
	}
	// JOB_ID alone is a name that anything may use.
	if id := e.get("JOB_ID"); id != "" && e.gridEngine() {
		if task := e.get("SGE_TASK_ID"); task != "" && task != "undefined" {
			return id + "." + task
		}
		return id
	}
	return ""
}

// schedulerStep returns what the scheduler calls one launch inside a job.
func (e environment) schedulerStep() string {
	return e.get("SLURM_STEP_ID", "SLURM_STEPID", "FLUX_JOB_ID")
}

func (e environment) gridEngine() bool {
	for key := range e {
		if strings.HasPrefix(key, "SGE_") {
			return true
		}
	}
	return false
}

func (e environment) jobName() string {
	if name := e.get("SLURM_JOB_NAME", "PBS_JOBNAME", "LSB_JOBNAME"); name != "" {
		return name
	}
	if e.gridEngine() {
		return e.get("JOB_NAME")
	}
	return ""
}

func (e environment) partition() string {
	if name := e.get("SLURM_JOB_PARTITION", "PBS_QUEUE", "LSB_QUEUE"); name != "" {
		return name
	}
	if e.gridEngine() {
		return e.get("QUEUE")
	}
	return ""
}

// cleanValue makes a string from a rank fit for a label: valid UTF-8, no control characters, bounded.
func cleanValue(s string) string { return clean(s, maxLabelValue) }

func clean(s string, limit int) string {
	return truncate(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r // an invalid byte has become U+FFFD
	}, s), limit)
}

// truncate cuts s to at most n bytes without cutting a character, and holds on to nothing of the rest.
func truncate(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.Clone(s)
}

// threadLevel names a thread level of MPI (MPI-4.1 §11.2.1).
func threadLevel(level int) string {
	switch level {
	case 0:
		return "single"
	case 1:
		return "funneled"
	case 2:
		return "serialized"
	case 3:
		return "multiple"
	}
	return strconv.Itoa(level)
}
