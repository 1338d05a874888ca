package mapping

import (
	"cmp"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// NoCompanion as Rule.Companion says that a timer has none, even where a counter has its name.
const NoCompanion = "none"

// Mode is how a variable's values are treated.
type Mode uint8

// The ways to treat values.
const (
	ModePresent   Mode = iota // present values: LEVEL, SIZE, PERCENTAGE, GENERIC
	ModeWatermark             // present values, of freed objects as well
	ModeCount                 // what only grows
	ModeState                 // an item of an enumeration
)

// Spec is what one variable becomes. Ranks share it, so nobody changes one that others may have.
type Spec struct {
	Plain
	Labels  []Label   // that rules give, sorted by name
	Buckets []float64 // upper bounds of a histogram, in its unit
	Items   []Item    // of a STATE's enumeration; nil: only the present value is shown
}

// Plain is what of a Spec can be compared as it stands. A reload that changes a field begins such series anew, but for
// those that variables.Variable's meaning leaves out.
type Plain struct {
	Metric    *Metric    // nil: left out
	Mode      Mode       // how values are treated
	Real      mpit.Class // the class that it really is
	Number    Number     // how the words of a sample are read
	Bits      uint       // of a value; 64 of a distribution's sum
	Scale     float64    // a value times this is shown; of a PERCENTAGE, that is what must be from 0 to 1
	Structure            // which values have a cell of their own
	Objects   Merge      // of objects that share a name
	Elements  Merge      // of elements, where they have no label
	Nonzero   bool       // what is 0, and always has been, has no cell
	Offset    bool       // the source starts anywhere: a handle counts from its first value
	Open      bool       // to be opened, where that needs a request
	Exact     bool       // a distribution
	Companion string     // of a timer that is a histogram: name of the COUNTER, "" none
	Unit      string     // UCUM, merely counted things as well
}

// Structure says which values have a cell of their own. A timer and its companion have the same.
type Structure struct {
	Separate bool   // objects that share a name are not merged
	Each     string // label of an element's number, "" where elements are merged
	Numbered bool   // it has that label because of its class: one element alone needs none
	Label    string // label of the object's name; "" not bound, or all objects in one
}

// Item is a value of an enumeration, with a name that no other one has.
type Item struct {
	Value int64
	Name  string
}

// Wanted is the family that a variable asks for, without its HELP yet, and what HELP is made of.
type Wanted struct {
	Metric
	set  Properties
	note string
}

// Properties is what rules say of one variable: of each property the first rule that matches and sets it.
type Properties struct {
	Drop      bool
	Class     mpit.Class
	Unit      Unit
	Scale     float64
	Name      string
	Help      string
	Labels    []Label // sorted by name, values clean; of the named groups
	Variables string  // those that get labels from the same rule, in words
	Merge     Merge
	Elements  Merge
	Nonzero   bool
	Object    bool // false: no label with the object's name
	Companion string
	Buckets   []float64 // nil: those of Basis
	Offset    bool
	Open      bool
}

// Become says what v becomes, given what the rules say of it: everything but its metric. Companion is what a timer asks
// for, whether or not that variable exists. With a Reason, v is left out; the Spec still holds for ReasonRule, because
// a counter that isn't shown can be a timer's companion.
func (b *Basis) Become(set Properties, v *mpit.Variable) (Spec, Wanted, Reason) {
	s := Spec{Labels: set.Labels, Buckets: set.Buckets, Plain: Plain{
		Real: set.Class, Number: NumberOf(v.Datatype), Bits: 64, Scale: set.Unit.Scale * set.Scale,
		Open: set.Open, Unit: set.Unit.Base, Objects: MergeSum, Elements: MergeSum,
	}}
	if v.DatatypeBytes > 0 && v.DatatypeBytes < 8 && !v.Distribution {
		s.Bits = uint(8 * v.DatatypeBytes)
	}
	switch {
	case s.Buckets != nil:
	case v.Distribution && set.Class == mpit.ClassAggregate:
		s.Buckets = b.Sizes
	case v.Distribution:
		s.Buckets = b.Exact
	default:
		s.Buckets = b.Buckets
	}
	s.Offset = set.Offset || v.OnRequest // of these, too, nobody knows what there was before the handle
	if set.Object {
		s.Label = BindLabel(v.Bind)
	}
	sh, note := s.ofClass(set, v)
	s.merge(set)
	if reason := s.unfit(set, v); reason != "" {
		return s, Wanted{}, reason
	}
	n, measure := sh.names(v.Name, v.Class), s.Unit
	if set.Name != "" {
		n = sh.named(set.Name, v.Name, v.Class)
	}
	if s.Mode == ModeState {
		measure = "states"
	}
	metric := Metric{Name: n.prometheus, OTelName: n.otel, Unit: sh.unit, Kind: sh.kind, OTelKind: sh.otel,
		Measure: measure}
	return s, Wanted{Metric: metric, set: set, note: note}, ""
}

// unfit says why v is left out, whatever others there are; "": it isn't.
func (s *Spec) unfit(set Properties, v *mpit.Variable) Reason {
	switch {
	case set.Drop:
		return ReasonRule
	case v.Distribution && (v.Class != mpit.ClassTimer && v.Class != mpit.ClassAggregate ||
		v.Datatype != mpit.DatatypeUint64):
		return ReasonDistribution
	case s.Number != NotNumber:
		return ""
	case v.Datatype == mpit.DatatypeChar && v.Class == mpit.ClassGeneric:
		return ReasonGenericString
	}
	return ReasonDatatype
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
		if s.Exact = v.Distribution; s.Exact {
			sh.kind, sh.otel = KindHistogram, OTelHistogram
		}
	case mpit.ClassTimer:
		s.Mode, s.Exact = ModeCount, v.Distribution
		switch {
		case sh.unit == "s" || sh.unit == "" && s.Number == Floating:
			sh.kind, sh.otel, sh.unit = KindHistogram, OTelHistogram, "s"
			s.Unit = "s"
			if s.Companion = cmp.Or(set.Companion, v.Name); s.Companion == NoCompanion {
				s.Companion = ""
			}
		default:
			sh.kind, sh.otel = KindCounter, OTelSum
			if sh.unit == "" {
				note, s.Offset = "The unit of this time is not known.", v.OnRequest // nor what an offset would be
			}
		}
	default:
		s.Objects, s.Numbered, sh.kind, sh.word = MergeEach, true, KindUntyped, classWords[mpit.ClassGeneric]
	}
	return sh, note
}

