package mapping

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// List is one word or several: YAML may write either. Empty: any.
type List []string

// Match chooses variables. What is empty matches everything; all that is there must match. Name and Regexp exclude each other.
type Match struct {
	Library   List   `yaml:"library,omitempty"`   // openmpi, mpich, mvapich, intelmpi, craympich
	Version   string `yaml:"version,omitempty"`   // of the library: ">=4.0 <5.1"
	Name      string `yaml:"name,omitempty"`      // * stands for any characters, ? for one
	Regexp    string `yaml:"regexp,omitempty"`    // RE2, for the whole name
	Class     List   `yaml:"class,omitempty"`     // as the library declares it: a ClassName
	Bind      List   `yaml:"bind,omitempty"`      // comm, win, file …, none
	Verbosity string `yaml:"verbosity,omitempty"` // user_basic … mpidev_all, or a bound: "<=user_all", ">=tuner_basic"
	Category  string `yaml:"category,omitempty"`  // glob: a category that the variable stands in, directly or through others
}

// Merge says how the values of several objects, and of several ranks, become one.
type Merge string

// The ways to merge. What counts (counters, aggregates, timers) is always summed, unless it is MergeEach.
const (
	MergeSum  Merge = "sum"
	MergeMax  Merge = "max"
	MergeMin  Merge = "min"
	MergeMean Merge = "mean"
	MergeEach Merge = "each" // not at all: a label object tells those apart that share a name
)

// Elements says what becomes of the elements of an array variable: one value (sum, max, min, mean), or a series for each,
// with the element's number as a label called peer or index.
type Elements string

// The ways to treat elements.
const (
	ElementsSum   Elements = "sum"
	ElementsMax   Elements = "max"
	ElementsMin   Elements = "min"
	ElementsMean  Elements = "mean"
	ElementsPeer  Elements = "peer"
	ElementsIndex Elements = "index"
)

// RankMode says whether a variable has a series for each rank, one for all ranks of a job on this node, or both.
type RankMode string

// The ways to treat ranks.
const (
	RankKeep RankMode = "keep"
	RankNode RankMode = "node" // the series of all ranks of a world on this node become one, without the label rank
	RankBoth RankMode = "both" // as keep, and as node in a family of its own
)

// NoCompanion as Rule.Companion says that a timer has none, even where a counter has its name.
const NoCompanion = "none"

// Source says where a rule stands. A rule made in Go has none.
type Source struct {
	File string // as it was given; for shipped rules "defaults/openmpi.yaml" and so on
	Line int    // of the rule's first line, from 1
}

// Rule says what the variables it matches really are. For each property the first rule that matches and sets it wins.
//
// Groups of Match.Regexp that have a name become labels of the series, except those that Name uses; all of them are one
// property: the first matching rule that has any decides.
type Rule struct {
	Source Source `yaml:"-"`

	Match Match `yaml:"match"`

	Drop  *bool     `yaml:"drop,omitempty"`
	Class ClassName `yaml:"class,omitempty"` // what it really is, where the library declares it otherwise
	Unit  string    `yaml:"unit,omitempty"`  // of the values as read: By, KiBy, s, us, {message}, … or none
	Scale *float64  `yaml:"scale,omitempty"` // factor besides the unit's own

	// Name is the metric's name without mpit_, unit and _total; the class word is not added to it. $1 is what the first
	// * of Match.Name stood for, or the first group of Match.Regexp, $2 the second; ${function} is the group of that name.
	Name string `yaml:"name,omitempty"`
	Help string `yaml:"help,omitempty"` // a sentence for HELP

	Merge     Merge     `yaml:"merge,omitempty"`     // of objects that share a name, and of ranks
	Elements  Elements  `yaml:"elements,omitempty"`  // of an array
	Nonzero   *bool     `yaml:"nonzero,omitempty"`   // with elements peer or index: those alone that are not, or have not always been, 0
	Object    *bool     `yaml:"object,omitempty"`    // false: no label for the object's name, all objects become one
	Companion string    `yaml:"companion,omitempty"` // of a timer: the COUNTER of its events, where it is not the one of the same name
	Buckets   []float64 `yaml:"buckets,omitempty"`   // of a timer's histogram: upper bounds in seconds
	Offset    *bool     `yaml:"offset,omitempty"`    // the source starts anywhere: count from the value at handle allocation
	Rank      RankMode  `yaml:"rank,omitempty"`      // default: that of Settings
}

// compiledRule is a Rule that has been checked.
type compiledRule struct {
	Rule
	versions versionRange
	classes  []mpit.Class // empty: any
	binds    []mpit.Bind  // empty: any
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
	for _, l := range r.Match.Library {
		if !slices.Contains([]string{OpenMPI, MPICH, MVAPICH, IntelMPI, CrayMPICH}, l) {
			return nil, fmt.Errorf("library %q is not known", l)
		}
	}
	for _, name := range r.Match.Class {
		class, ok := classOf(ClassName(name))
		if !ok {
			return nil, fmt.Errorf("class %q to match is none of MPI_T's", name)
		}
		c.classes = append(c.classes, class)
	}
	for _, label := range r.Match.Bind {
		bind, ok := mpit.BindOfLabel(label)
		if !ok && label != "none" { // which is BindNone
			return nil, fmt.Errorf("bind %q is none of MPI_T's", label)
		}
		c.binds = append(c.binds, bind)
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

// property is one of those that rules set: each has its own first rule.
type property uint8

const (
	propDrop property = iota
	propClass
	propUnit
	propScale
	propName
	propHelp
	propLabels
	propMerge
	propElements
	propNonzero
	propObject
	propCompanion
	propBuckets
	propOffset
	propRank
	properties // how many there are
)

// settings is what all matching rules together say of one variable.
type settings struct {
	by [properties]*compiledRule // who has set it; nil: the default

	drop      bool
	class     mpit.Class
	unit      unit
	scale     float64
	name      string
	help      string
	labels    []Label // sorted by name, values clean; of the named groups
	merge     Merge
	elements  Elements
	nonzero   bool
	object    bool // false: no label with the object's name
	companion string
	buckets   []float64 // nil: those of Config
	offset    bool
	rank      RankMode // "": that of Config
}

// forLibrary is the rules that can match variables of lib, in order.
func forLibrary(rules []*compiledRule, lib Library) []*compiledRule {
	var out []*compiledRule
	for _, r := range rules {
		if (len(r.Match.Library) == 0 || slices.Contains(r.Match.Library, lib.Name)) && r.versions.holds(lib.Version) {
			out = append(out, r)
		}
	}
	return out
}

// settingsOf applies rules that forLibrary has chosen. categories are those that v stands in; where they are not known yet, a rule
// that asks for one does not match, and undecided says whether it would have set something if it did.
func settingsOf(rules []*compiledRule, v *mpit.Variable, categories []string, known bool) (s settings, undecided bool) {
	s = settings{class: v.Class, unit: unit{scale: 1}, scale: 1, object: true}
	var drop, class, unit, scale, offset bool
	for _, r := range rules {
		if len(r.classes) > 0 && !slices.Contains(r.classes, v.Class) || len(r.binds) > 0 && !slices.Contains(r.binds, v.Bind) {
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
		if s.rank == "" {
			s.rank = r.Rank
		}
	}
	return s, undecided
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
