package identity

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Where a rank's jobid comes from: Process.Source.
const (
	sourceSlurm      = "slurm"
	sourcePBS        = "pbs"
	sourceLSF        = "lsf"
	sourceFlux       = "flux"
	sourceGridEngine = "gridengine"
	sourceHTCondor   = "htcondor"
	sourceKubernetes = "kubernetes"
	sourceMPIT       = "mpit" // MPIT_JOB_ID
	sourcePMIx       = "pmix"
	sourceHydra      = "hydra"    // or another launcher that speaks PMI-1
	sourceLauncher   = "launcher" // nothing is known but the parent process
)

// claim is what a rank says of its job. Any process can say anything: see cgroup.check.
type claim struct {
	Process          // without ID.User
	raw       string // the job's id as Source itself numbers jobs: an array task's own; "" where it has no such number
	component bool   // of a heterogeneous job of Slurm: raw is the whole job's, not its own
}

// claimOf derives a rank's identity from what its agent found in the environment. Of what the kernel knows it uses
// one thing, whether the rank is in a pod of Kubernetes; for processes that a pod's sshd starts have nothing of that
// in their environment.
func claimOf(h *mpit.Hello, k cgroup) claim {
	env := environment(h.Attributes)
	local := localName(h)
	c := env.schedulerClaim()
	job := c.ID.JobID
	pick := func(source, id string) {
		if job == "" && id != "" {
			job, c.Source = id, source
		}
	}
	pick(sourceMPIT, env.get("MPIT_JOB_ID"))
	inPod := k.scheduler == sourceKubernetes || env.inPod()
	if inPod {
		pick(sourceKubernetes, env.mpiJob(h.Host))
	}
	pick(sourcePMIx, env.get("PMIX_NAMESPACE"))
	pick(sourceHydra, env.get("PMI_JOBID"))
	if env.get("PMI_RANK") != "" {
		pick(sourceHydra, local) // Hydra 4 gives its processes no name of their job
	}
	pick(sourceLauncher, local)

	c.ID = Identity{JobID: clean.Name(job), World: clean.Name(cmp.Or(env.world(), local)), Rank: h.Rank}
	if c.Here = env.here(); c.Here > h.Size { // those of a step in which it was started alone
		c.Here = 0
	}
	c.raw = clean.Label(c.raw)
	c.Check = Unknown
	c.JobName, c.Partition = clean.Name(env.jobName()), clean.Name(env.partition())
	if c.Source == sourceSlurm {
		c.Account, c.QOS = clean.Name(env.get("SLURM_JOB_ACCOUNT")), clean.Name(env.get("SLURM_JOB_QOS"))
	}
	if inPod && c.Partition == "" {
		c.Partition = clean.Name(env.get("POD_NAMESPACE"))
	}
	return c
}

// localName names the launcher where nothing else does: the processes that one launcher started on this host
// have one parent. Its number alone may be that of an earlier one, whose ranks are still on the page.
func localName(h *mpit.Hello) string {
	env := environment(h.Attributes)
	ppid, _ := strconv.ParseUint(env.get("ppid"), 10, 64)
	name := fmt.Sprintf("-%d", ppid)
	if started, err := strconv.ParseUint(env.get("ppid_started"), 10, 64); err == nil && started > 0 {
		name += fmt.Sprintf("-%d", started)
	}
	host := clean.Label(h.Host)
	return clean.Cut(host, min(len(host), clean.MaxLabel-len(name))) + name
}

// environment is the part of a rank's environment that its agent sends. A variable that is set to nothing counts as
// unset.
type environment map[string]string

func (e environment) get(keys ...string) string {
	for _, key := range keys {
		if v := strings.TrimSpace(e[key]); v != "" {
			return v
		}
	}
	return ""
}

// schedulerClaim returns the job's id as the scheduler's own commands print and accept it; without an id, no
// scheduler is seen. A task of an array job is a job of its own, the components of a heterogeneous one are one job:
// they can share a world.
func (e environment) schedulerClaim() claim {
	made := func(source, id, raw string) claim {
		return claim{Process: Process{ID: Identity{JobID: id}, Source: source}, raw: raw}
	}
	if id := e.get("SLURM_JOB_ID", "SLURM_JOBID"); id != "" {
		c := made(sourceSlurm, id, id)
		// In all components SLURM_JOB_ID is the first one's, by which the whole is known.
		if het := e.get("SLURM_HET_JOB_ID"); het != "" || e.get("SLURM_HET_SIZE") != "" {
			c.ID.JobID, c.component = cmp.Or(het, id), true
		}
		if array, task := e.get("SLURM_ARRAY_JOB_ID"), e.get("SLURM_ARRAY_TASK_ID"); array != "" && task != "" {
			c.ID.JobID = array + "_" + task
		}
		return c
	}
	if id := e.get("PBS_JOBID"); id != "" { // 12[3].server in arrays
		return made(sourcePBS, id, id)
	}
	if id := e.get("LSB_JOBID"); id != "" {
		if index := e.get("LSB_JOBINDEX"); index != "" && index != "0" {
			id += "[" + index + "]"
		}
		return made(sourceLSF, id, id)
	}
	if id := e.get("FLUX_JOB_ID"); id != "" { // F58 (ƒ2oLkTLb), of old versions decimal: flux takes both
		return made(sourceFlux, cmp.Or(e.fluxRoot(), id), id)
	}
	// JOB_ID alone is a name that anything may use.
	if id := e.get("JOB_ID"); id != "" && e.gridEngine() {
		if task := e.get("SGE_TASK_ID"); task != "" && task != "undefined" {
			return made(sourceGridEngine, id+"."+task, id+"."+task)
		}
		return made(sourceGridEngine, id, id+".1")
	}
	// HTCondor itself tells a job its slot, not its number; this is what submit files commonly pass on.
	condor := e.get("_CONDOR_SLOT") != "" || strings.EqualFold(e.get("BATCH_SYSTEM"), "HTCondor")
	if id := e.get("CONDOR_ID"); id != "" && condor {
		return made(sourceHTCondor, id, id)
	}
	return claim{}
}

