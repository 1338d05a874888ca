package mapping

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	defaultTimerInterval = 10 * time.Second
	maxBuckets           = 64

	// exactNote is what HELP says of a distribution.
	exactNote = "The durations are single ones, measured by the agent and counted in buckets of powers of two."
)

// NoCompanion as Rule.Companion says that a timer has none, even where a counter has its name.
const NoCompanion = "none"

// mode is how a variable's values are treated.
type mode uint8

const (
	ModeGauge     mode = iota // present values
	ModeWatermark             // present values, of freed objects as well
	ModeCount                 // what only grows
	ModeState
)

// spec is what one variable becomes. Those of ranks are shared (shared.go).
type Spec struct {
	Plain
	Labels  []Label // that rules give, sorted by name
	Buckets []float64
	Items   []item // of a STATE
}

// plain is what of a spec can be compared as it stands.
type Plain struct {
	Metric *Metric // nil: left out
	Mode   mode
	Real   mpit.Class
	Number Number
	Bits   uint
	Scale  float64
	Structure
	Objects   Merge
	Elements  Merge
	Nonzero   bool // of the elements, those alone that are or have been something else than 0
	Ranks     RankMode
	Across    Merge // of ranks
	Offset    bool
	Open      bool   // to be opened, where that needs a request
	Exact     bool   // a distribution
	Companion string // of a timer that is a histogram: name of the COUNTER, "" none
	Unit      string // UCUM, merely counted things as well
}

// structure says which values have a cell of their own. A timer and its companion have the same.
type Structure struct {
	Separate bool   // objects that share a name are not merged
	Each     string // label of an element's number, "" where elements are merged
	Numbered bool   // it has that label because of its class: one element alone needs none
	Label    string // label of the object's name; "" not bound, or all objects in one
}

// Basis is what holds for every variable of which no rule says otherwise.
type Basis struct {
	Ranks    RankMode
	Interval time.Duration // least time between two observations of a timer whose durations are estimated
	Buckets  []float64     // of such timers' histograms, upper bounds in seconds
	Exact    []float64     // the same of distributions
}

// NewBasis fills in defaults: "" is RankKeep, an interval of 0 is 10 s, nil buckets are DefaultBuckets.
func NewBasis(ranks RankMode, interval time.Duration, buckets []float64) (*Basis, error) {
	b := &Basis{Ranks: cmp.Or(ranks, RankKeep), Interval: cmp.Or(interval, defaultTimerInterval), Buckets: DefaultBuckets(), Exact: distributionBounds()}
	if !slices.Contains(rankModes[:], b.Ranks) {
		return nil, fmt.Errorf("rank of variables: %q is none of %s, %s, %s", b.Ranks, RankKeep, RankNode, RankBoth)
	}
	if b.Interval < 0 {
		return nil, fmt.Errorf("timer interval %v is below zero", b.Interval)
	}
	if buckets != nil {
		b.Buckets = slices.Clone(buckets)
	}
	if err := CheckBuckets(b.Buckets); err != nil {
		return nil, fmt.Errorf("buckets of timers: %w", err)
	}
	return b, nil
}

// wanted is the family that a variable asks for, without its HELP yet, and what HELP is made of.
type Wanted struct {
	Metric
	set  Properties
	note string
}

