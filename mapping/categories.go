package mapping

import "github.com/mpit-exporter/mpit-exporter/mpit"

// Categories says in which categories a variable stands, directly or through others (MPI-4.1 §15.3.9).
type Categories func(name string, class mpit.Class) []string

// NeedsCategories says whether any rule matches by category. Ranks are to be told their categories then (Rank.SetCategories).
func (m *Mapper) NeedsCategories() bool { return false }

// SetCategories tells in which categories the rank's variables stand. Where NeedsCategories, variables for which that could
// make a difference are held back until it has been called once; nil says that the rank can't tell, so that no such rule matches.
func (r *Rank) SetCategories(c Categories) {}
