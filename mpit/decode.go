package mpit

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"time"
	"unsafe"

	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

// text returns a string that is valid UTF-8, for everything that is made of it is UTF-8.
func text(d *wire.Decoder, what string) string {
	return ValidText(d.String(what))
}

// known returns a number of a small enumeration, or other where a newer peer has one that is not in it.
func known[T ~uint8](word uint64, highest, other T) T {
	if word > uint64(highest) {
		return other
	}
	return T(word)
}

// small returns a number of a small enumeration; what is above 255 becomes 255.
func small[T ~uint8](word uint64) T {
	return T(min(word, math.MaxUint8))
}

func decodeHello(f wire.Frame) (Hello, error) {
	var err error
	d := wire.NewDecoder(f.Payload, &err)
	h := Hello{ProtocolVersion: f.Version}
	kind := d.Word()
	if h.Final = kind == 1; kind > 1 {
		d.Fail(wire.ReasonMalformed, "a connection of kind %d", kind)
	}
	binary.LittleEndian.PutUint64(h.ID[:8], d.Word())
	binary.LittleEndian.PutUint64(h.ID[8:], d.Word())
	if h.ID == (RankID{}) {
		d.Fail(wire.ReasonMalformed, "a rank without an id")
	}
	h.PID = d.Int("pid")
	h.Rank = d.Int("rank")
	h.Size = d.Int("size")
	if h.Rank < 0 || h.Size < 0 || h.Rank > 0 && h.Rank >= h.Size {
		d.Fail(wire.ReasonMalformed, "rank %d of %d", h.Rank, h.Size)
	}
	h.ThreadLevel = d.Int("thread level")
	h.ABI = known(d.Word(), ABIStandard, ABIUnknown)
	flags := d.Word()
	h.Passive, h.WriteAllowed, h.SessionsOnly = flags&1 != 0, flags&2 != 0, flags&4 != 0
	h.InitTime = d.Time("init time")
	h.AgentVersion = text(&d, "agent version")
	h.LibraryVersion = text(&d, "library version")
	h.Host = text(&d, "host")
	h.Executable = text(&d, "executable")
	h.Attributes = make(map[string]string)
	for r := range d.Records("attributes", wire.MaxAttributes) {
		key, value := text(r, "attribute"), text(r, "attribute")
		if _, ok := h.Attributes[key]; ok {
			d.Fail(wire.ReasonMalformed, "attribute %q given twice", key)
		}
		h.Attributes[key] = value
	}
	// A string follows, in which agents of before kept something for exporters of before.
	return h, err
}

func decodeEnum(r *wire.Decoder) *Enum {
	e := &Enum{ID: r.Uint32("enumeration"), Name: text(r, "name of an enumeration")}
	for item := range r.Records("items", wire.MaxAgentPayload) {
		e.Items = append(e.Items, EnumItem{Value: int64(item.Word()), Name: text(item, "name of an item")})
	}
	return e
}

// size is about how many bytes an enumeration takes.
func (e *Enum) size() int {
	n := 64 + len(e.Name)
	for i := range e.Items {
		n += 24 + len(e.Items[i].Name)
	}
	return n
}

// decodeVariable reads a record of VARIABLES.
func decodeVariable(r *wire.Decoder, enums map[uint32]*Enum) Variable {
	v := Variable{
		ID:            r.Uint32("variable"),
		Index:         r.Int("index of a variable"),
		Class:         known(r.Word(), ClassGeneric, ClassUnknown),
		Verbosity:     known(r.Word(), VerbosityMPIDevAll, VerbosityUnknown),
		Datatype:      known(r.Word(), DatatypeBool, DatatypeOther),
		DatatypeBytes: r.Int("size of a datatype"),
		Bind:          known(r.Word(), BindLast, BindUnknown),
	}
	flags := r.Word()
	v.ReadOnly, v.Continuous, v.Atomic, v.Distribution, v.OnRequest = flags&1 != 0, flags&2 != 0, flags&4 != 0,
		flags&8 != 0, flags&16 != 0
	if enum := r.Word(); enum != 0 {
		v.Enum = enums[uint32(enum-1)]
		if v.Enum == nil || enum-1 > math.MaxUint32 {
			r.Fail(wire.ReasonMalformed, "variable %d names the unknown enumeration %d", v.ID, enum-1)
		}
	}
	v.State = small[VariableState](r.Word())
	v.Code = small[ReturnCode](r.Word())
	v.Name = text(r, "name of a variable")
	v.Description = text(r, "description of a variable")
	if v.DatatypeBytes < 0 {
		r.Fail(wire.ReasonMalformed, "variable %d has elements of %d bytes", v.ID, v.DatatypeBytes)
	}
	return v
}

