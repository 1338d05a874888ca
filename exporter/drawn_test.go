package exporter

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/board"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/series"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// fixed is a rank's figures with given series.
type fixed struct {
	figures
	structure uint64
	series    []*mapping.Series
}

func (f *fixed) Structure() uint64            { return f.structure }
func (f *fixed) Series() []*mapping.Series    { return f.series }
func (f *fixed) Objects() []series.ObjectInfo { return nil }
func (f *fixed) Weight() int                  { return len(f.series) }

// drawn is a page without an exporter, of ranks with given figures.
type drawn struct {
	*board.Board
	ranks []*board.Rank
}

// newDrawn returns one on which nothing stands, with what does not come onto it, by reason.
func newDrawn() (p *drawn, dropped map[string]int) {
	dropped = map[string]int{}
	p = &drawn{Board: board.New(func(reason string, n int) { dropped[reason] += n })}
	return p, dropped
}

// show brings one more rank onto the page.
func (p *drawn) show(number int, f *fixed, started time.Time, sampled, up bool) {
	id := Identity{JobID: "1", World: "0", User: "alice", Rank: number}
	r := &board.Rank{ID: id, Started: started, Labels: board.Labels(id)}
	p.ranks = append(p.ranks, r)
	p.Begin(p.ranks, 100, 100)
	p.Update(r, f, &board.Facts{Made: 1, Sampled: sampled})
	p.Conclude(r, mpit.EndNone, up, api.StateSeconds{})
}

// sameLines compares a page with what expfmt makes of the same families: line by line, numbers as numbers.
func sameLines(t require.TestingT, want, got string) {
	wants, gots := strings.Split(want, "\n"), strings.Split(got, "\n")
	require.Equal(t, len(wants), len(gots), "%s\nand\n%s", want, got)
	for i, w := range wants {
		if w == gots[i] {
			continue
		}
		require.False(t, strings.HasPrefix(w, "#"), "%s\nand\n%s", w, gots[i])
		wantName, wantNumber := splitLine(t, w)
		gotName, gotNumber := splitLine(t, gots[i])
		require.Equal(t, wantName, gotName)
		require.Equal(t, math.Float64bits(wantNumber), math.Float64bits(gotNumber), "%s\nand\n%s", w, gots[i])
	}
}

func splitLine(t require.TestingT, line string) (name string, number float64) {
	at := strings.LastIndexByte(line, ' ')
	require.Positive(t, at, line)
	number, err := strconv.ParseFloat(line[at+1:], 64)
	require.NoError(t, err, line)
	return line[:at], number
}

// byExpfmt is the page as client_golang renders it.
func byExpfmt(t require.TestingT, families []*dto.MetricFamily, format expfmt.Format) string {
	var out bytes.Buffer
	encoder := expfmt.NewEncoder(&out, format.WithEscapingScheme(model.NoEscaping))
	for _, f := range families {
		require.NoError(t, encoder.Encode(f))
	}
	return out.String()
}

func byPage(t require.TestingT, p *board.Board, to exposition.Format) string {
	b := p.Write(to, 1)
	defer b.Release()
	var text strings.Builder
	require.NoError(t, b.Response(nil).WriteTo(&text, false))
	return text.String()
}

var (
	drawText = rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a\"b", `back\slash`, "two\nlines", `\n`,
		"ü", "1", "10"}))
	drawNumber = rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{
		0, math.Copysign(0, -1), 1, -1, 1 << 53, 1<<53 - 1, -1 << 53, 1 << 63, 1e21, 1e-9, 123456789e-9,
		4611686.018427387, math.Nextafter(0.3, 1), 1e300,
		math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64,
	}), rapid.Map(rapid.Uint32(), func(n uint32) float64 { return float64(n) / 1e6 }))
	drawTime = rapid.Map(rapid.Int64Range(0, 4e18), func(n int64) time.Time {
		if n < 1e17 {
			return time.Time{}
		}
		return time.Unix(0, n)
	})
)

