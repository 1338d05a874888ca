package rules

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// version is the numbers of a version. What follows them (rc2, a1) is left out, so that a rule for 6.0 holds for
// 6.0.0rc2 too.
type version []int

func parseVersion(s string) version {
	var v version
	for part := range strings.SplitSeq(s, ".") {
		end := 0
		for end < len(part) && end < 9 && part[end] >= '0' && part[end] <= '9' {
			end++
		}
		if end == 0 {
			break
		}
		n, _ := strconv.Atoi(part[:end])
		v = append(v, n)
		if end < len(part) {
			break
		}
	}
	return v
}

// compare is -1, 0 or 1; numbers that one of them lacks are zero.
func (v version) compare(w version) int {
	for i := range max(len(v), len(w)) {
		var a, b int
		if i < len(v) {
			a = v[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			if a < b {
				return -1
			}
			return 1
		}
	}
	return 0
}

// versionRange is a conjunction of bounds: ">=4.0 <5.1".
type versionRange []versionBound

type versionBound struct {
	op string
	v  version
}

// plainVersion is a version of bounds: a suffix such as rc2 is not looked at, so it must not stand there.
var plainVersion = regexp.MustCompile(`\A[0-9]{1,9}(\.[0-9]{1,9})*\z`)

func parseRange(s string) (versionRange, error) {
	var r versionRange
	for field := range strings.FieldsSeq(s) {
		rest := strings.TrimLeft(field, "<>=")
		op := field[:len(field)-len(rest)]
		switch op {
		case "<", "<=", ">", ">=", "=":
		case "":
			return nil, complain(`write a bound, such as ">=`+mapping.CleanText(rest, 32)+`" or "=4.1.2"`,
				"version range %q: %q does not start with <, <=, >, >= or =", s, field)
		default:
			return nil, complain("write <, <=, >, >= or =", "version range %q: %q is no bound", s, op)
		}
		if rest == "" {
			return nil, complain(`write it right before its version, as in ">=4.0 <5.1"`,
				"version range %q: %q has no number", s, field)
		}
		if !plainVersion.MatchString(rest) {
			return nil, complain("write numbers with points, such as 4.0; what follows them in a library's version, "+
				"as rc2, is not looked at",
				"version range %q: %q is no version", s, rest)
		}
		r = append(r, versionBound{op: op, v: parseVersion(rest)})
	}
	if s != "" && len(r) == 0 {
		return nil, complain(`write bounds, such as ">=4.0 <5.1"`, "the version range is empty")
	}
	if r.empty() {
		return nil, complain(`write bounds that some version meets, such as ">=4.0 <5.1"`,
			"version range %q: no version lies in it", s)
	}
	return r, nil
}

// interval is the versions between low and high, without an end where that is open. A nil high has no bound.
func (r versionRange) interval() (low, high version, lowOpen, highOpen bool) {
	up := func(v version, open bool) {
		if c := v.compare(low); c > 0 || c == 0 && open {
			low, lowOpen = v, open
		}
	}
	down := func(v version, open bool) {
		if high == nil {
			high, highOpen = v, open
		} else if c := v.compare(high); c < 0 || c == 0 && open {
			high, highOpen = v, open
		}
	}
	for _, b := range r {
		switch b.op {
		case "<", "<=":
			down(b.v, b.op == "<")
		case ">", ">=":
			up(b.v, b.op == ">")
		case "=":
			up(b.v, false)
			down(b.v, false)
		}
	}
	return low, high, lowOpen, highOpen
}

// empty says whether no version lies within. Between any two there is a third: 4.0.0.1 between 4.0 and 4.0.1.
func (r versionRange) empty() bool {
	low, high, lowOpen, highOpen := r.interval()
	if high == nil {
		return false
	}
	c := low.compare(high)
	return c > 0 || c == 0 && (lowOpen || highOpen)
}

// holds is false for a version that isn't known, unless the range is empty.
func (r versionRange) holds(s string) bool {
	if len(r) == 0 {
		return true
	}
	v := parseVersion(s)
	if len(v) == 0 {
		return false
	}
	for _, b := range r {
		c := v.compare(b.v)
		ok := false
		switch b.op {
		case "<":
			ok = c < 0
		case "<=":
			ok = c <= 0
		case ">":
			ok = c > 0
		case ">=":
			ok = c >= 0
		case "=":
			ok = c == 0
		}
		if !ok {
			return false
		}
	}
	return true
}
