package exporter

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

func TestIdentify(t *testing.T) {
	for _, test := range []struct {
		name       string
		env        map[string]string
		job, world string
	}{
		{"Slurm, srun without PMIx",
			map[string]string{"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "ppid": "99"}, "4711", "0"},
		{"Slurm, srun with PMIx",
			map[string]string{"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "PMIX_NAMESPACE": "slurm.pmix.4711.0"}, "4711", "slurm.pmix.4711.0"},
		{"Slurm, two mpiruns in one batch script differ in their launcher",
			map[string]string{"SLURM_JOB_ID": "4711", "ppid": "99"}, "4711", "node7-99"},
		{"Slurm, a task of an array",
			map[string]string{"SLURM_JOB_ID": "4713", "SLURM_ARRAY_JOB_ID": "4711", "SLURM_ARRAY_TASK_ID": "2", "SLURM_STEP_ID": "1"}, "4711_2", "1"},
		{"PBS", map[string]string{"PBS_JOBID": "12[3].head", "ppid": "99"}, "12[3].head", "node7-99"},
		{"LSF", map[string]string{"LSB_JOBID": "12", "LSB_JOBINDEX": "0", "ppid": "99"}, "12", "node7-99"},
		{"LSF, an element of an array", map[string]string{"LSB_JOBID": "12", "LSB_JOBINDEX": "3", "ppid": "99"}, "12[3]", "node7-99"},
		{"Flux", map[string]string{"FLUX_JOB_ID": "ƒ2oLkTLb", "ppid": "99"}, "ƒ2oLkTLb", "ƒ2oLkTLb"},
		{"Grid Engine", map[string]string{"JOB_ID": "12", "SGE_TASK_ID": "undefined", "ppid": "99"}, "12", "node7-99"},
		{"Grid Engine, a task of an array", map[string]string{"JOB_ID": "12", "SGE_TASK_ID": "3", "ppid": "99"}, "12.3", "node7-99"},
		{"JOB_ID without Grid Engine is anybody's", map[string]string{"JOB_ID": "12", "ppid": "99"}, "node7-99", "node7-99"},
		{"the scheduler comes before MPIT_JOB_ID",
			map[string]string{"SLURM_JOB_ID": "4711", "MPIT_JOB_ID": "mine", "ppid": "99"}, "4711", "node7-99"},
		{"MPIT_JOB_ID comes before the launcher",
			map[string]string{"MPIT_JOB_ID": "mine", "PMIX_NAMESPACE": "prterun-node7-99@1"}, "mine", "prterun-node7-99@1"},
		{"a launcher with PMIx, no scheduler", map[string]string{"PMIX_NAMESPACE": "prterun-node7-99@1"}, "prterun-node7-99@1", "prterun-node7-99@1"},
		{"a spawned world", map[string]string{"PMIX_NAMESPACE": "prterun-node7-99@2", "MPIT_JOB_ID": "mine"}, "mine", "prterun-node7-99@2"},
		{"nothing but the parent", map[string]string{"ppid": "99"}, "node7-99", "node7-99"},
		{"set to nothing counts as unset", map[string]string{"SLURM_JOB_ID": " ", "ppid": "99"}, "node7-99", "node7-99"},
		{"not even a parent", nil, "node7-0", "node7-0"},
		{"a parent that is no number", map[string]string{"ppid": "x"}, "node7-0", "node7-0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := identify(&mpit.Hello{Host: "node7", Rank: 3, Attributes: test.env})
			assert.Equal(t, Identity{JobID: test.job, World: test.world, Rank: 3}, id)
		})
	}
}

func TestJobNameAndPartition(t *testing.T) {
	for _, test := range []struct {
		env             environment
		name, partition string
	}{
		{environment{"SLURM_JOB_NAME": "cfd", "SLURM_JOB_PARTITION": "batch"}, "cfd", "batch"},
		{environment{"PBS_JOBNAME": "cfd", "PBS_QUEUE": "batch"}, "cfd", "batch"},
		{environment{"LSB_JOBNAME": "cfd", "LSB_QUEUE": "batch"}, "cfd", "batch"},
		{environment{"JOB_NAME": "cfd", "QUEUE": "batch", "SGE_TASK_ID": "undefined"}, "cfd", "batch"},
		{environment{"JOB_NAME": "jenkins", "QUEUE": "x"}, "", ""},
	} {
		assert.Equal(t, test.name, test.env.jobName(), "%v", test.env)
		assert.Equal(t, test.partition, test.env.partition(), "%v", test.env)
	}
}

func TestCleanValue(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                        "plain",
		"ümlaut":                       "ümlaut",
		"bro\xffken":                   "bro\uFFFDken",
		"line\nbreak\x00":              "line\uFFFDbreak\uFFFD",
		strings.Repeat("x", 300):       strings.Repeat("x", 256),
		strings.Repeat("ü", 200):       strings.Repeat("ü", 128),
		"x" + strings.Repeat("ü", 200): "x" + strings.Repeat("ü", 127),
	} {
		assert.Equal(t, want, cleanValue(in))
	}
}

// Whatever a rank says of itself, its labels are valid, bounded and not empty.
func FuzzIdentify(f *testing.F) {
	f.Add("node7", "99", "4711", "0", "SLURM_JOB_ID", "slurm.pmix.4711.0")
	f.Add("", "", "", "", "", "")
	f.Add(strings.Repeat("h", 1000), "18446744073709551615", "\xff", "\n", "JOB_ID", "\u2028")
	f.Fuzz(func(t *testing.T, host, ppid, job, step, key, namespace string) {
		env := map[string]string{"ppid": ppid, key: job, "SLURM_STEP_ID": step, "PMIX_NAMESPACE": namespace}
		h := mpit.Hello{Host: host, Attributes: env, Rank: 1}
		id := identify(&h)
		for _, v := range []string{id.JobID, id.World, cleanValue(host), cleanValue(environment(env).jobName()), cleanValue(environment(env).partition())} {
			if !utf8.ValidString(v) || len(v) > maxLabelValue {
				t.Errorf("%q is no label value", v)
			}
		}
		if id.JobID == "" || id.World == "" {
			t.Errorf("empty label in %+v", id)
		}
		if again := identify(&h); again != id {
			t.Errorf("identified as %+v, then as %+v", id, again)
		}
	})
}

// A rank is kept long after its connection: of HELLO only what is bounded.
func TestRankKeepsLittleOfItsHello(t *testing.T) {
	long := func(prefix string) string { return prefix + strings.Repeat("x", 64<<10) }
	hello := func(number int) mpit.Hello {
		attributes := map[string]string{"SLURM_JOB_NAME": "cfd", "PBS_QUEUE": long("batch"), "SLURM_JOB_ID": "4711" + strings.Repeat(" ", 64<<10)}
		for i := range 61 {
			attributes[fmt.Sprint(i)] = long("")
		}
		return mpit.Hello{
			ID: mpit.RankID{byte(number)}, Rank: number, Host: long("node"), Executable: long("/bin/"), AgentVersion: long("1.0 "),
			LibraryVersion: long("Open MPI v4.1.4 "), Attributes: attributes,
		}
	}
	used := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	table := newTable()
	before := used()
	for i := range 4 {
		table.add(hello(i), mpit.Peer{}, "alice")
	}
	assert.Less(t, used(), before+1<<20, "each HELLO has more than 4 MiB")

	s := table.ordered[0].status()
	assert.Equal(t, "4711", s.JobID)
	assert.Equal(t, "cfd", s.JobName)
	assert.Equal(t, long("batch")[:maxLabelValue], s.Partition)
	assert.Equal(t, long("node")[:maxLabelValue], s.Host)
	assert.Equal(t, long("/bin/")[:maxExecutable], s.Executable)
	assert.Equal(t, "4.1.4", s.LibraryVersion)
	runtime.KeepAlive(table)
}
