package rules

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	maxRules  = 2000 // of all files that are given together; each variable of each rank is matched with them
	maxSeries = 1_000_000_000
)

// checkRule finds a rule that says what can't be, or what has no effect whatever other rules say.
func checkRule(c *compiledRule) []finding {
	var found []finding
	note := func(key, remedy, what string, args ...any) {
		found = append(found, finding{key, complain(remedy, what, args...)})
	}
	if !slices.Contains(c.sets[:], true) {
		note("", "write what it sets: drop, class, name …", "this rule sets nothing")
	}
	merged := slices.Contains([]mapping.Elements{"", mapping.ElementsSum, mapping.ElementsMax, mapping.ElementsMin,
		mapping.ElementsMean}, c.Elements)
	if c.Nonzero != nil && *c.Nonzero && merged {
		note("nonzero", "write elements: peer or elements: index as well",
			"nonzero chooses elements that have series of their own, and here they have none")
	}
	if c.Object != nil && len(c.binds) == 1 && c.binds[0] == mpit.BindNone {
		note("object", "take it out, or another bind under match", "variables of bind none have no object")
	}
	if c.Merge == mapping.MergeEach && c.Object != nil && !*c.Object {
		note("object", "take it or merge: each out", "objects can't be told apart and become one as well")
	}
	if c.Merge == mapping.MergeEach && (c.Rank == mapping.RankNode || c.Rank == mapping.RankBoth) {
		note("rank", "take it or merge: each out", "ranks whose objects are told apart by a number can't become one")
	}
	own, said := c.ownClasses()
	all := func(is func(mpit.Class) bool) bool {
		return len(own) > 0 && !slices.ContainsFunc(own,
			func(class mpit.Class) bool { return class == mpit.ClassUnknown || !is(class) })
	}
	remedy := "take it out, or say by class what the variable really is"
	mixes := func(m string) bool { return m == "max" || m == "min" || m == "mean" }
	if all(mapping.Grows) {
		if mixes(string(c.Merge)) {
			note("merge", "write sum or each, or say by class what the variable really is",
				"%s only grows: it is always summed, or each", said)
		}
		if mixes(string(c.Elements)) {
			note("elements", "write sum, peer or index, or say by class what the variable really is",
				"%s only grows: its elements are always summed, or each", said)
		}
	}
	if all(func(class mpit.Class) bool { return class == mpit.ClassState || class == mpit.ClassGeneric }) {
		if c.Merge != "" && c.Merge != mapping.MergeEach {
			note("merge", remedy, "%s is never merged", said)
		}
		if c.Elements != "" && merged {
			note("elements", "write peer or index, or say by class what the variable really is",
				"%s is never merged", said)
		}
	}
	if all(func(class mpit.Class) bool { return class != mpit.ClassTimer }) {
		if c.Companion != "" {
			note("companion", remedy, "%s is no timer, which alone has a companion", said)
		}
		if c.Buckets != nil {
			note("buckets", remedy, "%s is no timer, which alone has buckets", said)
		}
	}
	is := func(one mpit.Class) bool { return all(func(class mpit.Class) bool { return class == one }) }
	if base := c.unit.Base; c.Unit != "" && c.Unit != mapping.NoUnit {
		if base != "s" && is(mpit.ClassTimer) {
			note("unit", "write s, ms, us, ns, min or h, or say by class what the variable really is",
				"%s has a time, which is not in %s", said, c.Unit)
		}
		if base != "1" && is(mpit.ClassPercentage) {
			note("unit", `write "1" or "%", or say by class what the variable really is`,
				"%s has a share, which is not in %s", said, c.Unit)
		}
	}
	present := func(class mpit.Class) bool { return !mapping.Grows(class) && class != mpit.ClassGeneric }
	if c.template.lastWord() == "count" && all(present) {
		note("name", "end it in another word", "%s becomes a gauge, and no gauge's name may end in _count", said)
	}
	if c.Offset != nil && *c.Offset && all(func(class mpit.Class) bool { return !mapping.Grows(class) }) {
		note("offset", remedy, "%s does not count: it has no beginning to subtract", said)
	}
	return found
}

