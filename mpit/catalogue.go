package mpit

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

const (
	// maxAnswer bounds one answer over all its frames, in bytes: more than the largest honest catalogue.
	maxAnswer = 32 << 20
	// maxCatalogue bounds what is kept of variables and enumerations, in bytes.
	maxCatalogue = 16 << 20
)

var errCatalogue = wire.Errorf(wire.ReasonTooLarge, "a catalogue of more than %d bytes", maxCatalogue)

// catalogue puts the frames of an answer together. What it has handed out is never changed again: a new answer makes
// new snapshots of the parts that differ and shares the others. Its one user is the session's reader.
type catalogue struct {
	held   *memory
	alike  *alike // what other connections have
	enums  map[uint32]*Enum
	bytes  int // about what enums and variables take, whoever else has the same
	sizes  sizes
	values int // bytes of the last sample's values

	variables *Variables
	list      *variableList // its list, until end
	layout    *Layout
	order     []int32 // the layout's handles by rising ID; nil: they rise as they stand
	remains   *Remains
	kept      uint64 // number of the last KEPT of an agent that still sends it

	next answer
}

// sizes is about how many bytes the parts take that a new answer may bring anew. What variables take is their list's,
// once they have one.
type sizes struct{ variables, layout, remains int }

// answer is what has come of an answer that SAMPLE has not yet ended.
type answer struct {
	bytes     int
	sizes     sizes
	variables *Variables // nil: none came
	sent      map[uint32]struct{}
	enums     map[uint32]struct{}
	layout    *Layout
	order     []int32
	remains   *Remains
}

// frame takes a frame of the answer to SAMPLE. With SAMPLE itself the answer is whole, and becomes the catalogue.
func (c *catalogue) frame(f wire.Frame) (s Sample, whole bool, err error) {
	c.next.bytes += len(f.Payload)
	if c.next.bytes > maxAnswer {
		return s, false, wire.Errorf(wire.ReasonTooLarge, "an answer of more than %d bytes", maxAnswer)
	}
	switch f.Type {
	case wire.TypeEnums:
		if c.next.enums == nil {
			c.next.enums = make(map[uint32]struct{})
		}
		return s, false, c.takeEnums(f.Payload, c.next.enums)
	case wire.TypeVariables:
		return s, false, c.takeVariables(f.Payload)
	case wire.TypeLayout:
		return s, false, c.takeLayout(f.Payload)
	case wire.TypeRemains:
		return s, false, c.takeRemains(f.Payload)
	case wire.TypeKept: // named by its number, it is not sent again
		d := wire.NewDecoder(f.Payload, &err)
		c.kept = d.Word()
		return s, false, err
	case wire.TypeSample:
		s, err = c.takeSample(f.Payload)
		return s, err == nil, err
	}
	return s, false, wire.Errorf(wire.ReasonMalformed, "a frame of type %d in the answer to SAMPLE", f.Type)
}

// reject forgets what has come of an answer that the rank broke off.
func (c *catalogue) reject() {
	size := &c.next.sizes
	_ = c.held.grow(-size.variables - size.layout - size.remains) // giving back does not fail
	c.next = answer{}
}

// end is for when the connection has ended.
func (c *catalogue) end() {
	c.alike.leave(c.list)
	*c = catalogue{}
}

// expand is how many times larger than its payload a decoded part may be at most: a record of two words can become a
// Handle.
const expand = 8

// decoding makes room for a part before it is decoded. Once it is, decoded says how much it takes.
func (c *catalogue) decoding(payload []byte, size *int) error {
	if err := c.held.grow(expand * len(payload)); err != nil {
		return err
	}
	*size = expand * len(payload)
	return nil
}

// decoded notes that a part takes as much as its payload, for strings and words, and so many bytes for its records.
func (c *catalogue) decoded(payload []byte, size *int, records int) error {
	bytes := len(payload) + records
	if err := c.held.grow(bytes - *size); err != nil {
		return err
	}
	*size = bytes
	return nil
}

