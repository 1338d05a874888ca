package mapping

import (
	"strings"
	"time"
)

// Kind is the kind of a family on /metrics.
type Kind uint8

// The kinds that MPI_T's classes become.
const (
	KindGauge Kind = iota
	KindCounter
	KindUntyped
	KindHistogram
)

// String is the kind as # TYPE writes it in the text format.
func (k Kind) String() string {
	switch k {
	case KindGauge:
		return "gauge"
	case KindCounter:
		return "counter"
	case KindHistogram:
		return "histogram"
	}
	return "untyped"
}

// OTelKind is the kind of a family in OpenTelemetry. A Sum is monotonic if the Kind is KindCounter.
type OTelKind uint8

// The kinds of OpenTelemetry that MPI_T's classes become.
const (
	OTelGauge OTelKind = iota
	OTelSum
	OTelHistogram
)

// Metric is one family. It never changes, and in one Mapper there is only one of a Name.
type Metric struct {
	Name     string // on /metrics, with unit and _total
	Help     string
	OTelName string
	Unit     string // UCUM, of the values of a Series; "" unknown
	Kind     Kind
	OTelKind OTelKind

	// Measure is what the values are of, where Unit may not say it: a COUNTER's unit stands in no name. "" unknown.
	Measure string
}

// Other is the name of the object, and the number of the element, into which those count that find no room for series
// of their own.
const Other = "other"

// Label is a label of a series.
type Label struct{ Name, Value string }

// Series is one series of a rank, kept: the pointer stays good while Rank.Structure stays the same, and Rank.Update
// changes Value, Created, Histogram and Valid in place. Nobody but the Rank may change it.
type Series struct {
	Metric    *Metric
	Value     float64    // in the base unit; not of histograms
	Histogram *Histogram // KindHistogram only
	Valid     bool       // false: not read this time, leave it out
	Lasting   bool       // counter, histogram, watermark: stays when the rank has ended or is late
	Since     int64      // when the value was zero, in Unix nanoseconds; 0: not known

	Labels []Label // object, state, peer or index, and what rules give; sorted by name. Not who the rank is.
}

// UnixNano is a time in Unix nanoseconds, 0 where it is not known.
func UnixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// FamilyName is what OpenMetrics calls a family that is called name on /metrics: a counter's name has no _total there.
func FamilyName(name string, kind Kind) string {
	if kind == KindCounter {
		return strings.TrimSuffix(name, "_total")
	}
	return name
}

// OwnedNames is every name that a family of that name and kind takes for itself in the text format and in
// OpenMetrics: its own, and those of its samples. Two families that both own a name cannot stand on one page: a
// strict parser refuses all of it. The first is FamilyName's.
func OwnedNames(name string, kind Kind) []string {
	family := FamilyName(name, kind)
	switch kind {
	case KindCounter:
		return []string{family, family + "_total", family + "_created"}
	case KindHistogram:
		return []string{family, family + "_bucket", family + "_sum", family + "_count", family + "_created"}
	}
	return []string{family}
}
