package identity

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// maxProcFile bounds what is read of a file of /proc. With cgroups v1 there are some fifteen lines, each with the
// same path.
const maxProcFile = 64 << 10

// cgroup is the job that a process belongs to by the kernel's word: schedulers put jobs into control groups, which no
// user can leave.
type cgroup struct {
	scheduler string // a source… of environment.go; empty: none is seen
	jobID     string // as the scheduler numbers jobs; of Kubernetes the pod's uid
}

// cgroupOf looks a connection's peer up in a /proc. Whatever is in the way (the process has ended, it is another
// user's by now, /proc is not to be read, or is of other processes), nothing is known, and the error says why.
func cgroupOf(proc fs.FS, peer mpit.Peer) (cgroup, error) {
	if peer.PID <= 0 {
		return cgroup{}, errors.New("the kernel gives no pid: the process is in another pid namespace")
	}
	dir := strconv.Itoa(int(peer.PID))
	text, err := readProc(proc, dir+"/cgroup")
	if err != nil {
		return cgroup{}, err
	}
	// Afterwards, so that what was read is not of a later process of that number.
	status, err := readProc(proc, dir+"/status")
	if err != nil {
		return cgroup{}, err
	}
	if field(status, "Uid:", 1) != strconv.FormatUint(uint64(peer.UID), 10) { // the effective one, as SO_PEERCRED says
		return cgroup{}, fmt.Errorf("process %s is not user %d's any more", dir, peer.UID)
	}
	found := parseCgroup(string(text))
	if job := slurmJob(text); found.scheduler != sourceSlurm && job != "" {
		if number := stepdJob(proc, status, job); number != "" {
			return cgroup{sourceSlurm, number}, nil
		}
	}
	return found, nil
}

// slurmJob returns the SLUID by which Slurm calls a job's control group from 26.05 on: s and digits of base 32. It
// says which job this is, but not its number.
func slurmJob(text []byte) string {
	if found := sluid.FindSubmatch(text); found != nil {
		return string(found[1])
	}
	return ""
}

// ancestors is how many processes there are at most between a rank and Slurm's own: launchers and shells.
const ancestors = 32

// stepdJob returns the number of a job that is known by its SLUID. Slurm's process of a step shows it, "slurmstepd:
// [104.0]", and is an ancestor of the rank. It is believed if it is root's and in the control group that Slurm keeps
// for itself in a step of that job, where no user's process can be. status is the rank's.
func stepdJob(proc fs.FS, status []byte, job string) string {
	for range ancestors {
		parent := field(status, "PPid:", 0)
		if !isDigits(parent) {
			return ""
		}
		var err error
		if status, err = readProc(proc, parent+"/status"); err != nil {
			return ""
		}
		group, err := readProc(proc, parent+"/cgroup")
		if err != nil || field(status, "Uid:", 0) != "0" || slurmJob(group) != job ||
			!bytes.HasSuffix(group, []byte("/slurm\n")) {
			continue
		}
		title, err := readProc(proc, parent+"/cmdline")
		if found := stepdTitle.FindSubmatch(title); err == nil && found != nil {
			return string(found[1])
		}
	}
	return ""
}

// field returns a word of a line of /proc/<pid>/status, "" if it isn't there.
func field(status []byte, name string, i int) string {
	for line := range bytes.Lines(status) {
		if rest, found := bytes.CutPrefix(line, []byte(name)); found {
			if words := bytes.Fields(rest); i < len(words) {
				return string(words[i])
			}
			return ""
		}
	}
	return ""
}

func readProc(proc fs.FS, name string) ([]byte, error) {
	f, err := proc.Open(name)
	if err != nil {
		return nil, fmt.Errorf("asking the kernel for a process: %w", err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxProcFile))
	if err != nil {
		return nil, fmt.Errorf("asking the kernel for a process: reading %s: %w", name, err)
	}
	return text, nil
}

// A line of /proc/<pid>/cgroup is hierarchy:controllers:path, one for each hierarchy of v1, one for v2. Only the path's
// beginning counts, which belongs to the system: users may have cgroups of their own further down, and call them what
// they like. Seen from another cgroup namespace, as an exporter in a container does, a path leads upwards first, and
// what stands before the branch is missing.
const (
	cgroupLine = `(?m)^[0-9]+:[^:\n]*:/(?:\.\./)*`
	inSystem   = cgroupLine + `(?:system\.slice/)?`
	stepd      = inSystem + `(?:[^/\n]*_)?slurmstepd\.scope/` // with several slurmd on a node <node>_slurmstepd.scope
	segmentEnd = `(?:/|$)`

	// pod is what either driver of the kubelet calls a pod, pod<uid> or …kubepods-burstable-pod<uid with _>.slice. Static
	// pods' uids have no hyphens.
	pod = `(?:pod|[^/\n]*kubepods[^/\n]*-pod)([0-9a-f_-]{36}|[0-9a-f]{32})(?:\.slice)?` + segmentEnd
)

