package mpittest

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

// cut is where a catalogue is cut into frames, in bytes: no single record is longer than the rest of a frame.
const cut = wire.MaxCatalogueFrame / 4

func bit(set bool, value uint64) uint64 {
	if set {
		return value
	}
	return 0
}

// enumNumber is how a record names an enumeration.
func enumNumber(e *mpit.Enum) uint64 {
	if e == nil {
		return 0
	}
	return uint64(e.ID) + 1
}

func encodeHello(e *wire.Encoder, h mpit.Hello) {
	e.Begin(wire.TypeHello, 0)
	e.Word(bit(h.Final, 1))
	e.Word(binary.LittleEndian.Uint64(h.ID[:8]))
	e.Word(binary.LittleEndian.Uint64(h.ID[8:]))
	e.Int(h.PID)
	e.Int(h.Rank)
	e.Int(h.Size)
	e.Int(h.ThreadLevel)
	e.Word(uint64(h.ABI))
	e.Word(bit(h.Passive, 1) | bit(h.WriteAllowed, 2) | bit(h.SessionsOnly, 4))
	e.Time(h.InitTime)
	e.String(h.AgentVersion)
	e.String(h.LibraryVersion)
	e.String(h.Host)
	e.String(h.Executable)
	e.Word(uint64(len(h.Attributes)))
	for _, key := range slices.Sorted(maps.Keys(h.Attributes)) {
		e.Record(func() {
			e.String(key)
			e.String(h.Attributes[key])
		})
	}
	e.String("") // see docs/internals/protocol.md
	e.Finish()
}

// cutList appends a list of records, up to the end or where it becomes long, and returns where to go on. most is how
// many records there are at most, 0: what fits.
func cutList(e *wire.Encoder, i, n, most int, record func(e *wire.Encoder, i int)) (next int) {
	var records wire.Encoder
	first := i
	for ; i < n && len(records.Bytes()) < cut && (most == 0 || i-first < most); i++ {
		records.Record(func() { record(&records, i) })
	}
	e.Int(i - first)
	e.Append(&records)
	return i
}

// list appends frames of one type that begin with head and hold a list of all records, cut where a frame becomes long.
func list(e *wire.Encoder, typ uint16, seq uint32, n int, head func(), record func(e *wire.Encoder, i int)) {
	for i := 0; ; {
		e.Begin(typ, seq)
		head()
		i = cutList(e, i, n, 0, record)
		e.Finish()
		if i == n {
			return
		}
	}
}

// withEnum adds an enumeration, if it is one and not there already.
func withEnum(enums []*mpit.Enum, enum *mpit.Enum) []*mpit.Enum {
	if enum == nil || slices.ContainsFunc(enums, func(have *mpit.Enum) bool { return have.ID == enum.ID }) {
		return enums
	}
	return append(enums, enum)
}

// encodeEnums appends ENUMS, if there are any.
func encodeEnums(e *wire.Encoder, seq uint32, enums []*mpit.Enum) {
	if len(enums) == 0 {
		return
	}
	list(e, wire.TypeEnums, seq, len(enums), func() {}, func(e *wire.Encoder, i int) {
		e.Word(uint64(enums[i].ID))
		e.String(enums[i].Name)
		e.Word(uint64(len(enums[i].Items)))
		for _, item := range enums[i].Items {
			e.Record(func() {
				e.Word(uint64(item.Value))
				e.String(item.Name)
			})
		}
	})
}

