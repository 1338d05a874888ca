package exposition

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/body"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// The text formats are written right from the copies of ranks' numbers: names and labels are text already, so that a
// scrape only appends numbers. What is not the page's own (the Go runtime's families …) is left to expfmt.

// writeText writes a family, unless it has no series now, and returns how many it has.
func (f *family) writeText(b *body.Body, to Format) (n int) {
	from := len(b.Text)
	w := seriesWriter{Format: to, family: f, b: to.appendHead(b.Text, f)}
	for i := range f.blocks {
		w.block(&f.blocks[i])
		if w.n > 0 {
			b.Text = w.b
			b.Spill()
			w.b = b.Text
		}
	}
	b.Text = w.b
	if w.n == 0 {
		b.Text = b.Text[:from]
	}
	return w.n
}

func (to Format) appendHead(b []byte, f *family) []byte {
	name := f.name
	if to == OpenMetrics {
		name = mapping.FamilyName(f.name, f.kind)
	}
	comment := func(key string) {
		b = append(append(append(append(b, "# "...), key...), ' '), name...)
		b = append(b, ' ')
	}
	comment("HELP")
	b = append(appendEscaped(b, f.help, to == OpenMetrics), '\n')
	comment("TYPE")
	b = append(append(b, to.typeWord(f)...), '\n')
	if to == OpenMetrics && f.unit != "" {
		comment("UNIT")
		b = append(append(b, f.unit...), '\n')
	}
	return b
}

func (to Format) typeWord(f *family) string {
	sound := f.kind != mapping.KindUntyped && (f.kind != mapping.KindCounter || strings.HasSuffix(f.name, "_total"))
	if to == OpenMetrics && !sound {
		return "unknown"
	}
	return f.kind.String()
}

// seriesWriter appends the series of one family to b.
type seriesWriter struct {
	Format
	family *family
	b      []byte
	n      int

	bounds []float64 // of the last histogram: mostly all of a family have the same
	les    []string  // the bounds as text, and the one of the last bucket, up to the value
}

func (w *seriesWriter) block(bl *block) {
	s := bl.sheet
	name, b, n := w.family.name, w.b, 0
	for i := int(bl.from); i < int(bl.to); i++ {
		e := &s.entries[i]
		if !e.shown(s.Live) {
			continue
		}
		n++
		if w.family.kind == mapping.KindHistogram {
			w.b = b
			w.histogram(s, i)
			b = w.b
			continue
		}
		b = append(append(b, name...), e.text...)
		b = append(AppendNumber(b, e.value), '\n')
	}
	w.b = b
	w.n += n
}

func (w *seriesWriter) histogram(s *Sheet, at int) {
	labels, h, name := s.entries[at].text, s.histogram(at), w.family.name
	if w.les == nil || !slices.Equal(w.bounds, h.Bounds) {
		w.setBounds(h.Bounds)
	}
	b := w.b
	from := len(b) // all buckets' lines begin alike: they are copied from the first
	b = append(append(b, name...), "_bucket"...)
	if len(labels) > 1 {
		b = append(append(b, strings.TrimSuffix(labels, "} ")...), ',')
	} else {
		b = append(b, '{')
	}
	b = append(b, `le="`...)
	to := len(b)
	var sum uint64
	for i, le := range w.les {
		if i < len(h.Bounds) {
			sum += h.Counts[i]
		} else {
			sum = max(sum, h.Count) // as CountOfAll
		}
		if i > 0 {
			b = append(b, b[from:to]...)
		}
		b = append(b, le...)
		b = append(strconv.AppendUint(b, sum, 10), '\n')
	}
	b = append(append(append(b, name...), "_sum"...), labels...)
	b = append(AppendNumber(b, h.Sum), '\n')
	b = append(append(append(b, name...), "_count"...), labels...)
	b = append(strconv.AppendUint(b, sum, 10), '\n')
	w.b = b
}

func (w *seriesWriter) setBounds(bounds []float64) {
	w.bounds, w.les = bounds, w.les[:0]
	for _, x := range bounds {
		le := strconv.FormatFloat(x, 'g', -1, 64)
		if w.Format == OpenMetrics && !strings.ContainsAny(le, ".eIN") {
			le += ".0"
		}
		w.les = append(w.les, le+`"} `)
	}
	w.les = append(w.les, `+Inf"} `)
}

// appendFraction writes billionths behind a whole number, at least one digit.
func appendFraction(b []byte, billionths int64) []byte {
	digits := [10]byte{0: '.'}
	last := 1
	for i := 9; i > 0; i-- {
		digits[i] = byte('0' + billionths%10)
		billionths /= 10
		if digits[i] != '0' {
			last = max(last, i)
		}
	}
	return append(b, digits[:last+1]...)
}

// AppendNumber writes a value so that the same is read again: whole numbers, which most are, as such, and what is a
// number of nanoseconds, which most of the others are, without looking for the fewest digits that say it. Minus zero
// is zero, as client_golang has it.
func AppendNumber(b []byte, x float64) []byte {
	const exact = 1 << 53 // up to there a float64 holds every whole number
	if n := int64(x); float64(n) == x && n > -exact && n < exact {
		return strconv.AppendInt(b, n, 10)
	}
	// A quotient of two exact numbers is the float64 next to it, which is what a reader makes of the decimals.
	if n := math.Round(x * 1e9); n > 0 && n < exact && n/1e9 == x {
		i := int64(n)
		return appendFraction(strconv.AppendInt(b, i/1e9, 10), i%1e9)
	}
	return strconv.AppendFloat(b, x, 'g', -1, 64)
}