// drawSeries draws a rank's series: what their families are called follows from their kind, as in mapping.
func drawSeries(t *rapid.T) (list []*mapping.Series) {
	endings := map[mapping.Kind]string{mapping.KindGauge: "_bytes", mapping.KindCounter: "_seconds_total",
		mapping.KindUntyped: "", mapping.KindHistogram: "_seconds"}
	for number := range rapid.IntRange(1, 6).Draw(t, "families") {
		kind := mapping.Kind(rapid.IntRange(0, 3).Draw(t, "kind"))
		m := &mapping.Metric{Name: "mpit_x" + strconv.Itoa(number) + endings[kind], Help: drawText.Draw(t, "help"),
			Kind: kind}
		for range rapid.IntRange(1, 4).Draw(t, "series") {
			s := &mapping.Series{
				Metric: m, Valid: rapid.Float64Range(0, 1).Draw(t, "valid") < 0.8,
				Lasting: rapid.Bool().Draw(t, "lasting"),
			}
			if created := drawTime.Draw(t, "created"); !created.IsZero() {
				s.Since = created.UnixNano()
			}
			for _, name := range []string{"comm", "peer", "state"} {
				if rapid.Bool().Draw(t, "label") {
					s.Labels = append(s.Labels, mapping.Label{Name: name, Value: drawText.Draw(t, "value")})
				}
			}
			s.Value = drawNumber.Draw(t, "number")
			if kind == mapping.KindHistogram {
				h := &mapping.Histogram{Bytes: rapid.Bool().Draw(t, "bytes"), Sum: s.Value}
				h.Bounds = rapid.SampledFrom([][]float64{{}, {1}, {1e-6, 0.5, 1, 1e9}, exactBounds()}).Draw(t, "bounds")
				for range len(h.Bounds) + 1 {
					n := rapid.Uint64Range(0, 1<<50).Draw(t, "count")
					h.Counts = append(h.Counts, n)
					h.Count += n
				}
				s.Histogram = h
			}
			list = append(list, s)
		}
	}
	return list
}

// Whatever ranks have: both text formats are, line by line, what client_golang makes of the messages, and protobuf is
// that byte by byte.
func TestTextIsWhatClientGolangWrites(t *testing.T) { rapid.Check(t, checkText) }

func FuzzText(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkText)) }

func checkText(t *rapid.T) {
	p, _ := newDrawn()
	for number := range rapid.IntRange(1, 3).Draw(t, "ranks") {
		figures := &fixed{structure: 1, series: drawSeries(t)}
		for _, s := range figures.series {
			if s.Histogram != nil && rapid.Bool().Draw(t, "native") {
				drawNative(t, s.Histogram)
			}
		}
		started, sampled := drawTime.Draw(t, "started"), rapid.Bool().Draw(t, "sampled")
		p.show(number, figures, started, sampled, !rapid.Bool().Draw(t, "late"))
	}
	families := familiesOf(p.Write(exposition.Protobuf, 1))
	series := p.Series()
	sameLines(t, byExpfmt(t, families, expfmt.FmtText), byPage(t, p.Board, exposition.Text))
	assert.Equal(t, series, p.Series())
	sameLines(t, byExpfmt(t, families, expfmt.FmtOpenMetrics_1_0_0),
		byPage(t, p.Board, exposition.OpenMetrics))
	assert.Equal(t, byExpfmt(t, families, expfmt.FmtProtoDelim), byPage(t, p.Board,
		exposition.Protobuf))
	assert.Equal(t, series, p.Series())
}

// exactBounds are powers of two, as those of the call profile.
func exactBounds() (bounds []float64) {
	for e := -20; e <= 4; e += 2 {
		bounds = append(bounds, math.Ldexp(1, e))
	}
	return bounds
}