// encodeVariables appends ENUMS and VARIABLES with what is newer than the generation since.
func (r *Rank) encodeVariables(e *wire.Encoder, seq uint32, since uint64) {
	var changed []*variable
	var enums []*mpit.Enum // each once
	for i := range r.variables {
		v := &r.variables[i]
		if v.generation <= since {
			continue
		}
		changed = append(changed, v)
		enums = withEnum(enums, v.Enum)
	}
	encodeEnums(e, seq, enums)
	list(e, wire.TypeVariables, seq, len(changed), func() { e.Word(r.variablesGen) }, func(e *wire.Encoder, i int) {
		v := changed[i]
		e.Word(uint64(v.ID))
		e.Int(v.Index)
		e.Word(uint64(v.Class))
		e.Word(uint64(v.Verbosity))
		e.Word(uint64(v.Datatype))
		e.Int(v.DatatypeBytes)
		e.Word(uint64(v.Bind))
		e.Word(bit(v.ReadOnly, 1) | bit(v.Continuous, 2) | bit(v.Atomic, 4) | bit(v.Distribution,
			8) | bit(v.OnRequest, 16))
		e.Word(enumNumber(v.Enum))
		e.Word(uint64(v.State))
		e.Word(uint64(v.Code))
		e.String(v.Name)
		e.String(v.Description)
	})
}

func (r *Rank) encodeLayout(e *wire.Encoder, seq uint32) {
	e.Begin(wire.TypeLayout, seq)
	e.Word(r.layoutGen)
	e.Word(r.overflow)
	e.Word(0)
	e.Word(uint64(len(r.objects)))
	for i := range r.objects {
		o := &r.objects[i]
		e.Record(func() {
			e.Word(uint64(o.ID))
			e.Word(uint64(o.Kind))
			e.Word(bit(o.Predefined, 1) | bit(o.Inter, 2))
			e.Int(o.Size)
			e.Int(o.Rank)
			e.Time(o.Created)
			e.String(o.Name)
			e.Word(uint64(o.On))
			e.Word(uint64(len(o.Details)))
			for _, d := range o.Details {
				e.Record(func() {
					e.String(d.Key)
					e.String(d.Value)
				})
			}
		})
	}
	e.Word(uint64(len(r.handles)))
	for i := range r.handles {
		h := &r.handles[i]
		e.Record(func() {
			e.Word(uint64(h.ID))
			e.Word(uint64(h.Variable))
			e.Word(uint64(h.Object))
			e.Int(h.Count)
			e.Time(h.Created)
			e.Word(bit(h.First != nil, 1) | bit(h.Origin != nil, 2) | bit(selected(r.selection, h.Variable), 4) |
				bit(h.Excluded != nil, 8))
			e.Words(h.First)
			e.Words(h.Origin)
			e.Words(h.Excluded)
		})
	}
	e.Finish()
}

func (r *Rank) encodeRemains(e *wire.Encoder, seq uint32) {
	e.Begin(wire.TypeRemains, seq)
	e.Word(r.remainsGen)
	e.Word(r.lost)
	e.Word(uint64(len(r.remains)))
	for i := range r.remains {
		m := &r.remains[i]
		e.Record(func() {
			e.Word(uint64(m.Variable))
			e.Int(m.count)
			e.Int(m.Contributions)
			e.Time(m.Created)
			e.Words(m.Gained)
			e.Words(m.First)
			e.Words(m.Max)
			e.Words(m.Min)
			e.String(m.Name)
		})
	}
	e.Finish()
}

