package mapping

// Merge says how the values of several objects, and of several ranks, become one.
type Merge string

// The ways to merge. What counts (counters, aggregates, timers) is always summed, unless it is MergeEach.
const (
	MergeSum  Merge = "sum"
	MergeMax  Merge = "max"
	MergeMin  Merge = "min"
	MergeEach Merge = "each" // not at all: a label object tells those apart that share a name
)

// Elements says what becomes of the elements of an array variable: one value (sum, max, min), or a series for
// each, with the element's number as a label called peer or index.
type Elements string

// The ways to treat elements.
const (
	ElementsSum   Elements = "sum"
	ElementsMax   Elements = "max"
	ElementsMin   Elements = "min"
	ElementsPeer  Elements = "peer"
	ElementsIndex Elements = "index"
)

// Combine is what two values together are.
func (m Merge) Combine(a, b float64) float64 {
	switch m {
	case MergeMax:
		return max(a, b)
	case MergeMin:
		return min(a, b)
	}
	return a + b
}

// RankMode says whether a variable has a series for each rank, or one for all ranks of a job on this node.
type RankMode string

// The ways to treat ranks.
const (
	RankKeep RankMode = "keep"
	RankNode RankMode = "node" // the series of all ranks of a world on this node become one, without the label rank
)