// ownClasses is what the variables of a rule are, as far as the rule itself says it.
func (r *compiledRule) ownClasses() (classes []mpit.Class, said string) {
	if r.Class != "" {
		return []mpit.Class{r.real}, "class " + string(r.Class)
	}
	return r.classes, "class " + strings.Join(r.Match.Class, ", ")
}

// checkHead finds what is wrong with rank and limits.
func (p *parsed) checkHead() []finding {
	var found []finding
	if err := parseRank(p.Rank); err != nil {
		found = append(found, finding{"rank", err})
	}
	for _, l := range p.Limits.list() {
		if _, there := p.places["limits."+l.key]; there && !p.broken["limits."+l.key] &&
			(*l.value < 1 || *l.value > maxSeries) {
			found = append(found, finding{"limits." + l.key, complain(
				fmt.Sprintf("write a number from 1 to %d, or leave it out for the default of %d", maxSeries,
					l.standard), "the limit is %d", *l.value)})
		}
	}
	return found
}

// limit is one of Limits.
type limit struct {
	key      string
	value    *int
	standard int // the default
}

func (l *Limits) list() []limit {
	return []limit{
		{"series", &l.Series, DefaultSeries},
		{"series_per_user", &l.SeriesPerUser, DefaultSeriesPerUser},
		{"series_per_job", &l.SeriesPerJob, DefaultSeriesPerJob},
		{"series_per_rank", &l.SeriesPerRank, DefaultSeriesPerRank},
		{"series_per_variable", &l.SeriesPerVariable, DefaultSeriesPerVariable},
	}
}

// Check finds a limit below zero, which is none.
func (l Limits) Check() error {
	for _, one := range l.list() {
		if *one.value < 0 {
			return fmt.Errorf("limit %s is below zero: %d", one.key, *one.value)
		}
	}
	return nil
}

// WithDefaults is the limits with defaults in place of zeros.
func (l Limits) WithDefaults() Limits {
	for _, one := range l.list() {
		if *one.value == 0 {
			*one.value = one.standard
		}
	}
	return l
}

// sourceLabels is what rules of identity may ask for, besides env_<NAME>.
var sourceLabels = []string{
	"jobid", "world", "rank", "user", "host", "executable", "library", "jobname", "partition", "source",
	"cgroup_jobid",
}

