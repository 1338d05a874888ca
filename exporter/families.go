package exporter

import "github.com/mpit-exporter/mpit-exporter/exporter/internal/board"

// Family describes one metric family of the exporter's own: everything on the page that is not a performance variable.
type Family = board.Family

// Families returns every family of the exporter's own, sorted by name. No performance variable may have one of these
// names.
func Families() []Family { return board.Families() }
