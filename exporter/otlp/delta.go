package otlp

import (
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// forgetAfter is for how many pushes in a row a series must have been gone for its state to be dropped.
const forgetAfter = 10

// deltas turns cumulative data into differences to what has been delivered of each series.
//
// A series' state moves on when the message with its point has been accepted, and not before: what a failed message
// had is in the next one. So the deltas that have been delivered always add up to a value that the series had.
//
// A series that is seen for the first time is sent in whole if it began at since or later. What began earlier may
// have been pushed by an earlier exporter: its first value is only the base of what follows. The same goes for a
// series that may be one whose state has been dropped, since it began no later than one of those. What has been taken
// as a base is counted, not lost silently.
//
// A later start time means that counting began anew: the delta is the new value. A value that has fallen without one
// has gained nothing, as for a mapping.Count: it is the base of what follows. A start time that has moved back, or is
// known at last, means that more is known of the past: ranks and objects join a series that were there before it.
//
// It is used by one goroutine at a time.
type deltas struct {
	sums       metricdata.Temporality // of monotonic sums
	histograms metricdata.Temporality
	since      int64 // ns since the epoch, as all times here
	push       int   // number of the current one
	tables     map[tableKey]*table
	forgotten  int64 // latest start of a series in a table that has been dropped
	based      int   // points taken as bases since the last call of takeBased

	distinct func(*attribute.Set) attribute.Distinct // for tests
}

// tableKey is what is common to the series of one metric. A reload of rules may change a unit: then there are two
// metrics of one name, as long as there is somebody whose rules were the old ones.
type tableKey struct {
	scope        instrumentation.Scope
	metric, unit string
	kind         kind
}

// kind tells apart what can't be subtracted from each other.
type kind uint8

const (
	kindSum kind = iota
	kindHistogram
	kindExponential
)

// table is the series of one metric. A Distinct is a hash without a secret: a rank's user, who chooses names of
// communicators, could make one that meets another user's, so sets are compared.
type table struct {
	series    map[attribute.Distinct]*series
	forgotten int64 // latest start of a series that has been dropped
}

// series is what has been delivered of one series.
type series struct {
	set   attribute.Set
	other *series // with the same hash
	seen  int     // push in which it was there
	whole bool    // nothing of it has been delivered by anybody
	known bool    // last is set
	last  state
}

// state is a value of a series.
type state struct {
	start, at    int64
	value        float64 // of a sum, or a histogram's sum
	distribution *distribution
}

func (s state) same(as state) bool {
	return s.value == as.value && (s.distribution == nil || as.distribution != nil &&
		s.distribution.count == as.distribution.count)
}

// distribution is a histogram's counts. Nobody changes them.
type distribution struct {
	count         uint64
	bounds        []float64
	buckets       []uint64
	scale         int32
	zeroes        uint64
	zeroThreshold float64
	positive      metricdata.ExponentialBucket
	negative      metricdata.ExponentialBucket
}

// advance is what becomes of a series with the delivery of a point.
type advance struct {
	series *series
	to     state
}

func (a advance) apply() { a.series.known, a.series.last = true, a.to }

func newDeltas(sums, histograms metricdata.Temporality, since time.Time) *deltas {
	return &deltas{sums: sums, histograms: histograms, since: since.UnixNano(), tables: map[tableKey]*table{},
		forgotten: math.MinInt64,
		distinct:  func(s *attribute.Set) attribute.Distinct { return s.Equivalent() }}
}

// table finds the series of a metric.
func (d *deltas) table(s *scope, m *metricdata.Metrics, k kind) *table {
	key := tableKey{s.Scope, m.Name, m.Unit, k}
	t := d.tables[key]
	if t == nil {
		t = &table{series: map[attribute.Distinct]*series{}, forgotten: math.MinInt64}
		d.tables[key] = t
	}
	return t
}

// find finds a series, or makes it.
func (d *deltas) find(t *table, set attribute.Set, start int64) *series {
	hash := d.distinct(&set)
	for s := t.series[hash]; s != nil; s = s.other {
		if s.set == set {
			s.seen = d.push
			return s
		}
	}
	s := &series{set: set, other: t.series[hash], seen: d.push}
	s.whole = start >= d.since && start > t.forgotten && start > d.forgotten
	t.series[hash] = s
	return s
}

// begin returns where the delta of a point at that time starts, and whether what came before is to be subtracted.
// send is false where there is nothing to send: the point is the base of what follows, or it has been delivered
// already.
func (d *deltas) begin(s *series, to state, fallen bool) (start int64, subtract, send bool) {
	switch {
	case !s.known && !s.whole:
		advance{s, to}.apply()
		d.based++
		return 0, false, false
	case !s.known:
		return to.start, false, true
	case to.start > s.last.start && s.last.start != nanos(time.Time{}):
		return to.start, false, true
	case fallen:
		advance{s, to}.apply()
		d.based++
		return 0, false, false
	case to.at <= s.last.at && to.same(s.last):
		return 0, false, false // an ended rank's, once more
	}
	return min(s.last.at, to.at), true, true
}

// takeBased returns how many points have been taken as bases since the last call.
func (d *deltas) takeBased() int {
	n := d.based
	d.based = 0
	return n
}

// pushed is called after each push of all there is; it drops what has been gone for long.
func (d *deltas) pushed() {
	d.push++
	if d.push%forgetAfter != 0 {
		return
	}
	for key, t := range d.tables {
		for hash, first := range t.series {
			var kept *series
			for s := first; s != nil; {
				next := s.other
				if d.push-s.seen > forgetAfter {
					t.forgotten = max(t.forgotten, s.last.start)
				} else {
					s.other, kept = kept, s
				}
				s = next
			}
			if kept == nil {
				delete(t.series, hash)
			} else {
				t.series[hash] = kept
			}
		}
		if len(t.series) == 0 {
			d.forgotten = max(d.forgotten, t.forgotten)
			delete(d.tables, key)
		}
	}
}

// size is how many series are known.
func (d *deltas) size() int {
	n := 0
	for _, t := range d.tables {
		n += len(t.series)
	}
	return n
}

// nanos is the time since the epoch; the zero time is long before.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return math.MinInt64
	}
	return t.UnixNano()
}

