package otlptest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
)

// Total is what somebody who keeps what a receiver has accepted knows of one series.
//
// Increase and the like are what has been counted in all its lives: a value that has another start time, or has
// fallen, was counted anew.
type Total struct {
	Metric      string
	Unit        string
	Attributes  map[string]string
	Kind        string // gauge, sum, monotonic sum or histogram
	Points      int
	Start, Time uint64 // of the last point, ns since the epoch

	Int   int64   // last value of a gauge or of a cumulative sum
	Float float64 // the same of floating-point ones
	Count uint64  // last count of a cumulative histogram

	Increase      int64          // of an integer sum
	IncreaseFloat float64        // of a floating-point sum, or of a histogram's sum
	IncreaseCount uint64         // of a histogram
	Buckets       map[int]uint64 // increase by index

	sum     float64
	buckets map[int]uint64
}

// Totals adds up what has been accepted. Keys are as Key makes them.
func (r *Receiver) Totals() map[string]*Total {
	totals := map[string]*Total{}
	for _, request := range r.Requests() {
		eachMetric(request.Message, func(m *metrics.Metric) { addMetric(totals, m) })
	}
	return totals
}

// Key is the name of a metric with its attributes, sorted: name{a=b,c=d}.
func Key(metric string, attributes map[string]string) string {
	var b strings.Builder
	b.WriteString(metric + "{")
	for i, name := range slices.Sorted(maps.Keys(attributes)) {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s=%s", name, attributes[name])
	}
	b.WriteByte('}')
	return b.String()
}

func addMetric(totals map[string]*Total, m *metrics.Metric) {
	for _, p := range m.GetGauge().GetDataPoints() {
		totalOf(totals, m, p.GetAttributes(), "gauge").number(p, true)
	}
	kind := "sum"
	if m.GetSum().GetIsMonotonic() {
		kind = "monotonic sum"
	}
	for _, p := range m.GetSum().GetDataPoints() {
		t := totalOf(totals, m, p.GetAttributes(), kind)
		t.number(p, !m.GetSum().GetIsMonotonic())
	}
	for _, p := range m.GetHistogram().GetDataPoints() {
		buckets := map[int]uint64{}
		for i, n := range p.GetBucketCounts() {
			buckets[i] = n
		}
		t := totalOf(totals, m, p.GetAttributes(), "histogram")
		t.histogram(p.GetStartTimeUnixNano(), p.GetTimeUnixNano(), p.GetCount(), p.GetSum(), buckets)
	}
}

func totalOf(totals map[string]*Total, m *metrics.Metric, list []*common.KeyValue, kind string) *Total {
	attributes := map[string]string{}
	for _, a := range list {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			attributes[a.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			attributes[a.GetKey()] = fmt.Sprint(v.IntValue)
		case *common.AnyValue_BoolValue:
			attributes[a.GetKey()] = fmt.Sprint(v.BoolValue)
		case *common.AnyValue_DoubleValue:
			attributes[a.GetKey()] = fmt.Sprint(v.DoubleValue)
		default:
			attributes[a.GetKey()] = a.GetValue().String()
		}
	}
	key := Key(m.GetName(), attributes)
	t := totals[key]
	if t == nil {
		t = &Total{Metric: m.GetName(), Unit: m.GetUnit(), Attributes: attributes, Kind: kind,
			Buckets: map[int]uint64{}}
		totals[key] = t
	}
	return t
}

func (t *Total) number(p *metrics.NumberDataPoint, last bool) {
	n, f := p.GetAsInt(), p.GetAsDouble()
	switch {
	case last:
	case t.Points > 0 && t.Start == p.GetStartTimeUnixNano() && n >= t.Int && f >= t.Float:
		t.Increase, t.IncreaseFloat = t.Increase+n-t.Int, t.IncreaseFloat+f-t.Float
	default:
		t.Increase, t.IncreaseFloat = t.Increase+n, t.IncreaseFloat+f
	}
	t.Points, t.Start, t.Time = t.Points+1, p.GetStartTimeUnixNano(), p.GetTimeUnixNano()
	t.Int, t.Float = n, f
}

func (t *Total) histogram(start, now, count uint64, sum float64, buckets map[int]uint64) {
	subtract := t.Points > 0 && t.Start == start && count >= t.Count
	t.IncreaseCount, t.IncreaseFloat = t.IncreaseCount+count, t.IncreaseFloat+sum
	if subtract {
		t.IncreaseCount, t.IncreaseFloat = t.IncreaseCount-t.Count, t.IncreaseFloat-t.sum
	}
	for i, n := range buckets {
		if subtract {
			n -= t.buckets[i]
		}
		if n != 0 {
			t.Buckets[i] += n
		}
	}
	t.Points, t.Start, t.Time = t.Points+1, start, now
	t.Count, t.sum, t.buckets = count, sum, buckets
}