// fluxRoot returns the outermost of nested Flux jobs, "" if they are not known: it is the one that was submitted to
// the system's instance, as a Slurm job is; what runs in it are its steps. FLUX_JOB_ID_PATH is /ƒouter/ƒinner.
func (e environment) fluxRoot() string {
	root, _, _ := strings.Cut(strings.TrimPrefix(e.get("FLUX_JOB_ID_PATH"), "/"), "/")
	return root
}

// world names one MPI_COMM_WORLD in a job, "" where only the launcher's process can.
func (e environment) world() string {
	flux := e.get("FLUX_JOB_ID")
	// The brokers of a Flux instance may have been started by srun: then what is left of that is older than the Flux job.
	if ns := e.get("PMIX_NAMESPACE"); ns != "" && (flux == "" || !strings.HasPrefix(ns, "slurm.pmix.")) {
		return ns
	}
	// A process made by MPI_Comm_spawn has the same environment as its parent otherwise.
	if spawned := e.get("PMI_SPAWNED"); spawned != "" && spawned != "0" {
		return ""
	}
	if flux != "" {
		return flux
	}
	if step := e.get("SLURM_STEP_ID", "SLURM_STEPID"); step != "" && !slurmPseudoStep(step) {
		return step
	}
	return e.get("PALS_APID", "ALPS_APP_ID")
}

// here returns how many ranks the launcher starts on this node, 0 where it doesn't say so.
func (e environment) here() int {
	if n, err := strconv.Atoi(e.get("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")); err == nil && n > 0 {
		return n
	}
	step := e.get("SLURM_STEP_ID", "SLURM_STEPID")
	node, err := strconv.Atoi(e.get("SLURM_NODEID"))
	if err != nil || step == "" || slurmPseudoStep(step) {
		return 0
	}
	// 4(x2),3 are two nodes with 4 tasks and one with 3.
	for part := range strings.SplitSeq(e.get("SLURM_STEP_TASKS_PER_NODE"), ",") {
		var tasks int
		nodes := 1
		if n, _ := fmt.Sscanf(part, "%d(x%d)", &tasks, &nodes); n == 0 {
			return 0
		}
		if node -= nodes; node < 0 {
			return max(tasks, 0)
		}
	}
	return 0
}

// slurmPseudoStep says whether a step's number stands for a batch script, an interactive shell or the like. Nothing
// has launched an MPI program then but what is called in it, any number of times.
func slurmPseudoStep(step string) bool {
	n, err := strconv.ParseUint(step, 10, 64)
	return err == nil && n >= 0xfffffff0
}

// inPod says whether the environment is a pod's, or has been handed on by a launcher in one of the MPI Operator's.
func (e environment) inPod() bool {
	return e.get("K_MPI_JOB_ROLE", "K_MPI_JOB_NAME", "KUBERNETES_SERVICE_HOST") != "" ||
		e.get("OMPI_MCA_orte_default_hostfile") == "/etc/mpi/hostfile"
}

// mpiJob names the MPIJob that a pod belongs to. The MPI Operator tells pods no more than their role; but a worker is
// called <job>-worker-<number>, and so is its host. POD_NAME comes last: it may have been handed on by the launcher's
// pod.
func (e environment) mpiJob(host string) string {
	return cmp.Or(e.get("K_MPI_JOB_NAME"), mpiJobOfPod(host), mpiJobOfPod(e.get("POD_NAME")))
}

func mpiJobOfPod(pod string) string {
	pod, _, _ = strings.Cut(pod, ".") // a host may have its domain
	if i := strings.LastIndex(pod, "-worker-"); i > 0 && isDigits(pod[i+len("-worker-"):]) {
		return pod[:i]
	}
	if i := strings.LastIndex(pod, "-launcher"); i > 0 {
		// A Job's pod has five more characters behind its name.
		if rest := pod[i+len("-launcher"):]; rest == "" || len(rest) == 6 && rest[0] == '-' {
			return pod[:i]
		}
	}
	return ""
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func (e environment) gridEngine() bool { return e.get("SGE_TASK_ID", "SGE_ROOT", "SGE_CELL") != "" }

func (e environment) jobName() string {
	if name := e.get("SLURM_JOB_NAME", "PBS_JOBNAME", "LSB_JOBNAME"); name != "" || !e.gridEngine() {
		return name
	}
	return e.get("JOB_NAME")
}

func (e environment) partition() string {
	if name := e.get("SLURM_JOB_PARTITION", "PBS_QUEUE", "LSB_QUEUE"); name != "" || !e.gridEngine() {
		return name
	}
	return e.get("QUEUE")
}
