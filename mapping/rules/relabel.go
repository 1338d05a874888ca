package rules

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Relabel changes what a rank is called, after the manner of Prometheus' relabel_configs: the values of SourceLabels,
// joined by Separator, are matched with Regex as a whole; TargetLabel becomes Replacement.
type Relabel struct {
	Source Source `yaml:"-"`

	// jobid, world, rank, user, host, executable, library, jobname, partition, source, cgroup_jobid, env_<NAME>
	SourceLabels []string `yaml:"source_labels,omitempty"`
	Separator    *string  `yaml:"separator,omitempty"`   // default ;
	Regex        string   `yaml:"regex,omitempty"`       // default (.*)
	TargetLabel  string   `yaml:"target_label"`          // jobid, world, jobname or partition
	Replacement  *string  `yaml:"replacement,omitempty"` // default $1
}

// sourceLabels is what rules of identity may ask for, besides env_<NAME>.
var sourceLabels = []string{
	"jobid", "world", "rank", "user", "host", "executable", "library", "jobname", "partition", "source",
	"cgroup_jobid",
}

// environment is what the agent sends of a rank's environment, where it is there: the list of mpit/agent/identity.c.
var environment = []string{
	"MPIT_JOB_ID", "MPIT_CALLS",
	"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_JOB_NAME", "SLURM_JOB_PARTITION", "SLURM_JOB_ACCOUNT", "SLURM_JOB_QOS",
	"SLURM_JOB_USER",
	"SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_HET_JOB_ID", "SLURM_HET_SIZE", "SLURM_CLUSTER_NAME",
	"SLURMD_NODENAME",
	"PBS_JOBID", "PBS_JOBNAME", "PBS_QUEUE", "PBS_ARRAY_INDEX",
	"LSB_JOBID", "LSB_JOBINDEX", "LSB_JOBNAME", "LSB_QUEUE",
	"FLUX_JOB_ID", "FLUX_JOB_ID_PATH", "FLUX_URI",
	"JOB_ID", "JOB_NAME", "QUEUE", "SGE_TASK_ID", "SGE_ROOT", "SGE_CELL",
	"CONDOR_ID", "_CONDOR_SLOT", "BATCH_SYSTEM",
	"PMIX_NAMESPACE", "PMIX_RANK", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "PMI_KVS", "PMI_RANK", "PMI_SPAWNED",
	"PALS_APID", "PALS_RANKID", "ALPS_APP_ID", "I_MPI_HYDRA_JOB_ID",
	"KUBERNETES_SERVICE_HOST", "K_MPI_JOB_ROLE", "OMPI_MCA_orte_default_hostfile", "K_MPI_JOB_NAME", "POD_NAME",
	"POD_NAMESPACE",
}

var targetLabels = []string{"jobid", "world", "jobname", "partition"}

// Compile checks a rule of identity, and returns its regular expression. An error names each key and what to write
// instead.
func (r *Relabel) Compile() (*regexp.Regexp, error) {
	expression, found := r.compile()
	if len(found) > 0 {
		return nil, joined(found)
	}
	return expression, nil
}

func (r *Relabel) compile() (expression *regexp.Regexp, found []finding) {
	note := func(key string, err error) {
		if err != nil {
			found = append(found, finding{key, err})
		}
	}
	for i, label := range r.SourceLabels {
		at := fmt.Sprintf("source_labels[%d]", i)
		switch name, ok := strings.CutPrefix(label, "env_"); {
		case ok && !slices.Contains(environment, name):
			note(at, complain("docs/labels.md lists those that it sends",
				"the agent sends no variable %q of a rank's environment", name))
		case !ok && !slices.Contains(sourceLabels, label):
			note(at, complain(oneOf(sourceLabels)+", or env_<NAME> for a variable of the environment",
				"there is no source label %q", label))
		}
	}
	switch {
	case r.TargetLabel == "":
		note("", complain("write target_label: one of "+strings.Join(targetLabels, ", "),
			"this rule of identity has no target_label"))
	case !slices.Contains(targetLabels, r.TargetLabel):
		note("target_label", complain(oneOf(targetLabels), "the label %q can't be changed", r.TargetLabel))
	}
	if len(r.SourceLabels) == 0 && r.Replacement == nil {
		note("", complain("write source_labels, or a replacement",
			"this rule of identity makes the label empty, for it takes its value from nowhere"))
	}
	expression, err := wholeExpression(cmp.Or(r.Regex, "(.*)"))
	note("regex", err)
	return expression, found
}
