package mapping

import (
	"maps"
	"slices"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Rank is what the variables of one process become. NewRank makes one when the process connects; it goes on through
// later connections of the same process. It belongs to one goroutine.
//
// The numbers go this way: a handle's elements (count.go for what only grows) are merged into cells, one for each
// variable and object name; a cell is a series, or several for a STATE. What is compiled once, whenever the catalogue,
// the objects or the remains of freed ones change, stands in catalogue.go (variables) and plan.go (handles and cells). What
// outlives the Rank stands in blob.go; what becomes of it under other rules, in restore.go.
type Rank struct {
	mapper *Mapper
	lib    Library
	rules  *ruleSet

	// What the plan has been compiled from.
	variables *mpit.Variables
	layout    *mpit.Layout
	remains   *mpit.Remains

	byID     []*variable // by Variable.ID
	byKey    []*variable // sorted, without those that another one's key is taken by
	ratios   map[variableKey]*variable
	order    []*variable        // all of them, those of ratios too
	families map[string]holding // that this rank has

	handles map[uint32]*handle
	plan    []*handle // those of the layout
	sparse  []*handle // of plan, those of variables whose elements have a cell only once they are not 0
	pairs   []pair
	slabs   slabs
	nowhere cell // for what has no cell: always 0

	held        int        // variables that wait for their categories
	categories  Categories // nil: not known, or the rank can't tell
	categorised bool       // they are known, or no rule asks
	told        bool       // categories, since the last plan

	series     []*Series
	structure  uint64
	generation uint32 // of the plan, to find what is no longer there
	rebuilt    bool   // the plan is new in this Update
	paused     bool   // the sample of this Update is of the time when the program called MPI_Pcontrol(0)
	pcontrol   bool   // the program has called MPI_Pcontrol since the last Update
	relist     bool   // the set of series may have changed

	limits limits

	clock     time.Duration // of the last sample
	now       int64         // its time in Unix nanoseconds
	calls     uint64        // of MPI_Pcontrol, until the last sample
	closed    time.Duration // when the last interval of timers closed
	hasClosed bool

	restored  *restored   // from the blob: what no variable has taken yet
	returning []*variable // those with a change, or with something for cells that come
	again     bool        // there was a blob: an exporter has shown these series before
	blob      []byte
	dirty     bool

	dropped map[Reason]uint64

	selection map[uint32]bool // as the agent was told last, or assumed; beyond it all are read
	reselect  bool
	objects   []ObjectInfo
}

// variableKey is what a variable is known by, for indices differ from run to run.
type variableKey struct {
	name  string
	class mpit.Class // as declared
}

// variable is a variable of this rank. What it has in common with other ranks' is not its own: see shared.go.
type variable struct {
	*spec
	info  *mpit.Variable // in the catalogue; of ratios, which stand in none, with their name and highRatio or levelRatio alone
	left  *leftOut       // nil: it isn't
	with  *variable      // companion of a timer
	other *cell          // where cells fold into for a limit; nil: none has

	list  []*cell          // cells, sorted
	cells map[cellID]*cell // of list, once find needs it
	next  int32            // in list, where find looks first

	bucketCount int32 // of a distribution; 0: not known yet

	wanted   bool // to be read: shown, or the companion of one that is
	held     bool // nobody knows yet what it becomes: its categories could make a difference
	asked    bool // the agent has been asked to read what it left out
	off      bool // left out for a limit
	adopted  bool // it is the companion of a timer
	unsorted bool // list is
	taken    bool // what the blob had of it has found its place

	past *past // nil: most have none
}

// leftOut says why a variable is not shown.
type leftOut struct {
	reason Reason
	why    string // of ReasonTypeConflict, in words
}

// past is what a variable has of handles that are no more, and of other exporters and rules.
type past struct {
	wraps  map[wrapped]float64 // of handles that are no more; cells have them in count.gone
	change *change             // of cells that come until the agent has read all of it
	was    *wasFolded          // the same
	before *before             // what its series meant; nil: what they mean now
	kept   []kept              // from the blob, for when it is shown with other labels again
	moved  int64               // Unix nanoseconds of when other rules changed what its series mean, 0 never
}

// wrapped says whose wraps they were.
type wrapped struct {
	object string
	elem   int // -1: any
}

// had is what the variable has of the past, to be read.
func (v *variable) had() past {
	if v.past == nil {
		return past{}
	}
	return *v.past
}

// keep is what the variable has of the past, to be changed.
func (v *variable) keep() *past {
	if v.past == nil {
		v.past = &past{}
	}
	return v.past
}

func (p *past) add(k kept) { p.kept = append(p.kept, k) }

// item is a value of an enumeration.
type item struct {
	value int64
	name  string
}

// cellID tells the cells of a variable apart.
type cellID struct {
	object string // name; "" for variables that aren't bound, or where all objects become one
	number uint32 // the object itself, where those that share a name are not merged
	elem   int32  // -1: elements merged
}

// cell is where the values of one variable and one name come together. A rank has many: what few of them need stands apart.
type cell struct {
	v      *variable
	id     cellID
	series *Series

	sum         float64 // of the handles, in the running Update
	known, want int32   // how many values it is made of, and how many it should be
	count       count
	created     int64 // Unix nanoseconds of the earliest contribution, 0 unknown

	state *stateCell // of a STATE
	timer *timer
	rare  *rare // nil: nothing of it

	seen       uint32 // generation
	birth      uint32 // lowest number of an object that contributes; 0 not known
	unselected bool   // the agent does not read all of it yet
	standing
	folding
}

// rare is what few cells have.
type rare struct {
	fixed, floor           float64 // from freed objects; watermarks of objects that are not even among the remains
	fixedKnown, floorKnown bool

	gone    float64 // wraps of handles that are no more
	adjust  float64 // what is added so that the series neither falls without a reset nor jumps at one
	base    float64 // of adjust, what the blob has of finer cells, and keeps
	resetAt int64   // Unix nanoseconds of the last reset, 0 never
	begun   int64   // Unix nanoseconds of when the object's series began with what had been counted elsewhere, 0 never
	change  *change // to be put into effect with the first value

	value  portion
	events portion // of a timer: its companion's
	rest   *rest   // this is other; nil: it isn't
}

// seldom is what the cell has of that, to be read.
func (c *cell) seldom() rare {
	if c.rare == nil {
		return rare{}
	}
	return *c.rare
}

// rarely is the same, to be changed.
func (c *cell) rarely() *rare {
	if c.rare == nil {
		c.rare = &rare{}
	}
	return c.rare
}

// changes is what the cell's first value is to put into effect; nil: nothing.
func (c *cell) changes() *change {
	if c.rare == nil {
		return nil
	}
	return c.rare.change
}

// rest is what the cell has as other; nil: it isn't.
func (c *cell) rest() *rest {
	if c.rare == nil {
		return nil
	}
	return c.rare.rest
}

// stateCell is the series of a STATE.
type stateCell struct {
	series  []*Series // as variable.items
	outside *Series   // a value that has no series of its own
	shown   int64     // value of outside
	now     int64     // the present value
}

// handle is an open handle of the rank.
type handle struct {
	of     *mpit.Handle // in the layout that it was last seen in
	v      *variable
	name   string  // the object's, whatever it is called in cells
	value  float64 // of gauges, elements merged, unscaled
	solo   uint32  // the object's number, where its cells are not those of all that share the name
	seen   uint32  // generation
	offset int32
	n      int32
	failed bool // in this Update
	ok     bool // there is a value
	placed bool // it has cells
	based  bool // something is subtracted: see base
	gaps   bool // and something that the program kept out: Excluded
	wrong  bool // it can't be what its variable is, and is not read

	// Most have one element. Others have what follows in several.
	one     [1]*cell
	elem    [1]element // modeCount
	several *several
}

// several is the cells and elements of a handle that has more than one.
type several struct {
	cells []*cell   // one, or one for each element, nil for those that have always been 0 and need none
	elems []element // modeCount
}

// cells is one, or one for each element, nil for those that have always been 0 and need none. None: it has not been placed.
func (h *handle) cells() []*cell {
	switch {
	case h.several != nil:
		return h.several.cells
	case h.placed:
		return h.one[:]
	}
	return nil
}

// elems is the elements, of modeCount only.
func (h *handle) elems() []element {
	switch {
	case h.several != nil:
		return h.several.elems
	case h.v.mode == modeCount:
		return h.elem[:]
	}
	return nil
}

// base is what is subtracted from an element: the value at its last rename, or, where the variable goes on from an offset, when the
// handle was made.
func (h *handle) base(i int) uint64 {
	switch {
	case !h.based:
		return 0
	case len(h.of.Origin) == int(h.n):
		return h.of.Origin[i]
	}
	return h.of.First[i]
}

func (h *handle) cell(i int) *cell {
	if h.several == nil {
		return h.one[0]
	}
	if len(h.several.cells) == 1 {
		return h.several.cells[0]
	}
	return h.several.cells[i] // nil: see cells
}

// words are the handle's values in a sample; false: it has none there.
func (h *handle) words(values []uint64) ([]uint64, bool) {
	from, n := int(h.offset), int(h.n)
	if from < 0 || from > len(values) || n > len(values)-from {
		return nil, false
	}
	return values[from : from+n], true
}

// NewRank makes the Rank of a process with the blob that its agent kept, which may be nil. An error says that the blob
// could not be read; the Rank is good all the same, and starts anew.
func (m *Mapper) NewRank(lib Library, blob []byte) (*Rank, error) {
	r := &Rank{
		mapper:    m,
		lib:       lib,
		rules:     m.rulesFor(lib),
		ratios:    map[variableKey]*variable{},
		families:  map[string]holding{},
		dropped:   map[Reason]uint64{},
		selection: map[uint32]bool{},

		categorised: !m.categories,
	}
	if len(blob) == 0 {
		r.dirty = true // a blob, whatever is in it, tells the next exporter that there was one before
		return r, nil
	}
	restored, err := decodeBlob(blob)
	if err != nil {
		return r, err
	}
	// What an earlier exporter, or one with other rules, told the agent to leave out is not known here: it is told all of it.
	r.restored, r.again, r.reselect, r.blob = restored, true, true, slices.Clone(blob)
	r.closed, r.hasClosed = restored.closed, restored.hasClosed
	return r, nil
}

// Reload puts the rules of another Mapper into force, at a time of the exporter's clock. The next Update shows what they make of the
// variables, and Select says what the agent is to be told. A series whose meaning they change begins at zero; all others go on.
func (r *Rank) Reload(m *Mapper, _ time.Time) {
	blob, _ := r.Blob()
	next, err := m.NewRank(r.lib, blob)
	if err != nil {
		panic(err) // it has just been written
	}
	next.structure, next.dropped, next.limits.rank, next.limits.variable = r.structure+1, r.dropped, r.limits.rank, r.limits.variable
	r.Close()
	*r = *next
}

// Update takes a sample in. It keeps references to the sample's catalogue, layout and remains, none to its values.
// A sample without values (busy), or older than the last one, changes nothing but that gauges become invalid.
func (r *Rank) Update(s *mpit.Sample) {
	if s == nil || s.Monotonic < r.clock {
		return
	}
	if s.Status == mpit.SampleBusy || s.Layout == nil || s.Values == nil && s.Layout.Values > 0 {
		for _, series := range r.series {
			series.Valid = series.Valid && series.Lasting
		}
		return
	}
	r.clock, r.now = s.Monotonic, s.Time.UnixNano()
	r.pcontrol, r.calls = s.Stats.PcontrolCalls != r.calls, s.Stats.PcontrolCalls
	r.paused = s.Status == mpit.SamplePaused || s.Stats.PcontrolCalls > 0 && s.Stats.PcontrolLevel == 0
	r.compile(s)
	r.markFailed(s)
	if len(r.sparse) > 0 {
		r.reveal(s.Values)
	}
	r.clear()
	for _, h := range r.plan {
		h.read(r, s.Values)
	}
	r.readPairs(s.Values)
	r.publish(s)
	if r.relist {
		r.list()
	}
	if len(r.returning) > 0 {
		r.doneReturning()
	}
	r.rebuilt = false
}

func (r *Rank) markFailed(s *mpit.Sample) {
	for i := range s.Failed {
		if h := r.index()[s.Failed[i].Handle]; h != nil {
			h.failed = true
			r.dropped[ReasonReadFailed]++
		}
	}
}

func (r *Rank) clear() {
	for _, v := range r.order {
		for _, c := range v.list {
			c.sum, c.known, c.want, c.unselected = 0, 0, 0, false
			c.count.reset, c.count.restarted, c.count.rounded = nil, false, false
		}
	}
}

// read brings one handle's values to its cells.
func (h *handle) read(r *Rank, values []uint64) {
	if h.wrong {
		return
	}
	values, fresh := h.words(values)
	fresh, h.failed = fresh && !h.failed, false
	switch h.v.mode {
	case modeCount:
		h.readCount(r, values, fresh)
	case modeState:
		for i := range int(h.n) {
			c := h.cell(i)
			c.want++
			if fresh {
				c.known++
				c.state.now = stateOf(h.v.number, values[i])
			}
		}
	default:
		h.readGauge(r, values, fresh)
	}
}

func stateOf(n number, w uint64) int64 {
	if n == floating {
		return int64(n.float(w))
	}
	return int64(w)
}

// readGauge merges elements, then objects. A watermark that could not be read is still what it was.
func (h *handle) readGauge(r *Rank, values []uint64, fresh bool) {
	v := h.v
	cells := h.cells()
	if len(cells) != 1 || cells[0] == nil || cells[0].id.elem >= 0 {
		for i, c := range cells {
			if c == nil {
				continue
			}
			c.want++
			if !fresh {
				continue
			}
			if x, reason := v.gauge(values[i]); reason == "" {
				c.merge(v.objects, x)
				h.value = x
			} else {
				r.dropped[reason]++
			}
		}
		h.ok = fresh
		return
	}
	c := cells[0]
	c.want++
	if fresh {
		h.ok = true
		for i, w := range values {
			x, reason := v.gauge(w)
			if reason != "" {
				h.ok = false
				r.dropped[reason]++
				break
			}
			if i == 0 {
				h.value = x
			} else {
				h.value = combine(v.elements, h.value, x)
			}
		}
		if v.elements == MergeMean {
			h.value /= float64(h.n)
		}
	} else if v.mode != modeWatermark {
		h.ok = false
	}
	if h.ok {
		c.merge(v.objects, h.value)
	}
}

// gauge is the value of a word of a sample, or why it is none.
func (v *variable) gauge(w uint64) (float64, Reason) {
	x := v.number.float(w)
	if !finite(x) {
		return 0, ReasonNotANumber
	}
	if v.real == mpit.ClassPercentage {
		const digit = 1e-9 // sums of shares are rounded
		switch share := x * v.scale; {
		case share < -digit || share > 1+digit:
			return 0, ReasonOutOfRange
		case share < 0:
			return 0, ""
		case share > 1:
			return 1 / v.scale, ""
		}
	}
	return x, ""
}

func (c *cell) merge(m Merge, x float64) {
	if c.known == 0 {
		c.sum = x
	} else {
		c.sum = combine(m, c.sum, x)
	}
	c.known++
}

func combine(m Merge, a, b float64) float64 {
	switch m {
	case MergeMax:
		return max(a, b)
	case MergeMin:
		return min(a, b)
	}
	return a + b
}

func finite(x float64) bool { return x-x == 0 }

// publish turns cells into the values of series.
func (r *Rank) publish(s *mpit.Sample) {
	r.gatherGauges()
	for _, v := range r.order {
		switch v.mode {
		case modeCount:
			// Backwards, so that what objects hand over to those of their name (change) comes before these.
			for i := len(v.list) - 1; i >= 0; i-- {
				v.list[i].settle(r, s.Time)
				if v.exact {
					v.list[i].tally(r, s.Values)
				}
			}
		case modeState:
			for _, c := range v.list {
				if !c.lost {
					c.publishState(r)
				}
			}
		default:
			for _, c := range v.list {
				c.publishGauge()
			}
		}
	}
	r.gatherCounts()
	closing := r.closing(s)
	for _, v := range r.order {
		if v.metric == nil || v.metric.Kind != KindHistogram {
			continue
		}
		if v.exact {
			r.showBuckets(v)
			continue
		}
		for _, c := range v.list {
			if c.series != nil && c.series.Valid {
				c.observe(r, closing)
			}
		}
	}
}

func (c *cell) publishGauge() {
	x, valid := c.sum, c.known > 0
	mean := c.v.objects == MergeMean
	if mean && valid {
		x /= float64(c.known)
	}
	if c.v.mode == modeWatermark {
		level, levelKnown := c.gathered()
		p := c.seldom()
		for _, other := range []struct {
			x     float64
			known bool
		}{{p.fixed, p.fixedKnown}, {p.floor, p.floorKnown}, {level, levelKnown}} {
			switch {
			case !other.known || mean && c.known > 0: // a mean is that of the objects that are there
			case valid:
				x = combine(c.v.among(), x, other.x)
			default:
				x, valid = other.x, true
			}
		}
	} else {
		valid = valid && (c.known == c.want || mean) // a part of a sum would be a lie
	}
	if c.series != nil {
		c.series.Value, c.series.Valid = x*c.v.scale, valid
	}
	if valid {
		c.count.value, c.count.has = x, true
	}
}

func (c *cell) publishState(r *Rank) {
	valid := c.known > 0
	found := false
	t := c.state
	for i, series := range t.series {
		series.Value, series.Valid = 0, valid
		if valid && c.v.items[i].value == t.now {
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
			t.outside, t.shown, r.relist = c.newSeries(&r.slabs, c.v.outsideName(t.now)), t.now, true
		}
		t.outside.Value, t.outside.Valid = 1, true
	}
}

// Structure is a number that changes when the set of series does.
func (r *Rank) Structure() uint64 { return r.structure }

// Series is all series of the rank, by variable and object name. The slice belongs to the Rank; it is good until the
// next Update.
func (r *Rank) Series() []*Series { return r.series }

// Dropped counts what has been left out since NewRank, by reason. The map is the caller's.
func (r *Rank) Dropped() map[Reason]uint64 {
	d := maps.Clone(r.dropped)
	add := func(reason Reason, n uint64) {
		if n > 0 {
			d[reason] += n
		}
	}
	if r.layout != nil {
		add(ReasonObjectsOverBound, r.layout.ObjectsOverflow)
		add(ReasonHandlesOverBound, r.layout.HandlesOverflow)
	}
	if r.remains != nil {
		add(ReasonRemainsLost, r.remains.Lost)
	}
	return d
}

// Requests are the variables by their Variable.ID that rules open, that are shown, and that nobody has requested yet. What the agent has been
// asked for is no request any more once a sample says what came of it.
func (r *Rank) Requests() []uint32 {
	var ids []uint32
	var idle map[*variable]bool
	for id, v := range r.byID {
		if v.info.State != mpit.VariableOnRequest || !v.wanted || !v.open {
			continue
		}
		if idle == nil {
			idle = r.idle()
		}
		if !idle[v] {
			ids = append(ids, uint32(id))
		}
	}
	return ids
}

// Select says which variables need to be read: those in ids by their Variable.ID, and with def all others. changed is
// true when the agent has to be told, and false again at the next call. It is true at the first call of a Rank that was made
// with a blob: what the agent was told before, by another exporter or with other rules, is not known. The map is the caller's.
func (r *Rank) Select() (def bool, ids map[uint32]bool, changed bool) {
	ids = make(map[uint32]bool, len(r.byID))
	changed = r.reselect
	r.reselect = false
	idle := r.idle()
	for id, v := range r.byID {
		read := v.wanted && !idle[v]
		ids[uint32(id)] = read
		told, known := r.selection[uint32(id)]
		if read != (told || !known) {
			changed = true
		}
	}
	if changed {
		r.selection = maps.Clone(ids)
	}
	return true, ids, changed
}
