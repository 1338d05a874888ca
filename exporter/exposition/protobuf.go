package exposition

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/body"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// Protobuf is written as text is, right from the copies of ranks' numbers, with labels that are bytes already: the
// messages of client_golang take ten times as long to write and several times the memory. Their fields
// have these numbers (io/prometheus/client/metrics.proto).
const (
	familyName, familyHelp, familyType, familyMetric, familyUnit = 1, 2, 3, 4, 5

	metricLabel, metricGauge, metricCounter, metricUntyped, metricHistogram = 1, 2, 3, 5, 7

	labelName, labelValue = 1, 2

	numberValue, counterCreated = 1, 3

	histogramCount, histogramSum, histogramBucket, histogramSchema           = 1, 2, 3, 5
	histogramZeroThreshold, histogramZeroCount, histogramSpan                = 6, 7, 12
	histogramDelta, histogramCreated                                         = 13, 15
	bucketCount, bucketBound, spanOffset, spanLength, timeSeconds, timeNanos = 1, 2, 1, 2, 1, 2
)

// writeMessage writes a family as a delimited message, unless it has no series now, and returns how many it has.
func (f *family) writeMessage(b *body.Body) (n int) {
	from := len(b.Text)
	w := messageWriter{family: f, b: b.Text}
	w.text(familyName, f.name)
	w.text(familyHelp, f.help)
	w.whole(familyType, uint64([...]dto.MetricType{
		mapping.KindGauge: dto.MetricType_GAUGE, mapping.KindCounter: dto.MetricType_COUNTER,
		mapping.KindUntyped: dto.MetricType_UNTYPED, mapping.KindHistogram: dto.MetricType_HISTOGRAM,
	}[f.kind]))
	for i := range f.blocks {
		w.block(&f.blocks[i])
	}
	if w.n == 0 {
		return 0
	}
	if f.unit != "" {
		w.text(familyUnit, f.unit)
	}
	b.Text = delimit(w.b, from)
	return w.n
}

// delimit puts before what has been appended how long that is.
func delimit(b []byte, from int) []byte {
	length := len(b) - from
	size := protowire.SizeVarint(uint64(length))
	b = slices.Grow(b, size)[:len(b)+size]
	copy(b[from+size:], b[from:])
	binary.PutUvarint(b[from:], uint64(length))
	return b
}

// messageWriter appends the series of one family to b, as fields of its message.
type messageWriter struct {
	family *family
	b      []byte
	n      int
	inner  []byte // what a metric holds; its memory is used again
}

func (w *messageWriter) block(bl *block) {
	s := bl.sheet
	for i := int(bl.from); i < int(bl.to); i++ {
		e := &s.entries[i]
		if !e.shown(s.Live) {
			continue
		}
		w.n++
		if e.labels.fields == "" {
			e.labels.makeFields(s.owner, e.series.Labels)
		}
		if w.family.kind == mapping.KindHistogram {
			w.histogram(s, i)
		} else {
			w.number(s, i)
		}
	}
}

// fixedField is how long a field with a double is.
const fixedField = 1 + 8

// number writes a series that is one number.
func (w *messageWriter) number(s *Sheet, at int) {
	labels, field := s.entries[at].labels.fields, protowire.Number(metricUntyped)
	w.inner = w.inner[:0]
	switch w.family.kind {
	case mapping.KindGauge:
		field = metricGauge
	case mapping.KindCounter:
		field, w.inner = metricCounter, appendTime(w.inner, counterCreated, s.created(at))
	}
	length := fixedField + len(w.inner)
	w.message(familyMetric, len(labels)+1+1+length)
	w.b = append(w.b, labels...)
	w.message(field, length)
	w.double(numberValue, s.entries[at].value)
	w.b = append(w.b, w.inner...)
}

