package identity

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
)

// Rules renames ranks. It is immutable, and safe for concurrent use; the zero value renames nothing.
type Rules struct{ list []rule }

type rule struct {
	rules.Relabel
	regex *regexp.Regexp
}

// Compile makes Rules. An error names the rule's place and what to write instead.
func Compile(list []rules.Relabel) (*Rules, error) {
	made := &Rules{}
	for i, r := range list {
		regex, err := r.Compile()
		if err != nil {
			where := fmt.Sprintf("identity rule %d", i+1)
			if r.Source.File != "" {
				where = r.Source.String()
			}
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		made.list = append(made.list, rule{r, regex})
	}
	return made, nil
}

// apply applies the rules in their order to what a rank says; each sees what those before it have made. value gives
// the other sources. What a rule makes is fit for a label; where it makes nothing, the old value stays.
func (r *Rules) apply(p *Process, value func(source string) string) {
	for _, rule := range r.list {
		values := make([]string, len(rule.SourceLabels))
		for k, source := range rule.SourceLabels {
			if label := p.label(source); label != nil {
				values[k] = *label
			} else {
				values[k] = value(source)
			}
		}
		text := strings.Join(values, *cmp.Or(rule.Separator, new(";")))
		if match := rule.regex.FindStringSubmatchIndex(text); match != nil {
			made := rule.regex.ExpandString(nil, *cmp.Or(rule.Replacement, new("$1")), text, match)
			label := p.label(rule.TargetLabel)
			*label = cmp.Or(strings.TrimSpace(clean.Name(string(made))), *label)
		}
	}
}

// label returns where the value of a target is kept; nil: name is no target.
func (p *Process) label(name string) *string {
	switch name {
	case "jobid":
		return &p.ID.JobID
	case "world":
		return &p.ID.World
	case "jobname":
		return &p.JobName
	case "partition":
		return &p.Partition
	}
	return nil
}