// decodeObject reads a record of a LAYOUT's objects. The keys of details are few: each is held once in keys.
func decodeObject(r *wire.Decoder, keys map[string]string) Object {
	o := Object{ID: r.Uint32("object"), Kind: known(r.Word(), BindLast, BindUnknown)}
	flags := r.Word()
	o.Predefined, o.Inter = flags&1 != 0, flags&2 != 0
	o.Size = r.Int("size of an object")
	o.Rank = r.Int("rank in an object")
	o.Created = r.Time("time of an object")
	o.Name = text(r, "name of an object")
	o.On = r.Uint32("communicator of an object") // may be gone: what was made on it lives on
	o.Details = decodeDetails(r, keys)
	switch o.ID {
	case 0:
		r.Fail(wire.ReasonMalformed, "an object with the number 0")
	case o.On:
		r.Fail(wire.ReasonMalformed, "object %d was made on itself", o.ID)
	}
	return o
}

func decodeDetails(o *wire.Decoder, keys map[string]string) (list []Detail) {
	left := wire.MaxDetailBytes
	for r := range o.Records("details of an object", wire.MaxDetails) {
		key, value := r.Bytes("detail", left), r.Bytes("detail", left)
		if left -= len(key) + len(value); left < 0 {
			r.Fail(wire.ReasonTooLarge, "more than %d bytes of details", wire.MaxDetailBytes)
		}
		k, ok := keys[string(key)]
		if !ok {
			k = ValidText(string(key))
			keys[string(key)] = k
		}
		if slices.ContainsFunc(list, func(have Detail) bool { return have.Key == k }) {
			r.Fail(wire.ReasonMalformed, "detail %q given twice", k)
		}
		list = append(list, Detail{Key: k, Value: ValidText(string(value))})
	}
	return list
}

const (
	handleFirst    = 1
	handleOrigin   = 2
	handleSelected = 4
	handleExcluded = 8
)

// decodeHandle reads a record of a LAYOUT's handles; offset is where its elements would stand in a sample.
func decodeHandle(r *wire.Decoder, offset int) Handle {
	h := Handle{
		ID:       r.Uint32("handle"),
		Variable: r.Uint32("variable of a handle"),
		Object:   r.Uint32("object of a handle"),
		Count:    r.Count("elements of a handle", wire.MaxValues),
		Created:  r.Time("time of a handle"),
		Offset:   -1,
	}
	flags := r.Word()
	if flags&handleSelected != 0 {
		h.Offset = offset
	}
	words := func(flag uint64, what string) []uint64 {
		if flags&flag == 0 {
			return nil
		}
		return r.Words(what, h.Count)
	}
	if flags&(handleFirst|handleOrigin|handleExcluded) != 0 {
		h.Earlier = &Earlier{
			First:    words(handleFirst, "first values of a handle"),
			Origin:   words(handleOrigin, "origin of a handle"),
			Excluded: words(handleExcluded, "excluded values of a handle"),
		}
	}
	return h
}

// decodeLayout reads LAYOUT of a rank with so many variables.
func decodeLayout(payload []byte, variables int) (*Layout, error) {
	var err error
	d := wire.NewDecoder(payload, &err)
	l := &Layout{Generation: d.Word(), ObjectsOverflow: d.Word(), HandlesOverflow: d.Word()}
	keys := make(map[string]string)
	for r := range d.Records("objects", wire.MaxObjects) {
		l.Objects = append(l.Objects, decodeObject(r, keys))
	}
	for r := range d.Records("handles", wire.MaxValues) {
		h := decodeHandle(r, l.Values)
		if h.Offset >= 0 {
			l.Values += h.Count
		}
		l.Handles = append(l.Handles, h)
	}
	if l.Values > wire.MaxValues {
		d.Fail(wire.ReasonTooLarge, "%d values in a sample, the limit is %d", l.Values, wire.MaxValues)
	}
	l.check(&d, variables)
	return l, err
}

