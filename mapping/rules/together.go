package rules

import (
	"cmp"
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
}

// setting is a value that stands once in all files.
type setting struct {
	value any
	where Problem // its place alone
}

// add takes a file's settings, and finds those that say something else than an earlier file.
func (t *together) add(p *parsed) Problems {
	if t.set == nil {
		t.set = map[string]setting{}
	}
	var problems Problems
	once := func(path string, value any) bool {
		first, there := t.set[path]
		if !there {
			t.set[path] = setting{value, p.at(path)}
			return true
		}
		if first.value != value {
			problems = append(problems, p.at(path).because("it stands once for all files: take one out",
				"%s is %v here, and %v in %s:%d", strings.TrimPrefix(path, "limits."), value, first.value,
				first.where.File, first.where.Line))
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
		problems = append(problems, Problem{File: p.name, Line: 1, Column: 1}.because(
			"write patterns that hold for many variables at once", "with this file there are more than %d rules", maxRules))
	}
	return problems
}

// check finds limits of a part above those of the whole, which has its default where no file says it.
func (t *together) check() (problems Problems) {
	list := t.limits.list()
	for i, part := range list {
		for _, whole := range slices.Backward(list[:i]) {
			most := cmp.Or(*whole.value, whole.standard)
			if *part.value <= most {
				continue
			}
			where, remedy := fmt.Sprintf(", which is %d by default", most), fmt.Sprintf("write at most %d", most)
			if *whole.value == 0 {
				remedy += ", or " + whole.key + " as well"
			} else {
				set := t.set["limits."+whole.key].where
				where = fmt.Sprintf(" in %s:%d, which is %d", set.File, set.Line, most)
			}
			problems = append(problems, t.set["limits."+part.key].where.because(remedy, "%s is %d, more than %s%s",
				part.key, *part.value, whole.key, where))
			break
		}
	}
	return problems
}