// grow counts what is kept.
func (c *catalogue) grow(bytes int) error {
	if c.bytes += bytes; c.bytes > maxCatalogue {
		return errCatalogue
	}
	return c.held.grow(bytes)
}

// growVariables counts what the answer's variables take.
func (c *catalogue) growVariables(bytes int) error {
	if err := c.held.grow(bytes); err != nil {
		return err
	}
	c.next.sizes.variables += bytes
	return nil
}

// size is about how many bytes of memory the catalogue's parts take.
func (c *catalogue) size() int { return c.bytes + c.sizes.layout + c.sizes.remains }

// takeEnums reads ENUMS; sent are the numbers that the same answer has already brought.
func (c *catalogue) takeEnums(payload []byte, sent map[uint32]struct{}) error {
	var err error
	d := wire.NewDecoder(payload, &err)
	for range d.List("enumerations", wire.MaxVariables) {
		r := d.Record("enumeration")
		e := decodeEnum(&r)
		if _, ok := sent[e.ID]; ok {
			d.Fail(wire.ReasonMalformed, "enumeration %d given twice", e.ID)
		}
		if err != nil {
			return err
		}
		sent[e.ID] = struct{}{}
		if old := c.enums[e.ID]; old != nil {
			if old.Name == e.Name && slices.Equal(old.Items, e.Items) {
				continue // the variables that have it keep the same pointer
			}
			return wire.Errorf(wire.ReasonMalformed, "enumeration %d was %q and is %q", e.ID, old.Name, e.Name)
		}
		if err := c.grow(e.size()); err != nil {
			return err
		}
		if c.enums == nil {
			c.enums = make(map[uint32]*Enum)
		}
		c.enums[e.ID] = e
	}
	return err
}

func (c *catalogue) takeVariables(payload []byte) error {
	var err error
	d := wire.NewDecoder(payload, &err)
	generation := d.Word()
	n := d.List("variables", wire.MaxVariables)
	if c.next.variables == nil {
		c.next.variables = &Variables{}
		c.next.sent = make(map[uint32]struct{}, n)
		if c.variables != nil {
			c.next.variables.ByID = slices.Clone(c.variables.ByID)
			if err := c.growVariables(c.sizes.variables); err != nil {
				return err
			}
		}
	}
	next := c.next.variables
	next.Generation = generation
	for range n {
		r := d.Record("variable")
		v := decodeVariable(&r, c.enums)
		if _, ok := c.next.sent[v.ID]; ok {
			d.Fail(wire.ReasonMalformed, "variable %d given twice", v.ID)
		}
		if int(v.ID) > len(next.ByID) {
			d.Fail(wire.ReasonMalformed, "variable %d where %d are known", v.ID, len(next.ByID))
		}
		if int(v.ID) >= wire.MaxVariables {
			d.Fail(wire.ReasonTooLarge, "variable %d, the limit is %d", v.ID, wire.MaxVariables)
		}
		if err != nil {
			return err
		}
		c.next.sent[v.ID] = struct{}{}
		if int(v.ID) < len(next.ByID) {
			if err := next.ByID[v.ID].change(v); err != nil {
				return err
			}
			continue
		}
		size := int(unsafe.Sizeof(v)) + len(v.Name) + len(v.Description)
		if c.bytes += size; c.bytes > maxCatalogue {
			return errCatalogue
		}
		if err := c.growVariables(size); err != nil {
			return err
		}
		next.ByID = append(next.ByID, v)
	}
	return err
}

// change takes over what may change in a variable. What it is may not: values would change their meaning.
func (v *Variable) change(to Variable) error {
	same := v.Name == to.Name && v.Class == to.Class && v.Datatype == to.Datatype && v.Bind == to.Bind &&
		v.Distribution == to.Distribution && v.Description == to.Description && v.Enum == to.Enum
	if !same {
		return wire.Errorf(wire.ReasonMalformed, "variable %d was the %s %q and is now the %s %q", v.ID, v.Class,
			v.Name, to.Class, to.Name)
	}
	to.Name, to.Description = v.Name, v.Description // so that the others' memory is free
	*v = to
	return nil
}

