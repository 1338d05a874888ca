package otlp

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	"pgregory.net/rapid"
)

// What a delta is, case by case: cumulative points that are read and delivered one after the other, and what is sent
// of them. The pusher began at second 0.
func TestDeltaSum(t *testing.T) {
	type sent struct {
		start, at int
		value     float64
	}
	tests := []struct {
		name string
		read []metricdata.DataPoint[float64]
		want []sent
	}{
		{"began after the pusher: in whole, from its beginning",
			[]metricdata.DataPoint[float64]{point(0, 3, 10, 7)}, []sent{{3, 10, 7}}},
		{"began before the pusher: an earlier exporter may have pushed it",
			[]metricdata.DataPoint[float64]{point(0, -3, 10, 7), point(0, -3, 20, 9)}, []sent{{10, 20, 2}}},
		{"began nobody knows when",
			[]metricdata.DataPoint[float64]{{Attributes: rank(0), Time: at(10), Value: 7},
				{Attributes: rank(0), Time: at(20), Value: 9}}, []sent{{10, 20, 2}}},
		{"grows",
			[]metricdata.DataPoint[float64]{point(0, 3, 10, 7), point(0, 3, 20, 7), point(0, 3, 30, 9)},
			[]sent{{3, 10, 7}, {10, 20, 0}, {20, 30, 2}}},
		{"begins anew",
			[]metricdata.DataPoint[float64]{point(0, 3, 10, 7), point(0, 15, 20, 9)}, []sent{{3, 10, 7}, {15, 20, 9}}},
		{"another joins it that began earlier",
			[]metricdata.DataPoint[float64]{point(0, 3, 10, 7), point(0, 2, 20, 9)}, []sent{{3, 10, 7}, {10, 20, 2}}},
		{"its beginning comes to be known",
			[]metricdata.DataPoint[float64]{{Attributes: rank(0), Time: at(10), Value: 7}, point(0, 3, 20, 9)},
			[]sent{{10, 20, 2}}},
		{"falls, and begins earlier",
			[]metricdata.DataPoint[float64]{point(0, 3, 10, 7), point(0, 2, 20, 5), point(0, 2, 30, 6)},
			[]sent{{3, 10, 7}, {20, 30, 1}}},
		{"falls, and nobody says since when",
			[]metricdata.DataPoint[float64]{point(0, 3, 10, 7), point(0, 3, 20, 2), point(0, 3, 30, 4)},
			[]sent{{3, 10, 7}, {20, 30, 2}}},
		{"an ended rank's, read again",
			[]metricdata.DataPoint[float64]{point(0, 3, 10, 7), point(0, 3, 10, 7)}, []sent{{3, 10, 7}}},
		{"a clock that was set back",
			[]metricdata.DataPoint[float64]{point(0, 3, 10, 7), point(0, 3, 8, 9), point(0, 3, 9, 9)},
			[]sent{{3, 10, 7}, {8, 8, 2}, {8, 9, 0}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDeltas(metricdata.DeltaTemporality, metricdata.DeltaTemporality, at(0))
			var got []sent
			for _, p := range tt.read {
				d.pushed()
				for _, b := range batchesOf(d, counter("calls", p)) {
					for _, m := range b.data.ScopeMetrics[0].Metrics {
						data := m.Data.(metricdata.Sum[float64])
						assert.Equal(t, metricdata.DeltaTemporality, data.Temporality)
						assert.True(t, data.IsMonotonic)
						for _, p := range data.DataPoints {
							got = append(got, sent{int(p.StartTime.Sub(epoch).Seconds()),
								int(p.Time.Sub(epoch).Seconds()), p.Value})
						}
					}
					b.delivered()
				}
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestDeltaFloat(t *testing.T) {
	d := newDeltas(metricdata.DeltaTemporality, metricdata.DeltaTemporality, at(0))
	table := d.table(&scope{}, &metricdata.Metrics{Name: "seconds"}, kindSum)
	for i, step := range []struct{ value, want float64 }{{0.5, 0.5}, {1.25, 0.75}, {math.NaN(), -1}, {3, -1}, {4, 1}} {
		points, next := deltaSum(d, table, []metricdata.DataPoint[float64]{{Attributes: rank(0), StartTime: at(1),
			Time: at(2 + i), Value: step.value}})
		if step.want < 0 {
			assert.Empty(t, points, "the base of what follows")
			continue
		}
		require.Len(t, points, 1)
		assert.InDelta(t, step.want, points[0].Value, 0, "of %v", step.value)
		next[0].apply()
	}
}

// Which data become deltas.
func TestTemporality(t *testing.T) {
	for _, tt := range []struct {
		preference                         string
		monotonic, other, histogram, expon metricdata.Temporality
	}{
		{"cumulative", metricdata.CumulativeTemporality, metricdata.CumulativeTemporality,
			metricdata.CumulativeTemporality, metricdata.CumulativeTemporality},
		{"delta", metricdata.DeltaTemporality, metricdata.CumulativeTemporality, metricdata.DeltaTemporality,
			metricdata.DeltaTemporality},
		{"lowmemory", metricdata.CumulativeTemporality, metricdata.CumulativeTemporality,
			metricdata.DeltaTemporality, metricdata.DeltaTemporality},
	} {
		t.Run(tt.preference, func(t *testing.T) {
			cfg, err := Config{Temporality: tt.preference, Environ: func(string) string { return "" }}.Complete()
			require.NoError(t, err)
			var d *deltas
			if tt.preference != "cumulative" {
				d = newDeltas(cfg.done.sums, cfg.done.histograms, at(0))
			}
			level := counter("level", point(0, 1, 2, 3))
			data := level.Data.(metricdata.Sum[float64])
			data.IsMonotonic = false
			level.Data = data
			batches := batchesOf(d, counter("calls", point(0, 1, 2, 3)), level, explicitOf("time", 0, 1, 2, 1, 2),
				exponentialOf("wait", 0, 1, 2, 1, 2))
			require.Len(t, batches, 1)
			metrics := batches[0].data.ScopeMetrics[0].Metrics
			require.Len(t, metrics, 4)
			assert.Equal(t, tt.monotonic, metrics[0].Data.(metricdata.Sum[float64]).Temporality)
			assert.Equal(t, tt.other, metrics[1].Data.(metricdata.Sum[float64]).Temporality)
			assert.Equal(t, tt.histogram, metrics[2].Data.(metricdata.Histogram[float64]).Temporality)
			assert.Equal(t, tt.expon, metrics[3].Data.(metricdata.ExponentialHistogram[float64]).Temporality)
		})
	}
}

// Users choose names of communicators, and the hash of attributes is no secret: who meets it gets nothing of
// another's series.
func TestSeriesOfOneHash(t *testing.T) {
	d := newDeltas(metricdata.DeltaTemporality, metricdata.DeltaTemporality, at(0))
	d.distinct = func(*attribute.Set) attribute.Distinct { return attribute.Distinct{} }
	table := d.table(&scope{}, &metricdata.Metrics{Name: "calls"}, kindSum)
	for push, want := range [][]float64{{100, 1, 50}, {1, 1, 1}} {
		d.pushed()
		points, next := deltaSum(d, table, []metricdata.DataPoint[float64]{point(0, 1, 2+push, int64(100+push)),
			point(1, 1, 2+push, int64(1+push)), point(2, 1, 2+push, int64(50+push))})
		for i, n := range next {
			assert.Equal(t, want[i], points[i].Value)
			n.apply()
		}
	}
	for range 3 * forgetAfter {
		d.pushed()
		deltaSum(d, table, []metricdata.DataPoint[float64]{point(1, 1, 9, 9)})
	}
	var left int
	for s := table.series[attribute.Distinct{}]; s != nil; s = s.other {
		left++
		assert.Equal(t, rank(1), s.set)
	}
	assert.Equal(t, 1, left)
}

// A histogram of which one bucket has fallen is the base of what follows, even if there are more events in all than
// before. Exponential buckets that are empty may come and go.
func TestDeltaOfBuckets(t *testing.T) {
	type step struct {
		offset     int32
		now, delta []uint64
	}
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"grow", []step{{0, []uint64{1, 2}, []uint64{1, 2}}, {0, []uint64{1, 5}, []uint64{0, 3}}}},
		{"one falls", []step{{0, []uint64{5, 1}, []uint64{5, 1}}, {0, []uint64{4, 9}, nil}}},
		{"wider", []step{{0, []uint64{1, 2}, []uint64{1, 2}}, {-1, []uint64{7, 1, 2}, []uint64{7, 0, 0}}}},
		{"an empty one goes", []step{{-1, []uint64{0, 2}, []uint64{0, 2}}, {0, []uint64{3}, []uint64{1}}}},
		{"one goes", []step{{-1, []uint64{1, 2}, []uint64{1, 2}}, {0, []uint64{9}, nil}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDeltas(metricdata.DeltaTemporality, metricdata.DeltaTemporality, at(0))
			explicit, exponential := d.table(&scope{}, &metricdata.Metrics{Name: "m"}, kindHistogram),
				d.table(&scope{}, &metricdata.Metrics{Name: "m"}, kindExponential)
			for i, s := range tt.steps {
				count := total(s.now)
				points, next := deltaExponential(d, exponential,
					[]metricdata.ExponentialHistogramDataPoint[float64]{{Attributes: rank(0), StartTime: at(1),
						Time:  at(2 + i),
						Count: count, PositiveBucket: metricdata.ExponentialBucket{Offset: s.offset, Counts: s.now}}})
				if s.delta == nil {
					assert.Empty(t, points)
					continue
				}
				require.Len(t, points, 1)
				assert.Equal(t, metricdata.ExponentialBucket{Offset: s.offset, Counts: s.delta},
					points[0].PositiveBucket)
				assert.Equal(t, total(s.delta), points[0].Count)
				next[0].apply()
				if s.offset != tt.steps[0].offset || len(s.now) != 2 {
					continue // explicit ones don't move
				}
				also, next := deltaHistogram(d, explicit,
					[]metricdata.HistogramDataPoint[float64]{{Attributes: rank(0), StartTime: at(1), Time: at(2 + i),
						Count: count, Bounds: []float64{1}, BucketCounts: s.now}})
				require.Len(t, also, 1)
				assert.Equal(t, s.delta, also[0].BucketCounts)
				next[0].apply()
			}
		})
	}
}

// What is measured otherwise than before has another scale. A coarser one goes on, where each of its buckets holds
// what was delivered of it; anything else is the base of what follows: nothing that was never counted is subtracted.
func TestDeltaOfOtherScales(t *testing.T) {
	for _, tt := range []struct {
		name     string
		was, is  int32
		before   []uint64 // from bucket 0 up
		now      []uint64
		want     []uint64
		wantFrom int // second at which the delta begins
	}{
		{"the same", 2, 2, []uint64{1, 2, 0, 1}, []uint64{2, 2, 0, 4}, []uint64{1, 0, 0, 3}, 2},
		{"means, then single durations, no fewer", 2, 0, []uint64{1, 2, 0, 1}, []uint64{7, 3}, []uint64{3, 3}, 2},
		{"means, then single durations elsewhere", 2, 0, []uint64{1, 2, 0, 1}, []uint64{3, 9}, nil, 0},
		{"single durations, then means", 0, 2, []uint64{1, 2}, []uint64{4, 4, 4, 4}, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDeltas(metricdata.DeltaTemporality, metricdata.DeltaTemporality, at(0))
			table := d.table(&scope{}, &metricdata.Metrics{Name: "m"}, kindExponential)
			push := func(now int, scale int32, counts []uint64) []metricdata.ExponentialHistogramDataPoint[float64] {
				points, next := deltaExponential(d, table,
					[]metricdata.ExponentialHistogramDataPoint[float64]{{Attributes: rank(0), StartTime: at(1),
						Time:  at(now),
						Count: total(counts), Sum: float64(total(counts)), Scale: scale,
						PositiveBucket: metricdata.ExponentialBucket{Counts: counts}}})
				for _, a := range next {
					a.apply()
				}
				return points
			}
			require.Len(t, push(2, tt.was, tt.before), 1)
			points := push(3, tt.is, tt.now)
			if tt.want == nil {
				assert.Empty(t, points)
				return
			}
			require.Len(t, points, 1)
			got := points[0]
			assert.Equal(t, tt.is, got.Scale)
			assert.Equal(t, tt.want, got.PositiveBucket.Counts)
			assert.Equal(t, total(tt.want), got.Count)
			assert.Equal(t, float64(total(tt.want)), got.Sum)
			assert.Equal(t, at(tt.wantFrom), got.StartTime)
		})
	}
}

// A histogram whose bounds change has begun anew; if its start does not say so, it is the base of what follows.
func TestDeltaOfOtherBounds(t *testing.T) {
	d := newDeltas(metricdata.DeltaTemporality, metricdata.DeltaTemporality, at(0))
	table := d.table(&scope{}, &metricdata.Metrics{Name: "m"}, kindHistogram)
	push := func(start, now int, bounds []float64, counts ...uint64) (got [][]uint64) {
		points, next := deltaHistogram(d, table, []metricdata.HistogramDataPoint[float64]{{Attributes: rank(0),
			StartTime: at(start), Time: at(now), Count: total(counts),
			Bounds: bounds, BucketCounts: counts}})
		for _, a := range next {
			a.apply()
		}
		for _, p := range points {
			got = append(got, p.BucketCounts)
		}
		return got
	}
	assert.Equal(t, [][]uint64{{5, 3, 1}}, push(1, 2, []float64{1, 4}, 5, 3, 1))
	assert.Equal(t, [][]uint64{{2, 1}}, push(3, 4, []float64{2}, 2, 1))
	assert.Empty(t, push(3, 5, []float64{3}, 4, 1))
	assert.Equal(t, [][]uint64{{1, 0}}, push(3, 6, []float64{3}, 5, 1))
}

// Two metrics of one name with different units, as there are after a reload of rules, are two.
func TestDeltaOfTwoUnits(t *testing.T) {
	d := newDeltas(metricdata.DeltaTemporality, metricdata.DeltaTemporality, at(0))
	for i, want := range [][]float64{{1000, 7}, {24, 1}} {
		was, is := counter("m", point(0, 1, 2+i, 1000+24*int64(i))), counter("m", point(0, 1, 2+i, 7+int64(i)))
		was.Unit = "By"
		var got []float64
		for _, b := range batchesOf(d, was, is) {
			for _, m := range b.data.ScopeMetrics[0].Metrics {
				got = append(got, m.Data.(metricdata.Sum[float64]).DataPoints[0].Value)
			}
			b.delivered()
		}
		assert.Equal(t, want, got)
	}
}

// keyOf is of the metrics of deltasAddUp.
func keyOf(k string) tableKey {
	unit := "s"
	if k == "sum" {
		unit = "{message}"
	}
	return tableKey{inScope()[0].Scope, "m", unit, kindOf(k)}
}

func TestCoarser(t *testing.T) {
	b := metricdata.ExponentialBucket{Offset: -3, Counts: []uint64{1, 2, 3, 4, 5}} // -3 … 1
	assert.Equal(t, b, coarser(b, 0))
	// -3 | -2 -1 | 0 1
	assert.Equal(t, metricdata.ExponentialBucket{Offset: -2, Counts: []uint64{1, 5, 9}}, coarser(b, 1))
	assert.Equal(t, metricdata.ExponentialBucket{Offset: -1, Counts: []uint64{6, 9}}, coarser(b, 2))
	assert.Equal(t, metricdata.ExponentialBucket{Offset: -1, Counts: []uint64{6, 9}}, coarser(b, 40))
}

func batchesOf(d *deltas, metrics ...metricdata.Metrics) []*batch {
	batches, _ := pack(resource.Empty(), blocks(d, inScope(metrics...)), maxMessage)
	return batches
}

func explicitOf(name string, r, start, now int, counts ...uint64) metricdata.Metrics {
	p := metricdata.HistogramDataPoint[float64]{Attributes: rank(r), StartTime: at(start), Time: at(now),
		BucketCounts: counts, Min: metricdata.NewExtrema(1.0), Max: metricdata.NewExtrema(2.0)}
	for i, n := range counts {
		p.Count += n
		p.Sum += float64(n) * float64(i)
		if i > 0 {
			p.Bounds = append(p.Bounds, float64(i))
		}
	}
	return metricdata.Metrics{Name: name, Unit: "s",
		Data: metricdata.Histogram[float64]{DataPoints: []metricdata.HistogramDataPoint[float64]{p},
			Temporality: metricdata.CumulativeTemporality}}
}

func exponentialOf(name string, r, start, now int, counts ...uint64) metricdata.Metrics {
	p := metricdata.ExponentialHistogramDataPoint[float64]{Attributes: rank(r), StartTime: at(start), Time: at(now),
		Scale:          3,
		PositiveBucket: metricdata.ExponentialBucket{Offset: -1, Counts: counts}, Min: metricdata.NewExtrema(1.0),
		Max: metricdata.NewExtrema(2.0)}
	for i, n := range counts {
		p.Count += n
		p.Sum += float64(n) * float64(i)
	}
	return metricdata.Metrics{Name: name, Unit: "s",
		Data: metricdata.ExponentialHistogram[float64]{DataPoints: []metricdata.ExponentialHistogramDataPoint[float64]{p},
			Temporality: metricdata.CumulativeTemporality}}
}

// life is what a receiver has got of a series, beside what the series is.
type life struct {
	// The series.
	start  int
	counts []uint64 // value of a counter: their sum
	gone   int      // pushes in a row

	// The receiver's view: what the last delivered point had, and what the deltas since counting began add up to.
	// What was taken as a base is added to both.
	seen      bool
	lastStart int
	last, sum []uint64
	lastEnd   time.Time
}

// Whatever happens — series grow, begin anew, vanish and return, messages are refused, receivers are away — the
// deltas that have been delivered add up to the cumulative value that has been delivered last, in each life of each
// series. No point is counted twice, even of series whose state has been dropped meanwhile.
func TestDeltasAddUp(t *testing.T) {
	for _, kind := range []string{"sum", "explicit", "exponential"} {
		t.Run(kind, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { deltasAddUp(t, kind) }) })
	}
}