// check looks whether all that is named is there, and nothing twice.
func (l *Layout) check(d *wire.Decoder, variables int) {
	objects := make([]uint32, len(l.Objects))
	for i := range l.Objects {
		objects[i] = l.Objects[i].ID
	}
	if id, twice := repeated(objects); twice {
		d.Fail(wire.ReasonMalformed, "object %d given twice", id)
	}
	ids, bindings := make([]uint32, len(l.Handles)), make([]uint64, len(l.Handles))
	for i := range l.Handles {
		h := &l.Handles[i]
		if int(h.Variable) >= variables {
			d.Fail(wire.ReasonMalformed, "handle %d is of the unknown variable %d", h.ID, h.Variable)
		}
		if _, ok := slices.BinarySearch(objects, h.Object); !ok && h.Object != 0 {
			d.Fail(wire.ReasonMalformed, "handle %d is bound to the unknown object %d", h.ID, h.Object)
		}
		ids[i], bindings[i] = h.ID, uint64(h.Variable)<<32|uint64(h.Object)
	}
	if id, twice := repeated(ids); twice {
		d.Fail(wire.ReasonMalformed, "handle %d given twice", id)
	}
	if b, twice := repeated(bindings); twice {
		d.Fail(wire.ReasonMalformed, "two handles of variable %d on object %d", b>>32, uint32(b))
	}
}

// repeated sorts a list and finds a value that stands twice in it.
func repeated[T cmp.Ordered](list []T) (value T, twice bool) {
	slices.Sort(list)
	for i := 1; i < len(list); i++ {
		if list[i] == list[i-1] {
			return list[i], true
		}
	}
	return value, false
}

// bytes is about how much memory the records take, without their strings and words.
func (l *Layout) bytes() int {
	size := cap(l.Objects)*int(unsafe.Sizeof(Object{})) + cap(l.Handles)*int(unsafe.Sizeof(Handle{}))
	for i := range l.Handles {
		if l.Handles[i].Earlier != nil {
			size += int(unsafe.Sizeof(Earlier{}))
		}
	}
	return size
}

// remainKey says which contributions are merged. The name is as it came, for two names may become one in text.
type remainKey struct {
	variable uint32
	count    int
	name     string
}

// decodeRemains reads REMAINS of a rank with so many variables.
func decodeRemains(payload []byte, variables int) (*Remains, error) {
	var err error
	d := wire.NewDecoder(payload, &err)
	m := &Remains{Generation: d.Word(), Lost: d.Word()}
	seen := make(map[remainKey]struct{})
	for r := range d.Records("remains", wire.MaxAgentPayload) {
		key := remainKey{variable: r.Uint32("variable of remains"),
			count: r.Count("elements of remains", wire.MaxValues)}
		remain := Remain{Variable: key.variable, Contributions: r.Int("contributions"),
			Created: r.Time("time of remains")}
		if words := r.Words("remains", 4*key.count); words != nil {
			c := key.count
			remain.Gained, remain.First, remain.Max, remain.Min = words[:c:c], words[c:2*c:2*c], words[2*c:3*c:3*c],
				words[3*c:]
		}
		key.name = r.String("name of remains")
		remain.Name = ValidText(key.name)
		_, twice := seen[key]
		seen[key] = struct{}{}
		switch {
		case twice:
			r.Fail(wire.ReasonMalformed, "remains of variable %d and %q given twice", key.variable, key.name)
		case int(key.variable) >= variables:
			r.Fail(wire.ReasonMalformed, "remains of the unknown variable %d", key.variable)
		case remain.Contributions < 0:
			r.Fail(wire.ReasonMalformed, "%d contributions of variable %d", remain.Contributions, key.variable)
		}
		m.List = append(m.List, remain)
	}
	return m, err
}

// bytes is about how much memory the records take, without their strings and words.
func (m *Remains) bytes() int { return cap(m.List) * int(unsafe.Sizeof(Remain{})) }

func decodeStats(r *wire.Decoder) AgentStats {
	s := AgentStats{
		Samples:       r.Word(),
		Busy:          r.Word(),
		ReadErrors:    r.Word(),
		GateWaits:     r.Word(),
		GateWaitTime:  r.Duration("gate wait"),
		GateWaitMax:   r.Duration("gate wait"),
		CPUTime:       r.Duration("CPU time"),
		ObjectsAlive:  r.Word(),
		PcontrolLevel: 1,
	}
	// An agent that doesn't know MPI_Pcontrol observes always: that is level 1, not 0.
	if r.Remaining() > 0 {
		s.PcontrolLevel = r.Int("level of MPI_Pcontrol")
	}
	s.PcontrolCalls = r.Word()
	r.Word() // reserved
	s.PausedTime = r.Duration("time in MPI_Pcontrol(0)")
	s.CategoryStamp = r.Word()
	return s
}

