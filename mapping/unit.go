package mapping

import "strings"

// NoUnit is what a rule writes to say that a variable has no unit, against a later rule that gives one.
const NoUnit = "none"

// unit is a unit of rules: what it is in base units, and the word a name gets for it.
type unit struct {
	base  string // UCUM, as OpenTelemetry wants it
	scale float64
}

var units = map[string]unit{
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

func parseUnit(s string) (unit, error) {
	if s == "" || s == NoUnit {
		return unit{scale: 1}, nil
	}
	if u, ok := units[s]; ok {
		return u, nil
	}
	if len(s) > 2 && len(s) <= 32 && s[0] == '{' && s[len(s)-1] == '}' && !strings.ContainsAny(s[1:len(s)-1], "{}/\n\"\\") {
		return unit{s, 1}, nil
	}
	const list = "By, KiBy, MiBy, GiBy, kBy, MBy, GBy, s, ms, us, ns, min, h, 1, %, J, W, V, A, Hz, Cel, none, or what is counted: {message}"
	if u := unitsInWords[strings.TrimSuffix(strings.ToLower(s), "s")]; u != "" {
		return unit{}, complain("write "+u, "unit %q is none of UCUM's", s)
	}
	return unit{}, complain("write one of "+list, "unit %q is none of UCUM's that metrics have", s)
}

// unitsInWords is what others call units, without an s at the end.
var unitsInWords = map[string]string{
	"byte": "By", "b": "By", "kib": "KiBy", "mib": "MiBy", "gib": "GiBy", "kb": "kBy", "mb": "MBy", "gb": "GBy",
	"kibibyte": "KiBy", "mebibyte": "MiBy", "gibibyte": "GiBy", "kilobyte": "kBy", "megabyte": "MBy", "gigabyte": "GBy",
	"second": "s", "sec": "s", "millisecond": "ms", "msec": "ms", "microsecond": "us", "usec": "us", "µ": "us", "μ": "us",
	"nanosecond": "ns", "nsec": "ns", "minute": "min", "hour": "h", "percent": `"%"`, "ratio": `"1"`,
	"message": `"{message}"`, "call": `"{call}"`, "packet": `"{packet}"`, "joule": "J", "watt": "W", "volt": "V", "ampere": "A", "hertz": "Hz",
}