func deltasAddUp(t *rapid.T, kind string) {
	const buckets = 3
	d := newDeltas(metricdata.DeltaTemporality, metricdata.DeltaTemporality, at(0))
	all := make([]*life, rapid.IntRange(1, 4).Draw(t, "series"))
	clock := 1
	for i := range all {
		all[i] = &life{start: rapid.IntRange(-1, 1).Draw(t, "start"), counts: make([]uint64, buckets),
			sum: make([]uint64, buckets), last: make([]uint64, buckets)}
	}
	pick := func(t *rapid.T) *life { return rapid.SampledFrom(all).Draw(t, "series") }
	push := func(t *rapid.T, send func() bool) {
		clock++
		d.pushed()
		var metrics []metricdata.Metrics
		for i, l := range all {
			if l.gone > 0 {
				l.gone++
				continue
			}
			switch kind {
			case "sum":
				metrics = append(metrics, counter("m", point(i, l.start, clock, int64(total(l.counts)))))
			case "explicit":
				metrics = append(metrics, explicitOf("m", i, l.start, clock, slices.Clone(l.counts)...))
			default:
				metrics = append(metrics, exponentialOf("m", i, l.start, clock, slices.Clone(l.counts)...))
			}
		}
		known := map[*life]bool{}
		for i, l := range all {
			if table := d.tables[keyOf(kind)]; table != nil {
				set := rank(i)
				known[l] = table.series[set.Equivalent()] != nil
			}
		}
		scopes := blocks(d, inScope(metrics...))
		based := map[*life]bool{}
		for i, l := range all {
			table := d.tables[keyOf(kind)]
			set := rank(i)
			if table == nil || l.gone > 0 {
				continue
			}
			if s := table.series[set.Equivalent()]; s != nil && !known[l] && s.known {
				based[l] = true
			}
		}
		if n := d.takeBased(); n != len(based) {
			t.Fatalf("%d bases are counted, not %d", n, len(based))
		}
		for l := range based {
			if l.start >= 0 && !anyForgotten(d, l.start) {
				t.Fatalf("a series that began at %d after the pusher is a base", l.start)
			}
			l.lastStart, l.lastEnd, l.seen = l.start, at(clock), true
			l.last, l.sum = slices.Clone(l.counts), slices.Clone(want(kind, l.counts))
		}
		batches, tooLarge := pack(resource.Empty(), scopes, 400)
		if tooLarge > 0 {
			t.Fatal("too large")
		}
		for _, b := range batches {
			if !send() {
				continue
			}
			for _, m := range b.data.ScopeMetrics[0].Metrics {
				r, start, end, delta := only(t, m)
				receive(t, all[r], start, end, delta)
			}
			b.delivered()
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"grow": func(t *rapid.T) {
			l := pick(t)
			l.counts[rapid.IntRange(0, buckets-1).Draw(t, "bucket")] += uint64(rapid.IntRange(0, 5).Draw(t, "by"))
		},
		"begin anew": func(t *rapid.T) {
			l := pick(t)
			clock++
			l.start, l.counts = clock, make([]uint64, buckets)
			l.counts[0] = uint64(rapid.IntRange(0, 9).Draw(t, "value"))
		},
		"vanish":  func(t *rapid.T) { pick(t).gone = 1 },
		"return":  func(t *rapid.T) { pick(t).gone = 0 },
		"push":    func(t *rapid.T) { push(t, func() bool { return true }) },
		"refused": func(t *rapid.T) { push(t, func() bool { return rapid.Bool().Draw(t, "accepted") }) },
		"away": func(t *rapid.T) {
			for range rapid.IntRange(1, 3*forgetAfter).Draw(t, "pushes") {
				push(t, func() bool { return false })
			}
		},
		"long": func(t *rapid.T) {
			for range 2*forgetAfter + 1 {
				push(t, func() bool { return true })
			}
		},
	})
	// Whoever is there gets all in the end.
	push(t, func() bool { return true })
	for i, l := range all {
		if l.gone == 0 && !slices.Equal(l.sum, want(kind, l.counts)) {
			t.Fatalf("series %d has %v, the receiver %v", i, l.counts, l.sum)
		}
	}
}

