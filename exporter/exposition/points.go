package exposition

import (
	"math"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// The page as metric data. The sets of attributes are made once and kept with their blocks for as long as somebody
// reads in this way; the data points are new each time, for the reader keeps them.

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
	w := pointWriter{PointStyle: s, sets: attributeSets{}, incomplete: map[Owner]int{}}
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

// ForgetSets gives up the sets of attributes, as nobody reads metric data any more, and says whether there were any.
func (p *Page) ForgetSets() (had bool) {
	p.eachSheet(func(s *Sheet) {
		had = had || s.sets != nil
		s.sets = nil
	})
	return had
}

// pointWriter makes data points.
type pointWriter struct {
	PointStyle
	sets       attributeSets
	n          int           // series so far
	incomplete map[Owner]int // histograms that can't be had as exponential ones
}

func (w *pointWriter) family(f *family) (m metricdata.Metrics, found bool) {
	room := 0
	for i := range f.blocks {
		if w.of(f.blocks[i].sheet.owner) != None {
			room += int(f.blocks[i].to - f.blocks[i].from)
		}
	}
	if room == 0 {
		return m, false
	}
	before := w.n
	m = metricdata.Metrics{Name: f.otel.name, Description: f.help, Unit: f.otel.unit}
	switch {
	case f.kind == dto.MetricType_HISTOGRAM && w.Exponential:
		list := make([]metricdata.ExponentialHistogramDataPoint[float64], 0, room)
		w.each(f, func(s *Sheet, i int) {
			point, whole := exponentialPoint(s.histogram(i))
			if !whole {
				w.incomplete[s.owner]++
				return
			}
			point.Attributes, point.StartTime, point.Time = s.sets[i], s.begun(i), w.At
			list = append(list, point)
		})
		m.Data = metricdata.ExponentialHistogram[float64]{DataPoints: list,
			Temporality: metricdata.CumulativeTemporality}
		return m, len(list) > 0
	case f.kind == dto.MetricType_HISTOGRAM:
		list := make([]metricdata.HistogramDataPoint[float64], 0, room)
		w.each(f, func(s *Sheet, i int) {
			point := explicitPoint(s.histogram(i))
			point.Attributes, point.StartTime, point.Time = s.sets[i], s.begun(i), w.At
			list = append(list, point)
		})
		m.Data = metricdata.Histogram[float64]{DataPoints: list, Temporality: metricdata.CumulativeTemporality}
	case f.kind == dto.MetricType_COUNTER || f.otel.adds:
		list := make([]metricdata.DataPoint[float64], 0, room)
		w.each(f, func(s *Sheet, i int) {
			list = append(list, metricdata.DataPoint[float64]{Attributes: s.sets[i], StartTime: s.begun(i),
				Time: w.At, Value: s.entries[i].value})
		})
		m.Data = metricdata.Sum[float64]{
			DataPoints: list, Temporality: metricdata.CumulativeTemporality,
			IsMonotonic: f.kind == dto.MetricType_COUNTER,
		}
	default:
		list := make([]metricdata.DataPoint[float64], 0, room)
		w.each(f, func(s *Sheet, i int) {
			list = append(list, metricdata.DataPoint[float64]{Attributes: s.sets[i], Time: w.At,
				Value: s.entries[i].value})
		})
		m.Data = metricdata.Gauge[float64]{DataPoints: list}
	}
	return m, w.n > before
}

// each calls do for the entries of a family that are wanted and stand on the page now; their sheets have sets.
func (w *pointWriter) each(f *family, do func(s *Sheet, i int)) {
	for k := range f.blocks {
		b := &f.blocks[k]
		s := b.sheet
		much := w.of(s.owner)
		if much == None {
			continue
		}
		if s.sets == nil {
			s.sets = make([]attribute.Set, len(s.entries))
			for i := range s.entries {
				s.sets[i] = w.sets.of(s, i)
			}
		}
		for i := int(b.from); i < int(b.to); i++ {
			if s.entries[i].shown(s.live && much == Whole) {
				w.n++
				do(s, i)
			}
		}
	}
}

// attributeSets makes sets of attributes, one for all series that have the same labels: those of a rank mostly do. An
// attribute is called as the label is on the page, and all are text.
type attributeSets map[string]attribute.Set // by the labels, as text

func (s attributeSets) of(in *Sheet, i int) attribute.Set {
	e := &in.entries[i]
	set, found := s[e.labels]
	if found {
		return set
	}
	shared, own := in.sharedLabels(), e.series.Labels
	list := make([]attribute.KeyValue, 0, len(shared)+len(own))
	for _, l := range shared {
		list = append(list, attribute.String(l.GetName(), l.GetValue()))
	}
	for _, l := range own {
		list = append(list, attribute.String(l.Name, l.Value))
	}
	set = attribute.NewSet(list...)
	s[e.labels] = set
	return set
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