// become says what a variable becomes of which rules say that, all but its metric: companion is what a timer asks for,
// whether it is there or not. With a reason it becomes none; the rest still holds for ReasonRule, since a counter that
// isn't shown can be a timer's companion.
func (b *Basis) Become(set Properties, v *mpit.Variable) (Spec, Wanted, Reason) {
	s := Spec{Labels: set.Labels, Buckets: set.Buckets, Plain: Plain{
		Real: set.Class, Number: NumberOf(v.Datatype), Bits: 64, Scale: set.Unit.Scale * set.Scale,
		Ranks: set.Rank, Open: set.Open, Unit: set.Unit.Base, Objects: MergeSum, Elements: MergeSum,
	}}
	if v.DatatypeBytes > 0 && v.DatatypeBytes < 8 {
		s.Bits = uint(8 * v.DatatypeBytes)
	}
	switch {
	case s.Buckets != nil:
	case v.Distribution:
		s.Buckets = b.Exact
	default:
		s.Buckets = b.Buckets
	}
	s.Offset = set.Offset || v.OnRequest // of these, too, nobody knows what there was before the handle
	if s.Ranks == "" {
		s.Ranks = b.Ranks
	}
	if set.Object {
		s.Label = BindLabel(v.Bind)
	}
	sh, note := s.ofClass(set, v)
	s.merge(set)
	switch {
	case set.Drop:
		return s, Wanted{}, ReasonRule
	case v.Distribution && checkDistribution(v) != "":
		return s, Wanted{}, checkDistribution(v)
	case s.Number == NotNumber && v.Datatype == mpit.DatatypeChar && v.Class == mpit.ClassGeneric:
		return s, Wanted{}, ReasonGenericString
	case s.Number == NotNumber:
		return s, Wanted{}, ReasonDatatype
	}
	var n familyNames
	if set.Name != "" {
		n = sh.named(set.Name, v.Name, v.Class)
	} else {
		n = sh.names(v.Name, v.Class)
	}
	return s, Wanted{
		Metric: Metric{
			Name: n.prometheus, OTelName: n.otel, Unit: sh.unit, Kind: sh.kind, OTelKind: sh.otel, Monotonic: s.Mode == ModeCount,
			Measure: s.Measure(),
		},
		set:  set,
		note: note,
	}, ""
}

// ofClass is what the class says: how the values count, merge and are shown, and what is to be noted in HELP. This is
// the table of docs/mapping.md, Kind and name.
func (s *Spec) ofClass(set Properties, v *mpit.Variable) (sh shape, note string) {
	sh = shape{otel: OTelGauge, unit: set.Unit.Base}
	if int(set.Class) < len(classWords) {
		sh.word = classWords[set.Class]
	}
	switch set.Class {
	case mpit.ClassState:
		s.Mode, s.Separate, s.Numbered, sh.otel, sh.unit = ModeState, true, true, OTelSum, ""
	case mpit.ClassLevel, mpit.ClassSize:
		sh.otel = OTelSum
	case mpit.ClassPercentage:
		s.Objects, s.Elements, sh.unit = MergeMax, MergeMax, "1"
	case mpit.ClassHighWatermark:
		s.Mode, s.Objects, s.Elements = ModeWatermark, MergeMax, MergeMax
	case mpit.ClassLowWatermark:
		s.Mode, s.Objects, s.Elements = ModeWatermark, MergeMin, MergeMin
	case mpit.ClassCounter:
		s.Mode, sh.kind, sh.otel = ModeCount, KindCounter, OTelSum
		if unitWords[sh.unit] != "" {
			sh.unit = "" // never in a counter's name; HELP has it
		}
	case mpit.ClassAggregate:
		s.Mode, sh.kind, sh.otel = ModeCount, KindCounter, OTelSum
	case mpit.ClassTimer:
		if s.Mode, s.Exact = ModeCount, v.Distribution; s.Exact {
			s.Bits = 64
		}
		switch {
		case sh.unit == "s" || sh.unit == "" && s.Number == Floating:
			sh.kind, sh.otel, sh.unit = KindHistogram, OTelHistogram, "s"
			s.Unit = "s"
			if s.Companion = set.Companion; s.Companion == "" {
				s.Companion = v.Name
			}
			if s.Companion == NoCompanion {
				s.Companion = ""
			}
		default:
			sh.kind, sh.otel = KindCounter, OTelSum
			if sh.unit == "" {
				note = "The unit of this time is not known."
			}
		}
	default:
		s.Objects, s.Numbered, sh.kind, sh.word = MergeEach, true, KindUntyped, classWords[mpit.ClassGeneric]
	}
	return sh, note
}