func receive(t *rapid.T, l *life, start, end time.Time, delta []uint64) {
	if end.Before(start) {
		t.Fatalf("a delta from %v to %v", start, end)
	}
	now := l.counts
	if len(delta) == 1 {
		now = []uint64{total(l.counts)}
	}
	fell := false
	for i := range now {
		if l.seen && now[i] < wanted(l.last, len(delta))[i] {
			fell = true
		}
	}
	if !l.seen || l.start != l.lastStart || fell {
		l.sum = make([]uint64, len(delta)) // another life
	} else if start.Before(l.lastEnd) {
		t.Fatalf("a delta from %v overlaps the one before, which ended at %v", start, l.lastEnd)
	}
	l.sum = wanted(l.sum, len(delta))
	for i := range delta {
		l.sum[i] += delta[i]
	}
	if !slices.Equal(l.sum, now) {
		t.Fatalf("deltas add up to %v, not to %v", l.sum, now)
	}
	l.seen, l.lastStart, l.lastEnd = true, l.start, end
	l.last = slices.Clone(l.counts)
}

// wanted is counts as one number where deltas are.
func wanted(counts []uint64, n int) []uint64 {
	if n == 1 && len(counts) > 1 {
		return []uint64{total(counts)}
	}
	return counts
}

func want(kind string, counts []uint64) []uint64 {
	if kind == "sum" {
		return wanted(counts, 1)
	}
	return counts
}

