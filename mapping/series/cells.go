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

// cell is where the values of one variable and one name come together. There are very many.
type cell struct {
	v      *variable
	id     cellID
	series *mapping.Series

	// Of the handles, in the running Update.
	sum         float64 // unscaled
	known, want int32   // how many values it is made of, and how many it should be

	count   mapping.Count // ModeCount; of a watermark the last merged value, unscaled, which becomes fixed
	fixed   float64       // of freed objects, unscaled
	created int64         // Unix nanoseconds of the earliest contribution, 0 unknown

	state *stateCell // of a STATE
	timer *timer

	seen       uint32 // generation
	fixedKnown bool
	anew       bool // it has begun at zero: what had been counted before is not in it
}

// stateCell is the series of a STATE.
type stateCell struct {
	series  []*mapping.Series // as variable.items
	outside *mapping.Series   // a value that has no series of its own
	shown   int64             // value of outside
	now     int64             // the present value
}

// find looks for a cell. Cells are mostly asked for in the order that they have: without an index, as long as that
// goes well.
func (v *variable) find(id cellID) *cell {
	n := len(v.list)
	if int(v.next) < n && v.list[v.next].id == id {
		v.next++
		return v.list[v.next-1]
	}
	if n == 0 || !v.unsorted && id.compare(v.list[n-1].id) > 0 {
		return nil
	}
	if v.cells == nil {
		v.cells = make(map[cellID]*cell, n)
		for _, c := range v.list {
			v.cells[c.id] = c
		}
	}
	return v.cells[id]
}

// newSeries has the labels of the cell, and of a state its name.
func (c *cell) newSeries(from *slabs, state string) *mapping.Series {
	v := c.v
	n := len(v.Labels)
	for _, there := range []bool{v.Mode == mapping.ModeState, v.Label != "", c.id.number != 0, c.id.elem >= 0} {
		if there {
			n++
		}
	}
	labels := append(from.labels(n), v.Labels...)
	if v.Mode == mapping.ModeState {
		labels = append(labels, mapping.Label{Name: "state", Value: state})
	}
	if v.Label != "" {
		labels = append(labels, mapping.Label{Name: v.Label, Value: c.id.object})
	}
	if c.id.number != 0 {
		labels = append(labels, mapping.Label{Name: "object", Value: strconv.FormatUint(uint64(c.id.number), 10)})
	}
	if c.id.elem >= 0 {
		labels = append(labels, mapping.Label{Name: v.Each, Value: elementName(int(c.id.elem))})
	}
	if len(labels) > 1 {
		slices.SortFunc(labels, func(a, b mapping.Label) int { return cmp.Compare(a.Name, b.Name) })
	}
	s := from.newSeries()
	s.Metric, s.Labels, s.Together, s.Meaning = v.Metric, labels, mapping.NewTogether(v.Ranks, v.Across), v.meaning
	return s
}

// since moves the beginning of a cell to an earlier time, never to a later one; 0 is not known.
func (c *cell) since(at int64) {
	if at > 0 && !c.anew && (c.created == 0 || at < c.created) {
		c.created = at
		c.setCreated()
	}
}

// setCreated tells the series when it was zero.
func (c *cell) setCreated() {
	if c.series != nil && c.created > 0 {
		c.series.Since = c.created
	}
}

func (c *cell) merge(m mapping.Merge, x float64) {
	if c.known == 0 {
		c.sum = x
	} else {
		c.sum = combine(m, c.sum, x)
	}
	c.known++
}

// settle makes the value of a cell that counts out of its parts.
func (c *cell) settle(in *intake) {
	known := c.known > 0 || c.fixedKnown
	if c.v.Exact {
		known = c.known == c.want && (c.want > 0 || c.fixedKnown) // its buckets and its time are of one moment
	}
	switch now := c.sum + c.fixed; {
	case !known:
	case !mapping.Finite(now):
		in.dropped[mapping.ReasonNotANumber]++
	case !c.count.Known() && c.v.of.Since > 0 && c.created < c.v.of.Since:
		c.anew, c.created = true, in.at
		c.setCreated()
		c.count.Skip(now)
	default:
		c.count.Take(now)
	}
	if c.timer != nil && c.count.Known() {
		c.timer.settle(c, in, known)
	}
	x := c.count.Total() * c.v.Scale
	c.series.Value, c.series.Valid = x, c.count.Known() && mapping.Finite(x)
}

func (c *cell) publishGauge(in *intake) {
	x, valid := c.sum, c.known > 0
	mean := c.v.Objects == mapping.MergeMean
	if mean && valid {
		x /= float64(c.known)
	}
	if c.v.Mode == mapping.ModeWatermark {
		switch {
		case !c.fixedKnown || mean && c.known > 0: // a mean is that of the objects that are there
		case valid:
			x = combine(c.v.Among(), x, c.fixed)
		default:
			x, valid = c.fixed, true
		}
	} else {
		valid = valid && (c.known == c.want || mean) // a part of a sum would be a lie
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
			t.outside, t.shown, in.relist = c.newSeries(&slabs{}, c.v.OutsideName(c.v.of.Info.Enum, t.now)), t.now,
				true
		}
		t.outside.Value, t.outside.Valid = 1, true
	}
}

// lose says that nothing contributes to a cell any more: what contributes later counts as a whole.
func (c *cell) lose() {
	c.count.Skip(0)
	if c.timer != nil {
		c.timer.lose(int(c.v.bucketCount))
	}
}

func (v *variable) sort() {
	if !v.unsorted {
		return
	}
	v.unsorted = false
	slices.SortFunc(v.list, func(a, b *cell) int { return a.id.compare(b.id) })
}

func (id cellID) compare(o cellID) int {
	if c := strings.Compare(id.object, o.object); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(id.number, o.number), cmp.Compare(id.elem, o.elem))
}