// decodeSample reads SAMPLE without what belongs to the catalogue.
func decodeSample(payload []byte) (s Sample, layout uint64, err error) {
	d := wire.NewDecoder(payload, &err)
	layout = d.Word()
	status := d.Word()
	if status > uint64(SamplePaused) {
		d.Fail(wire.ReasonMalformed, "a sample of status %d", status)
	}
	s.Status = SampleStatus(status)
	s.End = known(d.Word(), EndAbort, EndNone)
	s.Time = d.Time("time of a sample")
	s.Monotonic = d.Duration("time of a sample")
	s.Duration = d.Duration("duration of a sample")
	stats, _ := d.Optional("statistics") // of none all are zero
	s.Stats = decodeStats(&stats)
	s.Values = d.Array("values", wire.MaxValues)
	n := d.Count("failed handles", wire.MaxValues)
	if 2*n > d.Remaining() {
		d.Fail(wire.ReasonMalformed, "%d failed handles where %d words are left", n, d.Remaining())
	} else if n > 0 {
		s.Failed = make([]FailedHandle, n)
		for i := range s.Failed {
			s.Failed[i] = FailedHandle{Handle: d.Uint32("failed handle"), Code: small[ReturnCode](d.Word())}
		}
	}
	if r, ok := d.Optional("calls under way"); ok {
		s.UnderWay = decodeUnderWay(r)
	}
	for r := range d.Records("communicators", wire.MaxObjects) {
		c := Comm{Object: r.Uint32("communicator"), Identity: r.Word()}
		if begun := r.Word(); begun > 0 {
			c.Begun, c.Counted = begun-1, true
		}
		s.Comms = append(s.Comms, c)
	}
	return s, layout, err
}

// decodeUnderWay reads what is at the end of SAMPLE.
func decodeUnderWay(r wire.Decoder) *UnderWay {
	u := &UnderWay{
		Inside:   r.Duration("time inside MPI"),
		Observed: r.Duration("time observed"),
		Running:  r.Duration("time of a call"),
	}
	bind, object := r.Word(), r.Uint32("object of a call")
	function, module, offset := text(&r, "function of a call"), text(&r, "module of a call"), r.Word()
	if u.Running > 0 { // of no call there is nothing to say
		u.Bind = known(bind, BindLast, BindUnknown)
		u.Object, u.Function, u.Module, u.Offset = object, function, module, offset
	}
	u.InsideBy = insideBy(&r)
	u.Finalize = r.Duration("time in MPI_Finalize")
	u.CPU = durationIfKnown(&r, "CPU time of a process")
	for t := range r.Records("threads", wire.MaxThreads) {
		u.Threads = append(u.Threads, decodeThread(t))
	}
	if k, ok := r.Optional("what the kernel says"); ok {
		u.Kernel = decodeKernel(&k)
	}
	for p := range r.Records("phases", wire.MaxPhases) {
		u.Phases = append(u.Phases, Phase{Number: p.Int("number of a phase"), Observed: p.Duration("time of a phase"),
			InsideBy: insideBy(p)})
	}
	return u
}

// insideBy reads time inside MPI by kind of call.
func insideBy(r *wire.Decoder) (by [CallKinds]time.Duration) {
	for i := range r.Count("kinds of calls", wire.MaxVariables) {
		d := r.Duration("time inside MPI, by kind of call")
		if i < int(CallKinds) { // a newer agent may know more
			by[i] = d
		}
	}
	return by
}

// durationIfKnown is negative where the agent leaves it out, or says that it doesn't know.
func durationIfKnown(r *wire.Decoder, what string) time.Duration {
	if !r.Has(math.MaxUint64) {
		return -1
	}
	return r.Duration(what)
}

// numberIfKnown is negative where the agent leaves it out, or says that it doesn't know.
func numberIfKnown(r *wire.Decoder, what string) int64 { return int64(durationIfKnown(r, what)) }

func decodeKernel(r *wire.Decoder) *Kernel {
	k := &Kernel{}
	if r.Has(math.MaxUint64) {
		k.Cores = r.Count("cores", maxCores)
	}
	k.Nice = r.Int("nice value")
	k.MajorFaults, k.Resident = numberIfKnown(r, "major faults"), numberIfKnown(r, "resident bytes")
	k.GPU = r.Word() == 1
	k.Throttled = durationIfKnown(r, "time of a control group")
	return k
}