// environment is what the agent sends of a rank's environment, where it is there: the list of mpit/agent/identity.c.
var environment = []string{
	"MPIT_JOB_ID",
	"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_JOB_NAME", "SLURM_JOB_PARTITION", "SLURM_JOB_ACCOUNT", "SLURM_JOB_USER",
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

var (
	targetLabels        = []string{"jobid", "world", "jobname", "partition"}
	environmentLabel    = regexp.MustCompile(`\Aenv_[A-Za-z_][A-Za-z0-9_]*\z`)
	replacementVariable = regexp.MustCompile(`\$(?:\$|\{([^}]*)\}|([A-Za-z0-9_]+)|)`)
)

// checkRelabel finds what is wrong with a rule of identity.
func checkRelabel(r *Relabel) []finding {
	var found []finding
	note := func(key string, err error) {
		if err != nil {
			found = append(found, finding{key, err})
		}
	}
	for i, label := range r.SourceLabels {
		if name, ok := strings.CutPrefix(label, "env_"); ok && environmentLabel.MatchString(label) &&
			!slices.Contains(environment, name) {
			note(fmt.Sprintf("source_labels[%d]", i), complain(oneOf(name, environment),
				"the agent sends no variable %q of a rank's environment", name))
			continue
		}
		if !slices.Contains(sourceLabels, label) && !environmentLabel.MatchString(label) {
			note(fmt.Sprintf("source_labels[%d]", i), complain(oneOf(label, sourceLabels)+", or env_<NAME> for a "+
				"variable of the environment", "there is no source label %q", label))
		}
	}
	switch {
	case r.TargetLabel == "":
		note("", complain("write target_label: one of "+strings.Join(targetLabels, ", "),
			"this rule of identity has no target_label"))
	case !slices.Contains(targetLabels, r.TargetLabel):
		note("target_label", complain(oneOf(r.TargetLabel, targetLabels), "the label %q can't be changed",
			r.TargetLabel))
	}
	if len(r.SourceLabels) == 0 && r.Replacement == nil {
		note("", complain("write source_labels, or a replacement",
			"this rule of identity makes the label empty, for it takes its value from nowhere"))
	}
	text := r.Regex
	if text == "" {
		text = "(.*)"
	}
	expression, err := wholeExpression(text)
	note("regex", err)
	if err != nil || r.Replacement == nil {
		return found
	}
	if len(*r.Replacement) > maxPattern {
		note("replacement", complain(fmt.Sprintf("write at most %d", maxPattern), "the replacement has %d bytes",
			len(*r.Replacement)))
	}
	for _, m := range replacementVariable.FindAllStringSubmatch(*r.Replacement, -1) {
		ref := cmp.Or(m[1], m[2])
		if m[0] == "$$" {
			continue
		}
		if ref == "0" {
			continue // all of it
		}
		if _, err := groupNumber(ref, expression, false); err != nil {
			remedy := err.Error()
			if _, err := groupNumber(ref[:min(1, len(ref))], expression, false); err == nil && len(ref) > 1 {
				remedy = "write ${" + ref[:1] + "}" + ref[1:]
			}
			note("replacement", complain(remedy, "replacement %q: there is no group %q", *r.Replacement, ref))
		}
	}
	return found
}

// together is what several files say, the first one first.
type together struct {
	rank     mapping.RankMode
	limits   Limits
	identity []Relabel
	rules    []*compiledRule
	set      map[string]setting // rank, limits.series …: what has been set, and where
	partly   bool               // there may be more files, before and behind these
}

// setting is a value that stands once in all files.
type setting struct {
	value any
	file  string
	at    place
}

// add takes a file's settings, and finds those that say something else than an earlier file.
func (t *together) add(p *parsed) Problems {
	if t.set == nil {
		t.set = map[string]setting{}
	}
	var problems Problems
	once := func(path string, value any) bool {
		s := setting{value, p.name, p.at(path)}
		first, there := t.set[path]
		switch {
		case !there:
			t.set[path] = s
			return true
		case first.value != value:
			problems = append(problems, Problem{
				File: s.file, Line: s.at.line, Column: s.at.column,
				What: fmt.Sprintf("%s is %v here, and %v in %s:%d", strings.TrimPrefix(path, "limits."), value,
					first.value, first.file, first.at.line),
				Remedy: "it stands once for all files: take one out",
			})
		}
		return false
	}
	if p.Rank != "" && once("rank", p.Rank) {
		t.rank = p.Rank
	}
	mine, theirs := t.limits.list(), p.Limits.list()
	for i, l := range theirs {
		if *l.value != 0 && once("limits."+l.key, *l.value) {
			*mine[i].value = *l.value
		}
	}
	t.identity = append(t.identity, p.Identity...)
	before := len(t.rules)
	t.rules = append(t.rules, p.compiled...)
	if len(t.rules) > maxRules && before <= maxRules {
		problems = append(problems, Problem{
			File: p.name, Line: 1, Column: 1, What: fmt.Sprintf("with this file there are more than %d rules",
				maxRules),
			Remedy: "write patterns that hold for many variables at once",
		})
	}
	return problems
}

// check finds what doesn't fit together: limits of a part above those of the whole, and rules that never take effect.
func (t *together) check() Problems {
	problems := t.checkLimits()
	if len(t.rules) <= maxRules {
		problems = append(problems, t.checkShadowed()...)
	}
	return problems
}

func (t *together) checkLimits() Problems {
	var problems Problems
	list := t.limits.list()
	for i := len(list) - 1; i > 0; i-- {
		for j := i - 1; j >= 0; j-- {
			part, whole := list[i], list[j]
			least, other := *whole.value, t.set["limits."+whole.key]
			which, remedy := fmt.Sprintf(" in %s:%d, which is %d", other.file, other.at.line, least),
				fmt.Sprintf("write at most %d", least)
			if least == 0 && !t.partly {
				least = whole.standard
				which, remedy = fmt.Sprintf(", which is %d by default", least),
					fmt.Sprintf("write at most %d, or %s as well", least, whole.key)
			}
			if *part.value == 0 || least == 0 || *part.value <= least {
				continue
			}
			at := t.set["limits."+part.key]
			problems = append(problems, Problem{
				File: at.file, Line: at.at.line, Column: at.at.column,
				What:   fmt.Sprintf("%s is %d, more than %s%s", part.key, *part.value, whole.key, which),
				Remedy: remedy,
			})
			break
		}
	}
	return problems
}

// checkShadowed finds rules that never take effect, because for all that they match earlier ones have set all that
// they set. It does not find all of them; what it finds is sure.
func (t *together) checkShadowed() Problems {
	var problems Problems
	// the first rule that says drop: false; what comes after it can't be sure that a variable is dropped
	kept := len(t.rules)
	for i, r := range t.rules {
		if r.Drop != nil && !*r.Drop {
			kept = min(kept, i)
		}
		var by [propertyCount]*compiledRule
		for j, e := range t.rules[:i] {
			if !e.covers(r) {
				continue
			}
			drops := e.Drop != nil && *e.Drop && j < kept && !t.partly
			for p := range properties {
				if by[p] == nil && (e.sets[p] || drops && !properties[p].kept) {
					by[p] = e
				}
			}
		}
		if p, ok := r.shadowed(by); ok {
			problems = append(problems, p)
		}
	}
	return problems
}

// shadowed makes a problem of a rule all of whose properties are by others.
func (r *compiledRule) shadowed(by [propertyCount]*compiledRule) (Problem, bool) {
	type other struct {
		rule *compiledRule
		what []string
	}
	var others []*other
	for p := range properties {
		if !r.sets[p] {
			continue
		}
		if by[p] == nil {
			return Problem{}, false
		}
		i := slices.IndexFunc(others, func(o *other) bool { return o.rule == by[p] })
		if i < 0 {
			i = len(others)
			others = append(others, &other{rule: by[p]})
		}
		if by[p].sets[p] {
			others[i].what = append(others[i].what, properties[p].name)
		} else if !slices.Contains(others[i].what, "drop") {
			others[i].what = append(others[i].what, "drop")
		}
	}
	if len(others) == 0 {
		return Problem{}, false
	}
	parts := make([]string, len(others))
	for i, o := range others {
		parts[i] = fmt.Sprintf("%s by %s:%d", strings.Join(o.what, ", "), o.rule.Source.File, o.rule.Source.Line)
	}
	return Problem{
		File: r.Source.File, Line: r.Source.Line,
		What:   "this rule never takes effect: for all that it matches, an earlier rule has set what it sets (" + strings.Join(parts, "; ") + ")",
		Remedy: "put it before that one, or take it out",
	}, true
}

// covers says whether a rule matches all that another one matches. It may say no where it does, never yes where not.
func (r *compiledRule) covers(o *compiledRule) bool {
	return subset(o.Match.Library, r.Match.Library) && subset(o.classes, r.classes) && subset(o.binds, r.binds) &&
		r.versions.contains(o.versions) && r.verbosity.contains(o.verbosity) &&
		(r.Match.Category == "" || o.Match.Category != "" && globContains(r.Match.Category, o.Match.Category)) &&
		r.coversName(o)
}

// subset says whether all of a are in b, where nothing stands for anything.
func subset[S ~[]E, E comparable](a, b S) bool {
	if len(b) == 0 || len(a) == 0 {
		return len(b) == 0
	}
	return !slices.ContainsFunc(a, func(e E) bool { return !slices.Contains(b, e) })
}

func (r *compiledRule) coversName(o *compiledRule) bool {
	switch {
	case r.name == nil, r.Match.Name != "" && strings.Trim(r.Match.Name, "*") == "":
		return true
	case o.name == nil:
		return false
	case o.whole:
		return r.name.MatchString(o.Match.Name)
	case r.Match.Name != "" && o.Match.Name != "":
		return globContains(r.Match.Name, o.Match.Name)
	}
	return r.Match.Regexp != "" && r.Match.Regexp == o.Match.Regexp
}
