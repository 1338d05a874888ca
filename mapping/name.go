package mapping

import (
	"crypto/sha256"
	"encoding/base32"
	"regexp"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Prefix is what all names begin with.
const Prefix = "mpit_"

const (
	// MaxPlainName is how many bytes of a variable's name need no escape.
	MaxPlainName = 160

	maxEscapedName = 96 // bytes of it that an escape keeps
)

var classWords = [...]string{
	mpit.ClassState: "state", mpit.ClassLevel: "level", mpit.ClassSize: "size", mpit.ClassPercentage: "",
	mpit.ClassHighWatermark: "highwatermark", mpit.ClassLowWatermark: "lowwatermark", mpit.ClassCounter: "",
	mpit.ClassAggregate: "aggregate", mpit.ClassTimer: "time", mpit.ClassGeneric: "generic",
}

// shape is what a name is made of besides the variable's own.
type shape struct {
	kind Kind
	otel OTelKind
	word string // class word
	unit string // UCUM
}

// unitWord is the unit's word in the name. OpenTelemetry's translation writes "ratio" for gauges only.
func (s shape) unitWord() string {
	if s.unit == "1" && s.otel != OTelGauge {
		return ""
	}
	return unitWords[s.unit]
}

// tail is what follows the variable's name.
func (s shape) tail() string {
	t := ""
	if s.word != "" {
		t = "_" + s.word
	}
	if u := s.unitWord(); u != "" {
		t += "_" + u
	}
	if s.kind == KindCounter {
		t += "_total"
	}
	return t
}

// tails is every tail that a family of OpenMetrics, where counters have no _total, can have by default, whatever
// rules say of its unit. A COUNTER has none.
var tails = func() []string {
	words := []string{""}
	for _, w := range unitWords {
		words = append(words, "_"+w)
	}
	out := []string{"_ratio"} // PERCENTAGE's: it has no class word, and its unit is always the same
	for _, class := range classWords {
		for _, u := range words {
			if class != "" {
				out = append(out, "_"+class+u)
			}
		}
	}
	return out
}()

// familyNames is a family's name in both schemes.
type familyNames struct{ prometheus, otel string }

// names gives a variable's names by default. They depend on nothing but the variable itself: the plain form is used
// where no other variable could have it, and where neither the linter nor OpenTelemetry's translation would change
// it; otherwise the escaped one.
func (s shape) names(name string, declared mpit.Class) familyNames {
	full := Prefix + name + s.tail()
	repeats := s.word != "" && (name == s.word || strings.HasSuffix(name, "_"+s.word))
	if repeats || len(name) > MaxPlainName || !plainWords.MatchString(name) || !s.owns(full, name) ||
		!s.allowed(name, full) {
		return s.escaped(name, declared)
	}
	return familyNames{full, s.otelName(name, s.word, "")}
}

// named gives the names that a rule chooses. The words that the unit adds anyway are taken out of it.
func (s shape) named(rule, name string, declared mpit.Class) familyNames {
	s.word = ""
	base, full, ok := s.chosen(rule)
	if !ok {
		return s.escaped(name, declared)
	}
	return familyNames{full, s.otelName(base, "", "")}
}

// chosen is a name that a rule chooses, and the family's; ok is false for one that can't stand.
func (s shape) chosen(rule string) (base, full string, ok bool) {
	words := slices.DeleteFunc(split(rule), func(w string) bool {
		return w == s.unitWord() || s.kind == KindCounter && w == "total"
	})
	base = strings.Join(words, "_")
	full = Prefix + base + s.tail()
	return base, full, base != "" && len(base) <= MaxPlainName && s.allowed(base, full)
}

// Named says whether a variable of a class, in a unit, can have the name that a rule chooses: else it gets an escaped
// one.
func Named(rule string, class mpit.Class, unit Unit) bool {
	s := Spec{Plain: Plain{Number: Floating}}
	sh, _ := s.ofClass(Properties{Class: class, Unit: unit}, &mpit.Variable{})
	sh.word = ""
	_, _, ok := sh.chosen(rule)
	return ok
}

// owns says whether the family full belongs to this name: of all variables whose family would be called so in
// OpenMetrics, the shortest name's. So a COUNTER foo_level makes way for a LEVEL foo, although the one's name ends in
// _total.
func (s shape) owns(full, name string) bool {
	family := FamilyName(full, s.kind)
	own := len(family) - len(Prefix) - len(name)
	for _, t := range tails {
		if len(t) > own && strings.HasSuffix(family, t) && len(family)-len(t) > len(Prefix) {
			return false
		}
	}
	return true
}

// allowed says whether a name can stand as it is.
func (s shape) allowed(base, full string) bool {
	for w := range strings.SplitSeq(base, "_") {
		if s.refuses(w) {
			return false
		}
	}
	family := FamilyName(full, s.kind)
	if reservedName(family) {
		return false
	}
	words := strings.Split(family, "_")
	last := words[len(words)-1]
	if s.kind == KindCounter && last == "count" {
		return words[len(words)-2] != "seconds" // or it is a sample of a histogram
	}
	return !reservedEndings[last]
}

// refuses says whether a word cannot stand in a variable's own part of the name.
func (s shape) refuses(word string) bool {
	switch {
	case word == s.unitWord(), s.kind == KindCounter && word == "total": // the translation would move it
		return true
	case s.kind != KindUntyped && word == s.kind.String():
		return true
	}
	return refusedWords[word] || hashWord.MatchString(word)
}

// refusedWords are abbreviated units and those that aren't base units, which the linter refuses anywhere in a name.
var refusedWords = func() map[string]bool {
	const (
		others   = " minutes hours days weeks kelvins fahrenheit rankine inches yards miles bits calories pounds ounces"
		units    = "amperes bytes celsius grams joules kelvin meters metres seconds volts" + others
		prefixes = "pico nano micro milli centi deci deca hecto kilo kibi mega mebi giga gibi tera tebi peta pebi"
	)
	refused := map[string]bool{}
	for word := range strings.FieldsSeq("s ms us ns sec b kb mb gb tb pb m h d" + others) {
		refused[word] = true
	}
	for prefix := range strings.FieldsSeq(prefixes) {
		for unit := range strings.FieldsSeq(units) {
			refused[prefix+unit] = true
		}
	}
	return refused
}()

// escaped is the one escape: the name cleaned, words that can't stand left out, then _x and eight characters that
// stand for the original name and class.
func (s shape) escaped(name string, declared mpit.Class) familyNames {
	words := split(name)
	words = slices.DeleteFunc(words, s.refuses)
	for len(words) > 0 && slices.Contains(reservedWords, words[0]) {
		words = words[1:]
	}
	length := 0
	for i, w := range words {
		if length += len(w) + 1; length > maxEscapedName {
			words = words[:i]
			break
		}
	}
	word := s.word
	if len(words) > 0 && words[len(words)-1] == word {
		word = ""
	}
	base, hash := strings.Join(words, "_"), s.hash(name, declared)
	otel := s.otelName(base, word, hash)
	s.word = ""
	return familyNames{Prefix + joined("_", base, word, hash) + s.tail(), otel}
}

// joined is those parts that aren't empty, with separators between.
func joined(separator string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), separator)
}

