package mpittest

import (
	"math/bits"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// DistributionElements is how many elements the call profile's distributions have (docs/internals/protocol.md,
// Distributions): the sum, and 44 buckets.
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
	var all []uint64
	for _, d := range durations {
		high, low := bits.Mul64(uint64(max(d, 0)), 1<<30)
		units, rest := bits.Div64(high, low, uint64(time.Second)) // a duration's 63 bits leave room for it
		if rest >= uint64(time.Second)/2 {
			units++
		}
		all = append(all, units)
	}
	return Sizes(all...)
}

// SizesVariable is a variable like those that the call profile counts the sizes of calls with. Its elements begin at
// zero; what Sizes returns is to be added to them, with Rank.Add.
func SizesVariable(name string, bind mpit.Bind) mpit.Variable {
	v := DistributionVariable(name, bind)
	v.Class = mpit.ClassAggregate
	return v
}

// Sizes is what single sizes in bytes add to the elements of a distribution, as Distribution is of durations.
func Sizes(sizes ...uint64) []any {
	var words [DistributionElements]uint64
	for _, size := range sizes {
		words[0] += size
		bucket := 0
		if size > 1 {
			bucket = bits.Len64(size - 1)
		}
		words[1+min(bucket, DistributionElements-2)]++
	}
	list := make([]any, len(words))
	for i, w := range words {
		list[i] = w
	}
	return list
}
