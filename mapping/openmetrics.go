package mapping

import "strings"

// FamilyName is what OpenMetrics calls a family that is called name on /metrics: a counter's name has no _total there.
func FamilyName(name string, kind Kind) string {
	if kind == KindCounter {
		return strings.TrimSuffix(name, "_total")
	}
	return name
}

// OwnedNames is every name that a family of that name and kind takes for itself in the text format and in
// OpenMetrics: its own, and those of its samples. Two families that both own a name cannot stand on one page: a
// strict parser refuses all of it. The first is FamilyName's.
func OwnedNames(name string, kind Kind) []string {
	family := FamilyName(name, kind)
	switch kind {
	case KindCounter:
		return []string{family, family + "_total", family + "_created"}
	case KindHistogram:
		return []string{family, family + "_bucket", family + "_sum", family + "_count", family + "_created"}
	}
	return []string{family}
}
