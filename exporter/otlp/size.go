package otlp

import (
	"math/bits"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
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

func sizeOfSet(set attribute.Set) int {
	n := 0
	for i := range set.Len() {
		kv, _ := set.Get(i)
		n += sizeOfAttribute(kv)
	}
	return n
}

func sizeOfAttribute(kv attribute.KeyValue) int {
	return nested(nested(len(kv.Key)) + nested(sizeOfValue(kv.Value)))
}

func sizeOfValue(v attribute.Value) int {
	switch v.Type() {
	case attribute.STRING:
		return nested(len(v.AsString()))
	case attribute.BOOL, attribute.INT64, attribute.FLOAT64, attribute.EMPTY:
		return 1 + varint64
	case attribute.BYTESLICE:
		return nested(len(v.AsByteSlice()))
	case attribute.MAP:
		n := 0
		for _, kv := range v.AsMap() {
			n += sizeOfAttribute(kv)
		}
		return nested(n)
	case attribute.STRINGSLICE:
		n := 0
		for _, s := range v.AsStringSlice() {
			n += nested(nested(len(s)))
		}
		return nested(n)
	case attribute.SLICE:
		n := 0
		for _, value := range v.AsSlice() {
			n += nested(sizeOfValue(value))
		}
		return nested(n)
	case attribute.BOOLSLICE:
		return nested(len(v.AsBoolSlice()) * (2 + 1 + varint64))
	case attribute.INT64SLICE:
		return nested(len(v.AsInt64Slice()) * (2 + 1 + varint64))
	case attribute.FLOAT64SLICE:
		return nested(len(v.AsFloat64Slice()) * (2 + 1 + varint64))
	}
	return nested(len("INVALID"))
}

func sizeOfNumber[N int64 | float64](p *metricdata.DataPoint[N]) int {
	return nested(sizeOfSet(p.Attributes) + 3*fixed + sizeOfExemplars(p.Exemplars))
}

func sizeOfHistogram[N int64 | float64](p *metricdata.HistogramDataPoint[N]) int {
	return nested(sizeOfSet(p.Attributes) + 6*fixed + nested(8*len(p.Bounds)) + nested(8*len(p.BucketCounts)) +
		sizeOfExemplars(p.Exemplars))
}

func sizeOfExponential[N int64 | float64](p *metricdata.ExponentialHistogramDataPoint[N]) int {
	return nested(sizeOfSet(p.Attributes) + 9*fixed + sizeOfBuckets(p.PositiveBucket) + sizeOfBuckets(p.NegativeBucket) +
		sizeOfExemplars(p.Exemplars))
}

func sizeOfBuckets(b metricdata.ExponentialBucket) int {
	n := 0
	for _, count := range b.Counts {
		n += (bits.Len64(count|1) + 6) / 7
	}
	return nested(fixed + nested(n))
}

func sizeOfSummary(p *metricdata.SummaryDataPoint) int {
	return nested(sizeOfSet(p.Attributes) + 4*fixed + len(p.QuantileValues)*(2+2*fixed))
}

func sizeOfExemplars[N int64 | float64](exemplars []metricdata.Exemplar[N]) int {
	n := 0
	for i := range exemplars {
		inner := 2*fixed + nested(len(exemplars[i].SpanID)) + nested(len(exemplars[i].TraceID))
		for _, kv := range exemplars[i].FilteredAttributes {
			inner += sizeOfAttribute(kv)
		}
		n += nested(inner)
	}
	return n
}
