package conformance

import "github.com/mpit-exporter/mpit-exporter/mpit"

// 15.3.1: the level of each variable is what the library says.
func verbosities() section {
	var levels []mpit.Verbosity
	for v := mpit.VerbosityUserBasic; v <= mpit.VerbosityMPIDevAll; v++ {
		levels = append(levels, v)
	}
	return section{"15.3.1 Verbosity levels", each(levels, func(v mpit.Verbosity) string { return code(v) },
		func(v mpit.Verbosity) check {
			return listed(func(t trueVariable) bool { return t.Verbosity == v },
				func(p pair) bool { return p.agent.Verbosity == v })
		})}
}
