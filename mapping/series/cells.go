package series

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// maxGone is how many series may stay of whose contributions not even remains are left.
const maxGone = 4096

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
	sum         float64
	known, want int32 // how many values it is made of, and how many it should be

	count   mapping.Count // modeCount; else its value is the last one shown
	fixed   float64       // of freed objects
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

// newCell makes a cell with its series.
func (r *Rank) newCell(v *variable, id cellID) *cell {
	c := r.slabs.cell()
	c.v, c.id = v, id
	if v.list == nil {
		n := 1
		if v.Label != "" && r.layout != nil {
			n = min(len(r.layout.Objects), 64)
		}
		v.list = make([]*cell, 0, n)
	}
	if n := len(v.list); n > 0 && !v.unsorted {
		v.unsorted = id.compare(v.list[n-1].id) < 0
	}
	v.list = append(v.list, c)
	v.next = int32(len(v.list))
	if v.cells != nil {
		v.cells[id] = c
	}
	r.expose(c)
	return c
}

// expose gives a cell its series.
func (r *Rank) expose(c *cell) {
	v := c.v
	if v.Mode == mapping.ModeState {
		c.state = &stateCell{}
		for _, it := range v.Items {
			c.state.series = append(c.state.series, c.newSeries(&r.slabs, it.Name))
		}
		return
	}
	c.series = c.newSeries(&r.slabs, "")
	c.series.Lasting = v.Lasts()
	if v.Metric.Kind == mapping.KindHistogram {
		if c.timer == nil {
			c.timer = r.slabs.timer()
			c.timer.begin(v)
		}
		c.series.Histogram = &c.timer.hist
	}
	c.setCreated()
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

// unixNano is a time in Unix nanoseconds, 0 where it is not known.
func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
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
func (c *cell) settle(r *Rank, values []uint64) {
	known := c.known > 0 || c.fixedKnown
	if c.v.Exact {
		known = c.known == c.want && (c.want > 0 || c.fixedKnown) // its buckets and its time are of one moment
	}
	switch now := c.sum + c.fixed; {
	case !known:
	case !mapping.Finite(now):
		r.dropped[mapping.ReasonNotANumber]++
	case !c.count.Known() && c.v.since > 0 && c.created < c.v.since:
		c.anew, c.created = true, r.now
		c.setCreated()
		c.count.Skip(now)
	default:
		c.count.Take(now)
	}
	if c.timer != nil && c.count.Known() {
		c.timer.settle(c, r, values, known)
	}
	x := c.count.Total() * c.v.Scale
	c.series.Value, c.series.Valid = x, c.count.Known() && mapping.Finite(x)
}

func (c *cell) publishGauge(r *Rank) {
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
		r.dropped[mapping.ReasonNotANumber]++
		valid = false
	}
	c.series.Value, c.series.Valid = x*c.v.Scale, valid
	if valid {
		c.count.Set(x)
	}
}

func (c *cell) publishState(r *Rank) {
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
			t.outside, r.relist = nil, true
		}
	default:
		if t.outside == nil || t.shown != t.now {
			t.outside, t.shown, r.relist = c.newSeries(&r.slabs, c.v.OutsideName(c.v.info.Enum, t.now)), t.now, true
		}
		t.outside.Value, t.outside.Valid = 1, true
	}
}

// sweep takes out the cells that nothing contributes to any more, except for what has been counted there.
func (r *Rank) sweep() {
	gone := 0
	for _, v := range r.order {
		v.overflow.sweep(r.generation)
		reserved, kept := v.reserve(), v.list[:0]
		for _, c := range v.list {
			keep := c.seen == r.generation
			if !keep && c.id.number == 0 && c.count.Known() {
				switch v.Mode {
				case mapping.ModeCount:
					if keep = c.count.Total() > 0; keep {
						c.lose()
					}
				case mapping.ModeWatermark:
					c.fixed, c.fixedKnown, keep = c.count.Total(), true, true
				}
				if keep {
					gone++
				}
				if keep && gone > maxGone {
					r.dropped[mapping.ReasonRemainsLost]++
					keep = false
				}
			}
			if keep {
				kept = append(kept, c)
				continue
			}
			delete(v.cells, c.id)
			r.room.used -= v.charge()
			if c == v.other() {
				v.overflow.cell = nil
			}
		}
		clear(v.list[len(kept):])
		v.list = kept
		r.room.reserved += v.reserve() - reserved
		v.sort()
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

// list makes the list of series anew, and a new structure if it isn't the same.
func (r *Rank) list() {
	r.relist = false
	same, n := true, 0
	add := func(s *mapping.Series) {
		if same && (n >= len(r.series) || r.series[n] != s) {
			same = false
			r.series = append(make([]*mapping.Series, 0, max(len(r.series), len(r.plan))), r.series[:n]...) // who holds the old slice may still read it
		}
		if !same {
			r.series = append(r.series, s)
		}
		n++
	}
	for _, v := range r.order {
		for _, c := range v.list {
			if c.series != nil {
				add(c.series)
			}
			if c.state == nil {
				continue
			}
			for _, s := range c.state.series {
				add(s)
			}
			if c.state.outside != nil {
				add(c.state.outside)
			}
		}
	}
	if same && n == len(r.series) {
		return
	}
	r.series = r.series[:n:n]
	r.structure++
}
