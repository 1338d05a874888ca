package mapping

import "github.com/mpit-exporter/mpit-exporter/mpit"

// Decision is one property of a variable, and who set it.
type Decision struct {
	Property string // as rules call it: class, unit, name …
	Value    string
	Rule     *Rule // nil: the default
}

// Explanation says what a variable becomes, and why.
type Explanation struct {
	Decisions []Decision
	Unsure    []Source // rules that would match in some version or category, which are not known
	Metric    *Metric  // nil: left out, for Drop
	Drop      Reason
	Series    []string // examples, as they stand on the page, without values
}

// Explain says what a variable of a library becomes, as Metric does, and which rules decided it.
func (m *Mapper) Explain(lib Library, v mpit.Variable, categories []string) Explanation {
	return Explanation{}
}
