package mpit

import (
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

// catalogue puts the frames of an answer together. What it has handed out is never changed again: a new answer makes
// new snapshots of the parts that differ and shares the others. Its one user is the session's reader.
type catalogue struct {
	held   *memory
	alike  *alike // what other connections have
	enums  map[uint32]*Enum
	bytes  int // about what enums and variables take, whoever else has the same
	values int // bytes of the last sample's values

	has  wire.SampleRequest // the generations of the parts, for the next request
	list *variableList      // the variables' list, until end
	parts

	next answer
}

func newCatalogue(held *memory, alike *alike) catalogue {
	return catalogue{held: held, alike: alike, enums: make(map[uint32]*Enum)}
}

// parts are what a new answer may bring anew.
type parts struct {
	variables part[Variables]
	layout    part[Layout]
	remains   part[Remains]
}

// part is a part of a catalogue, nil where there is none, and about how many bytes of memory it takes. What variables
// take is their list's, once they have one.
type part[T any] struct {
	of   *T
	size int
}

// grow counts that the part takes so many bytes more.
func (p *part[T]) grow(bytes int, held *memory) error {
	if err := held.grow(bytes); err != nil {
		return err
	}
	p.size += bytes
	return nil
}

// expand is how many times larger than its payload a decoded part may be at most: a record of two words can become a
// Handle.
const expand = 8

// decode makes room for a part, reads it, and gives back what it does not take: as much as its payload for strings and
// words, and what bytes says for its records.
func (p *part[T]) decode(payload []byte, held *memory, decode func([]byte) (*T, error), bytes func(*T) int) error {
	if p.of != nil {
		return wire.Errorf(wire.ReasonMalformed, "a layout or remains twice in one answer")
	}
	if err := p.grow(expand*len(payload), held); err != nil {
		return err
	}
	of, err := decode(payload)
	if err != nil {
		return err
	}
	p.of = of
	return p.grow(len(payload)+bytes(of)-p.size, held)
}

// answer is what has come of an answer that SAMPLE has not yet ended.
type answer struct {
	parts
	bytes int
	sent  map[uint32]struct{} // variables
	enums map[uint32]struct{}
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
		return s, false, c.next.layout.decode(f.Payload, c.held, func(payload []byte) (*Layout, error) {
			return decodeLayout(payload, c.known())
		}, (*Layout).bytes)
	case wire.TypeRemains:
		return s, false, c.next.remains.decode(f.Payload, c.held, func(payload []byte) (*Remains, error) {
			return decodeRemains(payload, c.known())
		}, (*Remains).bytes)
	case wire.TypeKept: // named by its number, it is not sent again
		d := wire.NewDecoder(f.Payload, &err)
		c.has.Kept = d.Word()
		return s, false, err
	case wire.TypeSample:
		s, err = c.takeSample(f.Payload)
		return s, err == nil, err
	}
	return s, false, wire.Errorf(wire.ReasonMalformed, "a frame of type %d in the answer to SAMPLE", f.Type)
}

// reject forgets what has come of an answer that the rank broke off.
func (c *catalogue) reject() {
	next := &c.next
	_ = c.held.grow(-next.variables.size - next.layout.size - next.remains.size) // giving back does not fail
	c.next = answer{}
}

// end is for when the connection has ended.
func (c *catalogue) end() {
	c.alike.leave(c.list)
	*c = catalogue{}
}

// count takes memory for what is kept of variables and enumerations.
func (c *catalogue) count(bytes int) error {
	if c.bytes += bytes; c.bytes > maxCatalogue {
		return wire.Errorf(wire.ReasonTooLarge, "a catalogue of more than %d bytes", maxCatalogue)
	}
	return c.held.grow(bytes)
}

