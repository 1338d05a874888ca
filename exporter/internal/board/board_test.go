package board

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/series"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// testTime is when what is tested happens.
var testTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fixed is figures with given series.
type fixed struct {
	facts     Facts
	structure uint64
	series    []*mapping.Series
}

func (f *fixed) Structure() uint64            { return f.structure }
func (f *fixed) Series() []*mapping.Series    { return f.series }
func (f *fixed) Objects() []series.ObjectInfo { return nil }

// pageRank returns a rank with such series of one gauge, one for each value of label l.
func pageRank(number int, name string, values ...string) (*Rank, *fixed) {
	metric := &mapping.Metric{Name: name, Kind: mapping.KindGauge}
	f := &fixed{structure: 1}
	for i, v := range values {
		f.series = append(f.series, &mapping.Series{Metric: metric, Labels: []mapping.Label{{Name: "l", Value: v}},
			Value: float64(i), Valid: true})
	}
	id := identity.Identity{JobID: "1", World: "0", User: "alice", Rank: number}
	return &Rank{Key: mpit.RankID{byte(number)}, ID: id, Labels: Labels(id)}, f
}

// show brings the page up to date with a rank that is up, or late.
func show(p *Board, r *Rank, f *fixed, up ...bool) {
	p.describing.begin([]*Rank{r}, 100, 100)
	p.Update(r, f, &f.facts)
	p.Conclude(r, mpit.EndNone, !slices.Contains(up, false), api.StateSeconds{})
}

func countingPage() (*Board, map[string]int) {
	dropped := map[string]int{}
	p := New(func(reason string, n int) { dropped[reason] += n })
	return p, dropped
}

// familiesOf reads what is written as protobuf.
func familiesOf(t *testing.T, p *Board) (list []*dto.MetricFamily) {
	t.Helper()
	b := p.Write(exposition.Protobuf, 1)
	defer b.Release()
	var text bytes.Buffer
	require.NoError(t, b.Response(nil).WriteTo(&text, false))
	decoder := expfmt.NewDecoder(&text, expfmt.NewFormat(expfmt.TypeProtoDelim))
	for {
		f := &dto.MetricFamily{}
		err := decoder.Decode(f)
		if errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(t, err)
		list = append(list, f)
	}
}

// familyOf is one of these.
func familyOf(t *testing.T, p *Board, name string) *dto.MetricFamily {
	t.Helper()
	families := familiesOf(t, p)
	at := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == name })
	require.GreaterOrEqual(t, at, 0, name)
	return families[at]
}

// labelsOf returns label l of all series of a family, in their order, with the rank in front.
func labelsOf(t *testing.T, p *Board, name string) []string {
	t.Helper()
	var list []string
	for _, f := range familiesOf(t, p) {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.Metric {
			values := map[string]string{}
			for _, l := range m.Label {
				values[l.GetName()] = l.GetValue()
			}
			list = append(list, values["rank"]+":"+values["l"])
		}
	}
	return list
}

func TestSeriesStandInAStableOrder(t *testing.T) {
	p, _ := countingPage()
	second, others := pageRank(10, "mpit_x", "b", "10", "a", "9")
	first, figures := pageRank(9, "mpit_x", "z", "y")
	show(p, second, others)
	show(p, first, figures)
	assert.Equal(t, []string{"9:y", "9:z", "10:10", "10:9", "10:a", "10:b"}, labelsOf(t, p, "mpit_x"),
		"ranks as numbers, labels as text")

	figures.series = figures.series[:1]
	show(p, first, figures)
	assert.Len(t, labelsOf(t, p, "mpit_x"), 6, "nothing is built anew while the structure is the same")
	figures.structure++
	show(p, first, figures)
	assert.Equal(t, []string{"9:z", "10:10", "10:9", "10:a", "10:b"}, labelsOf(t, p, "mpit_x"))

	p.Forget(first)
	p.Forget(second)
	assert.Empty(t, familiesOf(t, p))
}

func TestValuesThatWereNotRead(t *testing.T) {
	p, _ := countingPage()
	r, figures := pageRank(0, "mpit_x", "a", "b")
	show(p, r, figures)
	figures.series[0].Value = 42
	show(p, r, figures)
	assert.Equal(t, 42.0, familyOf(t, p, "mpit_x").Metric[0].Gauge.GetValue())

	figures.series[0].Valid = false
	show(p, r, figures)
	assert.Equal(t, []string{"0:b"}, labelsOf(t, p, "mpit_x"), "what was not read is left out")
	figures.series[0].Valid = true
	show(p, r, figures)
	assert.Equal(t, []string{"0:a", "0:b"}, labelsOf(t, p, "mpit_x"))
}