var (
	sluid      = regexp.MustCompile(stepd + `(s[0-9A-Z]+)/step_`)
	stepdTitle = regexp.MustCompile(`\Aslurmstepd: \[([0-9]+)\.`)
)

// jobPaths are the paths in which schedulers put a job's processes; the group is the job. A batch scheduler comes
// before the pod that it may run in.
var jobPaths = []struct {
	scheduler string
	path      *regexp.Regexp
}{
	// v1: /slurm/uid_1000/job_12/step_0/task_0, with several slurmd /slurm_<node>/…
	{sourceSlurm, regexp.MustCompile(inSystem + `slurm(?:_[^/\n]*)?/uid_[^/\n]*/job_([0-9]+)` + segmentEnd)},
	// v2: /system.slice/slurmstepd.scope/job_12/step_0/user/task_0
	{sourceSlurm, regexp.MustCompile(stepd + `job_([0-9]+)` + segmentEnd)},
	// OpenPBS and PBS Pro: /pbs_jobs.service/jobid/12[3].server, v2 …/jobs/…; earlier ones
	// /pbspro.slice/pbspro-12\x5b3\x5d.server.slice, with what systemd escapes
	{sourcePBS, regexp.MustCompile(inSystem +
		`(?:pbs_jobs\.service/jobid/|pbs_jobs\.service/jobs/|pbspro\.slice/pbspro-|pbspro/|torque/)` +
		`([0-9]+(?:(?:\.|\[|\\x5b)[^/\n]*?)?)(?:\.slice)?` + segmentEnd)},
	// /lsf/<cluster>/job.12.<pid>.<time>; an element of an array may have its index
	{sourceLSF, regexp.MustCompile(inSystem + `lsf/[^/\n]*/job\.([0-9]+(?:\[[0-9]+\])?)\.`)},
	// /UGE/12.1, the second is the task of an array
	{sourceGridEngine, regexp.MustCompile(inSystem + `UGE/([0-9]+\.[0-9]+)(?:[./]|$)`)},
	{sourceKubernetes, regexp.MustCompile(cgroupLine + `(?:kubepods|kubelet)(?:\.[^/\n]*)?/(?:[^/\n]+/)*?` + pod)},
	// From another pod the branch may be anywhere among the kubelet's own: at a pod, or at what is above it.
	{sourceKubernetes, regexp.MustCompile(`(?m)^[0-9]+:[^:\n]*:/(?:\.\./)+(?:[^/\n]+/)?` + pod)},
}

// parseCgroup reads /proc/<pid>/cgroup. Schedulers need not manage all hierarchies, so each is looked at.
func parseCgroup(text string) cgroup {
	text = strings.ReplaceAll(text, " (deleted)\n", "\n")
	for _, of := range jobPaths {
		found := of.path.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		id := found[1]
		switch of.scheduler {
		case sourcePBS:
			id, _ = strconv.Unquote(`"` + id + `"`) // systemd escapes as Go does
		case sourceKubernetes:
			id = strings.ReplaceAll(id, "_", "-")
		}
		if id != "" && id == clean.Label(id) {
			return cgroup{of.scheduler, id}
		}
	}
	return cgroup{}
}

// check compares what a rank says with what the kernel knows.
func (k cgroup) check(c *claim) string {
	known, claimed := k.jobID, c.raw
	switch {
	case known == "" || claimed == "":
		return Unknown
	case k.scheduler != c.Source:
		// A Flux job may run inside of another scheduler's, and anything in a pod; but no node is these schedulers' at once.
		if nodesOwn(k.scheduler) && nodesOwn(c.Source) {
			return Differs
		}
		return Unknown
	case k.scheduler == sourcePBS: // servers have short and long names
		known, _, _ = strings.Cut(known, ".")
		claimed, _, _ = strings.Cut(claimed, ".")
	case k.scheduler == sourceLSF && !strings.Contains(known, "["):
		claimed, _, _ = strings.Cut(claimed, "[")
	}
	switch {
	case known == claimed:
		return Verified
	case c.component:
		return Unknown // another component's: which ones belong together the kernel does not know
	}
	return Differs
}

func nodesOwn(scheduler string) bool {
	return slices.Contains([]string{sourceSlurm, sourcePBS, sourceLSF, sourceGridEngine}, scheduler)
}
