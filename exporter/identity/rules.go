package identity

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
)

// Rules renames ranks. It is immutable, and safe for concurrent use; the zero value renames nothing.
type Rules struct{ list []rule }

type rule struct {
	sources     []string
	separator   string
	regex       *regexp.Regexp
	target      string
	replacement string
}

// Compile makes Rules. An error names the rule's place and what to write instead.
func Compile(list []rules.Relabel) (*Rules, error) {
	made := &Rules{}
	for i := range list {
		r := &list[i]
		regex, err := r.Compile()
		if err != nil {
			where := fmt.Sprintf("identity rule %d", i+1)
			if r.Source.File != "" {
				where = r.Source.String()
			}
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		made.list = append(made.list, rule{slices.Clone(r.SourceLabels), valueOr(r.Separator, ";"), regex,
			r.TargetLabel, valueOr(r.Replacement, "$1")})
	}
	return made, nil
}

func valueOr(given *string, standard string) string {
	if given != nil {
		return *given
	}
	return standard
}

// apply applies the rules in their order to what a rank says; each sees what those before it have made. value gives
// the other sources. What a rule makes is fit for a label; where it makes nothing, the old value stays.
func (r *Rules) apply(p *Process, value func(source string) string) {
	for i := range r.list {
		rule := &r.list[i]
		values := make([]string, len(rule.sources))
		for k, source := range rule.sources {
			if label := p.label(source); label != nil {
				values[k] = *label
			} else {
				values[k] = value(source)
			}
		}
		text := strings.Join(values, rule.separator)
		match := rule.regex.FindStringSubmatchIndex(text)
		if match == nil {
			continue
		}
		made := clean.Name(string(rule.regex.ExpandString(nil, rule.replacement, text, match)))
		if made = strings.TrimSpace(made); made != "" {
			*p.label(rule.target) = made
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
