package rules

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// verbosityRange has a bit for each level that lies within; 0: any will do, also one that isn't known.
type verbosityRange uint16

// verbosityWords are the levels as rules write them, the lowest first.
func verbosityWords() []string {
	var words []string
	for v := mpit.VerbosityUserBasic; v <= mpit.VerbosityMPIDevAll; v++ {
		words = append(words, strings.ToLower(v.String()))
	}
	return words
}

// parseVerbosity reads a level, or bounds: "<=user_all", ">=tuner_basic <=tuner_all".
func parseVerbosity(s string) (r verbosityRange, err error) {
	if s == "" {
		return 0, nil
	}
	words, fields := verbosityWords(), strings.Fields(s)
	for level := range words {
		r |= 1 << (level + int(mpit.VerbosityUserBasic))
	}
	for _, field := range fields {
		operator, word := splitBound(field)
		bound := slices.Index(words, word)
		switch {
		case bound < 0:
			return r, complain(oneOf(words)+`, or a bound such as "<=user_all"`,
				"verbosity %q is none of MPI_T's", field)
		case operator == "" && len(fields) > 1:
			return r, complain(`write one level, or bounds such as ">=tuner_basic <=tuner_all"`,
				"verbosity %q has several levels", s)
		case operator != "" && !slices.Contains(operators, operator):
			return r, complain("write <, <=, >, >= or =", "verbosity %q: %q is no bound", s, operator)
		}
		for level := range words {
			if !meets(operator, cmp.Compare(level, bound)) {
				r &^= 1 << (level + int(mpit.VerbosityUserBasic))
			}
		}
	}
	if len(fields) == 0 || r == 0 {
		return r, complain("levels go from user_basic up to mpidev_all", "verbosity %q: no variable has it", s)
	}
	return r, nil
}

// holds says whether a level lies within. One that isn't known lies in no range.
func (r verbosityRange) holds(v mpit.Verbosity) bool { return r == 0 || r&(1<<v) != 0 }
