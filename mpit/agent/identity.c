/* identity.c - what the agent says of the process and of the job it belongs to. */
#define _GNU_SOURCE
#include "identity.h"

#include "agent.h"
#include "now.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

/* What names a job, its step, its world: schedulers' and launchers' own words. Policy is the exporter's. */
static const char *const variables[] = {
	"MPIT_JOB_ID",
	/* the exporter shows less of a light call profile */
	"MPIT_CALLS",
	/* names of phases, for reports */
	"MPIT_PHASES",
	/* Slurm */
	"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_JOB_NAME", "SLURM_JOB_PARTITION", "SLURM_JOB_ACCOUNT", "SLURM_JOB_QOS",
	"SLURM_JOB_USER",
	"SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_HET_JOB_ID", "SLURM_HET_SIZE", "SLURM_CLUSTER_NAME",
	"SLURMD_NODENAME", "SLURM_NODEID", "SLURM_STEP_TASKS_PER_NODE",
	/* PBS, LSF, Flux, Grid Engine, HTCondor */
	"PBS_JOBID", "PBS_JOBNAME", "PBS_QUEUE", "PBS_ARRAY_INDEX",
	"LSB_JOBID", "LSB_JOBINDEX", "LSB_JOBNAME", "LSB_QUEUE",
	"FLUX_JOB_ID", "FLUX_JOB_ID_PATH", "FLUX_URI",
	"JOB_ID", "JOB_NAME", "QUEUE", "SGE_TASK_ID", "SGE_ROOT", "SGE_CELL",
	"CONDOR_ID", "_CONDOR_SLOT", "BATCH_SYSTEM",
	/* launchers */
	"PMIX_NAMESPACE", "PMIX_RANK", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "PMI_KVS", "PMI_RANK", "PMI_SPAWNED",
	"PALS_APID", "PALS_RANKID", "ALPS_APP_ID", "I_MPI_HYDRA_JOB_ID",
	/* how many ranks they start on the node */
	"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
	/* Kubernetes: what its pods have, what the MPI Operator sets, what a pod may be given through the downward API */
	"KUBERNETES_SERVICE_HOST", "K_MPI_JOB_ROLE", "OMPI_MCA_orte_default_hostfile", "K_MPI_JOB_NAME", "POD_NAME",
	"POD_NAMESPACE",
};

_Static_assert(sizeof variables / sizeof variables[0] < MAX_ATTRIBUTES - 1, "the parent needs two places");

static void add(struct identity *id, const char *key, const char *value)
{
	struct attribute *a;

	if (id->attribute_count == MAX_ATTRIBUTES)
		return;
	a = &id->attributes[id->attribute_count++];
	a->key = key;
	copy_string(a->value, sizeof a->value, value);
}

static void make_id(struct identity *id)
{
	if (syscall(SYS_getrandom, id->id, sizeof id->id, GRND_NONBLOCK) == (long)sizeof id->id)
		return;
	/* A kernel that has no random numbers yet, or a filter that refuses them: differ as well as can be. */
	id->id[0] = realtime_ns() * 0x9e3779b97f4a7c15u ^ (uint64_t)getpid();
	id->id[1] = monotonic_ns() * 0xc2b2ae3d27d4eb4fu ^ (uint64_t)(uintptr_t)id;
}

/*
 * The parent stands for a launcher that has no name. Its number is given to another process after a while, its start
 * isn't.
 */
static void add_parent(struct identity *id)
{
	char text[512], *field;
	ssize_t length = -1;
	int fd;

	snprintf(text, sizeof text, "%ld", id->ppid);
	add(id, "ppid", text);
	snprintf(text, sizeof text, "/proc/%ld/stat", id->ppid);
	fd = open(text, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		length = read(fd, text, sizeof text - 1);
		close(fd);
	}
	text[length < 0 ? 0 : length] = '\0';
	field = strrchr(text, ')'); /* of field 2, a name that may have anything in it */
	for (int n = 2; n < 22 && field != NULL; n++)
		field = strchr(field + 1, ' ');
	if (field == NULL)
		return;
	field[1 + strspn(field + 1, "0123456789")] = '\0';
	add(id, "ppid_started", field + 1);
}

const char *identity_script(const char *argument, const char *end, char *room, size_t size)
{
	for (const char *next; argument < end; argument = next) {
		size_t letters;

		next = argument + strlen(argument) + 1;
		if (*argument != '-')
			return argument;
		if (argument[1] == '-')
			continue;
		letters = strcspn(argument, "cmWX"); /* those that take what follows */
		if (argument[letters] == '\0')
			continue;
		if (argument[letters] == 'c')
			return NULL;
		argument += letters;
		if (argument[1] == '\0') {
			if (next >= end)
				return NULL;
			next += strlen(next) + 1;
		}
		if (*argument != 'm')
			continue;
		argument = argument[1] == '\0' ? argument + 2 : argument + 1;
		if (strncmp(argument, "mpi4py", 6) == 0 && (argument[6] == '\0' || argument[6] == '.'))
			continue;
		snprintf(room, size, "-m %s", argument);
		return room;
	}
	return NULL;
}

/* A program of Python's is called by what it runs: the interpreter is the same of all. */
static void name_script(struct identity *id)
{
	const char *slash = strrchr(id->executable, '/'), *script;
	char arguments[4096], module[256];
	ssize_t length = -1;
	size_t first;
	int fd;

	if (strncmp(slash == NULL ? id->executable : slash + 1, "python", 6) != 0)
		return;
	fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		length = read(fd, arguments, sizeof arguments - 1);
		close(fd);
	}
	if (length <= 0)
		return;
	arguments[length] = '\0';
	first = strlen(arguments) + 1;
	script = identity_script(arguments + first, arguments + length, module, sizeof module);
	if (script != NULL && *script != '\0')
		copy_string(id->executable, sizeof id->executable, script);
}

void identity_fill(struct identity *id, const char *library_version, const char *calls)
{
	struct utsname system;
	ssize_t n;

	*id = (struct identity){ .pid = getpid(), .ppid = getppid(), .init_realtime = realtime_ns() };
	make_id(id);
	copy_string(id->library_version, sizeof id->library_version, library_version);
	id->library_version[strcspn(id->library_version, "\n")] = '\0';
	if (uname(&system) == 0)
		copy_string(id->host, sizeof id->host, system.nodename);
	n = readlink("/proc/self/exe", id->executable, sizeof id->executable - 1);
	id->executable[n < 0 ? 0 : n] = '\0';
	name_script(id);
	for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
		const char *value = strcmp(variables[i], "MPIT_CALLS") == 0 ? calls : getenv(variables[i]);

		if (value != NULL)
			add(id, variables[i], value);
	}
	add_parent(id);
}
