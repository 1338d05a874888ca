package exposition

import (
	"math"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// The page as metric data. The sets of attributes are made once and kept with the labels; the data points are new each
// time, for the reader keeps them.

// PointStyle says which metric data are wanted.
type PointStyle struct {
	At          time.Time // of all points
	Exponential bool
	Only        map[Owner]Portion // nil: all that stands on the page; else of these owners only
}

// Portion is how much of an owner is wanted.
type Portion uint8

// How much of an owner is wanted.
const (
	None    Portion = iota
	Lasting         // what stands on the page whether or not the owner is live
	Whole
)

// of says how much of an owner is wanted.
func (s *PointStyle) of(o Owner) Portion {
	if s.Only == nil {
		return Whole
	}
	return s.Only[o]
}

// Points makes metric data of the page's families, in their order. All are cumulative.
func (p *Page) Points(s PointStyle) []metricdata.Metrics {
	p.Arrange()
	w := pointWriter{PointStyle: s, incomplete: map[Owner]int{}}
	list := make([]metricdata.Metrics, 0, len(p.families))
	for _, f := range p.families {
		if m, found := w.family(f); found {
			list = append(list, m)
		}
	}
	for o, n := range w.incomplete {
		CountMore(p.drop, o.LeftOff(), DroppedIncomplete, n)
	}
	if s.Only == nil {
		p.series = w.n
	}
	return list
}

// pointWriter makes data points.
type pointWriter struct {
	PointStyle
	n          int           // series so far
	incomplete map[Owner]int // histograms that can't be had as exponential ones
}

func (w *pointWriter) family(f *family) (m metricdata.Metrics, found bool) {
	m = metricdata.Metrics{Name: f.otel.name, Description: f.help, Unit: f.otel.unit}
	const cumulative = metricdata.CumulativeTemporality
	switch {
	case f.kind == dto.MetricType_HISTOGRAM && w.Exponential:
		points := pointsOf(w, f, w.exponential)
		m.Data = metricdata.ExponentialHistogram[float64]{DataPoints: points, Temporality: cumulative}
		return m, len(points) > 0
	case f.kind == dto.MetricType_HISTOGRAM:
		points := pointsOf(w, f, w.explicit)
		m.Data = metricdata.Histogram[float64]{DataPoints: points, Temporality: cumulative}
		return m, len(points) > 0
	case f.kind == dto.MetricType_COUNTER || f.otel.adds:
		points := pointsOf(w, f, w.sum)
		m.Data = metricdata.Sum[float64]{DataPoints: points, Temporality: cumulative,
			IsMonotonic: f.kind == dto.MetricType_COUNTER}
		return m, len(points) > 0
	}
	points := pointsOf(w, f, w.gauge)
	m.Data = metricdata.Gauge[float64]{DataPoints: points}
	return m, len(points) > 0
}

// pointsOf makes points of the entries of a family that are wanted and stand on the page now. set sets one, and says
// whether it is whole.
func pointsOf[P any](w *pointWriter, f *family, set func(p *P, s *Sheet, i int) (whole bool)) []P {
	room := 0
	for _, b := range f.blocks {
		if w.of(b.sheet.owner) != None {
			room += int(b.to - b.from)
		}
	}
	points, n := make([]P, room), 0
	for _, b := range f.blocks {
		much := w.of(b.sheet.owner)
		if much == None {
			continue
		}
		for i := int(b.from); i < int(b.to); i++ {
			if b.sheet.entries[i].shown(b.sheet.live && much == Whole) {
				w.n++
				if set(&points[n], b.sheet, i) {
					n++
				}
			}
		}
	}
	return points[:n]
}

func (w *pointWriter) gauge(p *metricdata.DataPoint[float64], s *Sheet, i int) bool {
	p.Attributes, p.Time, p.Value = s.attributes(i), w.At, s.entries[i].value
	return true
}

func (w *pointWriter) sum(p *metricdata.DataPoint[float64], s *Sheet, i int) bool {
	p.StartTime = s.begun(i)
	return w.gauge(p, s, i)
}

func (w *pointWriter) explicit(p *metricdata.HistogramDataPoint[float64], s *Sheet, i int) bool {
	*p = explicitPoint(s.histogram(i))
	p.Attributes, p.StartTime, p.Time = s.attributes(i), s.begun(i), w.At
	return true
}

func (w *pointWriter) exponential(p *metricdata.ExponentialHistogramDataPoint[float64], s *Sheet, i int) bool {
	point, whole := exponentialPoint(s.histogram(i))
	if !whole {
		w.incomplete[s.owner]++
		return false
	}
	*p = point
	p.Attributes, p.StartTime, p.Time = s.attributes(i), s.begun(i), w.At
	return true
}

func (s *Sheet) attributes(i int) attribute.Set {
	e := &s.entries[i]
	if !e.labels.hasSet {
		e.labels.makeSet(s.owner, e.series.Labels)
	}
	return e.labels.set
}

// begun is when an entry began to count, else its owner did; the zero time: not known.
func (s *Sheet) begun(i int) time.Time {
	at := s.created(i)
	if at.IsZero() && s.owner != nil {
		at = s.owner.Begun()
	}
	return at
}

// explicitPoint has the buckets that /metrics has.
func explicitPoint(h *mapping.Histogram) metricdata.HistogramDataPoint[float64] {
	counts := make([]uint64, len(h.Bounds)+1)
	var sum uint64
	for i := range h.Bounds {
		counts[i] = h.Counts[i]
		sum += h.Counts[i]
	}
	count := CountOfAll(h, sum)
	counts[len(h.Bounds)] = count - sum
	return metricdata.HistogramDataPoint[float64]{Count: count, Sum: h.Sum, Bounds: h.Bounds, BucketCounts: counts}
}

// maxExponential bounds the buckets of one histogram, empty ones between the others too: from a nanosecond up to 1e29
// seconds it needs
// 507. Only what ranks invent has more.
const maxExponential = 512

// exponentialPoint has the buckets of the native histogram, all in one row. Where they don't hold what is counted
// there is none: a receiver would refuse it, or believe it.
func exponentialPoint(h *mapping.Histogram) (point metricdata.ExponentialHistogramDataPoint[float64], whole bool) {
	var classic uint64
	for i := range h.Bounds {
		classic += h.Counts[i]
	}
	point = metricdata.ExponentialHistogramDataPoint[float64]{
		Count: CountOfAll(h, classic), Sum: h.Sum,
		Scale: h.Schema, ZeroCount: h.NativeZero, ZeroThreshold: h.ZeroThreshold(),
	}
	total := h.NativeZero
	if n := len(h.Native); n > 0 {
		first := h.Native[0].Index
		width := int64(h.Native[n-1].Index) - int64(first) + 1
		if width < 1 || width > maxExponential || first == math.MinInt32 {
			return point, false
		}
		counts := make([]uint64, width)
		for _, b := range h.Native {
			at := int64(b.Index) - int64(first)
			if at < 0 || at >= width {
				return point, false
			}
			counts[at] += b.Count
			total += b.Count
		}
		// Prometheus numbers a bucket by its upper end, OpenTelemetry by its lower one.
		point.PositiveBucket = metricdata.ExponentialBucket{Offset: first - 1, Counts: counts}
	}
	return point, total == point.Count
}
