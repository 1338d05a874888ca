package mpittest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

// PerPeer stands, as a number of elements, for the size of the object that the variable is bound to.
const PerPeer = -1

// DefaultMaxObjects is how many objects live at once unless Config says otherwise, as in the agent.
const DefaultMaxObjects = 1024

// Config describes a simulated rank. New copies what it needs of it.
type Config struct {
	// Hello is what the rank says of itself. A missing ID is made at random.
	Hello mpit.Hello
	// Variables are numbered from 0 in this order, whatever their ID says. Variables that are not VariableOpen have no
	// handles. Those that are VariableOnRequest get some when they are requested.
	Variables []mpit.Variable
	// Objects are numbered from 1 in this order, except where they have an ID.
	Objects []mpit.Object
	// Elements is the number of elements of variables by name: 1 where it says nothing, or DistributionElements,
	// PerPeer as many as the object's size.
	Elements map[string]int
	// Initial is what each element of a new handle begins with, by the variable's name: 0 where it says nothing. Of
	// several classes that share a name, one alone is meant by "name/TIMER" and so on.
	Initial map[string]float64
	// Values are set once everything exists.
	Values           []Value
	ControlVariables []mpit.ControlVariable
	Categories       []mpit.Category
	Sites            []mpit.Site // nil: the agent doesn't know what that is
	// UnderWay is what the call profile says, until it is set anew; nil: there is no call profile.
	UnderWay *mpit.UnderWay
	// Comms are the communicators that it tells of, in every sample.
	Comms []mpit.Comm
	// Page is how many control variables, categories or sites stand in one answer; 0: as many as fit.
	Page int
	// MaxObjects bounds the objects that live at once, and the names in what remains of others; 0: DefaultMaxObjects.
	MaxObjects int
	// Clock is the rank's clock; nil: time.Now.
	Clock func() time.Time
}

// Value is what Set is called with.
type Value struct {
	Name   string
	Class  mpit.Class
	Object uint32
	Values []any
}

// variable is a variable and the generation that brought it, or changed it last.
type variable struct {
	mpit.Variable
	elements   int
	generation uint64
}

// handle is a handle with its present values.
type handle struct {
	mpit.Handle
	mpit.Earlier
	values []uint64 // the library's, whatever MPI_Pcontrol says
	frozen []uint64 // while paused: what a sample shows
	failed mpit.ReturnCode
}

// remain is a mpit.Remain with its key.
type remain struct {
	mpit.Remain
	count int
}

// Rank is a rank without MPI: it keeps the books that the agent keeps, and answers as it would. Safe for concurrent
// use.
type Rank struct {
	mu      sync.Mutex
	err     error // of New
	clock   func() time.Time
	page    int
	max     int
	initial map[string]float64

	hello      mpit.Hello
	variables  []variable
	objects    []mpit.Object
	handles    []handle
	remains    []remain
	cvars      []mpit.ControlVariable
	categories []mpit.Category
	sites      []mpit.Site
	lastObject uint32
	lastHandle uint32
	overflow   uint64
	lost       uint64

	variablesGen, layoutGen, remainsGen uint64

	stamp    uint64 // of the categories
	paused   bool   // by MPI_Pcontrol(0), since pausedAt
	pausedAt time.Time
	tools    tools // of the present connection
	refusing map[int]mpit.ReturnCode

	selection wire.SelectRequest
	stats     mpit.AgentStats
	underWay  *mpit.UnderWay
	comms     []mpit.Comm

	starting bool // New is at work: handles are as old as what they are bound to

	conn    *connection
	stalled chan struct{} // nil, or closed when answering goes on
	busy    int
	notNow  int
	delay   time.Duration
}

