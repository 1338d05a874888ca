package rules

import (
	"fmt"
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

// check finds limits of a part above those of the whole.
func (t *together) check() Problems {
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
