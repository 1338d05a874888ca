package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// maxRules is how many rules all files may have that are given together: each variable of each rank is matched with
// them.
const maxRules = 2000

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
