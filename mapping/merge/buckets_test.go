package merge

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Of ranks of which some measure single durations and others know what an interval took, the node's histogram has
// what both have, but is no native one: its native buckets don't hold all.
func TestGroupOfExactAndEstimatedHistograms(t *testing.T) {
	of := func(h *mapping.Histogram, seconds []float64) *mapping.Series {
		h.Counts = make([]uint64, len(h.Bounds)+1)
		for _, x := range seconds {
			observe(h, x, 1)
		}
		s := like(mpit.ClassTimer, 0)
		s.Histogram = h
		return s
	}
	exact := func(seconds ...float64) *mapping.Series {
		h := &mapping.Histogram{Schema: mapping.ExactSchema}
		for e := -20; e <= 4; e += 2 {
			h.Bounds = append(h.Bounds, math.Ldexp(1, e))
		}
		return of(h, seconds)
	}
	estimated := func(seconds ...float64) *mapping.Series {
		return of(&mapping.Histogram{Schema: mapping.NativeSchema, Bounds: []float64{1, 2, 4}}, seconds)
	}
	for _, c := range []struct {
		name    string
		members []*mapping.Series
		schema  int32
		native  []mapping.NativeBucket
		counts  map[float64]uint64
	}{
		{"both estimated", []*mapping.Series{estimated(1, 1.1), estimated(1.5)}, mapping.NativeSchema,
			[]mapping.NativeBucket{{Index: 0, Count: 1}, {Index: 1, Count: 1}, {Index: 3, Count: 1}},
			map[float64]uint64{1: 1, 2: 2}},
		{"both exact", []*mapping.Series{exact(1), exact(1, 2)}, mapping.ExactSchema,
			[]mapping.NativeBucket{{Index: 0, Count: 2}, {Index: 1, Count: 1}}, map[float64]uint64{1: 2, 4: 1}},
		{"an exact one comes to an estimated one", []*mapping.Series{estimated(0.7, 1, 1.1, 2.5), exact(1, 3)},
			mapping.NativeSchema, nil, map[float64]uint64{1: 3, 2: 1, 4: 2}},
		{"an estimated one comes to an exact one", []*mapping.Series{exact(1, 3), estimated(0.7, 1, 1.1, 2.5)},
			mapping.ExactSchema, nil, map[float64]uint64{1: 3, 4: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewGroup()
			one := []Member{rankOf(0, c.members[0])}
			g.Update(one, groupStart)
			two := append(one, rankOf(1, c.members[1]))
			for range 2 {
				g.Update(two, groupStart)
				require.Len(t, g.Series(), 1)
				h := g.Series()[0].Histogram
				assert.Equal(t, c.schema, h.Schema)
				native := h.NativeZero
				for _, b := range h.Native {
					native += b.Count
				}
				if assert.Equal(t, c.native != nil, native == h.Count); c.native != nil {
					assert.Equal(t, c.native, h.Native)
				}
				counts := map[float64]uint64{}
				total := uint64(0)
				for i, n := range h.Counts {
					if total += n; n > 0 {
						counts[append(slices.Clone(h.Bounds), math.Inf(1))[i]] = n
					}
				}
				assert.Equal(t, c.counts, counts)
				assert.Equal(t, total, h.Count)
			}
		})
	}
}

// Whatever many ranks claim together, their histogram never overflows, and its buckets add up to its count.
func TestCountsBeyondAllMeasure(t *testing.T) {
	g := NewGroup()
	var members []Member
	was := uint64(0)
	for i := range 64 {
		s := like(mpit.ClassTimer, 1)
		h := s.Histogram
		h.Counts[i%4], h.Count = 1<<60, 1<<60
		h.AddNative(3, 1<<60)
		members = append(members, rankOf(i, s))
		g.Update(members, groupStart)
		of := g.Series()[0].Histogram
		sum, native := uint64(0), of.NativeZero
		for _, n := range of.Counts {
			sum += n
		}
		for _, b := range of.Native {
			native += b.Count
		}
		assert.Equal(t, of.Count, sum)
		assert.Equal(t, of.Count, native)
		require.GreaterOrEqual(t, of.Count, was)
		was = of.Count
	}
	assert.Less(t, was, uint64(1<<63))
	assert.Greater(t, was, uint64(1<<61))
}
