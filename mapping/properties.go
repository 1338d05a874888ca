package mapping

import "github.com/mpit-exporter/mpit-exporter/mpit"

// Properties is what rules say of one variable: of each property the first rule that matches and sets it.
type Properties struct {
	Drop      bool
	Class     mpit.Class
	Unit      Unit
	Scale     float64
	Name      string
	Help      string
	Labels    []Label // sorted by name, values clean; of the named groups
	Variables string  // those that get labels from the same rule, in words
	Merge     Merge
	Elements  Merge
	Nonzero   bool
	Object    bool // false: no label with the object's name
	Companion string
	Buckets   []float64 // nil: those of Basis
	Offset    bool
	Open      bool
}
