package exposition

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/body"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// someone is an owner: of rank 3.
func someone() *Owner {
	return &Owner{Labels: []mapping.Label{
		{Name: "jobid", Value: "1"}, {Name: "rank", Value: "3"}, {Name: "user", Value: "alice"},
		{Name: "world", Value: "0"},
	}}
}

// gauge is a page on which someone has one series for each value of label l.
func gauge(values ...string) *Page {
	p := New(func(string, int) {})
	metric := &mapping.Metric{Name: "mpit_x", Kind: mapping.KindGauge}
	var list []*mapping.Series
	for i, v := range values {
		list = append(list, &mapping.Series{Metric: metric, Labels: []mapping.Label{{Name: "l", Value: v}},
			Value: float64(i), Valid: true})
	}
	p.Fill(NewSheet(someone()), list, func(string) bool { return false })
	return p
}

// A family is forgotten with its last sheet, with all of its names.
func TestFamiliesWithoutSheetsAreForgotten(t *testing.T) {
	p := gauge("a", "b")
	p.Remove(p.byName["mpit_x"].blocks[0].sheet)
	p.Arrange()
	assert.Empty(t, p.families)
	assert.Empty(t, p.byName)
	assert.Empty(t, p.owned)
}

func TestNumbersAsText(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 12: "12", -12: "-12", 1e15: "1000000000000000", 1 << 53: "9.007199254740992e+15", 1e300: "1e+300",
		1.5: "1.5", 1e-9: "0.000000001", 12.000000001: "12.000000001", 1e-10: "1e-10", 1.0 / 3: "0.3333333333333333",
		-1.5:                   "-1.5",
		math.Nextafter(0.3, 1): "0.30000000000000004", math.Inf(1): "+Inf", math.Inf(-1): "-Inf",
	} {
		assert.Equal(t, want, string(AppendNumber(nil, x)))
	}
	assert.Equal(t, "0", string(AppendNumber(nil, math.Copysign(0, -1))))
	assert.Equal(t, "NaN", string(AppendNumber(nil, math.NaN())))
}

// Series of one owner with the same labels share them.
func TestLabelTexts(t *testing.T) {
	maker := newLabelMaker(someone())
	assert.Equal(t, `{jobid="1",rank="3",user="alice",world="0"} `, maker.of(nil).text)
	assert.Equal(t, `{comm="a \"b\" \\c\nd",jobid="1",peer="7",rank="3",user="alice",world="0",z=""} `,
		maker.of([]mapping.Label{{Name: "comm", Value: "a \"b\" \\c\nd"}, {Name: "peer", Value: "7"}, {Name: "z"}}).text)
	assert.Same(t, maker.of(nil), maker.of(nil))
	assert.Equal(t, " ", newLabelMaker(&Owner{}).of(nil).text)
}

func TestRenderingAllocatesNothing(t *testing.T) {
	p := gauge("a", "b", "c")
	p.Arrange()
	text := func(f *family, b *body.Body) int { return f.writeText(b, OpenMetrics) }
	for _, write := range []func(*family, *body.Body) int{text, (*family).writeMessage} {
		b := new(body.Body) // a pool may lose some, and does so at random under the race detector
		assert.Zero(t, testing.AllocsPerRun(10, func() {
			b.Text = b.Text[:0]
			for _, f := range p.families {
				write(f, b)
			}
		}))
		assert.NotEmpty(t, b.Text)
	}
}
