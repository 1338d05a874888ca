package rules

import (
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// verbosityRange is the levels from low to high; both are VerbosityUnknown where any will do.
type verbosityRange struct{ low, high mpit.Verbosity }

// verbosityWords are the levels as rules write them, the lowest first.
func verbosityWords() []string {
	var words []string
	for v := mpit.VerbosityUserBasic; v <= mpit.VerbosityMPIDevAll; v++ {
		words = append(words, strings.ToLower(v.String()))
	}
	return words
}

// parseVerbosity reads a level, or bounds: "<=user_all", ">=tuner_basic <=tuner_all".
func parseVerbosity(s string) (verbosityRange, error) {
	if s == "" {
		return verbosityRange{}, nil
	}
	r := verbosityRange{mpit.VerbosityUserBasic, mpit.VerbosityMPIDevAll}
	words := verbosityWords()
	fields := strings.Fields(s)
	for _, field := range fields {
		word := strings.TrimLeft(field, "<>=")
		level := mpit.Verbosity(slices.Index(words, word) + 1)
		if level == mpit.VerbosityUnknown {
			return r, complain(oneOf(words)+`, or a bound such as "<=user_all"`,
				"verbosity %q is none of MPI_T's", field)
		}
		switch op := field[:len(field)-len(word)]; op {
		case "":
			if len(fields) > 1 {
				return r, complain(`write one level, or bounds such as ">=tuner_basic <=tuner_all"`,
					"verbosity %q has several levels", s)
			}
			r = verbosityRange{level, level}
		case "=":
			r.low, r.high = max(r.low, level), min(r.high, level)
		case "<":
			r.high = min(r.high, level-1)
		case "<=":
			r.high = min(r.high, level)
		case ">":
			r.low = max(r.low, level+1)
		case ">=":
			r.low = max(r.low, level)
		default:
			return r, complain("write <, <=, >, >= or =", "verbosity %q: %q is no bound", s, op)
		}
	}
	if len(fields) == 0 || r.low > r.high {
		return r, complain("levels go from user_basic up to mpidev_all", "verbosity %q: no variable has it", s)
	}
	return r, nil
}

// holds says whether a level lies within. One that isn't known lies in no range.
func (r verbosityRange) holds(v mpit.Verbosity) bool {
	return r == verbosityRange{} || v >= r.low && v <= r.high
}
