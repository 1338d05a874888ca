package variables

import (
	"cmp"
	"time"
	"weak"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const defaultMaxFamilies = 65536

// Config is what a Mapper is made with; the zero value will do.
type Config struct {
	Rules         []rules.Rule  // nil: Defaults(). Rules of one's own stand before the defaults
	TimerInterval time.Duration // least time between two observations of a timer; 0: 10 s
	// maximum number of families, over all ranks; 0: 65,536. One user may have as many as are left for others
	MaxFamilies int
}

// Mapper holds the rules and all families of one exporter. It is safe for concurrent use.
type Mapper struct {
	rules    *rules.Set
	basis    *mapping.Basis
	families *families
	specs    *specs
}

// New checks the rules of cfg. An error names the rule, counted from 1.
func New(cfg Config) (*Mapper, error) {
	basis, err := mapping.NewBasis(cfg.TimerInterval)
	if err != nil {
		return nil, err
	}
	if cfg.Rules == nil {
		cfg.Rules = rules.Defaults()
	}
	set, err := rules.Compile(cfg.Rules)
	if err != nil {
		return nil, err
	}
	return &Mapper{rules: set, basis: basis, families: newFamilies(cmp.Or(cfg.MaxFamilies, defaultMaxFamilies)),
		specs: &specs{byKey: map[specKey]weak.Pointer[mapping.Spec]{}}}, nil
}

// Families is how many families ranks hold, and how many variables of theirs these are made of.
func (m *Mapper) Families() (families, variables int) { return m.families.held() }

// Metric says what a variable of a library becomes, as far as that depends on the variable alone: in a rank it can
// still have the state of one that couldn't be opened, and its family another holder. ok is false where it is left
// out, for the reason given. It only looks: no family comes to be by it.
func (m *Mapper) Metric(lib mapping.Library, v mpit.Variable) (metric *mapping.Metric, drop mapping.Reason, ok bool) {
	set := m.rules.ForLibrary(lib).Decide(&v)
	s, want, reason := m.basis.Become(set, &v)
	if reason != "" {
		return nil, reason, false
	}
	have, conflict := m.families.look(&want.Metric)
	switch {
	case conflict != "":
		return nil, mapping.ReasonTypeConflict, false
	case have != nil:
		return have, "", true
	}
	if set.Companion == "" && !lib.HasCompanions() { // a rule knows the library better than a guess does
		s.Companion = ""
	}
	want.Help = m.basis.Help(&v, &s, &want)
	return &want.Metric, "", true
}

// Explain says which rules decide what of a variable: rules.Set.Explain.
func (m *Mapper) Explain(lib mapping.Library, v mpit.Variable) (decisions []rules.Decision, unsure []string) {
	return m.rules.Explain(lib, &v)
}
