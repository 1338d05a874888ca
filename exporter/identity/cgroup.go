package identity

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	if uid, ok := effectiveUID(status); !ok || uid != peer.UID {
		return cgroup{}, fmt.Errorf("process %s is not user %d's any more", dir, peer.UID)
	}
	found := parseCgroup(string(text))
	if job := slurmJob(string(text)); found.scheduler != sourceSlurm && job != "" {
		if number := stepdJob(proc, status, job); number != "" {
			return cgroup{sourceSlurm, number}, nil
		}
	}
	return found, nil
}

// slurmJob returns the SLUID by which Slurm calls a job's control group from 26.05 on: s and digits of base 32. It
// says which job this is, but not its number.
func slurmJob(text string) string {
	for line := range strings.Lines(text) {
		_, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "::")
		before, below, _ := strings.Cut(path, "slurmstepd.scope/")
		job, step, _ := strings.Cut(below, "/")
		letters, is := strings.CutPrefix(job, "s")
		if node := strings.ReplaceAll(strings.TrimPrefix(before, "/system.slice"), "../", ""); is &&
			strings.LastIndex(node, "/") == 0 && strings.HasPrefix(step, "step_") && letters != "" &&
			strings.Trim(letters, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
			return job
		}
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
		if err != nil || field(status, "Uid:", 0) != "0" || slurmJob(string(group)) != job ||
			!bytes.HasSuffix(group, []byte("/slurm\n")) {
			continue
		}
		title, err := readProc(proc, parent+"/cmdline")
		number, ours := bytes.CutPrefix(title, []byte("slurmstepd: ["))
		number, _, found := bytes.Cut(number, []byte("."))
		if err == nil && ours && found && isDigits(string(number)) {
			return string(number)
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

// effectiveUID reads /proc/<pid>/status: the second number is what SO_PEERCRED says as well.
func effectiveUID(status []byte) (uint32, bool) {
	uid, err := strconv.ParseUint(field(status, "Uid:", 1), 10, 32)
	return uint32(uid), err == nil
}

// parseCgroup reads /proc/<pid>/cgroup: a line hierarchy:controllers:path for each hierarchy of v1, one for v2.
// Schedulers need not manage all of them, so each is looked at; a batch scheduler comes before the pod that it may
// run in.
func parseCgroup(text string) cgroup {
	var found cgroup
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) < 3 {
			continue
		}
		c := parseCgroupPath(strings.TrimSuffix(parts[2], " (deleted)"))
		if c.jobID == "" || len(c.jobID) > clean.MaxLabel {
			continue
		}
		if c.scheduler != sourceKubernetes {
			return c
		}
		if found.jobID == "" {
			found = c
		}
	}
	return found
}

// parseCgroupPath finds a job in a path. It looks at the path's beginning, which belongs to the system: users may have
// cgroups of their own further down, and call them what they like.
func parseCgroupPath(path string) cgroup {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	// Seen from another cgroup namespace, as an exporter in a container does, a path leads upwards first, and what
	// stands before the branch is missing.
	relative := false
	for len(segments) > 0 && segments[0] == ".." {
		segments, relative = segments[1:], true
	}
	if id := podOf(segments, relative); id != "" {
		return cgroup{sourceKubernetes, id}
	}
	if len(segments) > 0 && segments[0] == "system.slice" {
		segments = segments[1:]
	}
	if len(segments) < 2 {
		return cgroup{}
	}
	at := func(i int) string {
		if i < len(segments) {
			return segments[i]
		}
		return ""
	}
	switch root := segments[0]; {
	// v1: /slurm/uid_1000/job_12/step_0/task_0, with several slurmd /slurm_<node>/…
	case (root == "slurm" || strings.HasPrefix(root, "slurm_")) && strings.HasPrefix(at(1), "uid_"):
		return cgroup{sourceSlurm, numberIn(at(2), "job_")}
	// v2: /system.slice/slurmstepd.scope/job_12/step_0/user/task_0, with several slurmd <node>_slurmstepd.scope
	case root == "slurmstepd.scope" || strings.HasSuffix(root, "_slurmstepd.scope"):
		return cgroup{sourceSlurm, numberIn(at(1), "job_")}
	// OpenPBS and PBS Pro: /pbs_jobs.service/jobid/12.server, v2 …/jobs/…
	case root == "pbs_jobs.service" && (at(1) == "jobid" || at(1) == "jobs"):
		return cgroup{sourcePBS, pbsID(at(2))}
	// earlier ones: /pbspro.slice/pbspro-12.server.slice, with what systemd escapes
	case root == "pbspro.slice":
		name, _ := strings.CutPrefix(at(1), "pbspro-")
		return cgroup{sourcePBS, pbsID(strings.TrimSuffix(name, ".slice"))}
	case root == "pbspro" || root == "torque":
		return cgroup{sourcePBS, pbsID(at(1))}
	// /lsf/<cluster>/job.12.<pid>.<time>
	case root == "lsf":
		return cgroup{sourceLSF, lsfID(at(2))}
	// /UGE/12.1, the second is the task of an array
	case root == "UGE":
		job, rest, _ := strings.Cut(at(1), ".")
		task, _, _ := strings.Cut(rest, ".")
		if isDigits(job) && isDigits(task) {
			return cgroup{sourceGridEngine, job + "." + task}
		}
	}
	return cgroup{}
}

