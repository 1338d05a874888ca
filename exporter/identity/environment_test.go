package identity

import (
	"maps"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

func TestClaim(t *testing.T) {
	const local = "node7-99" // the host and the launcher's pid
	for _, test := range []struct {
		name               string
		env                map[string]string
		job, world, source string
		raw                string
	}{
		{"Slurm, srun without PMIx", map[string]string{"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0",
			"PMI_RANK": "1"}, "4711", "0", "slurm", "4711"},
		{"Slurm, srun with PMIx",
			map[string]string{"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "PMIX_NAMESPACE": "slurm.pmix.4711.0"},
			"4711", "slurm.pmix.4711.0", "slurm", "4711"},
		{"Slurm, two mpiruns in one batch script differ in their launcher",
			map[string]string{"SLURM_JOB_ID": "4711"}, "4711", local, "slurm", "4711"},
		{"Slurm, so do two in an interactive step", map[string]string{"SLURM_JOB_ID": "4711",
			"SLURM_STEP_ID": "4294967290"}, "4711", local, "slurm", "4711"},
		{"Slurm, Hydra starts its proxies by srun",
			map[string]string{"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "3", "PMI_RANK": "0", "PMI_SPAWNED": "0"},
			"4711", "3", "slurm", "4711"},
		{"Slurm, a task of an array",
			map[string]string{"SLURM_JOB_ID": "4713", "SLURM_ARRAY_JOB_ID": "4711", "SLURM_ARRAY_TASK_ID": "2",
				"SLURM_STEP_ID": "1"}, "4711_2", "1", "slurm", "4713"},
		{"Slurm, the batch script of a heterogeneous job",
			map[string]string{"SLURM_JOB_ID": "11741", "SLURM_HET_JOB_ID": "11741", "SLURM_HET_SIZE": "2"}, "11741",
			local, "slurm", "11741"},
		{"Slurm, a step of a heterogeneous job's second component",
			map[string]string{"SLURM_JOB_ID": "11741", "SLURM_HET_SIZE": "2", "SLURM_STEP_ID": "2"}, "11741", "2",
			"slurm", "11741"},
		{"Slurm, a component that knows its own number",
			map[string]string{"SLURM_JOB_ID": "11742", "SLURM_HET_JOB_ID": "11741", "SLURM_STEP_ID": "2"}, "11741",
			"2", "slurm", "11742"},
		{"PBS", map[string]string{"PBS_JOBID": "12.head"}, "12.head", local, "pbs", "12.head"},
		{"PBS and Torque, a task of an array", map[string]string{"PBS_JOBID": "12[3].head", "PBS_ARRAY_INDEX": "3"},
			"12[3].head", local, "pbs", "12[3].head"},
		{"PBS, launched by PALS", map[string]string{"PBS_JOBID": "12.head", "PALS_APID": "8e4c-11", "PMI_RANK": "3"},
			"12.head", "8e4c-11", "pbs", "12.head"},
		{"PBS, launched by ALPS", map[string]string{"PBS_JOBID": "12.sdb", "ALPS_APP_ID": "203"}, "12.sdb", "203",
			"pbs", "12.sdb"},
		{"LSF", map[string]string{"LSB_JOBID": "12", "LSB_JOBINDEX": "0"}, "12", local, "lsf", "12"},
		{"LSF, an element of an array", map[string]string{"LSB_JOBID": "12", "LSB_JOBINDEX": "3"}, "12[3]", local,
			"lsf", "12[3]"},
		{"Flux", map[string]string{"FLUX_JOB_ID": "ƒ2oLkTLb", "FLUX_JOB_ID_PATH": "/ƒ2oLkTLb", "PMI_RANK": "0",
			"PMI_SPAWNED": "0"},
			"ƒ2oLkTLb", "ƒ2oLkTLb", "flux", "ƒ2oLkTLb"},
		{"Flux of old, decimal", map[string]string{"FLUX_JOB_ID": "1234567890123"}, "1234567890123", "1234567890123",
			"flux", "1234567890123"},
		{"Flux, a job in a batch job is a step of that",
			map[string]string{"FLUX_JOB_ID": "ƒDCB6RV", "FLUX_JOB_ID_PATH": "/ƒD2e73NP/ƒDCB6RV"}, "ƒD2e73NP",
			"ƒDCB6RV", "flux", "ƒDCB6RV"},
		{"Flux, in an instance that srun started",
			map[string]string{"FLUX_JOB_ID": "ƒ2oLkTLb", "PMIX_NAMESPACE": "slurm.pmix.4711.0"}, "ƒ2oLkTLb",
			"ƒ2oLkTLb", "flux", "ƒ2oLkTLb"},
		{"Flux, in an LSF job", map[string]string{"LSB_JOBID": "12", "FLUX_JOB_ID": "ƒ2oLkTLb"}, "12", "ƒ2oLkTLb",
			"lsf", "12"},
		{"Flux, two mpiruns in one job",
			map[string]string{"FLUX_JOB_ID": "ƒ2oLkTLb", "PMIX_NAMESPACE": "prterun-node7-99@1"}, "ƒ2oLkTLb",
			"prterun-node7-99@1", "flux", "ƒ2oLkTLb"},
		{"Grid Engine", map[string]string{"JOB_ID": "12", "SGE_TASK_ID": "undefined"}, "12", local, "gridengine",
			"12.1"},
		{"Grid Engine, a task of an array", map[string]string{"JOB_ID": "12", "SGE_TASK_ID": "3"}, "12.3", local,
			"gridengine", "12.3"},
		{"JOB_ID without Grid Engine is anybody's", map[string]string{"JOB_ID": "12"}, local, local, "launcher", ""},
		{"HTCondor, where the submit file passes the number on",
			map[string]string{"CONDOR_ID": "31.0", "_CONDOR_SLOT": "slot1_2", "BATCH_SYSTEM": "HTCondor"}, "31.0",
			local, "htcondor", "31.0"},
		{"HTCondor, where it does not", map[string]string{"_CONDOR_SLOT": "slot1_2", "BATCH_SYSTEM": "HTCondor"},
			local, local, "launcher", ""},
		{"CONDOR_ID without HTCondor is anybody's", map[string]string{"CONDOR_ID": "31.0"}, local, local, "launcher",
			""},
		{"the scheduler comes before MPIT_JOB_ID", map[string]string{"SLURM_JOB_ID": "4711", "MPIT_JOB_ID": "mine"},
			"4711", local, "slurm", "4711"},
		{"MPIT_JOB_ID comes before the launcher",
			map[string]string{"MPIT_JOB_ID": "mine", "PMIX_NAMESPACE": "prterun-node7-99@1"}, "mine",
			"prterun-node7-99@1", "mpit", ""},
		{"Open MPI 5, no scheduler", map[string]string{"PMIX_NAMESPACE": "prterun-node7-99@1"}, "prterun-node7-99@1",
			"prterun-node7-99@1", "pmix", ""},
		{"Open MPI 4, no scheduler",
			map[string]string{"PMIX_NAMESPACE": "1911095297", "OMPI_MCA_ess_base_jobid": "1911095297"}, "1911095297",
			"1911095297", "pmix", ""},
		{"a spawned world", map[string]string{"PMIX_NAMESPACE": "prterun-node7-99@2", "MPIT_JOB_ID": "mine"}, "mine",
			"prterun-node7-99@2", "mpit", ""},
		{"a spawned world of Hydra, in a step", map[string]string{"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0",
			"PMI_SPAWNED": "1"}, "4711", local, "slurm", "4711"},
		{"Hydra 4, which gives no name", map[string]string{"PMI_RANK": "0", "PMI_SPAWNED": ""}, local, local,
			"hydra", ""},
		{"a launcher that gives one by PMI-1", map[string]string{"PMI_RANK": "0", "PMI_JOBID": "kvs_99"}, "kvs_99",
			local, "hydra", ""},
		{"nothing but the parent", nil, local, local, "launcher", ""},
		{"a launcher with the number of an earlier one", map[string]string{"PMI_RANK": "0", "ppid_started": "1577"},
			local + "-1577", local + "-1577", "hydra", ""},
		{"/proc doesn't say when it began", map[string]string{"PMI_RANK": "0", "ppid_started": "0"}, local, local,
			"hydra", ""},
		{"set to nothing counts as unset", map[string]string{"SLURM_JOB_ID": " "}, local, local, "launcher", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			env := map[string]string{"ppid": "99"}
			maps.Copy(env, test.env)
			c := claimOf(&mpit.Hello{Host: "node7", Rank: 3, Attributes: env}, cgroup{})
			assert.Equal(t, Identity{JobID: test.job, World: test.world, Rank: 3}, c.ID)
			assert.Equal(t, test.source, c.Source)
			assert.Equal(t, test.raw, c.raw)
		})
	}
}

// The MPI Operator's pods know little of their job; mostly their host's name says it.
func TestClaimInKubernetes(t *testing.T) {
	pod := cgroup{sourceKubernetes, "0a1b2c3d-0000-4000-8000-000000000001"}
	for _, test := range []struct {
		name, host           string
		env                  map[string]string
		kernel               cgroup
		job, source, spacing string
	}{
		{"a worker, started by its sshd without the pod's environment", "train-worker-3", nil, pod, "train",
			"kubernetes", ""},
		{"a worker by the name of its domain", "train-worker-3.train.ml.svc", nil, pod, "train", "kubernetes", ""},
		{"a worker whose environment Hydra has handed on from the launcher", "train-worker-0",
			map[string]string{"K_MPI_JOB_ROLE": "launcher", "PMI_RANK": "1", "POD_NAMESPACE": "ml",
				"POD_NAME": "other-launcher-x2x9k"}, cgroup{}, "train", "kubernetes", "ml"},
		{"a worker that Open MPI 4 has started", "train-worker-0",
			map[string]string{"OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile", "PMIX_NAMESPACE": "77"},
			cgroup{}, "train", "kubernetes", ""},
		{"the launcher, which may work too", "train-launcher-x2x9k",
			map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, cgroup{}, "train", "kubernetes", ""},
		{"the launcher, by its host's plain name", "train-launcher", nil, pod, "train", "kubernetes", ""},
		{"a pod on the host's network", "node7", map[string]string{"POD_NAME": "train-worker-1"}, pod, "train",
			"kubernetes", ""},
		{"a name that the pod's template gives", "node7", map[string]string{"K_MPI_JOB_NAME": "train"}, pod, "train",
			"kubernetes", ""},
		{"MPIT_JOB_ID is a better word than a host's name", "train-worker-3",
			map[string]string{"MPIT_JOB_ID": "mine"}, pod, "mine", "mpit", ""},
		{"a pod of no MPIJob", "web-0", nil, pod, "web-0-99", "launcher", ""},
		{"a host that is only called so", "gpu-worker-3", nil, cgroup{}, "gpu-worker-3-99", "launcher", ""},
		{"a name that only looks alike", "train-worker-a", nil, pod, "train-worker-a-99", "launcher", ""},
		{"nothing before it", "-worker-3", nil, pod, "-worker-3-99", "launcher", ""},
		{"a scheduler in pods", "slurm-worker-3", map[string]string{"SLURM_JOB_ID": "4711"}, pod, "4711", "slurm", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			env := map[string]string{"ppid": "99"}
			maps.Copy(env, test.env)
			c := claimOf(&mpit.Hello{Host: test.host, Attributes: env}, test.kernel)
			assert.Equal(t, test.job, c.ID.JobID)
			assert.Equal(t, test.source, c.Source)
			assert.Equal(t, test.spacing, c.Partition, "the name-space is the partition")
		})
	}
}

func TestLauncherWithoutParent(t *testing.T) {
	for _, env := range []map[string]string{nil, {"ppid": "x"}, {"ppid": "-1"}} {
		assert.Equal(t, "node7-0", claimOf(&mpit.Hello{Host: "node7", Attributes: env}, cgroup{}).ID.JobID, "%v", env)
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

// Whatever a rank says of itself, its labels are valid, bounded and not empty.
func FuzzClaim(f *testing.F) {
	f.Add("node7", "ppid=99\x01SLURM_JOB_ID=4711\x01SLURM_STEP_ID=0\x01PMIX_NAMESPACE=slurm.pmix.4711.0", false)
	f.Add("train-worker-0", "FLUX_JOB_ID=\u0192\x01FLUX_JOB_ID_PATH=//\x01POD_NAMESPACE=\xff", true)
	f.Add("", "", false)
	f.Add(strings.Repeat("h", 1000), "ppid=18446744073709551615\x01ppid_started="+strings.Repeat("0",
		300)+"7\x01JOB_ID=\n"+
		"\x01SGE_ROOT=x\x01QUEUE=\u2028\x01PMI_RANK= ", true)
	f.Add("-launcher-worker-1", "LSB_JOBID=1\x01LSB_JOBINDEX=[\x01SLURM_HET_SIZE=1\x01POD_NAME=a-launcher-", true)
	f.Fuzz(func(t *testing.T, host, variables string, pod bool) {
		env := map[string]string{}
		for assignment := range strings.SplitSeq(variables, "\x01") {
			key, value, _ := strings.Cut(assignment, "=")
			env[key] = value
		}
		var kernel cgroup
		if pod {
			kernel = cgroup{sourceKubernetes, "0a1b2c3d"}
		}
		h := mpit.Hello{Host: host, Attributes: env, Rank: 1}
		c := claimOf(&h, kernel)
		for _, v := range []string{c.ID.JobID, c.ID.World, c.Source, c.raw, c.JobName, c.Partition} {
			if !utf8.ValidString(v) || len(v) > clean.MaxLabel {
				t.Errorf("%q is no label value", v)
			}
		}
		if c.ID.JobID == "" || c.ID.World == "" || c.Source == "" {
			t.Errorf("empty label in %+v", c)
		}
		if again := claimOf(&h, kernel); again != c {
			t.Errorf("identified as %+v, then as %+v", c, again)
		}
		kernel.check(&c)
	})
}

// How many ranks a launcher starts on the node: what the exporter compares with those that have connected.
func TestRanksHere(t *testing.T) {
	for _, test := range []struct {
		name string
		env  map[string]string
		here int
	}{
		{"Open MPI's mpirun, also in a step of Slurm", map[string]string{"OMPI_COMM_WORLD_LOCAL_SIZE": "4",
			"SLURM_STEP_ID": "0", "SLURM_NODEID": "0", "SLURM_STEP_TASKS_PER_NODE": "1(x2)"}, 4},
		{"Hydra", map[string]string{"MPI_LOCALNRANKS": "3"}, 3},
		{"srun, one node", map[string]string{"SLURM_STEP_ID": "0", "SLURM_NODEID": "0", "SLURM_STEP_TASKS_PER_NODE": "8"}, 8},
		{"srun, the last node has fewer", map[string]string{"SLURM_STEP_ID": "1", "SLURM_NODEID": "2",
			"SLURM_STEP_TASKS_PER_NODE": "4(x2),3"}, 3},
		{"a batch script", map[string]string{"SLURM_STEP_ID": "4294967291", "SLURM_NODEID": "0",
			"SLURM_STEP_TASKS_PER_NODE": "1"}, 0},
		{"started alone in a step of more", map[string]string{"SLURM_STEP_ID": "0", "SLURM_NODEID": "0",
			"SLURM_STEP_TASKS_PER_NODE": "99"}, 0},
		{"nonsense", map[string]string{"SLURM_STEP_ID": "0", "SLURM_NODEID": "1", "SLURM_STEP_TASKS_PER_NODE": "4,x"}, 0},
		{"no launcher", nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.here, FromHello(&mpit.Hello{Size: 16, Attributes: test.env}).Here)
		})
	}
}
