package rules

import (
	"fmt"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Decision is one property of a variable, and who set it.
type Decision struct {
	Property string `json:"property"` // as rules call it: class, unit, name …; labels are those of named groups
	By       string `json:"by"`       // the rule's file and line, or Agent
	Value    string `json:"value"`    // as a rule would write it
}

// Agent is who decides some properties of what it measures itself, whatever rules say.
const Agent = "the agent"

// String is file:line.
func (s Source) String() string {
	if s.File == "" {
		return "a rule"
	}
	return fmt.Sprintf("%s:%d", s.File, s.Line)
}

// Explain says which rules decide what of a variable of a library; of the rest, its class decides. unsure are the rules
// that could match, and would change something, if something were known that is not: the library or its version (""),
// or the verbosity (mpit.VerbosityUnknown).
func (s *Set) Explain(lib mapping.Library, v *mpit.Variable) (decisions []Decision, unsure []string) {
	set := decide(s.ForLibrary(lib).rules, v)
	for p := range properties {
		of := &properties[p]
		switch r := set.by[p]; {
		case r != nil:
			decisions = append(decisions, Decision{of.name, r.Source.String(), of.show(&set.Properties)})
		case set.measured && of.agent:
			decisions = append(decisions, Decision{of.name, Agent, of.show(&set.Properties)})
		}
	}
	for i, r := range s.rules {
		could := *r
		if lib.Name == "" {
			could.Match.Library = nil
		}
		if lib.Version == "" {
			could.versions = nil
		}
		if v.Verbosity == mpit.VerbosityUnknown {
			could.levels = 0
		}
		if r.meets(lib, v) || !could.meets(lib, v) {
			continue
		}
		for p := range properties {
			if r.sets[p] && (!set.measured || !properties[p].agent) && !slices.Contains(s.rules[:i], set.by[p]) {
				unsure = append(unsure, r.Source.String())
				break
			}
		}
	}
	return decisions, unsure
}

// meets says whether the rule matches a variable of a library.
func (r *compiledRule) meets(lib mapping.Library, v *mpit.Variable) bool {
	_, ok := r.matches(v)
	return ok && r.matchesLibrary(lib)
}
