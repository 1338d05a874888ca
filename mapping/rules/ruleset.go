package rules

import (
	"fmt"
	"strings"
	"sync"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// maxRuleSets is how many libraries a compiled set remembers the rules of: ranks say what they like of their library's
// version.
const maxRuleSets = 256

// Set is the rules for one library, each with what can be seen at a glance: a rule that can't match a variable by
// its class or by the beginning of its name need not be tried.
type Set struct {
	rules []*compiledRule
	hints []hint
}

type hint struct {
	prefix  string // every name that matches begins with it
	classes uint16 // a bit for each that matches
}

// Compiled is rules that have been checked, in their order. It is safe for concurrent use.
type Compiled struct {
	rules []*compiledRule

	mu   sync.Mutex
	sets map[mapping.Library]*Set
}

// Compile checks rules. An error names the rule, counted from 1.
func Compile(rules []Rule) (*Compiled, error) {
	c := &Compiled{sets: map[mapping.Library]*Set{}}
	for i, r := range rules {
		rule, found := compileRule(r)
		if found != nil {
			return nil, fmt.Errorf("rule %d (name %q): %w", i+1, r.Match.Name, joined(found))
		}
		c.rules = append(c.rules, rule)
	}
	return c, nil
}

// ForLibrary is the rules that can match variables of lib. They are chosen once, not by each rank.
func (c *Compiled) ForLibrary(lib mapping.Library) *Set {
	c.mu.Lock()
	defer c.mu.Unlock()
	if set := c.sets[lib]; set != nil {
		return set
	}
	set := &Set{rules: forLibrary(c.rules, lib)}
	for _, r := range set.rules {
		set.hints = append(set.hints, hintOf(r))
	}
	if len(c.sets) < maxRuleSets {
		c.sets[lib] = set
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

// Decide says what the rules make of a variable.
func (s *Set) Decide(v *mpit.Variable) mapping.Properties {
	var scratch [32]*compiledRule
	return decide(s.candidates(v, scratch[:0]), v).Properties
}

// candidates appends to scratch the rules that can match v, in their order.
func (s *Set) candidates(v *mpit.Variable, scratch []*compiledRule) []*compiledRule {
	for i := range s.hints {
		h := &s.hints[i]
		if h.classes != ^uint16(0) && (v.Class > 15 || h.classes&(1<<v.Class) == 0) ||
			!strings.HasPrefix(v.Name, h.prefix) {
			continue
		}
		scratch = append(scratch, s.rules[i])
	}
	return scratch
}
