package rules

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	maxLabelText = 128 // bytes of the value of a label that a rule gives
	maxGroups    = 16  // so many labels may a rule give
)

// compiledRule is a Rule that has been checked.
type compiledRule struct {
	Rule
	versions versionRange
	classes  []mpit.Class   // empty: any
	declared uint16         // a bit for each of classes
	binds    []mpit.Bind    // empty: any
	levels   uint16         // a bit for each level of verbosity; 0: any, also one that isn't known
	name     *regexp.Regexp // nil: any
	prefix   string         // all names that match begin so
	whole    bool           // prefix is the only one

	sets     [propertyCount]bool
	real     mpit.Class // Class
	unit     mapping.Unit
	groups   []groupLabel
	labelled string // the variables that get these labels, in words
}

// groupLabel is a named group that becomes a label.
type groupLabel struct {
	label string
	group int
}

// compileRule checks what a rule says, each key for itself and with what it refers to. checkRule says whether a rule in
// which nothing is found makes sense as a whole.
func compileRule(r Rule) (*compiledRule, findings) {
	c := &compiledRule{Rule: r, real: mpit.ClassUnknown, unit: mapping.Unit{Scale: 1}}
	var found findings
	c.compileMatch(found.note)
	c.compileProperties(found.note)
	return c, found
}

func (r *compiledRule) compileMatch(note func(key string, err error) bool) {
	var err error
	m := &r.Match
	each := func(key string, words List, check func(word string) error) {
		for i, w := range words {
			note(fmt.Sprintf("%s[%d]", key, i), check(w))
		}
	}
	each("match.library", m.Library, func(w string) error { return checkWord("library", w, Libraries()...) })
	r.versions, err = parseRange(m.Version)
	note("match.version", err)
	each("match.class", m.Class, func(w string) error {
		class, err := parseClass(w)
		r.classes = append(r.classes, class)
		r.declared |= 1 << class
		return err
	})
	each("match.bind", m.Bind, func(w string) error {
		bind, ok := mpit.BindOfLabel(w)
		if !ok && w != "none" { // which is BindNone
			return complain(oneOf(bindWords()), "bind %q is none of MPI_T's", w)
		}
		r.binds = append(r.binds, bind)
		return nil
	})
	each("match.verbosity", m.Verbosity, func(w string) error {
		level := slices.Index(verbosityWords(), w)
		if level < 0 {
			return complain(oneOf(verbosityWords()), "verbosity %q is none of MPI_T's", w)
		}
		r.levels |= 1 << (level + int(mpit.VerbosityUserBasic))
		return nil
	})
	switch {
	case m.Name != "" && m.Regexp != "":
		note("match.regexp", complain("keep one of the two, or write two rules", "there is a name to match as well"))
	case m.Name != "":
		if len(m.Name) > maxGlob {
			note("match.name", complain("write a shorter one", "the pattern has %d bytes, at most %d are read",
				len(m.Name), maxGlob))
			return
		}
		r.name = Glob(m.Name)
		r.prefix, r.whole = regexp.MustCompile(globExpression(m.Name)).LiteralPrefix()
	case m.Regexp != "":
		if r.name, err = wholeExpression(m.Regexp); note("match.regexp", err) {
			r.prefix, _ = regexp.MustCompile(m.Regexp).LiteralPrefix()
		}
	}
}

func (r *compiledRule) compileProperties(note func(key string, err error) bool) {
	for p := range properties {
		if of := &properties[p]; of.check != nil && of.isSet(r) {
			note(of.name, of.check(r))
		}
	}
	r.compileGroups(note)
	for p := range properties {
		r.sets[p] = properties[p].isSet(r)
	}
}

// knowsGroups says whether it is known which groups there are: they aren't where the pattern is bad.
func (r *compiledRule) knowsGroups() bool {
	return r.name != nil || r.Match.Name == "" && r.Match.Regexp == ""
}

func (r *compiledRule) checkName() error {
	if !r.knowsGroups() {
		return nil
	}
	return cmp.Or(checkTemplate(r.Name, r.name), checkName(r.Name))
}

func (r *compiledRule) checkCompanion() error {
	if len(r.Companion) > maxPattern {
		return complain("write the COUNTER's name", "the companion's name has %d bytes", len(r.Companion))
	}
	if !r.knowsGroups() {
		return nil
	}
	return checkTemplate(r.Companion, r.name)
}