func timeAt(n int64) time.Time {
	if n == math.MinInt64 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

// change makes points deltas, in place. stateOf says what a point has; subtract takes from it what was delivered last,
// or says that it has fallen; begin says when the delta began.
func change[P any](d *deltas, t *table, points []P, stateOf func(p *P) (attribute.Set, state),
	subtract func(p *P, last state) (fallen bool), begin func(p *P, start time.Time)) ([]P, []advance) {
	kept, next := points[:0], make([]advance, 0, len(points))
	var difference P // one for all: it is on the heap
	for i := range points {
		p := &points[i]
		set, to := stateOf(p)
		s := d.find(t, set, to.start)
		difference = *p
		fallen := subtract(&difference, s.last)
		start, less, send := d.begin(s, to, fallen)
		if !send {
			continue
		}
		if less {
			*p = difference
		}
		begin(p, timeAt(start))
		kept, next = append(kept, *p), append(next, advance{s, to})
	}
	return kept, next
}

// deltaSum makes the points of a monotonic sum deltas, in place.
func deltaSum(d *deltas, t *table, points []number) ([]number, []advance) {
	return change(d, t, points,
		func(p *number) (attribute.Set, state) {
			return p.Attributes, state{start: nanos(p.StartTime), at: nanos(p.Time), value: p.Value}
		},
		func(p *number, last state) (fallen bool) {
			fallen = !(p.Value >= last.value) // NaN too: it begins anew
			p.Value -= last.value
			return fallen
		},
		func(p *number, start time.Time) { p.StartTime = start })
}
