package exporter

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// relabeler changes what ranks are called, by rules. It is never changed once made, and may be used by any number of goroutines.
type relabeler struct{ rules []relabelRule }

type relabelRule struct {
	sources     []string
	separator   string
	regex       *regexp.Regexp
	target      string
	replacement string
}

const envSource = "env_"

// What rules may read and set. A source may also be env_ and the name of a variable that the agent sends.
func relabelSources() []string {
	return []string{"jobid", "world", "rank", "user", "host", "executable", "library", "jobname", "partition", "source", "cgroup_jobid"}
}

func relabelTargets() []string { return []string{"jobid", "world", "jobname", "partition"} }

// newRelabeler compiles rules. An error names the rule's place and what to write instead.
func newRelabeler(rules []mapping.Relabel) (*relabeler, error) {
	made := &relabeler{}
	for i := range rules {
		rule, err := compileRelabel(&rules[i])
		if err != nil {
			where := fmt.Sprintf("identity rule %d", i+1)
			if s := rules[i].Source; s.File != "" {
				where = fmt.Sprintf("%s:%d", s.File, s.Line)
			}
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		made.rules = append(made.rules, rule)
	}
	return made, nil
}

func compileRelabel(r *mapping.Relabel) (relabelRule, error) {
	made := relabelRule{sources: slices.Clone(r.SourceLabels), separator: ";", target: r.TargetLabel, replacement: "$1"}
	if !slices.Contains(relabelTargets(), r.TargetLabel) {
		return made, fmt.Errorf("target_label %q can't be set: write one of %s", r.TargetLabel, strings.Join(relabelTargets(), ", "))
	}
	for _, s := range r.SourceLabels {
		if name, isEnv := strings.CutPrefix(s, envSource); isEnv && name != "" {
			continue
		}
		if !slices.Contains(relabelSources(), s) {
			return made, fmt.Errorf("source_labels: %q is nothing that a rank has: write %s, or %s and the name of a variable of the environment",
				s, strings.Join(relabelSources(), ", "), envSource)
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

// checkReplacement finds references to groups that the expression does not have: they would silently be nothing.
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
		if n, err := strconv.Atoi(name); err == nil && n <= regex.NumSubexp() || err != nil && name != "" && regex.SubexpIndex(name) >= 0 {
			continue
		}
		return fmt.Errorf("replacement %q: $%s is no group of the regex, which has %d: write $1 or ${1}, and $$ for a dollar sign",
			replacement, name, regex.NumSubexp())
	}
}

func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) // as regexp.Expand sees it
}

// apply applies the rules in their order to what a rank says; each sees what those before it have made. value gives the other sources.
// What a rule makes is fit for a label; where it makes nothing, the old value stays.
func (rl *relabeler) apply(c *claim, value func(source string) string) {
	if rl == nil {
		return
	}
	own := func(label string) *string {
		switch label {
		case "jobid":
			return &c.id.JobID
		case "world":
			return &c.id.World
		case "jobname":
			return &c.jobName
		case "partition":
			return &c.partition
		}
		return nil
	}
	for i := range rl.rules {
		rule := &rl.rules[i]
		values := make([]string, len(rule.sources))
		for k, source := range rule.sources {
			if p := own(source); p != nil {
				values[k] = *p
			} else {
				values[k] = value(source)
			}
		}
		text := strings.Join(values, rule.separator)
		match := rule.regex.FindStringSubmatchIndex(text)
		if match == nil {
			continue
		}
		if made := strings.TrimSpace(cleanValue(string(rule.regex.ExpandString(nil, rule.replacement, text, match)))); made != "" {
			*own(rule.target) = made
		}
	}
}
