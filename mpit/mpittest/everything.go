package mpittest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// fixedTime is the present of a rank of Everything; it began a minute earlier.
var fixedTime = time.Date(2024, time.March, 1, 12, 0, 0, 0, time.UTC)

// typeInfo is a datatype as Everything uses it.
type typeInfo struct {
	datatype mpit.Datatype
	bytes    int
	word     string // in names
}

var allTypes = []typeInfo{
	{mpit.DatatypeOther, 16, "other"},
	{mpit.DatatypeInt, 4, "int"},
	{mpit.DatatypeUnsigned, 4, "unsigned"},
	{mpit.DatatypeUnsignedLong, 8, "unsigned_long"},
	{mpit.DatatypeUnsignedLongLong, 8, "unsigned_long_long"},
	{mpit.DatatypeCount, 8, "count"},
	{mpit.DatatypeChar, 1, "char"},
	{mpit.DatatypeDouble, 8, "double"},
	{mpit.DatatypeInt32, 4, "int32"},
	{mpit.DatatypeInt64, 8, "int64"},
	{mpit.DatatypeUint32, 4, "uint32"},
	{mpit.DatatypeUint64, 8, "uint64"},
	{mpit.DatatypeLong, 8, "long"},
	{mpit.DatatypeLongLong, 8, "long_long"},
	{mpit.DatatypeFloat, 4, "float"},
	{mpit.DatatypeBool, 1, "bool"},
}

// standardTypes are the datatypes that MPI-4.1 §15.3.7 allows for a class, with double where it is one of them.
func standardTypes(c mpit.Class) []mpit.Datatype {
	unsigned := []mpit.Datatype{mpit.DatatypeUnsigned, mpit.DatatypeUnsignedLong, mpit.DatatypeUnsignedLongLong}
	switch c {
	case mpit.ClassState:
		return []mpit.Datatype{mpit.DatatypeInt}
	case mpit.ClassPercentage:
		return []mpit.Datatype{mpit.DatatypeDouble}
	case mpit.ClassCounter:
		return unsigned
	}
	return append(unsigned, mpit.DatatypeDouble)
}

// everything builds the Config of Everything.
type everything struct {
	cfg   Config
	enums []*mpit.Enum
}

// add adds a variable. Its value on the n-th object that fits (or without one) is values(n).
func (e *everything) add(v mpit.Variable, elements int, value func(object int) []any) {
	v.Index = 3 * len(e.cfg.Variables) // gaps, as where a library has variables that are dead
	if v.Verbosity == mpit.VerbosityUnknown {
		v.Verbosity = mpit.VerbosityUserBasic + mpit.Verbosity(len(e.cfg.Variables)%9)
	}
	for _, t := range allTypes {
		if t.datatype == v.Datatype {
			v.DatatypeBytes = t.bytes
		}
	}
	if v.Datatype == mpit.DatatypeOther {
		v.State, v.Code = mpit.VariableBadDatatype, mpit.ErrNotSupported
	}
	e.cfg.Variables = append(e.cfg.Variables, v)
	if elements != 1 {
		e.cfg.Elements[v.Name] = elements
	}
	if v.State != mpit.VariableOpen || value == nil {
		return
	}
	if v.Bind == mpit.BindNone {
		e.set(v, 0, value(0))
		return
	}
	n := 0
	for i, o := range e.cfg.Objects {
		if o.Kind == v.Bind {
			e.set(v, uint32(i+1), value(n))
			n++
		}
	}
}

func (e *everything) set(v mpit.Variable, object uint32, values []any) {
	e.cfg.Values = append(e.cfg.Values, Value{Name: v.Name, Class: v.Class, Object: object, Values: values})
}

// plain returns one value for all elements, which differs from object to object.
func plain(class mpit.Class, base int) func(object int) []any {
	return func(object int) []any {
		switch class {
		case mpit.ClassPercentage:
			return []any{float64(base%4+object)/16 + 0.125}
		case mpit.ClassState:
			return []any{object % 3}
		}
		return []any{base + 10*object}
	}
}