// newest returns the variables that the present answer speaks of.
func (c *catalogue) newest() []Variable {
	switch {
	case c.next.variables != nil:
		return c.next.variables.ByID
	case c.variables != nil:
		return c.variables.ByID
	}
	return nil
}

func (c *catalogue) takeLayout(payload []byte) error {
	if c.next.layout != nil {
		return wire.Errorf(wire.ReasonMalformed, "two layouts in one answer")
	}
	if err := c.decoding(payload, &c.next.sizes.layout); err != nil {
		return err
	}
	l, err := decodeLayout(payload)
	if err != nil {
		return err
	}
	objects := make([]uint32, len(l.Objects))
	for i := range l.Objects {
		objects[i] = l.Objects[i].ID
	}
	slices.Sort(objects)
	if id, twice := repeated(objects); twice {
		return wire.Errorf(wire.ReasonMalformed, "object %d given twice", id)
	}
	variables := c.newest()
	bindings := make([]uint64, len(l.Handles))
	for i := range l.Handles {
		h := &l.Handles[i]
		if int(h.Variable) >= len(variables) {
			return wire.Errorf(wire.ReasonMalformed, "handle %d is of the unknown variable %d", h.ID, h.Variable)
		}
		if h.Object != 0 {
			if _, ok := slices.BinarySearch(objects, h.Object); !ok {
				return wire.Errorf(wire.ReasonMalformed, "handle %d is bound to the unknown object %d", h.ID, h.Object)
			}
		}
		bindings[i] = uint64(h.Variable)<<32 | uint64(h.Object)
	}
	slices.Sort(bindings)
	if b, twice := repeated(bindings); twice {
		return wire.Errorf(wire.ReasonMalformed, "two handles of variable %d on object %d", b>>32, uint32(b))
	}
	order := risingHandles(l.Handles)
	for i := 1; i < len(order); i++ {
		if id := l.Handles[order[i]].ID; id == l.Handles[order[i-1]].ID {
			return wire.Errorf(wire.ReasonMalformed, "handle %d given twice", id)
		}
	}
	c.next.layout, c.next.order = l, order
	size := cap(l.Objects)*int(unsafe.Sizeof(Object{})) + cap(l.Handles)*int(unsafe.Sizeof(Handle{}))
	for i := range l.Handles {
		if l.Handles[i].Earlier != nil {
			size += int(unsafe.Sizeof(Earlier{}))
		}
	}
	return c.decoded(payload, &c.next.sizes.layout, size)
}

// repeated finds a value that stands twice in a sorted list.
func repeated[T comparable](sorted []T) (value T, twice bool) {
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			return sorted[i], true
		}
	}
	return value, false
}

// risingHandles returns the order of handles by ID, nil where they stand in it without a repetition.
func risingHandles(handles []Handle) []int32 {
	rising := true
	for i := 1; i < len(handles); i++ {
		rising = rising && handles[i-1].ID < handles[i].ID
	}
	if rising {
		return nil
	}
	order := make([]int32, len(handles))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(handles[a].ID, handles[b].ID) })
	return order
}

// handle finds a handle of the layout.
func (c *catalogue) handle(id uint32) *Handle {
	if c.layout == nil {
		return nil
	}
	handles := c.layout.Handles
	if c.order == nil {
		if i, ok := slices.BinarySearchFunc(handles, id,
			func(h Handle, id uint32) int { return cmp.Compare(h.ID, id) }); ok {
			return &handles[i]
		}
		return nil
	}
	if i, ok := slices.BinarySearchFunc(c.order, id, func(at int32,
		id uint32) int {
		return cmp.Compare(handles[at].ID, id)
	}); ok {
		return &handles[c.order[i]]
	}
	return nil
}

