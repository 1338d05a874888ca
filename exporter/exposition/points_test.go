package exposition

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// Prometheus' bucket 0 ends at 1, OpenTelemetry's begins there.
func TestExponentialPoint(t *testing.T) {
	p, whole := exponentialPoint(&mapping.Histogram{
		Bounds: []float64{1}, Counts: []uint64{4, 5}, Count: 9, Sum: 30, Schema: mapping.NativeSchema, NativeZero: 1,
		Native: []mapping.NativeBucket{{Index: 0, Count: 3}, {Index: 1, Count: 1}, {Index: 12, Count: 4}},
	})
	require.True(t, whole)
	assert.EqualValues(t, mapping.NativeSchema, p.Scale)
	assert.EqualValues(t, 9, p.Count)
	assert.Equal(t, 30.0, p.Sum)
	assert.EqualValues(t, 1, p.ZeroCount)
	assert.Equal(t, 1e-9, p.ZeroThreshold)
	assert.EqualValues(t, -1, p.PositiveBucket.Offset)
	assert.Equal(t, []uint64{3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4}, p.PositiveBucket.Counts)
	// Three observations of 1 s, which is the upper end of bucket -1: from 2^(-1/4) to 2^0.
	base := math.Exp2(math.Exp2(-float64(p.Scale)))
	assert.Less(t, math.Pow(base, float64(p.PositiveBucket.Offset)), 1.0)
	assert.Equal(t, 1.0, math.Pow(base, float64(p.PositiveBucket.Offset+1)))
}

// Of a distribution each bucket is the agent's: (2^(n-1), 2^n] seconds is bucket n to Prometheus, n-1 to
// OpenTelemetry. The last one, longer than 4096 s, has one above it to end in.
func TestExponentialPointOfDistribution(t *testing.T) {
	p, whole := exponentialPoint(&mapping.Histogram{
		Bounds: []float64{1}, Counts: []uint64{7, 2}, Count: 9, Sum: 5000, Schema: mapping.ExactSchema, NativeZero: 1,
		Native: []mapping.NativeBucket{{Index: -29, Count: 4}, {Index: -20, Count: 2}, {Index: 13, Count: 2}},
	})
	require.True(t, whole)
	assert.EqualValues(t, mapping.ExactSchema, p.Scale)
	assert.Equal(t, 1e-9, p.ZeroThreshold)
	assert.EqualValues(t, 1, p.ZeroCount)
	assert.EqualValues(t, -30, p.PositiveBucket.Offset)
	require.Len(t, p.PositiveBucket.Counts, 43, "all that the agent has, but the one in the zero bucket")
	base := math.Exp2(math.Exp2(-float64(p.Scale)))
	assert.Equal(t, 2.0, base)
	for i, n := range p.PositiveBucket.Counts {
		upper := math.Pow(base, float64(p.PositiveBucket.Offset)+float64(i)+1)
		assert.Equal(t, map[float64]uint64{0x1p-29: 4, 0x1p-20: 2, 8192: 2}[upper], n, "up to %v s", upper)
	}
}

// Of sizes, the agent's first bucket ends at a byte, and is the zero bucket.
func TestExponentialPointOfSizes(t *testing.T) {
	p, whole := exponentialPoint(&mapping.Histogram{
		Bytes: true, Bounds: []float64{1}, Counts: []uint64{3, 2}, Count: 5, Sum: 1026, Schema: mapping.ExactSchema,
		NativeZero: 3, Native: []mapping.NativeBucket{{Index: 1, Count: 1}, {Index: 10, Count: 1}},
	})
	require.True(t, whole)
	assert.Equal(t, 1.0, p.ZeroThreshold)
	assert.EqualValues(t, 3, p.ZeroCount)
	assert.EqualValues(t, 0, p.PositiveBucket.Offset, "from 1 to 2 bytes")
	assert.Equal(t, []uint64{1, 0, 0, 0, 0, 0, 0, 0, 0, 1}, p.PositiveBucket.Counts)
}

