package otlp

import (
	"math/bits"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
)

const (
	// receiversLimit is what receivers take by default, of a message before compression.
	receiversLimit = 4 << 20

	// maxMessage is what is sent at most.
	maxMessage = receiversLimit - 4<<10
)

// The points that a Source has.
type (
	number    = metricdata.DataPoint[float64]
	histogram = metricdata.HistogramDataPoint[float64]
)

// batch is one message.
type batch struct {
	data   metricdata.ResourceMetrics
	points int
}

// packer makes messages of at most limit bytes.
type packer struct {
	resource *resource.Resource
	limit    int
	batches  []*batch
	room     int                      // in the last one
	scope    *metricdata.ScopeMetrics // that its last metric is of
	tooLarge int                      // points that are larger than any message may be
}

// pack makes messages of at most limit bytes and says how many points are too large for any. What is no point of a
// Source is left out.
func pack(res *resource.Resource, read []metricdata.ScopeMetrics, limit int) (batches []*batch, tooLarge int) {
	p := &packer{resource: res, limit: limit}
	for i := range read {
		in := &read[i]
		for _, m := range in.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Gauge[float64]:
				packPoints(p, in, m, data.DataPoints, sizeOfNumber, func(points []number) metricdata.Aggregation {
					return metricdata.Gauge[float64]{DataPoints: points}
				})
			case metricdata.Sum[float64]:
				packPoints(p, in, m, data.DataPoints, sizeOfNumber, func(points []number) metricdata.Aggregation {
					return metricdata.Sum[float64]{DataPoints: points, Temporality: data.Temporality, IsMonotonic: data.IsMonotonic}
				})
			case metricdata.Histogram[float64]:
				packPoints(p, in, m, data.DataPoints, sizeOfHistogram, func(points []histogram) metricdata.Aggregation {
					return metricdata.Histogram[float64]{DataPoints: points, Temporality: data.Temporality}
				})
			}
		}
	}
	return p.batches, p.tooLarge
}

// packPoints packs the points of one metric, as many as there is room for into each message.
func packPoints[P any](p *packer, in *metricdata.ScopeMetrics, m metricdata.Metrics, points []P, size func(p *P) int,
	data func(points []P) metricdata.Aggregation) {
	head, whole, from := sizeOfHead(in, &m), p.limit-sizeOfResource(p.resource), 0
	add := func(to int) {
		if to > from {
			m.Data = data(points[from:to])
			p.add(in, m, to-from)
		}
	}
	p.room -= head
	for i := range points {
		n := size(&points[i])
		switch {
		case head+n > whole:
			if i > from {
				p.room -= head // what follows is a metric of its own
			}
			add(i)
			from = i + 1
			p.tooLarge++
			continue
		case n > p.room:
			add(i)
			from = i
			b := &batch{}
			b.data.Resource = p.resource
			p.batches, p.room, p.scope = append(p.batches, b), whole-head, nil
		}
		p.room -= n
	}
	add(len(points))
}

// add puts so many points of a metric into the last message.
func (p *packer) add(in *metricdata.ScopeMetrics, m metricdata.Metrics, points int) {
	b := p.batches[len(p.batches)-1]
	if p.scope != in {
		p.scope = in
		b.data.ScopeMetrics = append(b.data.ScopeMetrics, metricdata.ScopeMetrics{Scope: in.Scope})
	}
	to := &b.data.ScopeMetrics[len(b.data.ScopeMetrics)-1]
	to.Metrics = append(to.Metrics, m)
	b.points += points
}

// Bytes that parts of a message take at most in protobuf's encoding. What is nested has its length before it, which
// takes up to maxLength; where there are many of a kind it is counted exactly, so that messages get nearly as large
// as they may.
const (
	maxLength = 5
	envelope  = 1 + maxLength // field number and length of something nested
	fixed     = 1 + 8         // field number and a number of 8 bytes, or a varint of up to 8
	varint64  = 10            // the longest
)

// nested is the size of a field with n bytes, as a string is.
func nested(n int) int { return 1 + (bits.Len(uint(n|1))+6)/7 + n }

// sizeOfSet takes attributes that are text or numbers.
func sizeOfSet(set attribute.Set) int {
	n := 0
	for i := range set.Len() {
		kv, _ := set.Get(i)
		value := 1 + varint64
		if kv.Value.Type() == attribute.STRING {
			value = nested(len(kv.Value.AsString()))
		}
		n += nested(nested(len(kv.Key)) + nested(value))
	}
	return n
}

func sizeOfResource(r *resource.Resource) int {
	return envelope + envelope + sizeOfSet(*r.Set()) + nested(len(r.SchemaURL()))
}

// sizeOfHead is what a metric takes in each message besides its points, in a scope of its own.
func sizeOfHead(in *metricdata.ScopeMetrics, m *metricdata.Metrics) int {
	return envelope + envelope + nested(len(in.Scope.Name)) + nested(len(in.Scope.Version)) +
		sizeOfSet(in.Scope.Attributes) + nested(len(in.Scope.SchemaURL)) +
		envelope + nested(len(m.Name)) + nested(len(m.Description)) + nested(len(m.Unit)) + envelope + 2*2
}

func sizeOfNumber(p *number) int { return nested(sizeOfSet(p.Attributes) + 3*fixed) }

func sizeOfHistogram(p *histogram) int {
	return nested(sizeOfSet(p.Attributes) + 6*fixed + nested(8*len(p.Bounds)) + nested(8*len(p.BucketCounts)))
}
