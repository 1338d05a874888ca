package exporter

import "github.com/mpit-exporter/mpit-exporter/exporter/internal/board"

// Family describes one metric family of the exporter's own: everything on the page that is not a performance variable.
type Family = board.Family

// Families returns every family of the exporter's own, sorted by name. No performance variable may have one of these
// names.
func Families() []Family { return board.Families() }

// Prefix begins the names of the exporter's figures of itself; all names with it are reserved.
const Prefix = board.Prefix

// Reserved says whether a performance variable of a rank may not have this name, for the exporter itself uses it, or
// would in OpenMetrics, where counters' families have no _total; or for the families of several ranks together do.
func Reserved(name string) bool { return board.Reserved(name) }