// merge applies what rules say of objects, elements and ranks to what the class says of itself.
func (s *Spec) merge(set Properties) {
	switch set.Merge {
	case MergeEach:
		s.Objects = MergeEach
	case MergeSum, MergeMax, MergeMin, MergeMean:
		if s.Mode != ModeCount && s.Mode != ModeState { // what counts has no other merge than its sum
			s.Objects = set.Merge
		}
	}
	s.Across = s.Objects // of a STATE the sum: the number of ranks that are in it
	s.Separate = s.Separate || s.Objects == MergeEach
	switch set.Elements {
	case ElementsPeer, ElementsIndex:
		s.Each, s.Numbered = string(set.Elements), false
	case ElementsSum, ElementsMax, ElementsMin, ElementsMean:
		if s.Mode != ModeCount {
			s.Elements = Merge(set.Elements)
		}
		s.Numbered = s.Numbered && s.Mode == ModeState
	}
	if s.Numbered {
		s.Each = string(ElementsIndex)
	}
	if s.Mode != ModeState && s.Label == "" {
		s.Separate = false // not bound, or a rule says that all objects become one
	}
	if s.Across == MergeEach {
		s.Ranks = RankKeep
	}
	s.Nonzero = set.Nonzero && s.Each != "" && !s.Numbered && s.Mode != ModeState
}

// observations says in words what the observations of a timer's histogram are.
func (b *Basis) observations(companion string) string {
	if companion != "" {
		return fmt.Sprintf("The sum is exact, the count that of the events (COUNTER %s); the events of an interval of %v or more stand at their mean duration.",
			Fold(companion, 100), b.Interval)
	}
	return fmt.Sprintf("The sum is exact; an observation is the time gained in an interval of %v or more, so the count is of intervals in which the timer moved.", b.Interval)
}

// help is HELP of a variable whose companion has been found, or is not asked for any more.
func (b *Basis) Help(v *mpit.Variable, s *Spec, want *Wanted) string {
	note := want.note
	switch {
	case s.Exact:
		note = exactNote
	case want.Kind == KindHistogram:
		note = b.observations(s.Companion)
	}
	return helpText(v, want.set, s.Unit, note)
}

// onRequestNote is what HELP says of a variable that is opened on request only.
const onRequestNote = "Opened on request: counting begins with exec --monitoring or when a rule asks (open: true)."

// helpText is HELP: what the library says, then what the variable is called there.
func helpText(v *mpit.Variable, set Properties, unit, note string) string {
	parts := make([]string, 0, 6)
	add := func(s string) {
		if s = strings.TrimSpace(s); s == "" {
			return
		}
		if !strings.ContainsAny(s[len(s)-1:], ".!?") && !strings.HasSuffix(s, "…") {
			s += "."
		}
		parts = append(parts, s)
	}
	add(Fold(v.Description, MaxDescription))
	what := "MPI_T variable " + Fold(v.Name, 200) + ", class " + strings.ToUpper(NameOf(v.Class))
	if set.Class != v.Class {
		what += " (really " + strings.ToUpper(NameOf(set.Class)) + ")"
	}
	if unit != "" {
		what += ", unit " + unit
	}
	add(what)
	add(note)
	if v.OnRequest {
		add(onRequestNote)
	}
	add(Fold(set.Help, MaxDescription))
	return strings.Join(parts, " ")
}

// measure is what values of the variable are of: its unit, or that they are states.
func (s *Spec) Measure() string {
	if s.Mode == ModeState {
		return "states"
	}
	return s.Unit
}

func CheckBuckets(b []float64) error {
	if len(b) == 0 || len(b) > maxBuckets {
		return fmt.Errorf("%d bounds; there must be 1 to %d", len(b), maxBuckets)
	}
	for i, x := range b {
		if math.IsNaN(x) || math.IsInf(x, 0) || x <= 0 {
			return fmt.Errorf("bound %v is not a number above zero", x)
		}
		if i > 0 && x <= b[i-1] {
			return errors.New("bounds must rise")
		}
	}
	return nil
}

