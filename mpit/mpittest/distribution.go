package mpittest

import (
	"math/bits"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// DistributionElements is how many elements the call profile's distributions have (docs/protocol.md, Distributions):
// the accumulated time, and 44 buckets.
const DistributionElements = 45

// DistributionVariable is a variable like those that the call profile times calls with. Its elements begin at zero;
// what Distribution returns is to be added to them, with Rank.Add.
func DistributionVariable(name string, bind mpit.Bind) mpit.Variable {
	return mpit.Variable{
		Name: name, Class: mpit.ClassTimer, Verbosity: mpit.VerbosityUserBasic, Datatype: mpit.DatatypeUint64,
		DatatypeBytes: 8, Bind: bind,
		ReadOnly: true, Continuous: true, Distribution: true,
	}
}

// Distribution is what single durations add to the elements of a distribution, DistributionElements of them, each a
// uint64: for Rank.Set, Rank.Add and Value. A duration below zero is one of zero.
func Distribution(durations ...time.Duration) []any {
	var words [DistributionElements]uint64
	for _, d := range durations {
		high, low := bits.Mul64(uint64(max(d, 0)), 1<<30)
		units, rest := bits.Div64(high, low, uint64(time.Second)) // a duration's 63 bits leave room for it
		if rest >= uint64(time.Second)/2 {
			units++
		}
		words[0] += units
		bucket := 0
		if units > 1 {
			bucket = bits.Len64(units - 1)
		}
		words[1+min(bucket, DistributionElements-2)]++
	}
	list := make([]any, len(words))
	for i, w := range words {
		list[i] = w
	}
	return list
}
