package rules

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// meets says whether a bound is met by what compares so with it (-1, 0 or 1).
func meets(operator string, compared int) bool {
	return strings.Contains(operator, string("<=>"[compared+1]))
}

// version is the numbers of a version, without zeros at the end: 4.0 is the same as 4.
type version []int

// plainVersion is the numbers that a version begins with, bound what a range consists of.
var (
	plainVersion = regexp.MustCompile(`\A[0-9]{1,9}(?:\.[0-9]{1,9})*`)
	bound        = regexp.MustCompile(`\A(<=?|>=?|=)([0-9]{1,9}(?:\.[0-9]{1,9})*)\z`)
)

// parseVersion reads a version; ok is false where it isn't known. What follows the numbers (rc2, a1) is left out, so
// that a rule for 6.0 holds for 6.0.0rc2 too.
func parseVersion(s string) (v version, ok bool) {
	s = plainVersion.FindString(s)
	for number := range strings.SplitSeq(s, ".") {
		n, _ := strconv.Atoi(number)
		v = append(v, n)
	}
	for len(v) > 0 && v[len(v)-1] == 0 {
		v = v[:len(v)-1]
	}
	return v, s != ""
}

// versionRange is a conjunction of bounds: ">=4.0 <5.1".
type versionRange []versionBound

type versionBound struct {
	operator string
	version  version
}

func parseRange(s string) (versionRange, error) {
	var r versionRange
	for field := range strings.FieldsSeq(s) {
		found := bound.FindStringSubmatch(field)
		if found == nil {
			return nil, complain(`write bounds such as ">=4.0 <5.1": <, <=, >, >= or =, and right behind it numbers with points`,
				"version range %q: %q is no bound", s, field)
		}
		v, _ := parseVersion(found[2])
		r = append(r, versionBound{found[1], v})
	}
	if s != "" && len(r) == 0 {
		return nil, complain(`write bounds, such as ">=4.0 <5.1"`, "the version range is empty")
	}
	return r, nil
}

// holds is false for a version that isn't known, unless the range is empty.
func (r versionRange) holds(s string) bool {
	if len(r) == 0 {
		return true
	}
	v, known := parseVersion(s)
	return known && !slices.ContainsFunc(r, func(b versionBound) bool {
		return !meets(b.operator, slices.Compare(v, b.version))
	})
}