// maxCores is more than any machine has.
const maxCores = 1 << 20

func decodeThread(r *wire.Decoder) Thread {
	t := Thread{ID: r.Word(), TID: r.Int("number of a thread"), Main: r.Word()&1 != 0, Now: r.Duration("time of a thread"),
		Observed: r.Duration("time observed of a thread"), InsideBy: insideBy(r),
		CPU: durationIfKnown(r, "CPU time of a thread"), Queue: durationIfKnown(r, "time in the run queue"),
		Begun: r.Duration("beginning of a call"), Ended: r.Duration("end of a call")}
	function, bind, object := text(r, "function of a call"), r.Word(), r.Uint32("object of a call")
	t.Peer, t.Tag, t.Root = NoPeer, NoTag, NoRoot
	if r.Remaining() > 0 {
		t.Peer, t.Tag, t.Root = r.Int("peer of a call"), r.Int("tag of a call"), r.Int("root of a call")
	}
	number := r.Word()
	t.In = text(r, "a thread's system call")
	for range r.Count("peers of a call", wire.MaxPeers) {
		t.Peers = append(t.Peers, r.Int("peer of a call"))
	}
	of, on, ofNumber := text(r, "collective of a request"), r.Uint32("its communicator"), r.Word()
	if t.Begun == 0 { // of no call there is nothing to say
		t.Peer, t.Tag, t.Root, t.Peers = NoPeer, NoTag, NoRoot, nil
		return t
	}
	t.Function, t.Bind, t.Object, t.Number = function, known(bind, BindLast, BindUnknown), object, number
	if of != "" {
		t.Of, t.Bind, t.Object, t.Number = of, BindComm, on, ofNumber
	}
	return t
}

// page says where an answer stands in the whole that it is a part of.
type page struct {
	total, next int
	stamp       uint64 // of categories: MPI_T_category_changed's number + 1, 0 where it is not known
}

// decodePage reads CVARS or CATEGORIES, the answer to a request from index first on. read returns a record with its
// index: these rise.
func decodePage[T any](payload []byte, what string, first int, read func(r *wire.Decoder) (T, int)) (list []T, p page,
	err error) {
	d := wire.NewDecoder(payload, &err)
	p = page{total: d.Count(what, wire.MaxVariables), next: d.Count(what, wire.MaxVariables)}
	if p.next > p.total || p.next <= first && p.next < p.total {
		d.Fail(wire.ReasonMalformed, "%s: asked from %d, told to go on from %d of %d", what, first, p.next, p.total)
	}
	least := first
	for r := range d.Records(what, wire.MaxVariables) {
		record, index := read(r)
		if index < least || index >= p.next {
			r.Fail(wire.ReasonMalformed, "%s: index %d where those from %d to %d are left", what, index, least, p.next)
		}
		least = index + 1
		list = append(list, record)
	}
	p.stamp = d.Word()
	return list, p, err
}

// value reads the value of a control variable; has is false where there is none.
func value(r *wire.Decoder, what string) (v CvarValue, has bool) {
	w := r.Value(what)
	if w.Kind == wire.ValueText {
		return CvarValue{Text: ValidText(w.Text), IsText: true}, true
	}
	return CvarValue{Values: w.Words}, w.Kind == wire.ValueWords
}

// decodeObjectValues reads the values of a bound control variable.
func decodeObjectValues(c *wire.Decoder) (list []ObjectValue) {
	for r := range c.Records("objects of a control variable", wire.MaxCvarObjects) {
		o := ObjectValue{Object: r.Uint32("object of a control variable"), Code: small[ReturnCode](r.Word())}
		v, has := value(r, "value on an object")
		o.Values, o.Text, o.HasValue = v.Values, v.Text, has
		if o.Object == 0 {
			r.Fail(wire.ReasonMalformed, "a control variable's value on object 0")
		}
		if slices.ContainsFunc(list, func(have ObjectValue) bool { return have.Object == o.Object }) {
			r.Fail(wire.ReasonMalformed, "a control variable's value on object %d given twice", o.Object)
		}
		list = append(list, o)
	}
	return list
}

