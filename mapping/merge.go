package mapping

// Merge says how the values of several objects or elements become one.
type Merge string

// The ways to merge. What counts (counters, aggregates, timers) is always summed, unless it is MergeEach.
const (
	MergeSum  Merge = "sum"
	MergeMax  Merge = "max"
	MergeMin  Merge = "min"
	MergeEach Merge = "each" // not at all: a label object tells those apart that share a name

	// Of the elements of an array alone: not at all, a label of that name has the element's number.
	MergePeer  Merge = "peer"
	MergeIndex Merge = "index"
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