// merge applies what rules say of objects and elements to what the class says of itself.
func (s *Spec) merge(set Properties) {
	switch set.Merge {
	case MergeEach:
		s.Objects = MergeEach
	case MergeSum, MergeMax, MergeMin:
		if s.Mode != ModeCount && s.Mode != ModeState { // what counts has no other merge than its sum
			s.Objects = set.Merge
		}
	}
	s.Separate = s.Separate || s.Objects == MergeEach
	switch set.Elements {
	case MergePeer, MergeIndex:
		taken := func(l Label) bool { return l.Name == string(set.Elements) } // a rule has given a label peer
		if !slices.ContainsFunc(s.Labels, taken) {
			s.Each, s.Numbered = string(set.Elements), false
		}
	case MergeSum, MergeMax, MergeMin:
		if s.Mode != ModeCount {
			s.Elements = set.Elements
		}
		s.Numbered = s.Numbered && s.Mode == ModeState
	}
	if s.Numbered {
		s.Each = string(MergeIndex)
	}
	if s.Mode != ModeState && s.Label == "" {
		s.Separate = false // not bound, or a rule says that all objects become one
	}
	s.Nonzero = set.Nonzero && !s.Numbered && s.Mode != ModeState
}

// Sizes says whether the variable is a distribution of sizes in bytes.
func (s *Spec) Sizes() bool { return s.Exact && s.Real == mpit.ClassAggregate }

// Merged says whether the elements of a handle that has so many become one.
func (s *Spec) Merged(elements int) bool { return s.Each == "" || s.Numbered && elements == 1 }

// Lasts says whether what freed objects leave stays.
func (s *Spec) Lasts() bool { return s.Mode == ModeCount || s.Mode == ModeWatermark }

// Among is how watermarks of freed objects become one.
func (s *Spec) Among() Merge {
	switch {
	case s.Objects != MergeEach:
		return s.Objects
	case s.Real == mpit.ClassLowWatermark:
		return MergeMin
	}
	return MergeMax
}
