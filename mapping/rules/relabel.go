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

var targetLabels = []string{"jobid", "world", "jobname", "partition"}

// Compile checks a rule of identity, and returns its regular expression. An error names each key and what to write
// instead.
func (r *Relabel) Compile() (*regexp.Regexp, error) {
	expression, found := r.compile()
	return expression, found.joined()
}

func (r *Relabel) compile() (*regexp.Regexp, findings) {
	var found findings
	for i, label := range r.SourceLabels {
		at := fmt.Sprintf("source_labels[%d]", i)
		if !strings.HasPrefix(label, "env_") && !slices.Contains(sourceLabels, label) {
			found.note(at, complain(oneOf(sourceLabels)+", or env_<NAME> for a variable of the environment",
				"there is no source label %q", label))
		}
	}
	switch {
	case r.TargetLabel == "":
		found.note("", complain("write target_label: one of "+strings.Join(targetLabels, ", "),
			"this rule of identity has no target_label"))
	case !slices.Contains(targetLabels, r.TargetLabel):
		found.note("target_label", complain(oneOf(targetLabels), "the label %q can't be changed", r.TargetLabel))
	}
	if len(r.SourceLabels) == 0 && r.Replacement == nil {
		found.note("", complain("write source_labels, or a replacement",
			"this rule of identity makes the label empty, for it takes its value from nowhere"))
	}
	expression, err := wholeExpression(cmp.Or(r.Regex, "(.*)"))
	found.note("regex", err)
	return expression, found
}
