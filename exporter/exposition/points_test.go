package exposition

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// The buckets of an explicit histogram always add up to its count, whatever came from the rank.
func TestHistogramPoint(t *testing.T) {
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
		s := &Sheet{owner: someone(), entries: []entry{{labels: &labels{}, series: &unlabelled}},
			histograms: []mapping.Histogram{*h}}
		var p metricdata.HistogramDataPoint[float64]
		(&pointWriter{}).histogram(&p, s, 0)
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
	s := NewSheet(someone())
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