// otelName gives the name in OpenTelemetry. Where no class word tells two classes apart, the ending does that the
// translation would add: it does not add it twice. A total says of what it is one, where there is a word for it.
func (s shape) otelName(base, word, hash string) string {
	n := joined(".", "mpit", base, word, hash)
	switch {
	case s.kind == KindCounter && s.word != classWords[mpit.ClassAggregate]:
		if w := s.unitWord(); w != "" {
			n += "." + w
		}
		n += ".total"
	case s.unitWord() == "ratio":
		n += ".ratio"
	}
	return n
}

var hashAlphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func (s shape) hash(name string, declared mpit.Class) string {
	sum := sha256.Sum256([]byte(NameOf(declared) + "\x00" + name))
	return "x" + hashAlphabet.EncodeToString(sum[:5])
}

// hashWord is a word such as an escape adds.
var hashWord = regexp.MustCompile(`\Ax[a-z2-7]{8}\z`)

// plainWords is words of a-z and 0-9, with one underscore between two.
var plainWords = regexp.MustCompile(`\A[a-z0-9]+(_[a-z0-9]+)*\z`)

// split returns the words of any text, in lower case.
func split(s string) []string {
	s = s[:min(len(s), 4096)]
	words := strings.FieldsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
	for i, w := range words {
		words[i] = strings.ToLower(w)
	}
	return words
}

// reservedWords are first words whose names are the exporter's own.
var reservedWords = []string{"exporter", "rank", "pcontrol"}

// reservedName says whether a family, as OpenMetrics calls it, is the exporter's own.
func reservedName(family string) bool {
	switch family {
	case "mpit_process_info", "mpit_pvar_info", "mpit_pvar_category_info", "mpit_cvar_ranks", "mpit_object_info",
		"mpit_objects", "mpit_call_messages", "mpit_call_message_bytes", "mpit_call_collectives",
		"mpit_call_collective_seconds", "mpit_call_running_seconds", "mpit_call_running_info":
		return true
	}
	for _, w := range reservedWords {
		if strings.HasPrefix(family, Prefix+w+"_") || family == Prefix+w {
			return true
		}
	}
	return false
}

// reservedEndings are the endings that formats give to parts of a family, or the linter keeps for other kinds.
var reservedEndings = map[string]bool{
	"total": true, "created": true, "bucket": true, "sum": true, "count": true, "info": true, "gsum": true,
	"gcount": true,
}