// compileGroups makes labels of the pattern's named groups that the name doesn't use.
func (r *compiledRule) compileGroups(note func(key string, err error) bool) {
	if r.Match.Regexp == "" || r.name == nil {
		return
	}
	used, names := map[int]bool{}, []string(nil)
	expand(r.Name, func(ref string) string {
		used[groupNumber(ref, r.name)] = true
		return ""
	})
	for i, name := range r.name.SubexpNames() {
		if name == "" || used[i] {
			continue
		}
		if slices.Contains(names, name) {
			note("match.regexp", complain("give each its own name", "two groups are called %q", name))
			continue
		}
		r.groups, names = append(r.groups, groupLabel{name, i}), append(names, name)
		note("match.regexp", checkLabel(name))
	}
	if len(names) > 0 {
		r.labelled = mapping.Fold(r.prefix, 200) + "…, one for each " + strings.Join(names, ", ")
	}
	if len(r.groups) > maxGroups {
		note("match.regexp", complain("use (?:…) for those that are to be no labels",
			"%d named groups would be labels; at most %d may", len(r.groups), maxGroups))
	}
}

func parseClass(name string) (mpit.Class, error) {
	class := slices.Index(classWords(), name)
	if class < 0 {
		return mpit.ClassUnknown, complain(oneOf(classWords()), "class %q is none of MPI_T's", name)
	}
	return mpit.Class(class), nil
}

// words are the names of a vocabulary's numbers from first to last, as rules write them.
func words[T ~uint8](first, last T, name func(T) string) (list []string) {
	for x := first; x <= last; x++ {
		list = append(list, name(x))
	}
	return list
}

func classWords() []string { return words(0, mpit.ClassGeneric, mapping.NameOf) }

func bindWords() []string {
	return append([]string{"none"}, words(mpit.BindComm, mpit.BindLast, mpit.Bind.Label)...)
}

// verbosityWords begins with the lowest.
func verbosityWords() []string {
	return words(mpit.VerbosityUserBasic, mpit.VerbosityMPIDevAll,
		func(v mpit.Verbosity) string { return strings.ToLower(v.String()) })
}

// unitList is the units that rules may give, besides what is counted.
const unitList = "By, KiBy, MiBy, GiBy, kBy, MBy, GBy, s, ms, us, ns, min, h, 1, %, J, W, V, A, Hz, Cel, none"

func parseUnit(s string) (mapping.Unit, error) {
	if u, ok := mapping.UnitOf(s); ok {
		return u, nil
	}
	return mapping.Unit{}, complain("write one of "+unitList+", or what is counted: {message}",
		"unit %q is none of UCUM's that metrics have", s)
}

// Libraries are the names of libraries that rules can match.
func Libraries() []string {
	return []string{mapping.OpenMPI, mapping.MPICH, mapping.MVAPICH, mapping.IntelMPI, mapping.CrayMPICH}
}

// checkWord checks one of a few words; "" is not set.
func checkWord[T ~string](key string, word T, known ...T) error {
	if word == "" || slices.Contains(known, word) {
		return nil
	}
	words := make([]string, len(known))
	for i, k := range known {
		words[i] = string(k)
	}
	return complain(oneOf(words), "%s %q is not known", key, string(word))
}

// withAnyGroups is what a name may become.
func withAnyGroups(name string) string { return expand(name, func(string) string { return "x" }) }

var plainName = regexp.MustCompile(`\A[a-z0-9_]*[a-z0-9][a-z0-9_]*\z`)

// checkName checks the name that a rule gives to a metric, as far as that doesn't depend on the variable's class.
func checkName(name string) error {
	switch {
	case len(name) > mapping.MaxPlainName:
		return complain(fmt.Sprintf("write at most %d", mapping.MaxPlainName), "the name has %d bytes", len(name))
	case !plainName.MatchString(withAnyGroups(name)), strings.HasPrefix(name, mapping.Prefix),
		strings.HasSuffix(name, "_total"):
		return badName(name, "metric")
	}
	return nil
}

// badName says that a name can't be one of what there is.
func badName(name, what string) error {
	return complain("write small letters, digits and _, without what the exporter puts before names (mpit_) and behind "+
		"them (_total), what it has itself (exporter_…, …_bucket), short and derived units (ms, minutes), the metric's "+
		"kind (gauge) and, if it doesn't only grow, _count", "name %q can't be a %s's", name, what)
}

var validLabel = regexp.MustCompile(`\A[a-zA-Z_][a-zA-Z0-9_]{0,63}\z`)

// reservedLabels are those that the exporter or a scraper gives itself, besides those with the name of an object.
var reservedLabels = []string{
	"jobid", "world", "user", "rank", "dup", "job", "instance", "le", "quantile", "state", "index", "object", "bound",
}

// checkLabel checks the name of a label that a rule gives.
func checkLabel(name string) error {
	if _, bound := mpit.BindOfLabel(name); bound || slices.Contains(reservedLabels, name) ||
		strings.HasPrefix(name, "__") || !validLabel.MatchString(name) {
		return complain("give the group another name, such as what",
			"group %q: no label can have this name, or the exporter or Prometheus gives it", name)
	}
	return nil
}
