package rules

import (
	"fmt"
	"sync"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// maxRuleSets is how many libraries a compiled set remembers the rules of: ranks say what they like of their library's
// version.
const maxRuleSets = 256

// Set is the rules for one library.
type Set struct{ rules []*compiledRule }

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
	if len(c.sets) < maxRuleSets {
		c.sets[lib] = set
	}
	return set
}

// Decide says what the rules make of a variable.
func (s *Set) Decide(v *mpit.Variable) mapping.Properties { return decide(s.rules, v).Properties }
