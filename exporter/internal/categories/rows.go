// Package categories says in which of MPI_T's categories variables stand, as series. Whatever a rank says of its
// categories, it costs little.
package categories

import (
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// MaxRows bounds the series that say where variables stand, of one user.
const MaxRows = 8192

// maxEntries bounds what is looked at of one rank's categories: everybody waits meanwhile, and there may be the same
// two million times.
const maxEntries = 1 << 17

// Row is a series that says in which category a variable stands.
type Row struct {
	Name, Class string // of the variable
	Category    string
}

// Rows makes series of categories: at most MaxRows, over says how many more there would be.
func Rows(list []mpit.Category, vars *mpit.Variables, infos []variables.Info) (rows []Row, over int) {
	described := map[int]*variables.Info{} // by MPI_T's index
	if vars != nil {
		for i := range infos[:min(len(infos), len(vars.ByID))] {
			described[vars.ByID[i].Index] = &infos[i]
		}
	}
	seen := map[Row]bool{}
	entries := 0
	for i := range list {
		name := clean.Label(list[i].Name)
		for _, index := range list[i].Variables {
			info := described[index]
			if name == "" || info == nil {
				continue
			}
			row := Row{Name: info.Name, Class: info.Class.String(), Category: name}
			switch entries++; {
			case entries <= maxEntries && seen[row]:
			case entries > maxEntries || len(rows) == MaxRows:
				over++
			default:
				seen[row] = true
				rows = append(rows, row)
			}
		}
	}
	return rows, over
}
