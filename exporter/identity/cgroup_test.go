package identity

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const podUID = "0a1b2c3d-0000-4000-8000-00000000000f"

func TestParseCgroup(t *testing.T) {
	for _, test := range []struct {
		name, text, scheduler, jobID string
	}{
		{"Slurm, v2", "0::/system.slice/slurmstepd.scope/job_123/step_0/user/task_0\n", "slurm", "123"},
		{"Slurm, v2, a batch script", "0::/system.slice/slurmstepd.scope/job_123/step_batch/user/task_special\n",
			"slurm", "123"},
		{"Slurm, v2, adopted from ssh", "0::/system.slice/slurmstepd.scope/job_123/step_extern/user\n", "slurm",
			"123"},
		{"Slurm, v2, several slurmd on a node", "0::/system.slice/node7_slurmstepd.scope/job_123/step_0/user/task_0\n",
			"slurm", "123"},
		{"Slurm, v1, not in all hierarchies",
			"12:pids:/user.slice\n5:memory:/slurm/uid_1000/job_123/step_0/task_0\n" +
				"4:cpuset:/slurm/uid_1000/job_123/step_0\n1:name=systemd:/system.slice/slurmd.service\n",
			"slurm", "123"},
		{"Slurm, v1, several slurmd on a node", "5:memory:/slurm_node7/uid_1000/job_123/step_0\n", "slurm", "123"},
		{"Slurm, v2, seen from a container", "0::/../../../system.slice/slurmstepd.scope/job_123/step_0/user/task_0\n",
			"slurm", "123"},
		{"Slurm, v2, seen from a service", "0::/../slurmstepd.scope/job_123/step_0\n", "slurm", "123"},
		{"Slurm, v2, removed already", "0::/system.slice/slurmstepd.scope/job_123 (deleted)\n", "slurm", "123"},
		{"Slurm's own processes", "0::/system.slice/slurmstepd.scope/system\n", "", ""},
		{"Slurm, no number", "0::/system.slice/slurmstepd.scope/job_12a/step_0\n", "", ""},
		{"PBS, v1", "7:cpuset:/pbs_jobs.service/jobid/12.server\n", "pbs", "12.server"},
		{"PBS, v2", "0::/pbs_jobs.service/jobs/12.server\n", "pbs", "12.server"},
		{"PBS, a task of an array", "7:memory:/pbs_jobs.service/jobid/12[3].server\n", "pbs", "12[3].server"},
		{"PBS, a slice of systemd's", `7:memory:/pbspro.slice/pbspro-12\x5b3\x5d.server.slice` + "\n", "pbs",
			"12[3].server"},
		{"PBS, of old", "7:memory:/pbspro/12.server\n", "pbs", "12.server"},
		{"Torque", "7:cpuset:/torque/12.server\n", "pbs", "12.server"},
		{"PBS, no number", "7:cpuset:/pbs_jobs.service/jobid/server\n", "", ""},
		{"PBS, more than a number", "7:cpuset:/pbs_jobs.service/jobid/12a.server\n", "", ""},
		{"PBS, nothing behind it", "7:cpuset:/pbs_jobs.service/jobid\n", "", ""},
		{"LSF", "4:memory:/lsf/cluster1/job.12.7512.1413472894\n", "lsf", "12"},
		{"LSF, an element of an array", "4:memory:/lsf/cluster1/job.12[3].7512.1413472894\n", "lsf", "12[3]"},
		{"LSF, no number", "4:memory:/lsf/cluster1/job.x.7512\n", "", ""},
		{"LSF, half an index", "4:memory:/lsf/cluster1/job.12[.7512\n", "", ""},
		{"Grid Engine", "4:memory:/UGE/12.1\n", "gridengine", "12.1"},
		{"Grid Engine, a task of an array", "4:memory:/UGE/12.3\n", "gridengine", "12.3"},
		{"Kubernetes, v1", "4:memory:/kubepods/burstable/pod" + podUID + "/0123456789abcdef\n", "kubernetes", podUID},
		{"Kubernetes, systemd's driver",
			"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + strings.ReplaceAll(podUID, "-",
				"_") + ".slice/cri-containerd-01.scope\n",
			"kubernetes", podUID},
		{"Kubernetes, guaranteed", "0::/kubepods.slice/kubepods-pod" + strings.ReplaceAll(podUID, "-",
			"_") + ".slice/crio-01.scope\n", "kubernetes", podUID},
		{"Kubernetes, in a container itself",
			"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod" +
				strings.ReplaceAll(podUID, "-", "_") + ".slice/cri-containerd-01.scope\n", "kubernetes", podUID},
		{"Kubernetes, seen from another pod", "0::/../../pod" + podUID + "/01\n", "kubernetes", podUID},
		{"Kubernetes, seen from a pod of another class", "0::/../../../burstable/pod" + podUID + "/01\n",
			"kubernetes", podUID},
		{"Kubernetes, a static pod", "4:memory:/kubepods/burstable/pod0123456789abcdef0123456789abcdef/01\n",
			"kubernetes", "0123456789abcdef0123456789abcdef"},
		{"a scheduler in pods", "5:memory:/kubepods/pod" + podUID + "/01\n4:freezer:/slurm/uid_0/job_9/step_0\n",
			"slurm", "9"},
		{"HTCondor names slots, not jobs", "4:memory:/htcondor/condor_var_lib_condor_execute_slot1_1@node7\n", "", ""},
		{"a user's session", "0::/user.slice/user-1000.slice/session-3.scope\n", "", ""},
		{"a container", "0::/docker/0123456789abcdef\n", "", ""},
		{"the root", "0::/\n", "", ""},
		{"nothing", "", "", ""},
		{"no lines of that form", "job_123\n0:/slurm/uid_1/job_1\n::\n", "", ""},

		// What a user calls his own cgroups proves nothing.
		{"a user's own, v2", "0::/user.slice/user-1000.slice/user@1000.service/system.slice/slurmstepd.scope/job_123/step_0\n", "", ""},
		{"a user's own, v1", "1:name=systemd:/user.slice/user-1000.slice/slurm/uid_1000/job_123\n", "", ""},
		{"a user's own pod", "0::/user.slice/user-1000.slice/user@1000.service/kubepods/pod" + podUID + "\n", "", ""},
		{"a user's own pod, seen from a container", "0::/../../user.slice/user-1000.slice/kubepods/pod" + podUID + "\n", "",
			""},
		{"below somebody's job", "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0/pbs_jobs.service/jobid/12.server\n", "slurm", "7"},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, cgroup{test.scheduler, test.jobID}, knownOnly(parseCgroup(test.text)))
		})
	}
}

