package rules

import (
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// unitList is the units that rules may give, besides what is counted.
const unitList = "By, KiBy, MiBy, GiBy, kBy, MBy, GBy, s, ms, us, ns, min, h, 1, %, J, W, V, A, Hz, Cel, none"

func parseUnit(s string) (mapping.Unit, error) {
	if u, ok := mapping.UnitOf(s); ok {
		return u, nil
	}
	if u := unitsInWords[strings.TrimSuffix(strings.ToLower(s), "s")]; u != "" {
		return mapping.Unit{}, complain("write "+u, "unit %q is none of UCUM's", s)
	}
	return mapping.Unit{}, complain("write one of "+unitList+", or what is counted: {message}",
		"unit %q is none of UCUM's that metrics have", s)
}

// unitsInWords is what others call units, without an s at the end.
var unitsInWords = map[string]string{
	"byte": "By", "b": "By", "kib": "KiBy", "mib": "MiBy", "gib": "GiBy", "kb": "kBy", "mb": "MBy", "gb": "GBy",
	"kibibyte": "KiBy", "mebibyte": "MiBy", "gibibyte": "GiBy", "kilobyte": "kBy", "megabyte": "MBy",
	"gigabyte": "GBy",
	"second":   "s", "sec": "s", "millisecond": "ms", "msec": "ms", "microsecond": "us", "usec": "us", "µ": "us",
	"μ":          "us",
	"nanosecond": "ns", "nsec": "ns", "minute": "min", "hour": "h", "percent": `"%"`, "ratio": `"1"`,
	"message": `"{message}"`, "call": `"{call}"`, "packet": `"{packet}"`, "joule": "J", "watt": "W", "volt": "V",
	"ampere": "A", "hertz": "Hz",
}
