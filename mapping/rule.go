package mapping

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Match chooses variables. What is empty matches everything.
type Match struct {
	Library string    `yaml:"library,omitempty"` // openmpi, mpich, mvapich, intelmpi, craympich
	Version string    `yaml:"version,omitempty"` // of the library: ">=4.0 <5.1"
	Name    string    `yaml:"name,omitempty"`    // * stands for any characters, ? for one
	Class   ClassName `yaml:"class,omitempty"`   // as the library declares it
	Bind    string    `yaml:"bind,omitempty"`    // comm, win, file …, none
}

// Merge says how several values become one.
type Merge string

// The ways to merge. What counts (counters, aggregates, timers) is always summed.
const (
	MergeSum Merge = "sum"
	MergeMax Merge = "max"
	MergeMin Merge = "min"
)

// Elements says what becomes of the elements of an array variable: one value (sum, max, min), or a series for each,
// with the element's number as a label called peer or index.
type Elements string

// The ways to treat elements.
const (
	ElementsSum   Elements = "sum"
	ElementsMax   Elements = "max"
	ElementsMin   Elements = "min"
	ElementsPeer  Elements = "peer"
	ElementsIndex Elements = "index"
)

// NoCompanion as Rule.Companion says that a timer has none, even where a counter has its name.
const NoCompanion = "none"

// Rule says what the variables it matches really are. For each property the first rule that matches and sets it wins.
type Rule struct {
	Match Match `yaml:"match"`

	Drop  *bool     `yaml:"drop,omitempty"`
	Class ClassName `yaml:"class,omitempty"` // what it really is, where the library declares it otherwise
	Unit  string    `yaml:"unit,omitempty"`  // of the values as read: By, KiBy, s, us, {message}, … or none
	Scale *float64  `yaml:"scale,omitempty"` // factor besides the unit's own

	// Name is the metric's name without mpit_, unit and _total; the class word is not added to it. $1 is what the first
	// * of Match.Name stood for, $2 the second.
	Name string `yaml:"name,omitempty"`
	Help string `yaml:"help,omitempty"` // a sentence for HELP

	Merge     Merge    `yaml:"merge,omitempty"`     // of objects that share a name
	Elements  Elements `yaml:"elements,omitempty"`  // of an array
	Companion string   `yaml:"companion,omitempty"` // of a timer: the COUNTER of its events, where it is not the one of the same name
	Offset    *bool    `yaml:"offset,omitempty"`    // the source starts anywhere: count from the value at handle allocation
}

// compiledRule is a Rule that has been checked.
type compiledRule struct {
	Rule
	versions versionRange
	class    mpit.Class
	hasClass bool
	bind     mpit.Bind
	hasBind  bool
	real     mpit.Class
	unit     unit
	name     *regexp.Regexp // nil: any
}

