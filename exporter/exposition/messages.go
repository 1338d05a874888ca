package exposition

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// Messages are the page's families as client_golang has them. They are made when somebody gathers for the first time,
// as they take several times the memory of the rest, and kept: from then on a round sets numbers in place. While
// somebody holds them they are not changed: who fills them next makes others. They belong to the page, but what is
// leased may be read without.
type Messages struct {
	leases   atomic.Int32
	families []*dto.MetricFamily // those with series, sorted by name: what the last fill found
}

// message is one series.
type message struct {
	dto.Metric
	value     float64
	histogram []uint64 // cumulative counts; the last is the count of all
	native    *native  // the same as a native histogram
}

// Families are those with series, sorted by name.
func (m *Messages) Families() []*dto.MetricFamily { return m.families }

// Lease counts more readers, who each call Release, or keep the messages for ever.
func (m *Messages) Lease(readers int) { m.leases.Add(int32(readers)) }

// Release says that one reader has read all of it.
func (m *Messages) Release() { m.leases.Add(-1) }

// Leased says whether somebody still reads.
func (m *Messages) Leased() bool { return m.leases.Load() > 0 }

// Forget lets go of the list of families, which is not to hold series that have left.
func (m *Messages) Forget() { clear(m.families) }

// Messages sets all numbers in the page's messages, making those that are missing.
func (p *Page) Messages() *Messages {
	p.Arrange()
	if p.messages == nil || p.messages.Leased() {
		p.forget()
		p.messages = &Messages{}
	}
	m := p.messages
	m.families = m.families[:0]
	p.series = 0
	for _, f := range p.families {
		if f.message == nil {
			f.message = &dto.MetricFamily{Name: &f.name, Help: &f.help, Type: &f.kind}
			if f.unit != "" {
				f.message.Unit = &f.unit
			}
		}
		before := f.message.Metric
		metrics := before[:0]
		for i := range f.blocks {
			metrics = f.blocks[i].fill(metrics)
		}
		if len(metrics) < len(before) {
			clear(before[len(metrics):])
		}
		f.message.Metric = metrics
		if len(metrics) > 0 {
			m.families = append(m.families, f.message)
			p.series += len(metrics)
		}
	}
	return m
}

// forget leaves the messages to who holds them.
func (p *Page) forget() {
	p.messages = nil
	for _, f := range p.families {
		f.message = nil
	}
	p.eachSheet(func(s *Sheet) { s.messages = nil })
}

// fill appends the messages of a block.
func (b *block) fill(metrics []*dto.Metric) []*dto.Metric {
	s := b.sheet
	if s.messages == nil {
		s.makeMessages()
	}
	for i := int(b.from); i < int(b.to); i++ {
		if s.entries[i].shown(s.live) {
			m := &s.messages[i]
			m.set(s, i)
			metrics = append(metrics, &m.Metric)
		}
	}
	return metrics
}

func (s *Sheet) makeMessages() {
	shared := labelsOf(s.owner)
	s.messages = make([]message, len(s.entries))
	for _, part := range s.parts {
		for i := int(part.from); i < int(part.to); i++ {
			m := &s.messages[i]
			m.Label = LabelPairs(shared, s.entries[i].series.Labels)
			switch part.family.kind {
			case dto.MetricType_COUNTER:
				m.Counter = &dto.Counter{Value: &m.value}
			case dto.MetricType_GAUGE:
				m.Gauge = &dto.Gauge{Value: &m.value}
			case dto.MetricType_HISTOGRAM:
				m.makeHistogram(s.histogram(i).Bounds)
			default:
				m.Untyped = &dto.Untyped{Value: &m.value}
			}
		}
	}
}

func (m *message) makeHistogram(bounds []float64) {
	m.histogram = make([]uint64, len(bounds)+1)
	buckets := make([]dto.Bucket, len(bounds))
	h := &dto.Histogram{SampleSum: &m.value, SampleCount: &m.histogram[len(bounds)],
		Bucket: make([]*dto.Bucket, len(bounds))}
	for i := range bounds {
		buckets[i].UpperBound = &bounds[i]
		buckets[i].CumulativeCount = &m.histogram[i]
		h.Bucket[i] = &buckets[i]
	}
	m.Histogram = h
	m.native = &native{}
}

// set copies an entry's numbers into its message.
func (m *message) set(s *Sheet, at int) {
	switch {
	case m.Counter != nil:
		m.value = s.entries[at].value
		m.Counter.CreatedTimestamp = timestamp(m.Counter.CreatedTimestamp, s.created(at))
	case m.Histogram != nil:
		h := s.histogram(at)
		m.value = h.Sum
		var sum uint64
		last := len(m.histogram) - 1
		for i := range last {
			sum += h.Counts[i]
			m.histogram[i] = sum
		}
		m.histogram[last] = CountOfAll(h, sum)
		m.native.set(m.Histogram, h)
		m.Histogram.CreatedTimestamp = timestamp(m.Histogram.CreatedTimestamp, s.created(at))
	default:
		m.value = s.entries[at].value
	}
}

// native is the part of a histogram's message that makes it a native one beside its classic buckets: protobuf carries
// both, the text formats leave this one out. Its memory is used again in each round.
type native struct {
	schema    int32
	threshold float64
	zero      uint64
	deltas    []int64
	spans     []*dto.BucketSpan // all that were ever made
}

// set writes h's buckets into the message to. Prometheus refuses a whole page for a histogram whose buckets don't add
// up to its count, so such a one stays classic.
func (n *native) set(to *dto.Histogram, h *mapping.Histogram) {
	if nativeCount(h) != to.GetSampleCount() {
		to.Schema, to.ZeroThreshold, to.ZeroCount, to.PositiveSpan, to.PositiveDelta = nil, nil, nil, nil, nil
		return
	}
	n.schema, n.threshold, n.deltas, n.zero = h.Schema, h.ZeroThreshold(), n.deltas[:0], h.NativeZero
	used := 0
	eachSpan(h, func(gap int32, length uint32) {
		if used == len(n.spans) {
			n.spans = append(n.spans, &dto.BucketSpan{Offset: new(int32), Length: new(uint32)})
		}
		*n.spans[used].Offset, *n.spans[used].Length = gap, length
		used++
	})
	before := uint64(0)
	for _, b := range h.Native {
		n.deltas = append(n.deltas, int64(b.Count-before))
		before = b.Count
	}
	to.Schema, to.ZeroThreshold, to.ZeroCount = &n.schema, &n.threshold, &n.zero
	to.PositiveSpan, to.PositiveDelta = n.spans[:used], n.deltas
}

// timestamp sets kept to t, making it if it is nil; nil for the zero time.
func timestamp(kept *timestamppb.Timestamp, t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	if kept == nil {
		return timestamppb.New(t)
	}
	kept.Seconds, kept.Nanos = t.Unix(), int32(t.Nanosecond())
	return kept
}

// MergeFamilies merges two lists; where a name stands in both, the first's stays. The result is sorted by name.
func MergeFamilies(a, b []*dto.MetricFamily) []*dto.MetricFamily {
	byName := func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) }
	all := slices.Concat(a, b)
	slices.SortStableFunc(all, byName)
	return slices.CompactFunc(all, func(a, b *dto.MetricFamily) bool { return byName(a, b) == 0 })
}