func encodeSample(e *wire.Encoder, seq uint32, s mpit.Sample, layout uint64) {
	e.Begin(wire.TypeSample, seq)
	e.Word(layout)
	e.Word(uint64(s.Status))
	e.Word(uint64(s.End))
	e.Time(s.Time)
	e.Word(uint64(s.Monotonic))
	e.Word(uint64(s.Duration))
	e.Word(1)
	e.Record(func() {
		e.Word(s.Stats.Samples)
		e.Word(s.Stats.Busy)
		e.Word(s.Stats.ReadErrors)
		e.Word(s.Stats.GateWaits)
		e.Word(uint64(s.Stats.GateWaitTime))
		e.Word(uint64(s.Stats.GateWaitMax))
		e.Word(uint64(s.Stats.CPUTime))
		e.Word(s.Stats.ObjectsAlive)
		e.Int(s.Stats.PcontrolLevel)
		e.Word(s.Stats.PcontrolCalls)
		e.Word(0) // reserved
		e.Word(uint64(s.Stats.PausedTime))
		e.Word(s.Stats.CategoryStamp)
	})
	e.Array(s.Values)
	e.Word(uint64(len(s.Failed)))
	for _, f := range s.Failed {
		e.Word(uint64(f.Handle))
		e.Word(uint64(f.Code))
	}
	if u := s.UnderWay; u == nil {
		e.Word(0)
	} else {
		e.Word(1)
		e.Record(func() {
			e.Word(uint64(u.Inside))
			e.Word(uint64(u.Observed))
			e.Word(uint64(u.Running))
			e.Word(uint64(u.Bind))
			e.Word(uint64(u.Object))
			e.String(u.Function)
			e.String(u.Module)
			e.Word(u.Offset)
			encodeInsideBy(e, u.InsideBy)
			e.Word(uint64(u.Finalize))
			e.Word(uint64(u.CPU))
			e.Word(uint64(len(u.Threads)))
			for i := range u.Threads {
				e.Record(func() { encodeThread(e, &u.Threads[i]) })
			}
			encodeKernel(e, u.Kernel)
			e.Word(uint64(len(u.Phases)))
			for _, p := range u.Phases {
				e.Record(func() {
					e.Int(p.Number)
					e.Word(uint64(p.Observed))
					encodeInsideBy(e, p.InsideBy)
				})
			}
		})
	}
	e.Word(uint64(len(s.Comms)))
	for _, c := range s.Comms {
		e.Record(func() {
			e.Word(uint64(c.Object))
			e.Word(c.Identity)
			if c.Counted {
				e.Word(c.Begun + 1)
			} else {
				e.Word(0)
			}
		})
	}
	e.Finish()
}

func encodeInsideBy(e *wire.Encoder, by [mpit.CallKinds]time.Duration) {
	e.Word(uint64(len(by)))
	for _, d := range by {
		e.Word(uint64(d))
	}
}

func encodeThread(e *wire.Encoder, t *mpit.Thread) {
	e.Word(t.ID)
	e.Int(t.TID)
	e.Word(bit(t.Main, 1))
	e.Word(uint64(t.Now))
	e.Word(uint64(t.Observed))
	encodeInsideBy(e, t.InsideBy)
	e.Words([]uint64{uint64(t.CPU), uint64(t.Queue), uint64(t.Begun), uint64(t.Ended)})
	own, of := *t, mpit.Thread{}
	if t.Of != "" {
		own.Bind, own.Object, own.Number, of = mpit.BindNone, 0, 0, *t
	}
	e.String(t.Function)
	e.Word(uint64(own.Bind))
	e.Word(uint64(own.Object))
	e.Int(t.Peer)
	e.Int(t.Tag)
	e.Int(t.Root)
	e.Word(own.Number)
	e.String(t.In)
	e.Word(uint64(len(t.Peers)))
	for _, peer := range t.Peers {
		e.Int(peer)
	}
	e.String(of.Of)
	e.Word(uint64(of.Object))
	e.Word(of.Number)
}

func encodeKernel(e *wire.Encoder, k *mpit.Kernel) {
	if k == nil {
		e.Word(0)
		return
	}
	e.Word(1)
	e.Record(func() {
		e.Int(k.Cores)
		e.Int(k.Nice)
		e.Word(uint64(k.MajorFaults))
		e.Word(uint64(k.Resident))
		e.Word(bit(k.GPU, 1))
		e.Word(uint64(k.Throttled))
	})
}

// pageOf appends a frame, which the caller finishes, with the part of a catalogue that begins at first: at most page
// records, 0: what fits. n is the length of the whole, and indices run from 0.
func pageOf(e *wire.Encoder, typ uint16, seq uint32, n, first, page int, record func(e *wire.Encoder, i int)) {
	e.Begin(typ, seq)
	var records wire.Encoder
	e.Int(n)
	e.Int(cutList(&records, min(first, n), n, page, record))
	e.Append(&records)
}