func compileRule(r Rule) (*compiledRule, error) {
	c := &compiledRule{Rule: r, real: mpit.ClassUnknown}
	var err error
	if c.versions, err = parseRange(r.Match.Version); err != nil {
		return nil, err
	}
	if l := r.Match.Library; l != "" && !slices.Contains([]string{OpenMPI, MPICH, MVAPICH, IntelMPI, CrayMPICH}, l) {
		return nil, fmt.Errorf("library %q is not known", l)
	}
	if r.Match.Class != "" {
		if c.class, c.hasClass = classOf(r.Match.Class); !c.hasClass {
			return nil, fmt.Errorf("class %q to match is none of MPI_T's", r.Match.Class)
		}
	}
	if b := r.Match.Bind; b != "" {
		if c.bind, c.hasBind = mpit.BindOfLabel(b); !c.hasBind && b != "none" {
			return nil, fmt.Errorf("bind %q is none of MPI_T's", b)
		}
		c.hasBind = true // "none" is BindNone
	}
	if r.Class != "" {
		var ok bool
		if c.real, ok = classOf(r.Class); !ok {
			return nil, fmt.Errorf("class %q is none of MPI_T's", r.Class)
		}
	}
	if c.unit, err = parseUnit(r.Unit); err != nil {
		return nil, err
	}
	if r.Scale != nil && !(*r.Scale > 0 && *r.Scale <= 1e30) { // NaN is refused as well
		return nil, fmt.Errorf("scale %v is not above zero", *r.Scale)
	}
	switch r.Merge {
	case "", MergeSum, MergeMax, MergeMin:
	default:
		return nil, fmt.Errorf("merge %q is none of sum, max, min", r.Merge)
	}
	switch r.Elements {
	case "", ElementsSum, ElementsMax, ElementsMin, ElementsPeer, ElementsIndex:
	default:
		return nil, fmt.Errorf("elements %q is none of sum, max, min, peer, index", r.Elements)
	}
	if r.Name != "" {
		stars := strings.Count(r.Match.Name, "*")
		for i := 0; i < len(r.Name); i++ {
			switch ch := r.Name[i]; {
			case ch == '$':
				if i++; i == len(r.Name) || r.Name[i] < '1' || int(r.Name[i]-'0') > stars {
					return nil, fmt.Errorf("name %q: $ must be followed by the number of a * of the match", r.Name)
				}
			case ch != '_' && (ch < 'a' || ch > 'z') && (ch < '0' || ch > '9'):
				return nil, fmt.Errorf("name %q may have a-z, 0-9 and _ only", r.Name)
			}
		}
	}
	if r.Match.Name != "" {
		c.name = globExpression(r.Match.Name)
	}
	return c, nil
}

// globExpression compiles a pattern of * and ?; each * is a group.
func globExpression(glob string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for _, r := range glob {
		switch r {
		case '*':
			b.WriteString("(.*?)")
		case '?':
			b.WriteString(".")
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	b.WriteString(`\z`)
	return regexp.MustCompile(b.String())
}

// settings is what all matching rules together say of one variable.
type settings struct {
	drop      bool
	class     mpit.Class
	unit      unit
	scale     float64
	name      string
	help      string
	merge     Merge
	elements  Elements
	companion string
	offset    bool
}

// forLibrary is the rules that can match variables of lib, in order.
func forLibrary(rules []*compiledRule, lib Library) []*compiledRule {
	var out []*compiledRule
	for _, r := range rules {
		if (r.Match.Library == "" || r.Match.Library == lib.Name) && r.versions.holds(lib.Version) {
			out = append(out, r)
		}
	}
	return out
}

// settingsOf applies rules that forLibrary has chosen.
func settingsOf(rules []*compiledRule, v *mpit.Variable) settings {
	s := settings{class: v.Class, unit: unit{scale: 1}, scale: 1}
	var drop, class, unit, scale, offset bool
	for _, r := range rules {
		if r.hasClass && r.class != v.Class || r.hasBind && r.bind != v.Bind {
			continue
		}
		var groups []string
		if r.name != nil {
			if groups = r.name.FindStringSubmatch(v.Name); groups == nil {
				continue
			}
		}
		if r.Drop != nil && !drop {
			s.drop, drop = *r.Drop, true
		}
		if r.Class != "" && !class {
			s.class, class = r.real, true
		}
		if r.Unit != "" && !unit {
			s.unit, unit = r.unit, true
		}
		if r.Scale != nil && !scale {
			s.scale, scale = *r.Scale, true
		}
		if r.Offset != nil && !offset {
			s.offset, offset = *r.Offset, true
		}
		if r.Name != "" && s.name == "" {
			s.name = expand(r.Name, groups)
		}
		if s.help == "" {
			s.help = r.Help
		}
		if s.merge == "" {
			s.merge = r.Merge
		}
		if s.elements == "" {
			s.elements = r.Elements
		}
		if s.companion == "" {
			s.companion = r.Companion
		}
	}
	return s
}

// expand puts what the stars stood for into a name; compileRule has checked it.
func expand(name string, groups []string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] == '$' && i+1 < len(name) {
			i++
			if n := int(name[i] - '0'); n < len(groups) {
				b.WriteString(groups[n])
			}
			continue
		}
		b.WriteByte(name[i])
	}
	return b.String()
}