// knownOnly makes nothing of a cgroup without a job, as those who use it do.
func knownOnly(c cgroup) cgroup {
	if c.jobID == "" {
		return cgroup{}
	}
	return c
}

// Whatever a path is like, a job's id is fit for a label, and nothing below user.slice is believed.
func FuzzParseCgroup(f *testing.F) {
	f.Add("/system.slice/slurmstepd.scope/job_123/step_0/user/task_0")
	f.Add("/slurm/uid_1000/job_123")
	f.Add(`/pbspro.slice/pbspro-12\x5b3\x5d.\xff\x.slice`)
	f.Add("/lsf/c/job.12[3].4.5")
	f.Add("/UGE/1.2.3")
	f.Add("/../../kubepods.slice/kubepods-pod0a1b2c3d_0000_4000_8000_00000000000f.slice/x")
	f.Add("/..")
	f.Fuzz(func(t *testing.T, path string) {
		c := parseCgroup("3:memory:" + path + "\n")
		if !utf8.ValidString(c.jobID) || len(c.jobID) > clean.MaxLabel || c.jobID != clean.Label(c.jobID) {
			t.Errorf("%q is no label value", c.jobID)
		}
		if c.jobID != "" && c.scheduler == "" {
			t.Errorf("job %q of no scheduler", c.jobID)
		}
		if strings.ContainsAny(path, "\n:") {
			return
		}
		for _, from := range []string{"0::/", "0::/../../"} {
			if own := parseCgroup(from + "user.slice/user-1000.slice/" + strings.Trim(path, "/")); own.jobID != "" {
				t.Errorf("a user's own cgroup is taken for job %q", own.jobID)
			}
		}
	})
}

