package cvar

import (
	"regexp"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// MaxRows is how many control variables of one rank are shown.
	MaxRows = 256
	// maxShown bounds a value that is shown, in bytes.
	maxShown = 128
)

// Row is a control variable with its value, as the page shows it.
type Row struct{ Name, Value string }

// Rows chooses from a rank's control variables those whose names match one of the patterns. Of several that have one
// name, the first stands. unreadable of them have no value, over are more than MaxRows.
func Rows(list []mpit.ControlVariable, patterns []string) (rows []Row, unreadable, over int) {
	globs := make([]*regexp.Regexp, len(patterns))
	for i, pattern := range patterns {
		globs[i] = rules.Glob(pattern)
	}
	seen := map[string]bool{}
	for i := range list {
		v := &list[i]
		name := clean.Name(v.Name)
		named := func(glob *regexp.Regexp) bool { return glob.MatchString(v.Name) }
		if seen[name] || !slices.ContainsFunc(globs, named) {
			continue
		}
		seen[name] = true
		switch {
		case !v.HasValue:
			unreadable++
		case len(rows) == MaxRows:
			over++
		default:
			rows = append(rows, Row{name, clean.Text(Text(v), maxShown)})
		}
	}
	return rows, unreadable, over
}
