package mapping

import (
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// maxRuleSets is how many libraries a Mapper remembers the rules of: ranks say what they like of their library's
// version.
const maxRuleSets = 256

// ruleSet is the rules for one library, each with what can be seen at a glance: a rule that can't match a variable by
// its class or by the beginning of its name need not be tried.
type ruleSet struct {
	rules []*compiledRule
	hints []hint
}

type hint struct {
	prefix  string // every name that matches begins with it
	classes uint16 // a bit for each that matches
}

// rulesFor is the rules that can match variables of lib. They are chosen once, not by each rank.
func (m *Mapper) rulesFor(lib Library) *ruleSet {
	m.mu.Lock()
	defer m.mu.Unlock()
	if set := m.sets[lib]; set != nil {
		return set
	}
	set := &ruleSet{rules: forLibrary(m.rules, lib)}
	for _, r := range set.rules {
		set.hints = append(set.hints, hintOf(r))
	}
	if len(m.sets) < maxRuleSets {
		m.sets[lib] = set
	}
	return set
}

func hintOf(r *compiledRule) hint {
	h := hint{prefix: r.prefix, classes: ^uint16(0)}
	if len(r.classes) > 0 {
		h.classes = 0
		for _, class := range r.classes {
			h.classes |= 1 << class
		}
	}
	return h
}

// candidates appends to scratch the rules that can match v, in their order.
func (s *ruleSet) candidates(v *mpit.Variable, scratch []*compiledRule) []*compiledRule {
	for i := range s.hints {
		h := &s.hints[i]
		if h.classes != ^uint16(0) && (v.Class > 15 || h.classes&(1<<v.Class) == 0) || !strings.HasPrefix(v.Name, h.prefix) {
			continue
		}
		scratch = append(scratch, s.rules[i])
	}
	return scratch
}
