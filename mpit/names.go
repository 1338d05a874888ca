package mpit

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// names are the names of a small enumeration, by number.
type names struct {
	what   string // names numbers that have no name: "class(17)"
	prefix string // what MPI's own constants have before the name
	list   []string
	last   string // name of 255; empty: none
}

func (n names) format(v uint8) string {
	switch {
	case int(v) < len(n.list):
		return n.list[v]
	case v == math.MaxUint8 && n.last != "":
		return n.last
	}
	return n.what + "(" + strconv.Itoa(int(v)) + ")"
}

// parse reads a name as format or MPI itself writes it, in any case.
func parse[T ~uint8](to *T, n names, text []byte) error {
	bare := func(name string) string {
		if len(name) >= len(n.prefix) && strings.EqualFold(name[:len(n.prefix)], n.prefix) {
			return name[len(n.prefix):]
		}
		return name
	}
	want := bare(string(text))
	for v := range math.MaxUint8 + 1 {
		if strings.EqualFold(bare(n.format(uint8(v))), want) {
			*to = T(v)
			return nil
		}
	}
	return fmt.Errorf("mpit: unknown %s %q", n.what, text)
}

var classNames = names{
	what:   "class",
	prefix: "MPI_T_PVAR_CLASS_",
	list: []string{
		"STATE", "LEVEL", "SIZE", "PERCENTAGE", "HIGHWATERMARK", "LOWWATERMARK", "COUNTER", "AGGREGATE", "TIMER",
		"GENERIC",
	},
	last: "UNKNOWN",
}

// String returns the standard's name without MPI_T_PVAR_CLASS_, for example "COUNTER".
func (c Class) String() string { return classNames.format(uint8(c)) }

// MarshalText returns the name.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads a name, with or without MPI_T_PVAR_CLASS_ before it.
func (c *Class) UnmarshalText(text []byte) error { return parse(c, classNames, text) }

var verbosityNames = names{
	what:   "verbosity",
	prefix: "MPI_T_VERBOSITY_",
	list: []string{
		"UNKNOWN", "USER_BASIC", "USER_DETAIL", "USER_ALL", "TUNER_BASIC", "TUNER_DETAIL", "TUNER_ALL",
		"MPIDEV_BASIC", "MPIDEV_DETAIL", "MPIDEV_ALL",
	},
}

// String returns the standard's name without MPI_T_VERBOSITY_, for example "USER_BASIC".
func (v Verbosity) String() string { return verbosityNames.format(uint8(v)) }

// MarshalText returns the name.
func (v Verbosity) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads a name, with or without MPI_T_VERBOSITY_ before it.
func (v *Verbosity) UnmarshalText(text []byte) error { return parse(v, verbosityNames, text) }

var bindNames = names{
	what:   "bind",
	prefix: "MPI_T_BIND_",
	list: []string{
		"NO_OBJECT", "MPI_COMM", "MPI_DATATYPE", "MPI_ERRHANDLER", "MPI_FILE", "MPI_GROUP", "MPI_OP", "MPI_REQUEST",
		"MPI_WIN", "MPI_MESSAGE", "MPI_INFO", "MPI_SESSION",
	},
	last: "UNKNOWN",
}

// String returns the standard's name without MPI_T_BIND_, for example "MPI_COMM" or "NO_OBJECT".
func (b Bind) String() string { return bindNames.format(uint8(b)) }

// Label returns the short name of the object's kind, which is the metrics' label for it, for example "comm". It is
// empty for BindNone and BindUnknown.
func (b Bind) Label() string {
	if b == BindNone || int(b) >= len(bindNames.list) {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(bindNames.list[b], "MPI_"))
}

// BindOfLabel returns the kind of object that has a label, as Label has it; false: none has.
func BindOfLabel(label string) (Bind, bool) {
	for b := BindComm; b <= BindLast; b++ {
		if b.Label() == label {
			return b, true
		}
	}
	return BindNone, false
}