func numberIn(segment, prefix string) string {
	number, found := strings.CutPrefix(segment, prefix)
	if !found || !isDigits(number) {
		return ""
	}
	return number
}

// pbsID checks an id such as 12.server, 12[3].server, where systemd may have escaped characters as \x5b.
func pbsID(segment string) string {
	id, err := strconv.Unquote(`"` + segment + `"`) // systemd escapes as Go does
	if err != nil {
		return ""
	}
	number := strings.TrimLeft(id, "0123456789")
	if number == id || number != "" && number[0] != '.' && number[0] != '[' || id != clean.Label(id) {
		return ""
	}
	return id
}

// lsfID reads job.12.<pid>.<time>; an element of an array may have its index: job.12[3].…
func lsfID(segment string) string {
	rest, found := strings.CutPrefix(segment, "job.")
	id, _, more := strings.Cut(rest, ".")
	number, index, array := strings.Cut(strings.TrimSuffix(id, "]"), "[")
	if !found || !more || !isDigits(number) || array && !isDigits(index) || array != strings.HasSuffix(id, "]") {
		return ""
	}
	return id
}

// podOf finds the uid of a pod, of either driver of the kubelet:
//
//	/kubepods/burstable/pod<uid>/<container>
//	/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid with _>.slice/<runtime>-<container>.scope
func podOf(segments []string, relative bool) string {
	if len(segments) == 0 {
		return ""
	}
	if root, _, _ := strings.Cut(segments[0], "."); root != "kubepods" && root != "kubelet" {
		if !relative {
			return ""
		}
		// The branch may be anywhere among the kubelet's own: at a pod, or at what is above it.
		segments = segments[:min(len(segments), 2)]
	}
	for _, s := range segments {
		name, isSlice := strings.CutSuffix(s, ".slice")
		if isSlice {
			i := strings.LastIndex(name, "-pod")
			if i < 0 || !strings.Contains(name[:i], "kubepods") {
				continue
			}
			name = strings.ReplaceAll(name[i+1:], "_", "-")
		}
		uid, isPod := strings.CutPrefix(name, "pod")
		// 32 hexadecimal digits, with four hyphens; static pods have none.
		if isPod && (len(uid) == 36 || len(uid) == 32) && strings.Trim(uid, "0123456789abcdef-") == "" {
			return uid
		}
	}
	return ""
}

// check compares what a rank says with what the kernel knows.
func (k cgroup) check(c *claim) string {
	same := false
	switch {
	case k.jobID == "" || c.raw == "":
		return Unknown
	case k.scheduler != c.Source:
		// A Flux job may run inside of another scheduler's, and anything in a pod; but no node is these schedulers'
		// at once.
		if nodesOwn(k.scheduler) && nodesOwn(c.Source) {
			return Differs
		}
		return Unknown
	case k.scheduler == sourceSlurm:
		if same = k.jobID == c.raw; !same && c.component {
			return Unknown // another component's: which ones belong together the kernel does not know
		}
	case k.scheduler == sourcePBS:
		same = pbsNumber(k.jobID) == pbsNumber(c.raw) // servers have short and long names
	case k.scheduler == sourceLSF:
		claimed := c.raw
		if !strings.Contains(k.jobID, "[") {
			claimed, _, _ = strings.Cut(claimed, "[")
		}
		same = k.jobID == claimed
	default:
		same = k.jobID == c.raw
	}
	if same {
		return Verified
	}
	return Differs
}

func nodesOwn(scheduler string) bool {
	return slices.Contains([]string{sourceSlurm, sourcePBS, sourceLSF, sourceGridEngine}, scheduler)
}

func pbsNumber(id string) string {
	number, _, _ := strings.Cut(id, ".")
	return number
}
