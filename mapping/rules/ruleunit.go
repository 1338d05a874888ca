package rules

import "github.com/mpit-exporter/mpit-exporter/mapping"

// unitList is the units that rules may give, besides what is counted.
const unitList = "By, KiBy, MiBy, GiBy, kBy, MBy, GBy, s, ms, us, ns, min, h, 1, %, J, W, V, A, Hz, Cel, none"

func parseUnit(s string) (mapping.Unit, error) {
	if u, ok := mapping.UnitOf(s); ok {
		return u, nil
	}
	return mapping.Unit{}, complain("write one of "+unitList+", or what is counted: {message}",
		"unit %q is none of UCUM's that metrics have", s)
}