// MarshalText returns the name.
func (b Bind) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText reads a name, with or without MPI_T_BIND_ before it.
func (b *Bind) UnmarshalText(text []byte) error { return parse(b, bindNames, text) }

var datatypeNames = names{
	what:   "datatype",
	prefix: "MPI_",
	list: []string{
		"OTHER", "MPI_INT", "MPI_UNSIGNED", "MPI_UNSIGNED_LONG", "MPI_UNSIGNED_LONG_LONG", "MPI_COUNT", "MPI_CHAR",
		"MPI_DOUBLE", "MPI_INT32_T", "MPI_INT64_T", "MPI_UINT32_T", "MPI_UINT64_T", "MPI_LONG", "MPI_LONG_LONG",
		"MPI_FLOAT", "MPI_C_BOOL",
	},
}

// String returns MPI's name, for example "MPI_UNSIGNED_LONG"; "OTHER" for a datatype that the agent doesn't know.
func (d Datatype) String() string { return datatypeNames.format(uint8(d)) }

// MarshalText returns the name.
func (d Datatype) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a name, with or without MPI_ before it.
func (d *Datatype) UnmarshalText(text []byte) error { return parse(d, datatypeNames, text) }

// Floating reports whether values of the datatype come as the bits of a double.
func (d Datatype) Floating() bool { return d == DatatypeDouble || d == DatatypeFloat }

// Signed reports whether values of the datatype come as an int64. Neither Floating nor Signed means uint64.
func (d Datatype) Signed() bool {
	switch d {
	case DatatypeInt, DatatypeCount, DatatypeChar, DatatypeInt32, DatatypeInt64, DatatypeLong, DatatypeLongLong:
		return true
	}
	return false
}

// Float64 returns the number that a word of Sample.Values stands for. Integers above 2⁵³ are rounded.
func (d Datatype) Float64(word uint64) float64 {
	switch {
	case d.Floating():
		return math.Float64frombits(word)
	case d.Signed():
		return float64(int64(word))
	}
	return float64(word)
}

var scopeNames = names{
	what:   "scope",
	prefix: "MPI_T_SCOPE_",
	list:   []string{"CONSTANT", "READONLY", "LOCAL", "GROUP", "GROUP_EQ", "ALL", "ALL_EQ"},
	last:   "UNKNOWN",
}

// String returns the standard's name without MPI_T_SCOPE_, for example "ALL_EQ".
func (s Scope) String() string { return scopeNames.format(uint8(s)) }

// MarshalText returns the name.
func (s Scope) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a name, with or without MPI_T_SCOPE_ before it.
func (s *Scope) UnmarshalText(text []byte) error { return parse(s, scopeNames, text) }

var stateNames = names{
	what: "state",
	list: []string{"open", "denied", "alloc_failed", "start_failed", "read_failed", "datatype", "exhausted",
		"on_request"},
}

// String returns "open" or a short word for what was in the way, for example "alloc_failed".
func (s VariableState) String() string { return stateNames.format(uint8(s)) }

// MarshalText returns the word.
func (s VariableState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word.
func (s *VariableState) UnmarshalText(text []byte) error { return parse(s, stateNames, text) }

var endNames = names{what: "end", list: []string{"none", "finalize", "exit", "abort", "lost"}}

// String returns "finalize", "exit", "abort", "lost", or "none" while the rank lives.
func (e EndReason) String() string { return endNames.format(uint8(e)) }

var statusNames = names{what: "status", list: []string{"fresh", "busy", "passive", "final", "paused"}}

// String returns "fresh", "busy", "passive", "final" or "paused".
func (s SampleStatus) String() string { return statusNames.format(uint8(s)) }

var abiNames = names{what: "ABI", list: []string{"unknown", "Open MPI", "MPICH", "MPI standard"}}

// String returns the name of the libraries that have the ABI, or "MPI standard".
func (a ABI) String() string { return abiNames.format(uint8(a)) }

// String returns 32 hexadecimal digits.
func (id RankID) String() string { return hex.EncodeToString(id[:]) }