// New makes a rank. A mistake in the Config is reported by the first Connect.
func New(cfg Config) *Rank {
	r := &Rank{
		clock:      cfg.Clock,
		page:       cfg.Page,
		max:        cfg.MaxObjects,
		initial:    make(map[string]float64, len(cfg.Initial)),
		hello:      cfg.Hello,
		cvars:      slices.Clone(cfg.ControlVariables),
		categories: slices.Clone(cfg.Categories),
		sites:      slices.Clone(cfg.Sites),
		selection:  wire.SelectRequest{Default: true},
		// From 1 on, for 0 means none.
		variablesGen: 1, layoutGen: 1, remainsGen: 1,
		stamp:    1,
		underWay: cfg.UnderWay,
		comms:    slices.Clone(cfg.Comms),
		refusing: make(map[int]mpit.ReturnCode),
	}
	r.stats.PcontrolLevel, r.stats.CategoryStamp = 1, r.stamp
	for name, v := range cfg.Initial {
		r.initial[name] = v
	}
	if r.clock == nil {
		r.clock = time.Now
	}
	if r.max == 0 {
		r.max = DefaultMaxObjects
	}
	if r.hello.ID == (mpit.RankID{}) {
		_, _ = rand.Read(r.hello.ID[:]) // never fails
	}
	if r.hello.InitTime.IsZero() {
		r.hello.InitTime = r.clock()
	}
	if r.hello.Size == 0 {
		r.hello.Size = 1
	}
	r.starting = true
	for _, o := range cfg.Objects {
		if r.AddObject(o) == 0 {
			r.fail(fmt.Errorf("mpittest: object %d (%q) is over the limit or repeats a number", o.ID, o.Name))
		}
	}
	for _, v := range cfg.Variables {
		elements, ok := cfg.Elements[v.Name]
		switch {
		case ok:
		case v.Distribution:
			elements = DistributionElements
		default:
			elements = 1
		}
		r.AddVariable(v, elements)
	}
	r.starting = false
	for _, v := range cfg.Values {
		r.fail(r.Set(v.Name, v.Class, v.Object, v.Values...))
	}
	return r
}

func (r *Rank) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Hello returns what the rank says of itself when it connects next.
func (r *Rank) Hello() mpit.Hello {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hello
}

// Selected reports whether the exporter wants the variable to be read.
func (r *Rank) Selected(variable uint32) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return selected(r.selection, variable)
}

// AddVariable adds a variable with so many elements (see PerPeer), opens it on all objects that fit, and returns its
// number.
func (r *Rank) AddVariable(v mpit.Variable, elements int) (id uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.variablesGen++
	v.ID = uint32(len(r.variables))
	r.variables = append(r.variables, variable{Variable: v, elements: elements, generation: r.variablesGen})
	r.openEverywhere(&r.variables[v.ID])
	return v.ID
}

// openEverywhere opens a variable on all objects that fit. The caller holds mu.
func (r *Rank) openEverywhere(v *variable) {
	if v.Bind == mpit.BindNone {
		r.open(v, nil)
	}
	for i := range r.objects {
		if r.objects[i].Kind == v.Bind {
			r.open(v, &r.objects[i])
		}
	}
}

// openRequested opens those that are opened on request only. The caller holds mu.
func (r *Rank) openRequested(q wire.SelectRequest) {
	for i := range r.variables {
		v := &r.variables[i]
		if v.State != mpit.VariableOnRequest || !selected(q, v.ID) {
			continue
		}
		r.variablesGen++
		v.State, v.generation = mpit.VariableOpen, r.variablesGen
		r.openEverywhere(v)
	}
}

// SetState says that a variable could or could not be opened. Handles stay as they are.
func (r *Rank) SetState(name string, class mpit.Class, state mpit.VariableState, code mpit.ReturnCode) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.variables {
		if v := &r.variables[i]; v.Name == name && v.Class == class {
			r.variablesGen++
			v.State, v.Code, v.generation = state, code, r.variablesGen
			return nil
		}
	}
	return fmt.Errorf("mpittest: no %s %q", class, name)
}

