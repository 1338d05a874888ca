package exposition

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// The page as metric data. The sets of attributes are made once and kept with the labels; the data points are new each
// time, for the reader keeps them.

// Points makes metric data of the page's families, in their order. All are cumulative and of this time.
func (p *Page) Points(at time.Time) []metricdata.Metrics {
	p.Arrange()
	w := pointWriter{at: at}
	list := make([]metricdata.Metrics, 0, len(p.families))
	for _, f := range p.families {
		if m, found := w.family(f); found {
			list = append(list, m)
		}
	}
	p.series = w.n
	return list
}

// pointWriter makes data points.
type pointWriter struct {
	at time.Time
	n  int // series so far
}

func (w *pointWriter) family(f *family) (m metricdata.Metrics, found bool) {
	m = metricdata.Metrics{Name: f.otel.name, Description: f.help, Unit: f.otel.unit}
	const cumulative = metricdata.CumulativeTemporality
	switch {
	case f.kind == mapping.KindHistogram:
		points := pointsOf(w, f, w.histogram)
		m.Data = metricdata.Histogram[float64]{DataPoints: points, Temporality: cumulative}
		return m, len(points) > 0
	case f.kind == mapping.KindCounter || f.otel.adds:
		points := pointsOf(w, f, w.sum)
		m.Data = metricdata.Sum[float64]{DataPoints: points, Temporality: cumulative,
			IsMonotonic: f.kind == mapping.KindCounter}
		return m, len(points) > 0
	}
	points := pointsOf(w, f, w.gauge)
	m.Data = metricdata.Gauge[float64]{DataPoints: points}
	return m, len(points) > 0
}

// pointsOf makes points of the entries of a family that stand on the page now. set sets one.
func pointsOf[P any](w *pointWriter, f *family, set func(p *P, s *Sheet, i int)) []P {
	room := 0
	for _, b := range f.blocks {
		room += int(b.to - b.from)
	}
	points, n := make([]P, room), 0
	for _, b := range f.blocks {
		for i := int(b.from); i < int(b.to); i++ {
			if b.sheet.entries[i].shown(b.sheet.Live) {
				set(&points[n], b.sheet, i)
				n++
			}
		}
	}
	w.n += n
	return points[:n]
}

func (w *pointWriter) gauge(p *metricdata.DataPoint[float64], s *Sheet, i int) {
	p.Attributes, p.Time, p.Value = s.attributes(i), w.at, s.entries[i].value
}

func (w *pointWriter) sum(p *metricdata.DataPoint[float64], s *Sheet, i int) {
	p.StartTime = s.begun(i)
	w.gauge(p, s, i)
}

// histogram sets a point that has the buckets that /metrics has.
func (w *pointWriter) histogram(p *metricdata.HistogramDataPoint[float64], s *Sheet, i int) {
	h := s.histogram(i)
	*p = metricdata.HistogramDataPoint[float64]{Attributes: s.attributes(i), StartTime: s.begun(i), Time: w.at,
		Count: CountOfAll(h), Sum: h.Sum, Bounds: h.Bounds, BucketCounts: make([]uint64, len(h.Bounds)+1)}
	rest := p.Count
	for k, n := range h.Counts[:len(h.Bounds)] {
		p.BucketCounts[k] = n
		rest -= n
	}
	p.BucketCounts[len(h.Bounds)] = rest
}

// attributes are an entry's labels. The set is made when it is asked for first.
func (s *Sheet) attributes(i int) attribute.Set {
	e := &s.entries[i]
	if !e.labels.hasSet {
		var list []attribute.KeyValue
		for _, l := range withOwner(nil, s.owner, e.series.Labels) {
			if l.Value != "" { // Prometheus takes it for none; Thanos drops the series
				list = append(list, attribute.String(l.Name, l.Value))
			}
		}
		e.labels.set, e.labels.hasSet = attribute.NewSet(list...), true
	}
	return e.labels.set
}

// begun is when an entry began to count, else its owner did; the zero time: not known.
func (s *Sheet) begun(i int) time.Time {
	if at := s.created(i); !at.IsZero() {
		return at
	}
	return s.owner.Begun
}