// takeEnums reads ENUMS; sent are the numbers that the same answer has already brought.
func (c *catalogue) takeEnums(payload []byte, sent map[uint32]struct{}) error {
	var err error
	d := wire.NewDecoder(payload, &err)
	for r := range d.Records("enumerations", wire.MaxVariables) {
		e := decodeEnum(r)
		if err != nil {
			return err
		}
		if _, ok := sent[e.ID]; ok {
			return wire.Errorf(wire.ReasonMalformed, "enumeration %d given twice", e.ID)
		}
		sent[e.ID] = struct{}{}
		if old := c.enums[e.ID]; old != nil {
			if old.equal(e) {
				continue // the variables that have it keep the same pointer
			}
			return wire.Errorf(wire.ReasonMalformed, "enumeration %d was %q and is %q", e.ID, old.Name, e.Name)
		}
		if err := c.count(e.size()); err != nil {
			return err
		}
		c.enums[e.ID] = e
	}
	return err
}

func (c *catalogue) takeVariables(payload []byte) error {
	var err error
	d := wire.NewDecoder(payload, &err)
	next := &c.next.variables
	if next.of == nil {
		next.of, c.next.sent = &Variables{}, make(map[uint32]struct{})
		if have := c.variables; have.of != nil {
			next.of.ByID = slices.Clone(have.of.ByID)
			if err := next.grow(have.size, c.held); err != nil {
				return err
			}
		}
	}
	next.of.Generation = d.Word()
	for r := range d.Records("variables", wire.MaxVariables) {
		v := decodeVariable(r, c.enums)
		if _, ok := c.next.sent[v.ID]; ok {
			d.Fail(wire.ReasonMalformed, "variable %d given twice", v.ID)
		}
		if int(v.ID) > len(next.of.ByID) {
			d.Fail(wire.ReasonMalformed, "variable %d where %d are known", v.ID, len(next.of.ByID))
		}
		if int(v.ID) >= wire.MaxVariables {
			d.Fail(wire.ReasonTooLarge, "variable %d, the limit is %d", v.ID, wire.MaxVariables)
		}
		if err != nil {
			return err
		}
		c.next.sent[v.ID] = struct{}{}
		if int(v.ID) < len(next.of.ByID) {
			if err := next.of.ByID[v.ID].change(v); err != nil {
				return err
			}
			continue
		}
		size := int(unsafe.Sizeof(v)) + len(v.Name) + len(v.Description)
		if err := c.count(size); err != nil {
			return err
		}
		next.size += size
		next.of.ByID = append(next.of.ByID, v)
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

// known is how many variables there are that the present answer may speak of.
func (c *catalogue) known() int {
	switch {
	case c.next.variables.of != nil:
		return len(c.next.variables.of.ByID)
	case c.variables.of != nil:
		return len(c.variables.of.ByID)
	}
	return 0
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
	s.Variables, s.Layout, s.Remains = c.variables.of, c.layout.of, c.remains.of
	s.size = c.bytes + c.layout.size + c.remains.size
	return s, nil
}

// commit makes the answer's parts those of the catalogue.
func (c *catalogue) commit() {
	if next := c.next.variables; next.of != nil {
		c.variables, c.has.Variables = next, next.of.Generation
		before := c.list
		c.list = c.alike.find(next.of.ByID, c.held, next.size)
		c.alike.leave(before)
		next.of.ByID = c.list.byID
		for i := range next.of.ByID {
			if e := next.of.ByID[i].Enum; e != nil {
				c.enums[e.ID] = e
			}
		}
	}
	if next := c.next.layout; next.of != nil {
		_ = c.held.grow(-c.layout.size)
		c.layout, c.has.Layout = next, next.of.Generation
	}
	if next := c.next.remains; next.of != nil {
		_ = c.held.grow(-c.remains.size)
		c.remains, c.has.Remains = next, next.of.Generation
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
	layout := c.layout.of
	if layout == nil {
		layout = &Layout{}
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
	failed := make([]uint32, len(s.Failed))
	for i, f := range s.Failed {
		failed[i] = f.Handle
	}
	if id, twice := repeated(failed); twice {
		return wire.Errorf(wire.ReasonMalformed, "handle %d failed twice", id)
	}
	selected := 0
	for i := range layout.Handles {
		if h := &layout.Handles[i]; h.Offset >= 0 {
			if _, ok := slices.BinarySearch(failed, h.ID); ok {
				selected++
			}
		}
	}
	if selected < len(failed) {
		return wire.Errorf(wire.ReasonMalformed, "of %d failed handles %d are selected", len(failed), selected)
	}
	return nil
}