func TestWhatDoesNotComeOntoThePageIsCounted(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*fixed)
		reason string
		left   []string
	}{
		{"a name of the exporter's own", func(f *fixed) {
			f.series[0].Metric = &mapping.Metric{Name: "mpit_rank_up", Kind: mapping.KindGauge}
		}, exposition.DroppedReserved, []string{"0:b", "0:c"}},
		{"a type that differs from the family's", func(f *fixed) {
			f.series[2].Metric = &mapping.Metric{Name: "mpit_x", Kind: mapping.KindCounter}
		}, exposition.DroppedConflict, []string{"0:a", "0:b"}},
		{"a type that differs in OpenMetrics alone", func(f *fixed) {
			f.series[2].Metric = &mapping.Metric{Name: "mpit_x_total", Kind: mapping.KindCounter}
		}, exposition.DroppedConflict, []string{"0:a", "0:b"}},
		{"a part of a histogram", func(f *fixed) {
			f.series[0].Metric = &mapping.Metric{Name: "mpit_y", Kind: mapping.KindHistogram}
			f.series[0].Histogram = &mapping.Histogram{Counts: []uint64{0}}
			f.series[2].Metric = &mapping.Metric{Name: "mpit_y_count_total", Kind: mapping.KindCounter}
		}, exposition.DroppedConflict, []string{"0:b"}},
		{"the same labels twice", func(f *fixed) { f.series[2].Labels = f.series[0].Labels },
			exposition.DroppedDuplicate, []string{"0:a", "0:b"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, dropped := countingPage()
			r, figures := pageRank(0, "mpit_x", "a", "b", "c")
			test.change(figures)
			show(p, r, figures)
			assert.Equal(t, test.left, labelsOf(t, p, "mpit_x"))
			assert.Equal(t, map[string]int{test.reason: 1}, dropped)
		})
	}
}

func TestHistogram(t *testing.T) {
	p, _ := countingPage()
	r, figures := pageRank(0, "mpit_x")
	h := &mapping.Histogram{Bounds: []float64{1, 2}, Counts: []uint64{3, 4, 5}, Count: 12, Sum: 20,
		Schema: mapping.NativeSchema}
	figures.series = []*mapping.Series{{
		Metric: &mapping.Metric{Name: "mpit_x", Kind: mapping.KindHistogram}, Histogram: h, Valid: true,
		Lasting: true, Since: testTime.UnixNano(),
	}}
	written := func() *dto.Histogram {
		show(p, r, figures)
		return familyOf(t, p, "mpit_x").Metric[0].Histogram
	}
	got := written()
	require.Len(t, got.Bucket, 2)
	assert.Equal(t, []uint64{3, 7}, []uint64{got.Bucket[0].GetCumulativeCount(), got.Bucket[1].GetCumulativeCount()})
	assert.Equal(t, uint64(12), got.GetSampleCount())
	assert.Equal(t, 20.0, got.GetSampleSum())
	assert.Equal(t, testTime, got.CreatedTimestamp.AsTime())
	assert.Nil(t, got.Schema, "native buckets that don't add up to the count are left out")

	h.Native = []mapping.NativeBucket{{Index: -3, Count: 2}, {Index: -2, Count: 5}, {Index: 4, Count: 4}}
	h.NativeZero = 1
	got = written()
	assert.EqualValues(t, mapping.NativeSchema, got.GetSchema())
	assert.Equal(t, uint64(1), got.GetZeroCount())
	assert.Equal(t, []int64{2, 3, -1}, got.PositiveDelta)
	require.Len(t, got.PositiveSpan, 2)
	assert.Equal(t, []int32{-3, 5}, []int32{got.PositiveSpan[0].GetOffset(), got.PositiveSpan[1].GetOffset()})
	assert.Equal(t, []uint32{2, 1}, []uint32{got.PositiveSpan[0].GetLength(), got.PositiveSpan[1].GetLength()})
	assert.Zero(t, testing.AllocsPerRun(10, func() { show(p, r, figures) }), "nothing is made anew")

	h.Schema = mapping.ExactSchema
	got = written()
	assert.EqualValues(t, mapping.ExactSchema, got.GetSchema(), "which schema it is the histogram says")

	h.Native, h.NativeZero = h.Native[:1], 10
	got = written()
	assert.Len(t, got.PositiveSpan, 1)
	assert.Equal(t, []int64{2}, got.PositiveDelta)
}