// Everything returns a rank with every class, bind and datatype that MPI-4.1 allows together, and a few that
// libraries use against it; enumerations, arrays, names shared by several classes, odd names and descriptions,
// variables that can't be read, control variables and categories. It is the same at each call, and its clock stands
// still.
func Everything() Config {
	began := fixedTime.Add(-time.Minute)
	e := &everything{cfg: Config{
		Hello: mpit.Hello{
			ID:             mpit.RankID{0xe0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
			PID:            4242,
			Rank:           1,
			Size:           4,
			ThreadLevel:    3,
			ABI:            mpit.ABIOpenMPI,
			InitTime:       began,
			AgentVersion:   "0.0.0-simulated",
			LibraryVersion: "Simulated MPI v1.2.3, package: mpittest",
			Host:           "node01",
			Executable:     "/home/user/bin/simulated app",
			Attributes: map[string]string{"MPIT_JOB_ID": "everything", "ppid": "4241",
				"SLURM_JOB_NAME": "a \"quoted\" name"},
		},
		Elements: make(map[string]int),
		Initial:  make(map[string]float64),
		Clock:    func() time.Time { return fixedTime },
		Objects:  allObjects(began),
		UnderWay: &mpit.UnderWay{Inside: 42 * time.Second, Observed: time.Minute, Running: 1500 * time.Millisecond,
			Function: "MPI_Win_fence", Bind: mpit.BindWin, Object: 9, Module: "/home/user/bin/simulated app",
			Offset: 0x12ab, InsideBy: [mpit.CallKinds]time.Duration{mpit.CallSend: 2 * time.Second,
				mpit.CallWait: 4 * time.Second, mpit.CallCollective: 35 * time.Second, mpit.CallFile: time.Second}},
		Comms: []mpit.Comm{{Object: 1, Identity: 0x1234, Begun: 17, Counted: true}, {Object: 2, Begun: 1, Counted: true},
			{Object: 3, Identity: 0x5678}},
	}}
	e.enums = []*mpit.Enum{
		{ID: 0, Name: "phase", Items: []mpit.EnumItem{{Value: 0, Name: "idle"}, {Value: 1, Name: "eager"},
			{Value: 2, Name: "rendezvous"}}},
		{ID: 1, Name: "odd", Items: []mpit.EnumItem{{Value: -1, Name: "Not \"set\""},
			{Value: 7, Name: "line\nbreak"}}},
	}
	e.classes()
	e.binds()
	e.types()
	e.families()
	e.arrays()
	e.oddities()
	e.states()
	e.cfg.ControlVariables = allControlVariables(e.enums)
	e.cfg.Categories = allCategories(e.cfg.Variables)
	return e.cfg
}

// allObjects are objects of each kind, with the details that it can have; of communicators also such that share a
// name or have none. What docs/internals/protocol.md says can't be found stands here too, for whoever reads it to cope
// with.
func allObjects(created time.Time) []mpit.Object {
	details := func(pairs ...string) (list []mpit.Detail) {
		for pair := range slices.Chunk(pairs, 2) {
			list = append(list, mpit.Detail{Key: pair[0], Value: pair[1]})
		}
		return list
	}
	objects := []mpit.Object{
		{Kind: mpit.BindComm, Name: "MPI_COMM_WORLD", Predefined: true, Size: 4, Rank: 1},
		{Kind: mpit.BindComm, Name: "MPI_COMM_SELF", Predefined: true, Size: 1, Rank: 0},
		{Kind: mpit.BindComm, Name: "halo exchange", Size: 4, Rank: 2,
			Details: details("topology", "cart", "dims", "2,2", "periods", "1,0")},
		{Kind: mpit.BindComm, Size: 2, Rank: 0},
		{Kind: mpit.BindComm, Size: 2, Rank: 1},
		{Kind: mpit.BindComm, Name: "solver", Size: 2, Rank: 0,
			Details: details("topology", "graph", "nodes", "2", "edges", "2")},
		{Kind: mpit.BindComm, Name: "solver", Size: 2, Rank: 1,
			Details: details("topology", "dist_graph", "indegree", "1", "outdegree", "1")},
		{Kind: mpit.BindComm, Name: "coupler", Inter: true, Size: 2, Rank: 1, Details: details("remote_size", "2")},
		{
			Kind: mpit.BindWin, Name: "pressure", Size: 4, Rank: 1, On: 3,
			Details: details("base", "0x7f0000001000", "bytes", "4096", "disp_unit", "8", "flavor", "allocate",
				"model", "unified"),
		},
		{Kind: mpit.BindFile, Name: "/scratch/restart \"1\".h5", Size: 4, Rank: 1, On: 1,
			Details: details("mode", "rdwr,create")},
		{Kind: mpit.BindDatatype, Name: "MPI_DOUBLE", Predefined: true,
			Details: details("bytes", "8", "extent", "8", "lb", "0", "combiner", "named")},
		{Kind: mpit.BindErrhandler, Name: "MPI_ERRORS_RETURN", Predefined: true, Details: details("on", "comm")},
		{Kind: mpit.BindGroup, Size: 4, Rank: 1},
		{Kind: mpit.BindOp, Name: "MPI_SUM", Predefined: true, Details: details("commutative", "true")},
		{Kind: mpit.BindRequest, On: 9999, Details: details("operation", "send_init")}, // its communicator is gone
		{Kind: mpit.BindMessage},
		{Kind: mpit.BindInfo, Name: "MPI_INFO_ENV", Predefined: true,
			Details: details("keys", "command,\"wdir\",arch")},
		{Kind: mpit.BindSession},
	}
	for i := range objects {
		objects[i].Created = created.Add(time.Duration(i) * time.Second)
	}
	return objects
}

// classes: each class with each datatype that the standard allows, without an object and on communicators.
func (e *everything) classes() {
	for class := mpit.ClassState; class <= mpit.ClassGeneric; class++ {
		for _, d := range standardTypes(class) {
			for _, bind := range []mpit.Bind{mpit.BindNone, mpit.BindComm} {
				v := mpit.Variable{
					Name:       fmt.Sprintf("each_%s_%s", strings.ToLower(class.String()), typeWord(d)),
					Class:      class,
					Datatype:   d,
					Bind:       bind,
					ReadOnly:   true,
					Continuous: bind == mpit.BindNone,
				}
				v.Description = fmt.Sprintf("A %s of %s.", class, d)
				if bind != mpit.BindNone {
					v.Name += "_comm"
				}
				if class == mpit.ClassState {
					v.Enum = e.enums[0]
				}
				e.add(v, 1, plain(class, 100+len(e.cfg.Variables)))
			}
		}
	}
}

func typeWord(d mpit.Datatype) string {
	for _, t := range allTypes {
		if t.datatype == d {
			return t.word
		}
	}
	return "unknown"
}

// binds: a LEVEL and a COUNTER on each kind of object.
func (e *everything) binds() {
	for bind := mpit.BindDatatype; bind <= mpit.BindLast; bind++ {
		for _, class := range []mpit.Class{mpit.ClassLevel, mpit.ClassCounter} {
			v := mpit.Variable{
				Name:        fmt.Sprintf("bound_%s_%s", strings.ToLower(class.String()), bind.Label()),
				Description: fmt.Sprintf("A %s of each %s.", class, bind.Label()),
				Class:       class,
				Datatype:    mpit.DatatypeUnsignedLong,
				Bind:        bind,
			}
			e.add(v, 1, plain(class, 200+len(e.cfg.Variables)))
		}
	}
}

// types: a GENERIC of every datatype, which the standard allows, with a value near the end of its range.
func (e *everything) types() {
	largest := map[mpit.Datatype]any{
		mpit.DatatypeInt: -3, mpit.DatatypeUnsigned: uint32(math.MaxUint32),
		mpit.DatatypeUnsignedLong:     uint64(math.MaxUint64),
		mpit.DatatypeUnsignedLongLong: uint64(1) << 63, mpit.DatatypeCount: int64(math.MaxInt64),
		mpit.DatatypeDouble: 2.5,
		mpit.DatatypeInt32:  math.MinInt32, mpit.DatatypeInt64: math.MinInt64, mpit.DatatypeUint32: uint32(1) << 31,
		mpit.DatatypeUint64: uint64(1)<<53 + 1, mpit.DatatypeLong: -1, mpit.DatatypeLongLong: int64(1) << 40,
		mpit.DatatypeFloat: float32(0.1), mpit.DatatypeBool: true,
	}
	for _, t := range allTypes {
		v := mpit.Variable{
			Name:        "type_" + t.word,
			Description: "A GENERIC of " + t.datatype.String() + ".",
			Class:       mpit.ClassGeneric,
			Datatype:    t.datatype,
		}
		if t.datatype == mpit.DatatypeChar {
			v.Description = "A string."
			e.add(v, 16, nil)
			continue
		}
		e.add(v, 1, func(int) []any { return []any{largest[t.datatype]} })
	}
}

// families: classes that share a name and belong together.
func (e *everything) families() {
	base := mpit.Variable{Name: "rndv_wait", Description: "Waiting for rendezvous.", Bind: mpit.BindComm}
	v := base
	v.Class, v.Datatype = mpit.ClassTimer, mpit.DatatypeDouble
	e.add(v, 1, func(object int) []any { return []any{1.5 + float64(object)/4} })
	v.Class, v.Datatype = mpit.ClassCounter, mpit.DatatypeUnsignedLongLong
	e.add(v, 1, plain(v.Class, 30))

	base = mpit.Variable{Name: "pool", Description: "Buffers in the pool.", Datatype: mpit.DatatypeUnsignedLong,
		Bind: mpit.BindComm}
	for class, value := range []int{mpit.ClassLevel: 3, mpit.ClassSize: 16, mpit.ClassHighWatermark: 12,
		mpit.ClassLowWatermark: 1} {
		if value == 0 {
			continue
		}
		v := base
		v.Class = mpit.Class(class)
		e.add(v, 1, func(object int) []any { return []any{value + object} })
	}

	// As MPICH's timers: only differences from the beginning mean anything.
	offset := mpit.Variable{Name: "offset_timer", Description: "Begins far below zero.", Class: mpit.ClassTimer,
		Datatype: mpit.DatatypeDouble}
	e.cfg.Initial[offset.Name] = -1.8e9
	e.add(offset, 1, func(int) []any { return []any{-1.8e9 + 12.25} })
}

// arrays: an element for each peer, and a fixed number of classes of message sizes.
func (e *everything) arrays() {
	for _, class := range []mpit.Class{mpit.ClassCounter, mpit.ClassAggregate, mpit.ClassLevel,
		mpit.ClassHighWatermark, mpit.ClassPercentage} {
		d := standardTypes(class)[len(standardTypes(class))-1]
		v := mpit.Variable{
			Name:        "peers_" + strings.ToLower(class.String()),
			Description: "One element for each peer.",
			Class:       class,
			Datatype:    d,
			Bind:        mpit.BindComm,
		}
		sizes := []int{4, 1, 4, 2, 2, 2, 2, 2}
		e.add(v, PerPeer, func(object int) []any {
			values := make([]any, sizes[object])
			for i := range values {
				values[i] = plain(class, 5+i)(object)[0]
			}
			return values
		})
	}
	v := mpit.Variable{Name: "message_sizes", Description: "Messages by size.", Class: mpit.ClassCounter,
		Datatype: mpit.DatatypeUnsignedLongLong}
	e.add(v, 6, func(int) []any { return []any{1, 2, 3, 5, 8, 13} })
}

// oddities: names, descriptions and values that need care.
func (e *everything) oddities() {
	for i, v := range []mpit.Variable{
		{Name: "UPPER_Case", Description: "A name in both cases."},
		{Name: "with.dots.and-dashes", Description: "Characters that no metric's name may have."},
		{Name: "2nd_begins_with_a_digit", Description: ""},
		{Name: "ends_in_total", Description: "Two\nlines and a back\\slash."},
		{Name: "a_count", Description: "Says \"quoted\" and \ttabbed."},
		{Name: "smörgåsbord", Description: "Not only ASCII: µs, ∑."},
		{Name: "some counter bytes", Description: "Spaces."},
	} {
		v.Class, v.Datatype = mpit.ClassCounter, mpit.DatatypeUnsignedLong
		if i%2 == 0 {
			v.Class = mpit.ClassLevel
		}
		e.add(v, 1, plain(v.Class, 7+i))
	}
	enum := mpit.Variable{Name: "odd_state", Description: "A value outside its enumeration.", Class: mpit.ClassState,
		Datatype: mpit.DatatypeInt, Enum: e.enums[1]}
	e.add(enum, 1, func(int) []any { return []any{5} })
	none := mpit.Variable{Name: "bare_state", Description: "A STATE without an enumeration.", Class: mpit.ClassState,
		Datatype: mpit.DatatypeInt}
	e.add(none, 1, func(int) []any { return []any{7} })
	negative := mpit.Variable{Name: "negative_counter", Description: "Counts below zero.", Class: mpit.ClassCounter,
		Datatype: mpit.DatatypeInt}
	e.add(negative, 1, func(int) []any { return []any{-12} })
	e.add(mpit.Variable{Name: "future", Description: "A class that is not known.", Class: mpit.ClassUnknown,
		Datatype: mpit.DatatypeInt}, 1, plain(mpit.ClassUnknown, 1))
}

// states: a variable in each state that is not open.
func (e *everything) states() {
	codes := map[mpit.VariableState]mpit.ReturnCode{
		mpit.VariableAllocFailed: mpit.ErrInvalidHandle,
		mpit.VariableStartFailed: mpit.ErrPvarNoStartStop,
		mpit.VariableReadFailed:  mpit.ErrInvalid,
		mpit.VariableBadDatatype: mpit.ErrNotSupported,
		mpit.VariableExhausted:   mpit.ErrOutOfHandles,
	}
	for state := mpit.VariableDenied; state <= mpit.VariableOnRequest; state++ {
		e.add(mpit.Variable{
			Name:        "closed_" + state.String(),
			Description: "Can't be read.",
			Class:       mpit.ClassCounter,
			Datatype:    mpit.DatatypeUnsignedLong,
			State:       state,
			Code:        codes[state],
			OnRequest:   state == mpit.VariableOnRequest,
		}, 1, nil)
	}
}

func allControlVariables(enums []*mpit.Enum) []mpit.ControlVariable {
	var list []mpit.ControlVariable
	for scope := mpit.ScopeConstant; scope <= mpit.ScopeAllEq; scope++ {
		list = append(list, mpit.ControlVariable{
			Name:        "limit_" + strings.ToLower(scope.String()),
			Description: "A limit of scope " + scope.String() + ".",
			Scope:       scope,
			Verbosity:   mpit.VerbosityTunerBasic,
			Datatype:    mpit.DatatypeInt,
			HasValue:    true,
			Values:      []uint64{4096 << scope},
		})
	}
	list = append(list,
		mpit.ControlVariable{
			Name: "algorithm", Description: "Which one is used.", Scope: mpit.ScopeAllEq,
			Verbosity: mpit.VerbosityUserBasic,
			Datatype:  mpit.DatatypeInt, Enum: enums[0], HasValue: true, Values: []uint64{2},
		},
		mpit.ControlVariable{
			Name: "transport", Description: "A list\nof \"names\".", Scope: mpit.ScopeReadOnly,
			Verbosity: mpit.VerbosityUserDetail,
			Datatype:  mpit.DatatypeChar, HasValue: true, Text: "self,\"sm\",tcp",
		},
		mpit.ControlVariable{
			Name: "empty_text", Scope: mpit.ScopeLocal, Verbosity: mpit.VerbosityUserAll,
			Datatype: mpit.DatatypeChar, HasValue: true,
		},
		mpit.ControlVariable{
			Name: "thresholds", Description: "Several values.", Scope: mpit.ScopeGroup,
			Verbosity: mpit.VerbosityTunerAll,
			Datatype:  mpit.DatatypeDouble, HasValue: true,
			Values: []uint64{math.Float64bits(0.5), math.Float64bits(-2)},
		},
		mpit.ControlVariable{
			Name: "negative", Scope: mpit.ScopeLocal, Verbosity: mpit.VerbosityMPIDevAll, Datatype: mpit.DatatypeInt,
			HasValue: true, Values: []uint64{math.MaxUint64},
		},
		mpit.ControlVariable{
			Name: "of_a_window", Description: "Can't be read without one.", Scope: mpit.ScopeLocal,
			Verbosity: mpit.VerbosityMPIDevBasic,
			Datatype:  mpit.DatatypeInt, Bind: mpit.BindWin, Code: mpit.ErrNotSupported,
			Objects: []mpit.ObjectValue{{Object: 9, HasValue: true, Values: []uint64{3}}}, // its one window
		},
	)
	for i := range list {
		list[i].Index = i
	}
	return list
}

// allCategories puts every fourth variable in one category, some of them in a second, and one category into another.
func allCategories(variables []mpit.Variable) []mpit.Category {
	all := mpit.Category{Name: "everything", Description: "All\nof \"it\"", Subcategories: []int{1, 2},
		ControlVariables: []int{0, 1, 2}}
	some := mpit.Category{Index: 1, Name: "some", Description: "A few"}
	none := mpit.Category{Index: 2, Name: "none"}
	for i := range variables {
		if i%4 == 0 {
			all.Variables = append(all.Variables, variables[i].Index)
		}
		if i%12 == 0 {
			some.Variables = append(some.Variables, variables[i].Index)
		}
	}
	return []mpit.Category{all, some, none}
}
