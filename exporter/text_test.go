package exporter

import (
	"bytes"
	"math"
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

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

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
		if strings.Contains(wantName, "_created") { // which expfmt rounds
			require.InDelta(t, wantNumber, gotNumber, 1e-6, w)
			continue
		}
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
	encoder := expfmt.NewEncoder(&out, format.WithEscapingScheme(model.NoEscaping), expfmt.WithCreatedLines())
	for _, f := range families {
		require.NoError(t, encoder.Encode(f))
	}
	return out.String()
}

func byPage(p *page, s textStyle) string {
	b := &body{}
	p.render(b, s)
	return string(b.text)
}

var (
	drawText   = rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a\"b", `back\slash`, "two\nlines", `\n`, "ü", "1", "10"}))
	drawNumber = rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{
		0, math.Copysign(0, -1), 1, -1, 1 << 53, 1<<53 - 1, -1 << 53, 1 << 63, 1e21, 1e-9, 123456789e-9, 4611686.018427387, math.Nextafter(0.3, 1), 1e300,
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
	endings := map[mapping.Kind]string{mapping.KindGauge: "_bytes", mapping.KindCounter: "_seconds_total", mapping.KindUntyped: "", mapping.KindHistogram: "_seconds"}
	for number := range rapid.IntRange(1, 6).Draw(t, "families") {
		kind := mapping.Kind(rapid.IntRange(0, 3).Draw(t, "kind"))
		m := &mapping.Metric{Name: "mpit_x" + strconv.Itoa(number) + endings[kind], Help: drawText.Draw(t, "help"), Kind: kind}
		for range rapid.IntRange(1, 4).Draw(t, "series") {
			s := &mapping.Series{
				Metric: m, Valid: rapid.Float64Range(0, 1).Draw(t, "valid") < 0.8, Lasting: rapid.Bool().Draw(t, "lasting"),
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
				h := &mapping.Histogram{Bounds: rapid.SampledFrom([][]float64{{}, {1}, {1e-6, 0.5, 1, 1e9}, exactBounds()}).Draw(t, "bounds"), Sum: s.Value}
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

// Whatever ranks have: both text formats are, line by line, what client_golang makes of the messages.
func TestTextIsWhatClientGolangWrites(t *testing.T) { rapid.Check(t, checkText) }

func FuzzText(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkText)) }

func checkText(t *rapid.T) {
	p, _ := countingPage()
	for number := range rapid.IntRange(1, 3).Draw(t, "ranks") {
		r, figures := pageRank(number, "mpit_x")
		figures.series = drawSeries(t)
		r.started = drawTime.Draw(t, "started")
		c := r.contents.Lock()
		c.sampled = rapid.Bool().Draw(t, "sampled")
		r.contents.Unlock()
		if rapid.Bool().Draw(t, "late") {
			r.state = stateLate
		}
		show(p, r)
	}
	families := p.fill().families
	series := p.series
	sameLines(t, byExpfmt(t, families, expfmt.FmtText), byPage(p, textStyle{created: true}))
	assert.Equal(t, series, p.series)
	sameLines(t, byExpfmt(t, families, expfmt.FmtOpenMetrics_1_0_0), byPage(p, textStyle{openMetrics: true, created: true}))
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
	for _, openMetrics := range []bool{false, true} {
		p, _ := countingPage()
		r, figures := pageRank(0, "mpit_x")
		h := &mapping.Histogram{Schema: mapping.ExactSchema, Bounds: exactBounds(), Sum: 12345678901 * mpit.DistributionUnit}
		for i := range len(h.Bounds) + 1 {
			h.Counts = append(h.Counts, uint64(i))
			h.Count += uint64(i)
		}
		figures.series = []*mapping.Series{{Metric: &mapping.Metric{Name: "mpit_x", Kind: mapping.KindHistogram}, Histogram: h, Valid: true}}
		show(p, r)
		var bounds []float64
		lines := map[string]string{}
		for line := range strings.Lines(byPage(p, textStyle{openMetrics: openMetrics})) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			series, _, _ := strings.Cut(name, "{")
			lines[series] = value
			if _, le, is := strings.Cut(name, `,le="`); is {
				le, _, _ = strings.Cut(le, `"`)
				bound, err := strconv.ParseFloat(le, 64)
				require.NoError(t, err)
				bounds = append(bounds, bound)
				if openMetrics {
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

func TestNumbersAsText(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 12: "12", -12: "-12", 1e15: "1000000000000000", 1 << 53: "9.007199254740992e+15", 1e300: "1e+300",
		1.5: "1.5", 1e-9: "0.000000001", 12.000000001: "12.000000001", 1e-10: "1e-10", 1.0 / 3: "0.3333333333333333", -1.5: "-1.5",
		math.Nextafter(0.3, 1): "0.30000000000000004", math.Inf(1): "+Inf", math.Inf(-1): "-Inf",
	} {
		assert.Equal(t, want, string(appendNumber(nil, x)))
	}
	assert.Equal(t, "0", string(appendNumber(nil, math.Copysign(0, -1))))
	assert.Equal(t, "NaN", string(appendNumber(nil, math.NaN())))
}

// Series of one owner with the same labels share the text.
func TestLabelTexts(t *testing.T) {
	r, _ := pageRank(3, "mpit_x")
	texts := newLabelTexts(&portrait{rank: r})
	none := texts.of(nil)
	assert.Equal(t, `{jobid="1",rank="3",user="alice",world="0"} `, none)
	assert.Equal(t, `{comm="a \"b\" \\c\nd",jobid="1",peer="7",rank="3",user="alice",world="0",z=""} `,
		texts.of([]mapping.Label{{Name: "comm", Value: "a \"b\" \\c\nd"}, {Name: "peer", Value: "7"}, {Name: "z"}}))
	assert.Len(t, texts.made, 2)
	texts.of(nil)
	assert.Len(t, texts.made, 2)
	assert.Equal(t, " ", newLabelTexts(nil).of(nil))
}

func TestRenderingAllocatesNothing(t *testing.T) {
	p, _ := countingPage()
	r, _ := pageRank(0, "mpit_x", "a", "b", "c")
	show(p, r)
	b := newBody(pageBodies, 1)
	assert.Zero(t, testing.AllocsPerRun(10, func() {
		b.text, b.parts = b.text[:0], b.parts[:0]
		p.render(b, textStyle{openMetrics: true, created: true})
	}))
}

func TestInterleave(t *testing.T) {
	bodyOf := func(names string) *body {
		b := &body{}
		for _, name := range strings.Fields(names) {
			b.text = append(append(b.text, name...), name...)
			b.endPart(name)
		}
		return b
	}
	for _, test := range []struct{ a, b, want string }{
		{"", "", ""},
		{"a b", "", "aabb"},
		{"", "a b", "aabb"},
		{"c d", "a b", "aabb ccdd"},
		{"a b", "c d", "aabb ccdd"},
		{"a d e", "b c f", "aa bbcc ddee ff"},
		{"b", "a b c", "aa bb cc"},
		{"a b", "a b", "aabb"},
		{"b d", "b c d e", "bb cc dd ee"},
	} {
		assert.Equal(t, test.want, string(bytes.Join(interleave(bodyOf(test.a), bodyOf(test.b)), []byte(" "))), "%s and %s", test.a, test.b)
	}
}

// What one reader gives back is another's for as long as he has it.
func TestBodyIsSharedUntilAllHaveReleasedIt(t *testing.T) {
	n := startNode(t, Config{})
	r, err := n.commit(&questions{}, readers{asText: 2, asOpenMetrics: 1})
	require.NoError(t, err)
	first, err := n.lease(r, asText, nil)
	require.NoError(t, err)
	second, err := n.lease(r, asText, nil)
	require.NoError(t, err)
	first.release()
	first.release()
	assert.EqualValues(t, 1, second.bodies[asText].readers.Load())
	second.release()
	assert.Zero(t, r.bodies[asText].readers.Load())
	assert.EqualValues(t, 1, r.bodies[asOpenMetrics].readers.Load())
}
