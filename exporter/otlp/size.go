package otlp

import (
	"math/bits"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
)

// Bytes that parts of a message take at most in protobuf's encoding. What is nested has its length before it, which
// takes up to maxLength; where there are many of a kind it is counted exactly, so that messages get nearly as large
// as they may.
const (
	maxLength = 5
	envelope  = 1 + maxLength // field number and length of something nested
	fixed     = 1 + 8         // field number and a number of 8 bytes, or a varint of up to 8
	varint64  = 10            // the longest
)

// nested is the size of a field with n bytes, as a string is.
func nested(n int) int { return 1 + (bits.Len(uint(n|1))+6)/7 + n }

// sizeOfSet takes attributes that are text or numbers.
func sizeOfSet(set attribute.Set) int {
	n := 0
	for i := range set.Len() {
		kv, _ := set.Get(i)
		value := 1 + varint64
		if kv.Value.Type() == attribute.STRING {
			value = nested(len(kv.Value.AsString()))
		}
		n += nested(nested(len(kv.Key)) + nested(value))
	}
	return n
}

func sizeOfResource(r *resource.Resource) int {
	return envelope + envelope + sizeOfSet(*r.Set()) + nested(len(r.SchemaURL()))
}

// sizeOfHead is what a metric takes in each message besides its points, in a scope of its own.
func sizeOfHead(in *metricdata.ScopeMetrics, m *metricdata.Metrics) int {
	return envelope + envelope + nested(len(in.Scope.Name)) + nested(len(in.Scope.Version)) +
		sizeOfSet(in.Scope.Attributes) + nested(len(in.Scope.SchemaURL)) +
		envelope + nested(len(m.Name)) + nested(len(m.Description)) + nested(len(m.Unit)) + envelope + 2*2
}

func sizeOfNumber(p *number) int { return nested(sizeOfSet(p.Attributes) + 3*fixed) }

func sizeOfHistogram(p *histogram) int {
	return nested(sizeOfSet(p.Attributes) + 6*fixed + nested(8*len(p.Bounds)) + nested(8*len(p.BucketCounts)))
}