// DefaultBuckets are the upper bounds of timers' histograms in seconds: 1 µs and each time four times more, up to
// about a minute. They are to hold both a single call's duration and the time gained in one interval.
func DefaultBuckets() []float64 {
	return []float64{
		0.000001, 0.000004, 0.000016, 0.000064, 0.000256, 0.001024, 0.004096, 0.016384, 0.065536, 0.262144, 1.048576,
		4.194304, 16.777216, 67.108864,
	}
}

// distributionBounds are the upper bounds of distributions' histograms in seconds, if no rule says otherwise: every
// second power of two from about a microsecond to 16 s.
func distributionBounds() []float64 {
	var bounds []float64
	for exponent := -20; exponent <= 4; exponent += 2 {
		bounds = append(bounds, math.Ldexp(1, exponent))
	}
	return bounds
}

// checkDistribution says why a variable can't be the distribution that it says it is; "": it can.
func checkDistribution(v *mpit.Variable) Reason {
	if v.Class != mpit.ClassTimer || v.Datatype != mpit.DatatypeUint64 {
		return ReasonDistribution
	}
	return ""
}

// ratioFamily is the family of a level's or a high watermark's share of the SIZE of the same name.
func RatioFamily(name string, high bool) *Wanted {
	sh := shape{otel: OTelGauge, unit: "1", ratio: true}
	class, word := mpit.ClassLevel, "level"
	if high {
		class, word = mpit.ClassHighWatermark, "high watermark"
		sh.word = classWords[class]
	}
	full := Prefix + name + sh.tail()
	n := familyNames{full, sh.otelName(name, sh.word, "")}
	if len(name) > MaxPlainName || !plainWords(name) || !sh.owns(full, name) || !sh.allowed(name, full) {
		n = sh.escaped(name, class)
	}
	return &Wanted{Metric: Metric{
		Name: n.prometheus, OTelName: n.otel, Unit: "1", OTelKind: OTelGauge, Measure: "1",
		Help: fmt.Sprintf("Share of the %s in the size, the largest of all objects. MPI_T variables %s.", word, Fold(name, 200)),
	}}
}

// ratioOf is what the share of a part in the SIZE of the same name becomes.
func RatioOf(part *Spec, metric *Metric) Spec {
	mode := ModeGauge
	if part.Mode == ModeWatermark {
		mode = ModeWatermark
	}
	return Spec{Labels: part.Labels, Plain: Plain{
		Metric: metric, Mode: mode, Scale: 1, Objects: MergeMax, Structure: Structure{Label: part.Label},
		Ranks: part.Ranks, Across: MergeMax,
	}}
}

// merged says whether the elements of a handle that has so many become one.
func (s *Spec) Merged(elements int) bool { return s.Each == "" || s.Numbered && elements == 1 }

// lasts says whether what freed objects leave stays.
func (s *Spec) Lasts() bool { return s.Mode == ModeCount || s.Mode == ModeWatermark }

// among is how watermarks of freed objects become one.
func (s *Spec) Among() Merge {
	switch {
	case s.Objects != MergeEach && s.Objects != MergeMean:
		return s.Objects
	case s.Real == mpit.ClassLowWatermark:
		return MergeMin
	}
	return MergeMax
}

// item is a value of an enumeration.
type item struct {
	Value int64
	Name  string
}

// unknownSpecs are of variables of each class of which nobody knows yet what they become.
var unknownSpecs = func() (specs [len(classNames) + 1]*Spec) {
	for class := range specs {
		specs[class] = &Spec{Plain: Plain{Real: mpit.Class(class)}}
	}
	specs[len(classNames)].Real = mpit.ClassUnknown
	return specs
}()

// unknown is the spec of a variable of which nobody knows yet what it becomes.
func Unknown(class mpit.Class) *Spec { return unknownSpecs[min(int(class), len(classNames))] }