// histogram writes a series that is a histogram, as a classic and, if it is one, as a native one.
func (w *messageWriter) histogram(s *Sheet, at int) {
	outer := w.b
	w.b = w.inner[:0]
	h, sum := s.histogram(at), uint64(0)
	count := CountOfAll(h)
	w.whole(histogramCount, count)
	w.double(histogramSum, h.Sum)
	for i, bound := range h.Bounds {
		sum += h.Counts[i]
		w.message(histogramBucket, 1+protowire.SizeVarint(sum)+fixedField)
		w.whole(bucketCount, sum)
		w.double(bucketBound, bound)
	}
	if nativeCount(h) == count {
		w.native(h)
	}
	w.inner, w.b = appendTime(w.b, histogramCreated, s.created(at)), outer

	labels := s.entries[at].labels.fields
	w.message(familyMetric, len(labels)+1+protowire.SizeBytes(len(w.inner)))
	w.b = append(w.b, labels...)
	w.message(metricHistogram, len(w.inner))
	w.b = append(w.b, w.inner...)
}

// nativeCount is how many observations the buckets of a native histogram have.
func nativeCount(h *mapping.Histogram) uint64 {
	total := h.NativeZero
	for _, b := range h.Native {
		total += b.Count
	}
	return total
}

// native writes what makes a histogram a native one.
func (w *messageWriter) native(h *mapping.Histogram) {
	w.whole(histogramSchema, protowire.EncodeZigZag(int64(h.Schema)))
	w.double(histogramZeroThreshold, h.ZeroThreshold())
	w.whole(histogramZeroCount, h.NativeZero)
	next := int32(0) // the bucket that follows the span before
	for rest := h.Native; len(rest) > 0; {
		first, length := rest[0].Index, 1
		for length < len(rest) && rest[length].Index == first+int32(length) {
			length++
		}
		offset := protowire.EncodeZigZag(int64(first - next))
		w.message(histogramSpan, 1+protowire.SizeVarint(offset)+1+protowire.SizeVarint(uint64(length)))
		w.whole(spanOffset, offset)
		w.whole(spanLength, uint64(length))
		next, rest = first+int32(length), rest[length:]
	}
	before := uint64(0)
	for _, b := range h.Native {
		w.whole(histogramDelta, protowire.EncodeZigZag(int64(b.Count-before)))
		before = b.Count
	}
}

// makeFields makes fields of the labels, which are an owner's and these.
func (l *labels) makeFields(o *Owner, own []mapping.Label) {
	w := messageWriter{}
	for _, label := range withOwner(nil, o, own) {
		w.message(metricLabel, 1+protowire.SizeBytes(len(label.Name))+1+protowire.SizeBytes(len(label.Value)))
		w.text(labelName, label.Name)
		w.text(labelValue, label.Value)
	}
	l.fields = string(w.b)
}

func (w *messageWriter) message(field protowire.Number, length int) {
	w.b = protowire.AppendTag(w.b, field, protowire.BytesType)
	w.b = protowire.AppendVarint(w.b, uint64(length))
}

func (w *messageWriter) text(field protowire.Number, s string) {
	w.message(field, len(s))
	w.b = append(w.b, s...)
}

func (w *messageWriter) whole(field protowire.Number, x uint64) {
	w.b = protowire.AppendTag(w.b, field, protowire.VarintType)
	w.b = protowire.AppendVarint(w.b, x)
}

func (w *messageWriter) double(field protowire.Number, x float64) {
	w.b = protowire.AppendTag(w.b, field, protowire.Fixed64Type)
	w.b = protowire.AppendFixed64(w.b, math.Float64bits(x))
}

// appendTime appends a google.protobuf.Timestamp, which leaves out what is zero; of a time that isn't known nothing.
func appendTime(b []byte, field protowire.Number, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	b = append(protowire.AppendTag(b, field, protowire.BytesType), 0)
	from := len(b)
	if seconds := t.Unix(); seconds != 0 {
		b = protowire.AppendVarint(protowire.AppendTag(b, timeSeconds, protowire.VarintType), uint64(seconds))
	}
	if nanos := t.Nanosecond(); nanos != 0 {
		b = protowire.AppendVarint(protowire.AppendTag(b, timeNanos, protowire.VarintType), uint64(nanos))
	}
	b[from-1] = byte(len(b) - from) // never more than 17
	return b
}