// AddObject adds an object and opens the variables that fit. An ID of 0 is replaced by the next free number. It returns
// the number, or 0 where the object is over the limit (it is counted as such) or the number was used before.
func (r *Rank) AddObject(o mpit.Object) (id uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.objects) >= r.max {
		r.overflow++
		r.layoutGen++
		return 0
	}
	if o.ID == 0 {
		o.ID = r.lastObject + 1
	}
	if o.ID <= r.lastObject {
		return 0
	}
	r.lastObject = o.ID
	if o.Created.IsZero() {
		o.Created = r.clock()
	}
	r.objects = append(r.objects, o)
	r.layoutGen++
	for i := range r.variables {
		if r.variables[i].Bind == o.Kind {
			r.open(&r.variables[i], &o)
		}
	}
	return o.ID
}

// open makes a handle; o is nil for a variable without an object.
func (r *Rank) open(v *variable, o *mpit.Object) {
	if v.State != mpit.VariableOpen {
		return
	}
	r.lastHandle++
	h := handle{Handle: mpit.Handle{ID: r.lastHandle, Variable: v.ID, Count: v.elements, Created: r.clock()}}
	if r.starting {
		h.Created = r.hello.InitTime
	}
	if o != nil {
		h.Object = o.ID
		if r.starting {
			h.Created = o.Created
		}
	}
	if h.Count == PerPeer {
		h.Count = r.hello.Size
		if o != nil {
			h.Count = o.Size
		}
	}
	h.values = make([]uint64, h.Count)
	first, ok := r.initial[v.Name+"/"+v.Class.String()]
	if !ok {
		first = r.initial[v.Name]
	}
	if first != 0 {
		for i := range h.values {
			h.values[i] = word(v.Datatype, first)
		}
		h.First = slices.Clone(h.values)
	}
	if r.paused {
		h.frozen = slices.Clone(h.values)
	}
	r.handles = append(r.handles, h)
	r.layoutGen++
}

// FreeObject frees an object. What it has counted goes to what remains under its name.
func (r *Rank) FreeObject(id uint32) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.objects, func(o mpit.Object) bool { return o.ID == id })
	if at < 0 {
		return fmt.Errorf("mpittest: freeing object %d: there is none", id)
	}
	name := r.objects[at].Name
	r.handles = slices.DeleteFunc(r.handles, func(h handle) bool {
		if h.Object != id {
			return false
		}
		r.keep(&h, name)
		return true
	})
	r.objects = slices.Delete(r.objects, at, at+1)
	r.tools.objectEnds(id)
	r.layoutGen++
	return nil
}

// RenameObject gives an object another name. What it has counted so far goes to what remains under the old one.
func (r *Rank) RenameObject(id uint32, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.objects, func(o mpit.Object) bool { return o.ID == id })
	if at < 0 {
		return fmt.Errorf("mpittest: renaming object %d: there is none", id)
	}
	o := &r.objects[at]
	if o.Name == name {
		return nil
	}
	for i := range r.handles {
		if h := &r.handles[i]; h.Object == id {
			r.keep(h, o.Name)
			h.Origin, h.Excluded, h.Created = slices.Clone(r.shown(h)), nil, r.clock()
		}
	}
	o.Name = name
	r.layoutGen++
	return nil
}

