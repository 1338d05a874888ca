package identity

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

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

const envSource = "env_"

// sources are what rules may read; besides, env_ and the name of an environment variable that the agent sends.
func sources() []string {
	return []string{
		"jobid", "world", "rank", "user", "host", "executable", "library", "jobname", "partition", "source",
		"cgroup_jobid",
	}
}

// targets are what rules may set.
func targets() []string { return []string{"jobid", "world", "jobname", "partition"} }

// Compile makes Rules. An error names the rule's place and what to write instead.
func Compile(rules []rules.Relabel) (*Rules, error) {
	made := &Rules{}
	for i := range rules {
		rule, err := compile(&rules[i])
		if err != nil {
			where := fmt.Sprintf("identity rule %d", i+1)
			if s := rules[i].Source; s.File != "" {
				where = fmt.Sprintf("%s:%d", s.File, s.Line)
			}
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		made.list = append(made.list, rule)
	}
	return made, nil
}

func compile(r *rules.Relabel) (rule, error) {
	made := rule{sources: slices.Clone(r.SourceLabels), separator: ";", target: r.TargetLabel, replacement: "$1"}
	if !slices.Contains(targets(), r.TargetLabel) {
		return made, fmt.Errorf("target_label %q can't be set: write one of %s", r.TargetLabel,
			strings.Join(targets(), ", "))
	}
	for _, s := range r.SourceLabels {
		if name, isEnv := strings.CutPrefix(s, envSource); isEnv && name != "" {
			continue
		}
		if !slices.Contains(sources(), s) {
			return made, fmt.Errorf(
				"source_labels: %q is nothing that a rank has: write %s, or %s and the name of a variable of the "+
					"environment",
				s, strings.Join(sources(), ", "), envSource)
		}
	}
	if r.Separator != nil {
		made.separator = *r.Separator
	}
	if r.Replacement != nil {
		made.replacement = *r.Replacement
	}
	text := r.Regex
	if text == "" {
		text = "(.*)"
	}
	if _, err := regexp.Compile(text); err != nil {
		return made, fmt.Errorf("regex %q: %w: write a regular expression of RE2", text, err)
	}
	regex, err := regexp.Compile("^(?s:" + text + ")$")
	if err != nil {
		return made, fmt.Errorf("regex %q: %w: write a regular expression of RE2", text, err)
	}
	made.regex = regex
	if err := checkReplacement(made.replacement, regex); err != nil {
		return made, err
	}
	return made, nil
}

// checkReplacement finds references to groups that the expression doesn't have: they would silently be empty.
func checkReplacement(replacement string, regex *regexp.Regexp) error {
	for rest := replacement; ; {
		i := strings.IndexByte(rest, '$')
		if i < 0 {
			return nil
		}
		rest = rest[i+1:]
		if after, escaped := strings.CutPrefix(rest, "$"); escaped {
			rest = after
			continue
		}
		name := ""
		if after, braced := strings.CutPrefix(rest, "{"); braced {
			var closed bool
			if name, rest, closed = strings.Cut(after, "}"); !closed {
				return fmt.Errorf("replacement %q: a brace is not closed: write ${1}", replacement)
			}
		} else {
			rest = strings.TrimLeftFunc(rest, isWord)
			name = replacement[:len(replacement)-len(rest)]
			name = name[strings.LastIndexByte(name, '$')+1:]
		}
		n, err := strconv.Atoi(name)
		if err == nil && n <= regex.NumSubexp() || err != nil && name != "" && regex.SubexpIndex(name) >= 0 {
			continue
		}
		return fmt.Errorf(
			"replacement %q: $%s is no group of the regex, which has %d: write $1 or ${1}, and $$ for a dollar sign",
			replacement, name, regex.NumSubexp())
	}
}

func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) // as regexp.Expand sees it
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
