package mapping

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// NoUnit is what a rule writes to say that a variable has no unit, against a later rule that gives one.
const NoUnit = "none"

// Unit is a unit as rules write it.
type Unit struct {
	Base  string  // UCUM, as OpenTelemetry wants it
	Scale float64 // a value times this is in base units
}

// String is the unit as a rule would write it.
func (u Unit) String() string {
	for name, known := range units {
		if known == u {
			return name
		}
	}
	return cmp.Or(u.Base, NoUnit)
}

var units = map[string]Unit{
	"By": {"By", 1}, "KiBy": {"By", 1 << 10}, "MiBy": {"By", 1 << 20}, "GiBy": {"By", 1 << 30},
	"kBy": {"By", 1e3}, "MBy": {"By", 1e6}, "GBy": {"By", 1e9},
	"s": {"s", 1}, "ms": {"s", 1e-3}, "us": {"s", 1e-6}, "ns": {"s", 1e-9}, "min": {"s", 60}, "h": {"s", 3600},
	"1": {"1", 1}, "%": {"1", 0.01},
	"J": {"J", 1}, "W": {"W", 1}, "V": {"V", 1}, "A": {"A", 1}, "Hz": {"Hz", 1}, "Cel": {"Cel", 1},
}

// unitWords is the word of each base unit in names; what is merely counted, such as {message}, has none.
var unitWords = map[string]string{
	"By": "bytes", "s": "seconds", "1": "ratio",
	"J": "joules", "W": "watts", "V": "volts", "A": "amperes", "Hz": "hertz", "Cel": "celsius",
}

// UnitWords is the words of units in names: "bytes", "seconds" …
func UnitWords() []string { return slices.Sorted(maps.Values(unitWords)) }

// UnitOf reads a unit as rules write it: "" and NoUnit are none, {message} is what is counted.
func UnitOf(s string) (Unit, bool) {
	if s == "" || s == NoUnit {
		return Unit{Scale: 1}, true
	}
	if u, ok := units[s]; ok {
		return u, true
	}
	if len(s) > 2 && len(s) <= 32 && s[0] == '{' && s[len(s)-1] == '}' &&
		!strings.ContainsAny(s[1:len(s)-1], "{}/\n\"\\") {
		return Unit{s, 1}, true
	}
	return Unit{}, false
}