func (c *catalogue) takeRemains(payload []byte) error {
	if c.next.remains != nil {
		return wire.Errorf(wire.ReasonMalformed, "remains twice in one answer")
	}
	if err := c.decoding(payload, &c.next.sizes.remains); err != nil {
		return err
	}
	m, err := decodeRemains(payload)
	if err != nil {
		return err
	}
	variables := c.newest()
	for i := range m.List {
		r := &m.List[i]
		if int(r.Variable) >= len(variables) {
			return wire.Errorf(wire.ReasonMalformed, "remains of the unknown variable %d", r.Variable)
		}
		if r.Contributions < 0 {
			return wire.Errorf(wire.ReasonMalformed, "%d contributions of variable %d", r.Contributions, r.Variable)
		}
	}
	c.next.remains = m
	return c.decoded(payload, &c.next.sizes.remains, cap(m.List)*int(unsafe.Sizeof(Remain{})))
}

func (c *catalogue) takeSample(payload []byte) (Sample, error) {
	if err := c.held.grow(len(payload) - c.values); err != nil {
		return Sample{}, err
	}
	c.values = len(payload)
	s, generation, err := decodeSample(payload)
	if err != nil {
		return Sample{}, err
	}
	c.commit()
	if err := c.check(&s, generation); err != nil {
		return Sample{}, err
	}
	s.Variables, s.Layout, s.Remains = c.variables, c.layout, c.remains
	s.size = c.size()
	return s, nil
}

// commit makes the answer's parts those of the catalogue.
func (c *catalogue) commit() {
	next := &c.next
	replace := func(old *int, size int) {
		if size > 0 {
			_ = c.held.grow(-*old)
			*old = size
		}
	}
	replace(&c.sizes.layout, next.sizes.layout)
	replace(&c.sizes.remains, next.sizes.remains)
	if next.variables != nil {
		c.variables = next.variables
		before := c.list
		c.list, c.sizes.variables = c.alike.find(c.variables.ByID, c.held, next.sizes.variables), next.sizes.variables
		c.alike.leave(before)
		c.variables.ByID = c.list.byID
		for i := range c.variables.ByID {
			if e := c.variables.ByID[i].Enum; e != nil {
				c.enums[e.ID] = e
			}
		}
	}
	if next.layout != nil {
		c.layout, c.order = next.layout, next.order
	}
	if next.remains != nil {
		c.remains = next.remains
	}
	c.next = answer{}
}

// check compares a sample with the layout that it names.
func (c *catalogue) check(s *Sample, generation uint64) error {
	if s.Status == SampleBusy {
		if len(s.Values) != 0 || len(s.Failed) != 0 {
			return wire.Errorf(wire.ReasonMalformed, "values in a busy answer")
		}
		return nil
	}
	layout := Layout{}
	if c.layout != nil {
		layout = *c.layout
	}
	if generation != layout.Generation {
		return wire.Errorf(wire.ReasonMalformed, "values of layout %d where %d was sent", generation,
			layout.Generation)
	}
	if len(s.Values) != layout.Values {
		return wire.Errorf(wire.ReasonMalformed, "%d values where the layout has %d", len(s.Values), layout.Values)
	}
	if len(s.Failed) == 0 {
		return nil
	}
	ids := make([]uint32, len(s.Failed))
	for i, f := range s.Failed {
		if h := c.handle(f.Handle); h == nil || h.Offset < 0 {
			return wire.Errorf(wire.ReasonMalformed, "handle %d failed, which is not selected", f.Handle)
		}
		ids[i] = f.Handle
	}
	slices.Sort(ids)
	if id, twice := repeated(ids); twice {
		return wire.Errorf(wire.ReasonMalformed, "handle %d failed twice", id)
	}
	return nil
}

// generations are what the next request names.
func (c *catalogue) generations() wire.SampleRequest {
	r := wire.SampleRequest{Kept: c.kept}
	if c.variables != nil {
		r.Variables = c.variables.Generation
	}
	if c.layout != nil {
		r.Layout = c.layout.Generation
	}
	if c.remains != nil {
		r.Remains = c.remains.Generation
	}
	return r
}
