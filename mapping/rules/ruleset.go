package rules

import (
	"fmt"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Set is the rules for one library.
type Set struct{ rules []*compiledRule }

// Compiled is rules that have been checked, in their order.
type Compiled struct{ rules []*compiledRule }

// Compile checks rules. An error names the rule, counted from 1.
func Compile(rules []Rule) (*Compiled, error) {
	c := &Compiled{}
	for i, r := range rules {
		rule, found := compileRule(r)
		if found != nil {
			return nil, fmt.Errorf("rule %d (name %q): %w", i+1, r.Match.Name, joined(found))
		}
		c.rules = append(c.rules, rule)
	}
	return c, nil
}

// ForLibrary is the rules that can match variables of lib.
func (c *Compiled) ForLibrary(lib mapping.Library) *Set { return &Set{rules: forLibrary(c.rules, lib)} }

// Decide says what the rules make of a variable.
func (s *Set) Decide(v *mpit.Variable) mapping.Properties { return decide(s.rules, v).Properties }
