package series

import "github.com/mpit-exporter/mpit-exporter/mpit"

// Categories says in which categories a variable stands, directly or through others (MPI-4.1 §15.3.9).
type Categories func(name string, class mpit.Class) []string

// SetCategories tells in which categories the rank's variables stand. Where NeedsCategories, variables for which that
// could make a difference are held back until it has been called once: they have no series, are counted nowhere, and
// are read. nil says that the rank can't tell, so that no such rule matches. It takes effect at the next Update. A
// later call is for variables that come later; those that have been found out about stay what they are. Categories is
// called in Update alone.
func (r *Rank) SetCategories(c Categories) {
	r.categories, r.categorised, r.answered = c, true, true
	r.told = r.held > 0
}