// The bounds of a distribution are powers of two: a reader of the page gets the very same ones, and the very same sum.
func TestBoundsOfDistributionsAsText(t *testing.T) {
	for _, format := range []exposition.Format{exposition.Text, exposition.OpenMetrics} {
		p, _ := newDrawn()
		h := &mapping.Histogram{Schema: mapping.ExactSchema, Bounds: exactBounds(),
			Sum: 12345678901 * mpit.DistributionUnit}
		for i := range len(h.Bounds) + 1 {
			h.Counts = append(h.Counts, uint64(i))
			h.Count += uint64(i)
		}
		p.show(0, &fixed{structure: 1, series: []*mapping.Series{{
			Metric: &mapping.Metric{Name: "mpit_x", Kind: mapping.KindHistogram}, Histogram: h, Valid: true,
		}}}, time.Time{}, false, true)
		var bounds []float64
		lines := map[string]string{}
		for line := range strings.Lines(byPage(t, p.Board, format)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			series, _, _ := strings.Cut(name, "{")
			lines[series] = value
			if _, le, is := strings.Cut(name, `,le="`); is {
				le, _, _ = strings.Cut(le, `"`)
				bound, err := strconv.ParseFloat(le, 64)
				require.NoError(t, err)
				bounds = append(bounds, bound)
				if format == exposition.OpenMetrics {
					assert.True(t, strings.ContainsAny(le, ".eI"), "%s is no float to OpenMetrics", le)
				}
			}
		}
		assert.Equal(t, append(exactBounds(), math.Inf(1)), bounds)
		sum, err := strconv.ParseFloat(lines["mpit_x_sum"], 64)
		require.NoError(t, err)
		assert.Equal(t, h.Sum, sum)
		assert.Equal(t, "91", lines["mpit_x_count"])
	}
}

// drawNative draws native buckets for all that a histogram has counted.
func drawNative(t *rapid.T, h *mapping.Histogram) {
	h.Schema = rapid.SampledFrom([]int32{mapping.NativeSchema, mapping.ExactSchema}).Draw(t, "schema")
	h.NativeZero = rapid.Uint64Range(0, h.Count).Draw(t, "zero")
	rest := h.Count - h.NativeZero
	at := rapid.Int32Range(-200, 50).Draw(t, "index")
	for rest > 0 {
		n := rapid.Uint64Range(min(rest, max(1<<40, h.Count>>7)), rest).Draw(t, "n")
		h.Native = append(h.Native, mapping.NativeBucket{Index: at, Count: n})
		rest -= n
		at += rapid.Int32Range(1, 3).Draw(t, "gap")
	}
}

// Whatever ranks have, native buckets that don't hold what is counted among it.
func TestPointsAreWhatClientGolangGets(t *testing.T) { rapid.Check(t, checkPoints) }

func FuzzPoints(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkPoints)) }

func checkPoints(t *rapid.T) {
	p, _ := newDrawn()
	for number := range rapid.IntRange(1, 3).Draw(t, "ranks") {
		figures := &fixed{structure: 1, series: drawSeries(t)}
		for _, s := range figures.series {
			// No two series differ only in whether a label is empty or not there, which is the same to receivers.
			s.Labels = slices.DeleteFunc(s.Labels, func(l mapping.Label) bool { return l.Value == "" })
			s.Metric.OTelName = strings.ReplaceAll(s.Metric.Name, "_", ".")
			switch s.Metric.Kind {
			case mapping.KindGauge:
				s.Metric.Unit, s.Metric.OTelKind = "By", mapping.OTelSum
			case mapping.KindCounter, mapping.KindHistogram:
				s.Metric.Unit = "s"
			}
			if h := s.Histogram; h != nil && rapid.Bool().Draw(t, "native") {
				drawNative(t, h)
			}
		}
		p.show(number, figures, time.Time{}, false, rapid.Bool().Draw(t, "up"))
	}
	families := familiesOf(p.Write(exposition.Protobuf, 1))
	shown := p.Series()
	points := p.Points(testTime)
	assert.Equal(t, shown, p.Series())
	sameSaid(t, families, points, testTime)
}