// valueOf is a control variable's value as frames have it.
func valueOf(words []uint64, text string, has bool) wire.Value {
	switch {
	case !has:
		return wire.Value{}
	case words == nil:
		return wire.Value{Kind: wire.ValueText, Text: text}
	}
	return wire.Value{Kind: wire.ValueWords, Words: words}
}

// encodeControlVariables appends CVARS, and before it the enumerations of what it lists. A variable's index is its
// place in the list.
func encodeControlVariables(e *wire.Encoder, seq uint32, cvars []mpit.ControlVariable, first, page int) {
	// The page first, elsewhere, for only then it is known what stands in it.
	var listed wire.Encoder
	var enums []*mpit.Enum
	encodeCvarPage(&listed, seq, cvars, first, page, func(c *mpit.ControlVariable) { enums = withEnum(enums, c.Enum) })
	encodeEnums(e, seq, enums)
	e.Append(&listed)
}

// encodeCvarPage appends CVARS and tells of each variable in it.
func encodeCvarPage(e *wire.Encoder, seq uint32, cvars []mpit.ControlVariable, first, page int,
	listed func(*mpit.ControlVariable)) {
	pageOf(e, wire.TypeCvars, seq, len(cvars), first, page, func(e *wire.Encoder, i int) {
		c := &cvars[i]
		e.Int(i)
		e.Word(uint64(c.Scope))
		e.Word(uint64(c.Verbosity))
		e.Word(uint64(c.Datatype))
		e.Word(uint64(c.Bind))
		e.Word(enumNumber(c.Enum))
		e.Word(uint64(c.Code))
		e.Value(valueOf(c.Values, c.Text, c.HasValue))
		e.String(c.Name)
		e.String(c.Description)
		e.Word(uint64(len(c.Objects)))
		for i := range c.Objects {
			o := &c.Objects[i]
			e.Record(func() {
				e.Word(uint64(o.Object))
				e.Word(uint64(o.Code))
				e.Value(valueOf(o.Values, o.Text, o.HasValue))
			})
		}
		listed(c)
	})
	e.Finish()
}

// encodeCategories appends CATEGORIES. A category's index is its place in the list.
func encodeCategories(e *wire.Encoder, seq uint32, categories []mpit.Category, stamp uint64, first, page int) {
	indices := func(e *wire.Encoder, list []int) {
		e.Word(uint64(len(list)))
		for _, i := range list {
			e.Int(i)
		}
	}
	pageOf(e, wire.TypeCategories, seq, len(categories), first, page, func(e *wire.Encoder, i int) {
		c := &categories[i]
		e.Int(i)
		e.String(c.Name)
		e.String(c.Description)
		indices(e, c.Variables)
		indices(e, c.ControlVariables)
		indices(e, c.Subcategories)
	})
	e.Word(stamp)
	e.Finish()
}

// encodeSites appends SITES. A site's number is its place in the list.
func encodeSites(e *wire.Encoder, seq uint32, sites []mpit.Site, first, page int) {
	pageOf(e, wire.TypeSites, seq, len(sites), first, page, func(e *wire.Encoder, i int) {
		s := &sites[i]
		e.Int(i)
		e.String(s.Function)
		e.Word(uint64(s.Bind))
		e.Word(uint64(s.Object))
		e.String(s.Module)
		e.Word(s.Offset)
		e.Word(s.Calls)
		e.Word(uint64(s.Inside))
		e.Word(s.Bytes)
		e.String(s.BuildID)
		e.Word(uint64(s.Peer))
		e.Word(uint64(s.Of))
	})
	e.Finish()
}

func encodeError(e *wire.Encoder, seq uint32, code uint64, text string) {
	e.Begin(wire.TypeError, seq)
	e.Word(code)
	e.String(text)
	e.Finish()
}