// keep adds a contribution to what remains (docs/internals/protocol.md, REMAINS).
func (r *Rank) keep(h *handle, name string) {
	r.remainsGen++
	v, values := &r.variables[h.Variable], r.shown(h)
	at := slices.IndexFunc(r.remains, func(m remain) bool {
		return m.Variable == v.ID && m.Name == name &&
			m.count == h.Count
	})
	if at < 0 {
		if !r.roomForName(name) {
			r.lost++
			return
		}
		r.remains = append(r.remains, remain{
			Remain: mpit.Remain{
				Variable: v.ID,
				Name:     name,
				Created:  h.Created,
				Gained:   make([]uint64, h.Count),
				First:    make([]uint64, h.Count),
				Max:      slices.Clone(values),
				Min:      slices.Clone(values),
			},
			count: h.Count,
		})
		at = len(r.remains) - 1
	}
	m := &r.remains[at]
	m.Contributions++
	if h.Created.Before(m.Created) {
		m.Created = h.Created
	}
	for i, last := range values {
		switch {
		case h.Origin != nil:
			m.Gained[i] = add(v.Datatype, m.Gained[i], last, h.Origin[i])
		case h.First != nil:
			m.Gained[i] = add(v.Datatype, m.Gained[i], last, h.First[i])
			m.First[i] = add(v.Datatype, m.First[i], h.First[i], 0)
		default:
			m.Gained[i] = add(v.Datatype, m.Gained[i], last, 0)
		}
		if h.Excluded != nil {
			m.Gained[i] = add(v.Datatype, m.Gained[i], 0, h.Excluded[i])
		}
		if less(v.Datatype, m.Max[i], last) {
			m.Max[i] = last
		}
		if less(v.Datatype, last, m.Min[i]) {
			m.Min[i] = last
		}
	}
}

// roomForName reports whether what remains has the name already, or may have another one.
func (r *Rank) roomForName(name string) bool {
	names := make(map[string]struct{})
	for i := range r.remains {
		names[r.remains[i].Name] = struct{}{}
	}
	_, ok := names[name]
	return ok || len(names) < r.max
}

// find returns the handle of a variable on an object, 0 for none.
func (r *Rank) find(name string, class mpit.Class, object uint32) (*handle, *variable, error) {
	for i := range r.handles {
		h := &r.handles[i]
		if v := &r.variables[h.Variable]; h.Object == object && v.Name == name && v.Class == class {
			return h, v, nil
		}
	}
	return nil, nil, fmt.Errorf("mpittest: no handle of the %s %q on object %d", class, name, object)
}

// Set sets the elements of a variable on an object (0: none): numbers or bools of any Go type, one for each element, or
// one for all.
func (r *Rank) Set(name string, class mpit.Class, object uint32, values ...any) error {
	return r.update(name, class, object, values, func(_ mpit.Datatype, _, value uint64) uint64 { return value })
}

// Add adds to the elements of a variable. Integers wrap as the bits of their datatype do.
func (r *Rank) Add(name string, class mpit.Class, object uint32, values ...any) error {
	return r.update(name, class, object, values, func(d mpit.Datatype, old, value uint64) uint64 {
		if d.Floating() {
			return math.Float64bits(math.Float64frombits(old) + math.Float64frombits(value))
		}
		return old + value
	})
}

func (r *Rank) update(name string, class mpit.Class, object uint32, values []any,
	to func(d mpit.Datatype, old, value uint64) uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, v, err := r.find(name, class, object)
	if err != nil {
		return err
	}
	if len(values) != h.Count && len(values) != 1 {
		return fmt.Errorf("mpittest: %d values for %d elements of %q", len(values), h.Count, name)
	}
	words := make([]uint64, len(values))
	for i, value := range values {
		if words[i], err = anyWord(v.Datatype, value); err != nil {
			return fmt.Errorf("mpittest: a value of %q: %w", name, err)
		}
	}
	before := slices.Clone(h.values)
	for i := range h.values {
		h.values[i] = fit(v, to(v.Datatype, h.values[i], words[i%len(words)]))
	}
	r.tools.observe(v, h, before)
	return nil
}

// FailRead makes a variable on an object fail to be read with a code, until it is called with mpit.Success.
func (r *Rank) FailRead(name string, class mpit.Class, object uint32, code mpit.ReturnCode) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, _, err := r.find(name, class, object)
	if err == nil {
		h.failed = code
	}
	return err
}