func TestCheckOfClaims(t *testing.T) {
	for _, test := range []struct {
		name   string
		kernel cgroup
		claim  claim
		want   string
	}{
		{"the same", cgroup{sourceSlurm, "4711"}, claim{Process: Process{Source: sourceSlurm}, raw: "4711"}, Verified},
		{"another", cgroup{sourceSlurm, "4712"}, claim{Process: Process{Source: sourceSlurm}, raw: "4711"}, Differs},
		{"a task of an array has a number of its own", cgroup{sourceSlurm, "104"},
			claim{Process: Process{ID: Identity{JobID: "100_3"}, Source: sourceSlurm}, raw: "104"}, Verified},
		{"and not the array's", cgroup{sourceSlurm, "100"},
			claim{Process: Process{ID: Identity{JobID: "100_3"}, Source: sourceSlurm}, raw: "104"}, Differs},
		{"the first component", cgroup{sourceSlurm, "11741"},
			claim{Process: Process{Source: sourceSlurm}, raw: "11741", component: true}, Verified},
		{"another component", cgroup{sourceSlurm, "11742"},
			claim{Process: Process{Source: sourceSlurm}, raw: "11741", component: true}, Unknown},
		{"no cgroup", cgroup{}, claim{Process: Process{Source: sourceSlurm}, raw: "4711"}, Unknown},
		{"no claim", cgroup{sourceSlurm, "4711"}, claim{Process: Process{Source: sourceLauncher}}, Unknown},
		{"servers by long and short names", cgroup{sourcePBS, "12.head.example.org"},
			claim{Process: Process{Source: sourcePBS}, raw: "12.head"}, Verified},
		{"another task of the array", cgroup{sourcePBS, "12[4].head"},
			claim{Process: Process{Source: sourcePBS}, raw: "12[3].head"}, Differs},
		{"LSF", cgroup{sourceLSF, "12"}, claim{Process: Process{Source: sourceLSF}, raw: "12"}, Verified},
		{"LSF, a path without the element", cgroup{sourceLSF, "12"},
			claim{Process: Process{Source: sourceLSF}, raw: "12[3]"}, Verified},
		{"LSF, a path with another element", cgroup{sourceLSF, "12[4]"},
			claim{Process: Process{Source: sourceLSF}, raw: "12[3]"}, Differs},
		{"Grid Engine", cgroup{sourceGridEngine, "12.1"},
			claim{Process: Process{Source: sourceGridEngine}, raw: "12.1"}, Verified},
		{"two schedulers at once", cgroup{sourceSlurm, "4711"},
			claim{Process: Process{Source: sourcePBS}, raw: "12.head"}, Differs},
		{"Flux in Slurm", cgroup{sourceSlurm, "4711"}, claim{Process: Process{Source: sourceFlux}, raw: "ƒ2oLkTLb"},
			Unknown},
		{"Slurm in pods", cgroup{sourceKubernetes, podUID},
			claim{Process: Process{Source: sourceSlurm}, raw: "4711"}, Unknown},
		{"an MPIJob's name is not a pod's uid", cgroup{sourceKubernetes, podUID},
			claim{Process: Process{Source: sourceKubernetes}}, Unknown},
	} {
		t.Run(test.name, func(t *testing.T) { assert.Equal(t, test.want, test.kernel.check(&test.claim)) })
	}
}

func TestCgroupOfPeer(t *testing.T) {
	process := func(uid string) fstest.MapFS {
		return fstest.MapFS{
			"12/cgroup": {Data: []byte("0::/system.slice/slurmstepd.scope/job_123/step_0\n")},
			"12/status": {Data: []byte("Name:\tapp\nUmask:\t0022\nUid:\t" + uid + "\nGid:\t0\t0\t0\t0\n")},
		}
	}
	c, err := cgroupOf(process("1\t1000\t1\t1"), mpit.Peer{PID: 12, UID: 1000})
	require.NoError(t, err, "the effective user is the one who connects")
	assert.Equal(t, cgroup{sourceSlurm, "123"}, c)

	t.Run("the kernel's own files", func(t *testing.T) {
		_, err := cgroupOf(os.DirFS("/proc"), mpit.Peer{PID: int32(os.Getpid()), UID: uint32(os.Geteuid())})
		require.NoError(t, err)
		_, err = cgroupOf(os.DirFS("/proc"), mpit.Peer{PID: int32(os.Getpid()), UID: uint32(os.Geteuid()) + 1})
		require.ErrorContains(t, err, "not user")
	})

	for name, test := range map[string]struct {
		proc fs.FS
		pid  int32
		want string
	}{
		"no pid":                        {process("1000\t1000"), 0, "another pid namespace"},
		"no such process":               {process("1000\t1000"), 13, "file does not exist"},
		"another user's by now":         {process("1000\t1001\t1000\t1000"), 12, "not user 1000's"},
		"a status that says no user":    {process("x\ty"), 12, "not user 1000's"},
		"a status that says too little": {process("1000"), 12, "not user 1000's"},
		"a status that can't be read":   {fstest.MapFS{"12/cgroup": {}}, 12, "file does not exist"},
		"a file that fails":             {failingFS{}, 12, "reading 12/cgroup"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := cgroupOf(test.proc, mpit.Peer{PID: test.pid, UID: 1000})
			require.ErrorContains(t, err, test.want)
			assert.Zero(t, c)
		})
	}

	t.Run("a file without end", func(t *testing.T) {
		long := process("1000\t1000")
		long["12/cgroup"] = &fstest.MapFile{Data: append([]byte(strings.Repeat("1:x:/\n", maxProcFile/6+1)),
			long["12/cgroup"].Data...)}
		c, err := cgroupOf(long, mpit.Peer{PID: 12, UID: 1000})
		require.NoError(t, err)
		assert.Zero(t, c, "what is behind the bound is not read")
	})
}

