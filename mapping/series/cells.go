package series

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// cellID tells the cells of a variable apart.
type cellID struct {
	object string // name; "" for variables that aren't bound, or where all objects become one
	number uint32 // the object itself, where those that share a name are not merged
	elem   int32  // -1: elements merged
}

func (id cellID) compare(o cellID) int {
	return cmp.Or(strings.Compare(id.object, o.object), cmp.Compare(id.number, o.number), cmp.Compare(id.elem, o.elem))
}

// cell is where the values of one variable and one name come together. There are very many.
type cell struct {
	v      *variable
	id     cellID
	series *mapping.Series // nil: of a STATE

	// Of the handles, in the running Update.
	sum         float64 // unscaled
	known, want int32   // how many values it is made of, and how many it should be

	count mapping.Count // ModeCount; of a watermark the last merged value, unscaled, which becomes fixed
	fixed float64       // of freed objects, unscaled

	state *stateCell // of a STATE
	timer *timer

	seen       uint32 // generation
	fixedKnown bool
	anew       bool // it has begun at zero: what had been counted before is not in it
	removed    bool // the variable has it no more
}

// stateCell is the series of a STATE.
type stateCell struct {
	series  []*mapping.Series // as variable.items
	outside *mapping.Series   // a value that has no series of its own
	shown   int64             // value of outside
	now     int64             // the present value
}

// timer is what a cell of a timer, or of a distribution of sizes, keeps besides the sum that has been counted.
type timer struct {
	hist mapping.Histogram

	// One of the two: observations are counted by the agent, or estimated here.
	exact    *exact
	estimate *estimate
}

func newTimer(v *variable) *timer {
	t := &timer{hist: mapping.Histogram{Bytes: v.Sizes(), Schema: mapping.NativeSchema, Bounds: v.Buckets,
		Counts: make([]uint64, len(v.Buckets)+1)}}
	if v.Exact {
		t.hist.Schema, t.exact = mapping.ExactSchema, &exact{}
	} else {
		t.estimate = &estimate{}
	}
	return t
}

// newSeries has the labels of the cell, and of a state its name.
func (c *cell) newSeries(from *seriesSlabs, state string) *mapping.Series {
	v := c.v
	own := make([]mapping.Label, 0, 4)
	if v.Mode == mapping.ModeState {
		own = append(own, mapping.Label{Name: "state", Value: state})
	}
	if v.Label != "" {
		own = append(own, mapping.Label{Name: v.Label, Value: c.id.object})
	}
	if c.id.number != 0 {
		own = append(own, mapping.Label{Name: "object", Value: strconv.FormatUint(uint64(c.id.number), 10)})
	}
	if c.id.elem >= 0 {
		own = append(own, mapping.Label{Name: v.Each, Value: elementName(int(c.id.elem))})
	}
	labels := from.labels.take(len(v.Labels) + len(own))
	copy(labels[copy(labels, v.Labels):], own)
	if len(labels) > 1 {
		slices.SortFunc(labels, func(a, b mapping.Label) int { return cmp.Compare(a.Name, b.Name) })
	}
	s := from.series.one()
	s.Metric, s.Labels = v.Metric, labels
	return s
}

// since moves the beginning of a cell to an earlier time, never to a later one; 0 is not known.
func (c *cell) since(at int64) {
	if s := c.series; s != nil && at > 0 && !c.anew && (s.Since == 0 || at < s.Since) {
		s.Since = at
	}
}

func (c *cell) merge(m mapping.Merge, x float64) {
	if c.known == 0 {
		c.sum = x
	} else {
		c.sum = m.Combine(c.sum, x)
	}
	c.known++
}

// begin forgets what handles had in an Update.
func (c *cell) begin() {
	c.sum, c.known, c.want = 0, 0, 0
	if c.timer != nil && c.timer.estimate != nil {
		c.timer.estimate.sum, c.timer.estimate.known = 0, false
	}
}

// publish makes the values of its series out of the parts of a cell.
func (c *cell) publish(in *intake) {
	switch c.v.Mode {
	case mapping.ModeCount:
		c.publishCount(in)
	case mapping.ModeState:
		c.publishState(in)
	default:
		c.publishGauge(in)
	}
}