func total(counts []uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

func kindOf(s string) kind {
	return map[string]kind{"sum": kindSum, "explicit": kindHistogram, "exponential": kindExponential}[s]
}

func maxForgotten(d *deltas) int64 {
	n := d.forgotten
	for _, t := range d.tables {
		n = max(n, t.forgotten)
	}
	return n
}

func anyForgotten(d *deltas, start int) bool { return at(start).UnixNano() <= maxForgotten(d) }

// only returns the single point of a metric.
func only(t *rapid.T, m metricdata.Metrics) (r int, start, end time.Time, delta []uint64) {
	rankOf := func(set attribute.Set) int {
		v, _ := set.Value("rank")
		return int(v.AsInt64())
	}
	switch data := m.Data.(type) {
	case metricdata.Sum[float64]:
		p := data.DataPoints[0]
		if p.Value < 0 {
			t.Fatalf("a delta of %v", p.Value)
		}
		return rankOf(p.Attributes), p.StartTime, p.Time, []uint64{uint64(p.Value)}
	case metricdata.Histogram[float64]:
		p := data.DataPoints[0]
		check(t, p.Count, p.Sum, p.BucketCounts)
		if _, ok := p.Min.Value(); ok {
			t.Fatal("a least value of an interval is not known")
		}
		return rankOf(p.Attributes), p.StartTime, p.Time, p.BucketCounts
	case metricdata.ExponentialHistogram[float64]:
		p := data.DataPoints[0]
		check(t, p.Count, p.Sum, p.PositiveBucket.Counts)
		return rankOf(p.Attributes), p.StartTime, p.Time, p.PositiveBucket.Counts
	}
	t.Fatal(fmt.Sprintf("%T", m.Data))
	return 0, time.Time{}, time.Time{}, nil
}

// check checks that a histogram is one.
func check(t *rapid.T, count uint64, sum float64, buckets []uint64) {
	var want float64
	for i, n := range buckets {
		want += float64(i) * float64(n)
	}
	if count != total(buckets) || sum != want {
		t.Fatalf("a histogram of %d with a sum of %v, and %v", count, sum, buckets)
	}
}