// SetStats sets what the rank counts of itself. Samples and Busy go on from there. What concerns MPI_Pcontrol and the
// categories stays: Pcontrol and SetCategories set it.
func (r *Rank) SetStats(stats mpit.AgentStats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	stats.PcontrolLevel, stats.PcontrolCalls = r.stats.PcontrolLevel, r.stats.PcontrolCalls
	stats.PausedTime, stats.CategoryStamp = r.stats.PausedTime, r.stats.CategoryStamp
	r.stats = stats
}

// SetCategories replaces the categories, as a library does that learns of more. The stamp changes.
func (r *Rank) SetCategories(categories []mpit.Category) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.categories = slices.Clone(categories)
	r.stamp++
	r.stats.CategoryStamp = r.stamp
}

// Stall makes the rank answer nothing until it is called with false. Requests that came meanwhile are answered then.
func (r *Rank) Stall(stall bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case stall && r.stalled == nil:
		r.stalled = make(chan struct{})
	case !stall && r.stalled != nil:
		close(r.stalled)
		r.stalled = nil
	}
}

// Busy makes the rank answer that it is busy, so many times.
func (r *Rank) Busy(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy = n
}

// UnderWay sets what the call profile says from now on, in every sample.
func (r *Rank) UnderWay(u mpit.UnderWay) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.underWay = &u
}

// NotNow makes the rank answer "not now" to so many questions other than for samples.
func (r *Rank) NotNow(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notNow = n
}

// Delay makes the rank wait before each answer.
func (r *Rank) Delay(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delay = d
}

// word returns a number as a word of the datatype.
func word(d mpit.Datatype, f float64) uint64 {
	switch {
	case d.Floating():
		return math.Float64bits(f)
	case d.Signed() || f < 0:
		return uint64(int64(f))
	}
	return uint64(f)
}

var errNotANumber = errors.New("not a number")

// anyWord returns a Go value as a word of the datatype: integers exactly.
func anyWord(d mpit.Datatype, value any) (uint64, error) {
	whole := func(i int64) (uint64, error) {
		if d.Floating() {
			return math.Float64bits(float64(i)), nil
		}
		return uint64(i), nil
	}
	natural := func(u uint64) (uint64, error) {
		if d.Floating() {
			return math.Float64bits(float64(u)), nil
		}
		return u, nil
	}
	switch v := value.(type) {
	case int:
		return whole(int64(v))
	case int8:
		return whole(int64(v))
	case int16:
		return whole(int64(v))
	case int32:
		return whole(int64(v))
	case int64:
		return whole(v)
	case uint:
		return natural(uint64(v))
	case uint8:
		return natural(uint64(v))
	case uint16:
		return natural(uint64(v))
	case uint32:
		return natural(uint64(v))
	case uint64:
		return natural(v)
	case float32:
		return word(d, float64(v)), nil
	case float64:
		return word(d, v), nil
	case time.Duration:
		return word(d, v.Seconds()), nil
	case bool:
		if v {
			return word(d, 1), nil
		}
		return word(d, 0), nil
	}
	return 0, fmt.Errorf("%T: %w", value, errNotANumber)
}

// fit cuts an integer to the size of the variable's elements and extends it again, as reading it from memory would.
func fit(v *variable, w uint64) uint64 {
	bits := 8 * v.DatatypeBytes
	if v.Datatype.Floating() || bits <= 0 || bits >= 64 {
		return w
	}
	w <<= 64 - bits
	if v.Datatype.Signed() {
		return uint64(int64(w) >> (64 - bits))
	}
	return w >> (64 - bits)
}

// add returns sum + last - base.
func add(d mpit.Datatype, sum, last, base uint64) uint64 {
	if d.Floating() {
		return math.Float64bits(math.Float64frombits(sum) + math.Float64frombits(last) - math.Float64frombits(base))
	}
	return sum + last - base
}

func less(d mpit.Datatype, a, b uint64) bool {
	switch {
	case d.Floating():
		return math.Float64frombits(a) < math.Float64frombits(b)
	case d.Signed():
		return int64(a) < int64(b)
	}
	return a < b
}