// What comes from a rank is not believed.
func TestNoFalseExponentialPoint(t *testing.T) {
	for name, h := range map[string]*mapping.Histogram{
		"nothing":  {Count: 2},
		"too few":  {Count: 2, Native: []mapping.NativeBucket{{Index: 3, Count: 1}}},
		"too many": {Count: 2, NativeZero: 1, Native: []mapping.NativeBucket{{Index: 3, Count: 2}}},
		"too wide": {Count: 2, Native: []mapping.NativeBucket{{Index: 0, Count: 1},
			{Index: maxExponential, Count: 1}}},
		"as wide as can be": {Count: 2, Native: []mapping.NativeBucket{{Index: math.MinInt32 + 1, Count: 1},
			{Index: math.MaxInt32, Count: 1}}},
		"the lowest": {Count: 1, Native: []mapping.NativeBucket{{Index: math.MinInt32, Count: 1}}},
		"not in order": {Count: 3, Native: []mapping.NativeBucket{{Index: 0, Count: 1}, {Index: 9, Count: 1},
			{Index: 3, Count: 1}}},
		"the wrong way":      {Count: 2, Native: []mapping.NativeBucket{{Index: 3, Count: 1}, {Index: 0, Count: 1}}},
		"less than explicit": {Bounds: []float64{1}, Counts: []uint64{5, 0}, Count: 2, NativeZero: 2},
	} {
		if h.Counts == nil {
			h.Counts = []uint64{h.Count}
		}
		_, whole := exponentialPoint(h)
		assert.False(t, whole, name)
	}
	_, whole := exponentialPoint(&mapping.Histogram{Counts: []uint64{0}})
	assert.True(t, whole, "nothing has been counted")
	_, whole = exponentialPoint(&mapping.Histogram{
		Counts: []uint64{2}, Count: 2, Native: []mapping.NativeBucket{{Index: 0, Count: 1},
			{Index: maxExponential - 1, Count: 1}},
	})
	assert.True(t, whole)
}

// The buckets of an explicit histogram always add up to its count, whatever came from the rank.
func TestExplicitPoint(t *testing.T) {
	for _, test := range []struct {
		counts []uint64
		count  uint64
		want   []uint64
	}{
		{[]uint64{3, 4, 5}, 12, []uint64{3, 4, 5}},
		{[]uint64{3, 4, 0}, 12, []uint64{3, 4, 5}},
		{[]uint64{3, 4, 5}, 2, []uint64{3, 4, 0}},
	} {
		h := &mapping.Histogram{Bounds: []float64{1, 2}, Counts: test.counts, Count: test.count, Sum: 7}
		p := explicitPoint(h)
		assert.Equal(t, test.want, p.BucketCounts)
		assert.Equal(t, test.want[0]+test.want[1]+test.want[2], p.Count)
		assert.Equal(t, h.Bounds, p.Bounds)
		p.BucketCounts[0] = 100
		assert.EqualValues(t, 3, h.Counts[0], "they are the reader's")
	}
}

// Series with the same labels share a set, even in different families: those of a rank mostly have none of their own.
func TestSetsAreShared(t *testing.T) {
	p := New(nil)
	var list []*mapping.Series
	for i := range 40 {
		m := &mapping.Metric{Name: "mpit_x" + strconv.Itoa(i), Kind: mapping.KindGauge}
		list = append(list, &mapping.Series{Metric: m},
			&mapping.Series{Metric: m, Labels: []mapping.Label{{Name: "comm", Value: "a"}}})
	}
	s := NewSheet(someone{})
	p.Fill(s, list, func(string) bool { return false })
	distinct := map[attribute.Set]bool{}
	of := func() {
		for i := range s.entries {
			distinct[s.attributes(i)] = true
		}
	}
	of()
	assert.Len(t, distinct, 2)
	assert.Zero(t, testing.AllocsPerRun(10, of), "none is made again")
}