func (c *cell) publishCount(in *intake) {
	known := c.known > 0 || c.fixedKnown
	if c.v.Exact {
		known = c.known == c.want && (c.want > 0 || c.fixedKnown) // its buckets and its time are of one moment
	}
	switch now := c.sum + c.fixed; {
	case !known:
	case !mapping.Finite(now):
		in.dropped[mapping.ReasonNotANumber]++
	case !c.count.Known() && c.v.of.Since > 0 && c.series.Since < c.v.of.Since:
		c.anew, c.series.Since = true, in.at
		c.count.Skip(now)
	default:
		c.count.Take(now)
	}
	x := c.count.Total() * c.v.Scale
	if t := c.timer; t != nil && c.count.Known() {
		switch {
		case t.estimate != nil:
			t.estimate.settle(c.anew)
		default:
			if t.hist.Sum = x; known {
				t.tally(c, in)
			}
		}
	}
	c.series.Value, c.series.Valid = x, c.count.Known() && mapping.Finite(x)
}

func (c *cell) publishGauge(in *intake) {
	x, valid := c.sum, c.known > 0
	if c.v.Mode == mapping.ModeWatermark {
		switch {
		case !c.fixedKnown:
		case valid:
			x = c.v.Among().Combine(x, c.fixed)
		default:
			x, valid = c.fixed, true
		}
	} else {
		valid = valid && c.known == c.want // a part of a sum would be a lie
	}
	if valid && !mapping.Finite(x*c.v.Scale) {
		in.dropped[mapping.ReasonNotANumber]++
		valid = false
	}
	c.series.Value, c.series.Valid = x*c.v.Scale, valid
	if valid {
		c.count.Set(x)
	}
}

func (c *cell) publishState(in *intake) {
	valid := c.known > 0
	found := false
	t := c.state
	for i, series := range t.series {
		series.Value, series.Valid = 0, valid
		if valid && c.v.Items[i].Value == t.now {
			series.Value, found = 1, true
		}
	}
	switch {
	case !valid:
		if t.outside != nil {
			t.outside.Valid = false
		}
	case found:
		if t.outside != nil {
			t.outside, in.relist = nil, true
		}
	default:
		if t.outside == nil || t.shown != t.now {
			name := c.v.OutsideName(c.v.of.Info.Enum, t.now)
			t.outside, t.shown, in.relist = c.newSeries(&seriesSlabs{}, name), t.now, true
		}
		t.outside.Value, t.outside.Valid = 1, true
	}
}

// restart lets a cell that counts begin at zero: what is read next counts as a whole.
func (c *cell) restart(at int64) {
	c.count, c.anew, c.series.Since = mapping.Count{}, true, at
	if c.timer == nil {
		return
	}
	*c.timer = *newTimer(c.v)
	if d := c.timer.exact; d != nil {
		d.known = true
	} else {
		c.timer.estimate.events.Skip(0)
	}
}

// lose says that nothing contributes to a cell any more: what contributes later counts as a whole.
func (c *cell) lose() {
	c.count.Skip(0)
	switch {
	case c.timer == nil:
	case c.timer.exact != nil:
		c.timer.exact.last = make([]uint64, c.v.bucketCount)
	default:
		c.timer.estimate.events.Skip(0)
	}
}

// intake is a sample that is being taken in.
type intake struct {
	values  []uint64
	at      int64                     // when it was taken, in Unix nanoseconds
	dropped map[mapping.Reason]uint64 // values that are left out
	relist  bool                      // the set of series has changed
}

// forget takes out what a plan brings to a cell anew: what freed objects have counted, and what is counted where.
func (c *cell) forget() {
	c.fixed, c.fixedKnown = 0, false
	switch {
	case c.timer == nil:
	case c.timer.exact != nil:
		c.timer.exact.forget()
	default:
		c.timer.estimate.fixed, c.timer.estimate.fixedKnown = 0, false
	}
}

// stays says whether a cell is kept that nothing contributes to any more.
func (c *cell) stays() bool {
	switch {
	case c.id.number != 0 || !c.count.Known():
	case c.v.Mode == mapping.ModeCount && c.count.Total() > 0:
		c.lose()
		return true
	case c.v.Mode == mapping.ModeWatermark:
		c.fixed, c.fixedKnown = c.count.Total(), true
		return true
	}
	return false
}

// addFixed adds what a freed object leaves.
func (c *cell) addFixed(m mapping.Merge, x float64) {
	if c.fixedKnown {
		x = m.Combine(c.fixed, x)
	}
	c.fixed, c.fixedKnown = x, true
}