// From Slurm 26.05 on a job's control group has its SLUID: its number is the one that slurmstepd shows. The paths are
// those of its sources; no such Slurm was run.
func TestSlurmJobOfSLUID(t *testing.T) {
	const scope, job = "0::/system.slice/slurmstepd.scope/", "s5K1KK0B7VSN00"
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	// A rank that mpirun has started in a batch script.
	proc := func() fstest.MapFS {
		return fstest.MapFS{
			"12/cgroup":  file(scope + job + "/step_batch/user/task_special\n"),
			"12/status":  file("Name:\tapp\nPPid:\t11\nUid:\t1000\t1000\t1000\t1000\n"),
			"11/cgroup":  file(scope + job + "/step_batch/user/task_special\n"),
			"11/status":  file("Name:\tmpirun\nPPid:\t10\nUid:\t1000\t1000\t1000\t1000\n"),
			"10/cgroup":  file(scope + job + "/step_batch/slurm\n"),
			"10/status":  file("Name:\tslurmstepd\nPPid:\t1\nUid:\t0\t0\t0\t0\n"),
			"10/cmdline": file("slurmstepd: [104.batch]\x00\x00"),
		}
	}
	for name, test := range map[string]struct {
		path, text string
		want       string
	}{
		"as it is":                     {"12/status", "PPid:\t11\nUid:\t1000\t1000\n", "104"},
		"a step manager":               {"10/cmdline", "slurmstepd: [104.0 stepmgr]", "104"},
		"several slurmd on a node":     {"10/cgroup", "0::/system.slice/node7_slurmstepd.scope/" + job + "/step_0/slurm\n", "104"},
		"seen from a container":        {"12/cgroup", "0::/../../slurmstepd.scope/" + job + "/step_0/user/task_0\n", "104"},
		"a user's process of its name": {"10/status", "PPid:\t1\nUid:\t1000\t0\t0\t0\n", ""},
		"among the user's":             {"10/cgroup", scope + job + "/step_batch/user/task_special\n", ""},
		"of another job":               {"10/cgroup", scope + "s5K1KK0B7VSN01/step_batch/slurm\n", ""},
		"a user's own group":           {"12/cgroup", "0::/user.slice/slurmstepd.scope/" + job + "/step_0/user\n", ""},
		"another title":                {"10/cmdline", "/usr/sbin/slurmstepd", ""},
		"a title without a number":     {"10/cmdline", "slurmstepd: [s5K1KK.0]", ""},
		"a circle":                     {"11/status", "PPid:\t11\nUid:\t1000\t1000\n", ""},
		"no parent":                    {"12/status", "Uid:\t1000\t1000\n", ""},
		"a parent that has gone":       {"12/status", "PPid:\t9\nUid:\t1000\t1000\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := proc()
			files[test.path] = file(test.text)
			c, err := cgroupOf(files, mpit.Peer{PID: 12, UID: 1000})
			require.NoError(t, err)
			if test.want == "" {
				assert.Zero(t, c)
				return
			}
			assert.Equal(t, cgroup{sourceSlurm, test.want}, c)
		})
	}
}

// failingFS is a /proc that is refused halfway.
type failingFS struct{}

func (failingFS) Open(string) (fs.File, error) { return failingFile{}, nil }

type failingFile struct{ fs.File }

func (failingFile) Read([]byte) (int, error) { return 0, errors.New("refused") }
func (failingFile) Close() error             { return nil }
