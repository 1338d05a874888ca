package board

import (
	"regexp"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/cvar"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Rows that any number of ranks hold together (package tally). Whatever a rank says of its categories and control
// variables, these cost little.

const (
	// MaxCategoryRows bounds the series that say where variables stand, of one user.
	MaxCategoryRows = 8192
	// maxEntries bounds what is looked at of one rank's categories: everybody waits meanwhile, and there may be the same
	// two million times.
	maxEntries = 1 << 17
	// MaxControlRows is how many control variables of one rank are shown.
	MaxControlRows = 256
	// maxShown bounds a value that is shown, in bytes.
	maxShown = 128
)

// CategoryRow is a series of mpit_pvar_category_info: in which category a variable stands.
type CategoryRow struct {
	Name, Class string // of the variable
	Category    string
}

// CategoryRows makes rows of categories: at most MaxCategoryRows, over says how many more there would be.
func CategoryRows(list []mpit.Category, vars *mpit.Variables, infos []variables.Info) (rows []CategoryRow, over int) {
	described := map[int]*variables.Info{} // by MPI_T's index
	if vars != nil {
		for i := range infos[:min(len(infos), len(vars.ByID))] {
			described[vars.ByID[i].Index] = &infos[i]
		}
	}
	seen := map[CategoryRow]bool{}
	entries := 0
	for i := range list {
		name := clean.Label(list[i].Name)
		for _, index := range list[i].Variables {
			info := described[index]
			if name == "" || info == nil {
				continue
			}
			row := CategoryRow{Name: info.Name, Class: info.Class.String(), Category: name}
			switch entries++; {
			case entries <= maxEntries && seen[row]:
			case entries > maxEntries || len(rows) == MaxCategoryRows:
				over++
			default:
				seen[row] = true
				rows = append(rows, row)
			}
		}
	}
	return rows, over
}

// ControlRow is a series of mpit_cvar_ranks. Ranks of two users are never counted together, whatever job they claim.
type ControlRow struct {
	World       WorldName
	Name, Value string
}

// ControlRows chooses from the control variables of a rank in that world those whose names match one of the patterns.
// Of several that have one name, the first stands. unreadable of them have no value, over are more than MaxControlRows.
func ControlRows(of WorldName, list []mpit.ControlVariable, patterns []string) (rows []ControlRow, unreadable,
	over int) {
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
		case len(rows) == MaxControlRows:
			over++
		default:
			rows = append(rows, ControlRow{of, name, clean.Text(cvar.Text(v), maxShown)})
		}
	}
	return rows, unreadable, over
}