// decodeControlVariable reads a record of CVARS.
func decodeControlVariable(r *wire.Decoder, enums map[uint32]*Enum) (ControlVariable, int) {
	c := ControlVariable{
		Index:     r.Int("index of a control variable"),
		Scope:     known(r.Word(), ScopeAllEq, ScopeUnknown),
		Verbosity: known(r.Word(), VerbosityMPIDevAll, VerbosityUnknown),
		Datatype:  known(r.Word(), DatatypeBool, DatatypeOther),
		Bind:      known(r.Word(), BindLast, BindUnknown),
	}
	if enum := r.Word(); enum != 0 && enum-1 <= math.MaxUint32 {
		c.Enum = enums[uint32(enum-1)] // nil: an older agent, which sends those of performance variables only
	}
	c.Code = small[ReturnCode](r.Word())
	v, has := value(r, "value of a control variable")
	c.Values, c.Text, c.HasValue = v.Values, v.Text, has
	c.Name = text(r, "name of a control variable")
	c.Description = text(r, "description of a control variable")
	c.Objects = decodeObjectValues(r)
	return c, c.Index
}

// indices turns MPI_T's indices into ints. What can't be one is left out: libraries answer such things, and the agent
// passes them on.
func indices(r *wire.Decoder, what string) []int {
	words := r.Array(what, wire.MaxVariables)
	if words == nil {
		return nil
	}
	list := make([]int, 0, len(words))
	for _, w := range words {
		if w <= math.MaxInt32 {
			list = append(list, int(w))
		}
	}
	return list
}

// decodeCategory reads a record of CATEGORIES.
func decodeCategory(r *wire.Decoder, _ map[uint32]*Enum) (Category, int) {
	c := Category{
		Index:            r.Int("index of a category"),
		Name:             text(r, "name of a category"),
		Description:      text(r, "description of a category"),
		Variables:        indices(r, "variables of a category"),
		ControlVariables: indices(r, "control variables of a category"),
		Subcategories:    indices(r, "subcategories of a category"),
	}
	return c, c.Index
}

// toolAnswer is what an operation of TOOL has given. Which fields are set depends on the operation.
type toolAnswer struct {
	refused         *RefusedError // nil: it was done
	session, handle uint32
	count           int // elements
	words           []uint64
	value           CvarValue
	index           int
	variable        uint32
	known           bool // variable is one
}

// decodeTool reads the answer to an operation. A handle with so many elements was asked for, where one was.
func decodeTool(payload []byte, op wire.ToolOperation, count int) (a toolAnswer, err error) {
	d := wire.NewDecoder(payload, &err)
	if got := d.Word(); got != uint64(op) {
		d.Fail(wire.ReasonMalformed, "an answer to operation %d instead of %d", got, op)
	}
	code := small[ReturnCode](d.Word())
	why := text(&d, "why an operation was refused")
	if err != nil {
		return toolAnswer{}, err
	}
	if code != Success {
		return toolAnswer{refused: &RefusedError{Operation: op.String(), Code: code, Why: why}}, nil
	}
	number := func(what string) uint32 {
		n := d.Uint32(what)
		if n == 0 {
			d.Fail(wire.ReasonMalformed, "a %s with the number 0", what)
		}
		return n
	}
	switch op {
	case wire.ToolSessionCreate:
		a.session = number("session")
	case wire.ToolHandleAlloc:
		a.handle = number("handle")
		a.count = d.Count("elements of a handle", wire.MaxValues)
	case wire.ToolRead, wire.ToolReadReset:
		if a.words = d.Array("values of a handle", wire.MaxValues); len(a.words) != count {
			d.Fail(wire.ReasonMalformed, "%d values of a handle that has %d", len(a.words), count)
		}
	case wire.ToolCvarRead:
		a.value, _ = value(&d, "value of a control variable")
	case wire.ToolPvarIndex, wire.ToolCvarIndex, wire.ToolCategoryIndex:
		if a.index = d.Int("index"); a.index < 0 {
			d.Fail(wire.ReasonMalformed, "index %d", a.index)
		}
		if op == wire.ToolPvarIndex {
			if n := d.Count("variables", wire.MaxVariables); n > 0 {
				a.variable, a.known = uint32(n-1), true
			}
		}
	}
	return a, err
}

func decodeError(payload []byte) (refusal *RequestError, err error) {
	d := wire.NewDecoder(payload, &err)
	return &RequestError{Code: d.Word(), Text: text(&d, "text of an error")}, err
}
