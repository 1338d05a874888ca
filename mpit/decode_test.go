package mpit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// built returns a frame whose payload is built by fields.
func built(typ uint16, fields func(e *wire.Encoder)) wire.Frame {
	var e wire.Encoder
	e.Begin(typ, 1)
	fields(&e)
	e.Finish()
	return wire.Frame{Type: typ, Version: wire.Version, Seq: 1, Payload: e.Bytes()[wire.HeaderBytes:]}
}

// record builds a frame with a list of one record behind some words.
func record(typ uint16, before []uint64, fields func(e *wire.Encoder)) wire.Frame {
	return built(typ, func(e *wire.Encoder) {
		e.Words(before)
		e.Word(1)
		e.Record(func() { fields(e) })
	})
}

// feed gives frames to the decoder of answers. The last one must end the answer.
func feed(a *mpit.Answers, frames ...wire.Frame) (s mpit.Sample, err error) {
	whole := false
	for _, f := range frames {
		if s, whole, err = a.Frame(f); err != nil {
			return mpit.Sample{}, err
		}
	}
	if !whole {
		panic("the answer has no end")
	}
	return s, nil
}

// simpleSample is a fresh sample of a layout with some values.
func simpleSample(layout uint64, values ...uint64) wire.Frame {
	return built(wire.TypeSample, func(e *wire.Encoder) {
		e.Words([]uint64{layout, 0, 0, 0, 0, 0, 0})
		e.Array(values)
		e.Word(0)
	})
}

func busySample() wire.Frame {
	return built(wire.TypeSample, func(e *wire.Encoder) { e.Words([]uint64{0, 1}) })
}

var (
	oneEnum     = record(wire.TypeEnums, nil, func(e *wire.Encoder) { e.Word(3); e.String("phase"); e.Word(0) })
	oneVariable = record(wire.TypeVariables, []uint64{1}, variableFields)
)

// variableFields are the fields of version 1.
func variableFields(e *wire.Encoder) {
	e.Words([]uint64{0, 7, 6, 1, 3, 8, 1, 3, 0, 2, 6})
	e.String("messages")
	e.String("All of them.")
}

func objectFields(e *wire.Encoder) {
	e.Words([]uint64{1, 1, 3, 4, 2, 1_000_000_000})
	e.String("halo")
	e.Word(9)
	detailList(e, mpit.Detail{Key: "dims", Value: "2,2"}, mpit.Detail{Key: "periods", Value: "1,0"})
}

// detailList appends the details of an object.
func detailList(e *wire.Encoder, list ...mpit.Detail) {
	e.Word(uint64(len(list)))
	for _, d := range list {
		e.Record(func() { e.String(d.Key); e.String(d.Value) })
	}
}

// detailed are the fields of an object with details.
func detailed(list ...mpit.Detail) fields {
	return func(e *wire.Encoder) {
		e.Words([]uint64{1, 1, 0, 0, 0, 0, 0, 0})
		detailList(e, list...)
	}
}

func handleFields(e *wire.Encoder) {
	e.Words([]uint64{5, 0, 1, 2, 1_000_000_000, 15, 10, 11, 20, 21, 30, 31})
}

// toolFrame is the answer to an operation, done or refused.
func toolFrame(op wire.ToolOperation, code mpit.ReturnCode, why string, gives ...uint64) wire.Frame {
	return built(wire.TypeTool, func(e *wire.Encoder) {
		e.Words([]uint64{uint64(op), uint64(code)})
		e.String(why)
		e.Words(gives)
	})
}

func remainFields(e *wire.Encoder) {
	e.Words([]uint64{0, 2, 9, 1_000_000_000, 1, 2, 3, 4, 5, 6, 7, 8})
	e.String("solver")
}

func layoutFrame(objects, handles []func(e *wire.Encoder)) wire.Frame {
	return built(wire.TypeLayout, func(e *wire.Encoder) {
		e.Words([]uint64{1, 40, 41})
		for _, list := range [][]func(e *wire.Encoder){objects, handles} {
			e.Word(uint64(len(list)))
			for _, fields := range list {
				e.Record(func() { fields(e) })
			}
		}
	})
}

type fields = func(e *wire.Encoder)

func words(list ...uint64) fields { return func(e *wire.Encoder) { e.Words(list) } }

// Records and payloads grow at their end: what an older peer doesn't send reads as zero, what a newer one sends more is
// left alone.
func TestOlderAndNewerRecords(t *testing.T) {
	second := time.Unix(1, 0)
	newer := func(of fields) fields {
		return func(e *wire.Encoder) {
			of(e)
			e.Word(99)
			e.String("more")
		}
	}
	variable := mpit.Variable{
		Index: 7, Name: "messages", Description: "All of them.", Class: mpit.ClassCounter,
		Verbosity: mpit.VerbosityUserBasic,
		Datatype:  mpit.DatatypeUnsignedLong, DatatypeBytes: 8, Bind: mpit.BindComm, ReadOnly: true, Continuous: true,
		State: mpit.VariableAllocFailed, Code: mpit.ErrInvalidHandle,
	}
	older := variable
	older.Description = ""
	t.Run("variable", func(t *testing.T) {
		for name, c := range map[string]struct {
			fields fields
			want   mpit.Variable
		}{
			"same":  {variableFields, variable},
			"newer": {newer(variableFields), variable},
			"older": {func(e *wire.Encoder) {
				e.Words([]uint64{0, 7, 6, 1, 3, 8, 1, 3, 0, 2, 6})
				e.String("messages")
			}, older},
			"empty": {words(), mpit.Variable{Class: mpit.ClassState}},
		} {
			s, err := feed(new(mpit.Answers), record(wire.TypeVariables, []uint64{1}, c.fields), busySample())
			require.NoError(t, err, name)
			assert.Equal(t, []mpit.Variable{c.want}, s.Variables.ByID, name)
		}
	})
	t.Run("enumeration", func(t *testing.T) {
		item := func(more ...uint64) fields {
			return func(e *wire.Encoder) { e.Word(^uint64(0)); e.String("idle"); e.Words(more) }
		}
		for name, c := range map[string]struct {
			fields fields
			want   []mpit.EnumItem
		}{
			"same": {func(e *wire.Encoder) { e.Word(3); e.String("phase"); e.Word(1); e.Record(func() { item()(e) }) },
				[]mpit.EnumItem{{Value: -1, Name: "idle"}}},
			"newer": {newer(func(e *wire.Encoder) {
				e.Word(3)
				e.String("phase")
				e.Word(1)
				e.Record(func() {
					item(8,
						9)(e)
				})
			}), []mpit.EnumItem{{Value: -1, Name: "idle"}}},
			"older items": {func(e *wire.Encoder) { e.Word(3); e.String("phase"); e.Word(1); e.Record(func() { e.Word(5) }) },
				[]mpit.EnumItem{{Value: 5}}},
			"no items": {func(e *wire.Encoder) { e.Word(3); e.String("phase") }, nil},
		} {
			s, err := feed(new(mpit.Answers), record(wire.TypeEnums, nil, c.fields),
				record(wire.TypeVariables, []uint64{1}, words(0, 0, 0, 0, 0, 0, 0, 0, 4)), busySample())
			require.NoError(t, err, name)
			assert.Equal(t, &mpit.Enum{ID: 3, Name: "phase", Items: c.want}, s.Variables.ByID[0].Enum, name)
		}
	})
	t.Run("object and handle", func(t *testing.T) {
		object := mpit.Object{ID: 1, Kind: mpit.BindComm, Name: "halo", Predefined: true, Inter: true, Size: 4,
			Rank: 2, Created: second,
			On: 9, Details: []mpit.Detail{{Key: "dims", Value: "2,2"}, {Key: "periods", Value: "1,0"}}}
		handle := mpit.Handle{ID: 5, Object: 1, Count: 2, Created: second, Earlier: &mpit.Earlier{
			First: []uint64{10, 11}, Origin: []uint64{20, 21}, Excluded: []uint64{30, 31},
		}}
		for name, c := range map[string]struct {
			object, handle fields
			sample         wire.Frame
			wantObject     mpit.Object
			wantHandle     mpit.Handle
		}{
			"same":  {objectFields, handleFields, simpleSample(1, 30, 31), object, handle},
			"newer": {newer(objectFields), newer(handleFields), simpleSample(1, 30, 31), object, handle},
			"older": {words(1, 1), words(5, 0, 1), simpleSample(1), mpit.Object{ID: 1, Kind: mpit.BindComm},
				mpit.Handle{ID: 5, Object: 1, Offset: -1}},
		} {
			s, err := feed(new(mpit.Answers), oneVariable, layoutFrame([]fields{c.object}, []fields{c.handle}),
				c.sample)
			require.NoError(t, err, name)
			assert.Equal(t, []mpit.Object{c.wantObject}, s.Layout.Objects, name)
			assert.Equal(t, []mpit.Handle{c.wantHandle}, s.Layout.Handles, name)
			assert.Equal(t, uint64(40), s.Layout.ObjectsOverflow)
			assert.Equal(t, uint64(41), s.Layout.HandlesOverflow)
		}
	})
	t.Run("remains", func(t *testing.T) {
		remain := mpit.Remain{
			Name: "solver", Contributions: 9, Created: second,
			Gained: []uint64{1, 2}, First: []uint64{3, 4}, Max: []uint64{5, 6}, Min: []uint64{7, 8},
		}
		for name, c := range map[string]struct {
			fields fields
			want   mpit.Remain
		}{
			"same":  {remainFields, remain},
			"newer": {newer(remainFields), remain},
			"older": {words(0, 0, 9), mpit.Remain{Contributions: 9}},
		} {
			s, err := feed(new(mpit.Answers), oneVariable, record(wire.TypeRemains, []uint64{2, 3}, c.fields),
				busySample())
			require.NoError(t, err, name)
			assert.Equal(t, &mpit.Remains{Generation: 2, Lost: 3, List: []mpit.Remain{c.want}}, s.Remains, name)
		}
	})
	t.Run("sample", func(t *testing.T) {
		head := []uint64{0, 0, 0, 1_000_000_000, 2, 3}
		statistics := []uint64{1, 2, 3, 4, 5, 6, 7, 8, ^uint64(4), 10, 11, 12, 13}
		before := mpit.AgentStats{PcontrolLevel: 1} // an agent that doesn't know MPI_Pcontrol observes always
		want := mpit.Sample{Time: second, Monotonic: 2, Duration: 3, Stats: before}
		full := want
		full.Stats = mpit.AgentStats{Samples: 1, Busy: 2, ReadErrors: 3, GateWaits: 4, GateWaitTime: 5,
			GateWaitMax: 6, CPUTime: 7, ObjectsAlive: 8,
			PcontrolLevel: -5, PcontrolCalls: 10, PausedTime: 12, CategoryStamp: 13}
		first := want
		first.Stats = mpit.AgentStats{Samples: 1, Busy: 2, ReadErrors: 3, GateWaits: 4, GateWaitTime: 5,
			GateWaitMax: 6, CPUTime: 7, ObjectsAlive: 8, PcontrolLevel: 1}
		part := want
		part.Stats = mpit.AgentStats{Samples: 1, PcontrolLevel: 1}
		idle, calling := want, want
		idle.UnderWay = &mpit.UnderWay{Inside: 8, Observed: 9, CPU: -1}
		calling.UnderWay = &mpit.UnderWay{Inside: 8, Observed: 9, Running: 5, Bind: mpit.BindComm, Object: 3,
			Function: "MPI_Barrier", Module: "/opt/é", Offset: 16,
			InsideBy: [mpit.CallKinds]time.Duration{11, 12, 13, 14, 15}, CPU: -1}
		older := *calling.UnderWay
		older.InsideBy = [mpit.CallKinds]time.Duration{}
		old := want
		old.UnderWay = &older
		comms := want
		comms.Comms = []mpit.Comm{{Object: 3, Identity: 1 << 63, Begun: 7, Counted: true},
			{Object: 4, Counted: true}, {Object: 5, Identity: 6}}
		threads := want
		whole := *calling.UnderWay
		whole.Finalize, whole.CPU = 17, 18
		whole.Threads = []mpit.Thread{
			{ID: 1, TID: 70, Main: true, Now: 30, Observed: 9, InsideBy: [mpit.CallKinds]time.Duration{1, 2, 3, 4, 5},
				CPU: 6, Queue: 7, Ended: 8, Peer: mpit.NoPeer, Tag: mpit.NoTag, Root: mpit.NoRoot,
				In: "read of fd 3ÿ"},
			{ID: 5, TID: 71, Now: 31, Observed: 9, CPU: -1, Queue: -1, Begun: 25, Ended: 20, Function: "MPI_Recv",
				Bind: mpit.BindComm, Object: 3, Peer: mpit.AnySource, Tag: 7, Root: mpit.NoRoot, Number: 17,
				Peers: []int{4, 6}},
			{ID: 6, TID: 72, Now: 31, Observed: 9, CPU: -1, Queue: -1, Begun: 25, Function: "MPI_Bcast",
				Bind: mpit.BindComm, Object: 3, Peer: mpit.NoPeer, Tag: mpit.NoTag, Root: mpit.NoRoot},
			{ID: 7, TID: 73, Now: 31, Observed: 9, CPU: -1, Queue: -1, Begun: 25, Function: "MPI_Wait", Of: "MPI_Ibarrier",
				Bind: mpit.BindComm, Object: 9, Number: 44, Peer: mpit.NoPeer, Tag: mpit.NoTag, Root: mpit.NoRoot,
				Peers: []int{4, 6}},
		}
		whole.Phases = []mpit.Phase{{Number: 3, Observed: 9, InsideBy: [mpit.CallKinds]time.Duration{1, 2, 4}}}
		whole.Kernel = &mpit.Kernel{Cores: 4, Nice: -5, MajorFaults: 7, Resident: -1, GPU: true, Throttled: 8}
		threads.UnderWay = &whole
		none, minus2 := ^uint64(0), ^uint64(1)
		call := func(e *wire.Encoder) {
			e.Words([]uint64{8, 9, 5, 1, 3})
			e.String("MPI_Barrier")
			e.String("/opt/\xe9")
			e.Words([]uint64{16, 5, 11, 12, 13, 14, 15, 17, 18})
		}
		thread := func(e *wire.Encoder, function string, before, after []uint64, in, of string) {
			e.Record(func() {
				e.Words(before)
				e.String(function)
				e.Words(after)
				if len(after) > 2 {
					e.String(in)
					e.Words([]uint64{2, 4, 6})
					e.String(of)
					e.Words([]uint64{9, 44, 99})
				}
			})
		}
		for name, c := range map[string]struct {
			fields fields
			want   mpit.Sample
		}{
			"same": {func(e *wire.Encoder) {
				e.Words(head)
				e.Word(1)
				e.Record(func() { e.Words(statistics) })
				e.Words([]uint64{0, 0})
			}, full},
			"newer": {func(e *wire.Encoder) {
				e.Words(head)
				e.Word(1)
				e.Record(func() { e.Words(append(statistics, 9)) })
				e.Words([]uint64{0, 0, 0, 0, 7})
			}, full},
			"no call under way": {func(e *wire.Encoder) {
				e.Words(head)
				e.Words([]uint64{0, 0, 0, 1})
				e.Record(func() { e.Words([]uint64{8, 9}) })
			}, idle},
			"a call under way": {func(e *wire.Encoder) {
				e.Words(head)
				e.Words([]uint64{0, 0, 0, 1})
				e.Record(func() {
					e.Words([]uint64{8, 9, 5, 1, 3})
					e.String("MPI_Barrier")
					e.String("/opt/\xe9")
					e.Words([]uint64{16, 6, 11, 12, 13, 14, 15, 16})
				})
				// Newer agents' words stand behind the list.
				e.Words([]uint64{0, 99})
			}, calling},
			"communicators": {func(e *wire.Encoder) {
				e.Words(head)
				e.Words([]uint64{0, 0, 0, 0, 3})
				for _, words := range [][]uint64{{3, 1 << 63, 8}, {4, 0, 1, 99}, {5, 6}} {
					e.Record(func() { e.Words(words) })
				}
			}, comms},
			"of an older agent": {func(e *wire.Encoder) {
				e.Words(head)
				e.Words([]uint64{0, 0, 0, 1})
				e.Record(func() {
					e.Words([]uint64{8, 9, 5, 1, 3})
					e.String("MPI_Barrier")
					e.String("/opt/\xe9")
					e.Words([]uint64{16})
				})
			}, old},
			"threads": {func(e *wire.Encoder) {
				e.Words(head)
				e.Words([]uint64{0, 0, 0, 1})
				e.Record(func() {
					call(e)
					e.Word(4)
					// Of one that is in no call the rest means nothing.
					thread(e, "MPI_Send", []uint64{1, 70, 1, 30, 9, 5, 1, 2, 3, 4, 5, 6, 7, 0, 8},
						[]uint64{1, 3, 4, 4, 4, 4}, "read of fd 3\xff", "MPI_Ibarrier")
					thread(e, "MPI_Recv", []uint64{5, 71, 0, 31, 9, 0, none, none, 25, 20},
						[]uint64{1, 3, minus2, 7, none, 17}, "", "")
					thread(e, "MPI_Bcast", []uint64{6, 72, 0, 31, 9, 0, none, none, 25, 0}, []uint64{1, 3}, "", "")
					thread(e, "MPI_Wait", []uint64{7, 73, 0, 31, 9, 0, none, none, 25, 0}, []uint64{0, 0, none, none, none, 0},
						"", "MPI_Ibarrier")
					e.Word(1)
					e.Record(func() { e.Words([]uint64{4, ^uint64(4), 7, none, 1, 8, 99}) })
					e.Word(1)
					e.Record(func() { e.Words([]uint64{3, 9, 3, 1, 2, 4, 99}) })
					e.Word(99)
				})
			}, threads},
			"a call that has ended": {func(e *wire.Encoder) {
				e.Words(head)
				e.Words([]uint64{0, 0, 0, 1})
				e.Record(func() { e.Words([]uint64{8, 9, 0, 1, 7}) })
			}, idle},
			"statistics of the first agents": {func(e *wire.Encoder) {
				e.Words(head)
				e.Word(1)
				e.Record(func() { e.Words(statistics[:8]) })
			}, first},
			"older statistics": {func(e *wire.Encoder) { e.Words(head); e.Word(1); e.Record(func() { e.Word(1) }) },
				part},
			"without":           {func(e *wire.Encoder) { e.Words(head) }, want},
			"nothing whatsever": {words(), mpit.Sample{Stats: before}},
		} {
			s, err := feed(new(mpit.Answers), built(wire.TypeSample, c.fields))
			require.NoError(t, err, name)
			assert.Equal(t, c.want, s, name)
		}
	})
	t.Run("HELLO", func(t *testing.T) {
		start := []uint64{0, 1, 2}
		h, err := mpit.DecodeHello(built(wire.TypeHello, words(start...)))
		require.NoError(t, err)
		assert.Equal(t, mpit.Hello{ProtocolVersion: wire.Version, ID: mpit.RankID{0: 1, 8: 2},
			Attributes: map[string]string{}}, h)
		h, err = mpit.DecodeHello(built(wire.TypeHello, func(e *wire.Encoder) {
			e.Words([]uint64{0, 1, 2, 3, 4, 5, 3, 2, 15, 1_000_000_000})
			for _, s := range []string{"1.0", "MPICH", "node", "app"} {
				e.String(s)
			}
			e.Word(1)
			e.Record(func() { e.String("A"); e.String("b"); e.Word(9) })
			e.String("what an older agent keeps for an older exporter")
			e.Word(10)
			e.String("newer")
		}))
		require.NoError(t, err)
		assert.Equal(t, mpit.Hello{
			ProtocolVersion: wire.Version, ID: mpit.RankID{0: 1, 8: 2}, PID: 3, Rank: 4, Size: 5, ThreadLevel: 3,
			ABI:     mpit.ABIMPICH,
			Passive: true, WriteAllowed: true, SessionsOnly: true, InitTime: second, AgentVersion: "1.0",
			LibraryVersion: "MPICH", Host: "node", Executable: "app",
			Attributes: map[string]string{"A": "b"},
		}, h)
	})
	t.Run("control variable", func(t *testing.T) {
		list, _, _, err := mpit.DecodeControlVariables(record(wire.TypeCvars, []uint64{1, 1},
			newer(func(e *wire.Encoder) {
				e.Words([]uint64{0, 6, 1, 1, 0, 0, 0, 1, 1, 42})
				e.String("limit")
				e.String("A limit.")
				e.Word(3)
				e.Record(func() { e.Words([]uint64{4, 0, 1, 2, 43, 44}) })
				e.Record(func() { e.Words([]uint64{5, 0, 2}); e.String("tcp"); e.Word(99) })
				e.Record(func() { e.Words([]uint64{6, 17}) })
			})).Payload, 0)
		require.NoError(t, err)
		assert.Equal(t, []mpit.ControlVariable{{
			Name: "limit", Description: "A limit.", Scope: mpit.ScopeAllEq, Verbosity: mpit.VerbosityUserBasic,
			Datatype: mpit.DatatypeInt,
			HasValue: true, Values: []uint64{42},
			Objects: []mpit.ObjectValue{
				{Object: 4, HasValue: true, Values: []uint64{43, 44}},
				{Object: 5, HasValue: true, Text: "tcp"},
				{Object: 6, Code: mpit.ErrNotSupported},
			},
		}}, list)
		list, _, _, err = mpit.DecodeControlVariables(record(wire.TypeCvars, []uint64{1, 1}, words()).Payload, 0)
		require.NoError(t, err)
		assert.Equal(t, []mpit.ControlVariable{{}}, list)
	})
	t.Run("category", func(t *testing.T) {
		list, _, _, stamp, err := mpit.DecodeCategories(built(wire.TypeCategories, func(e *wire.Encoder) {
			e.Words([]uint64{1, 1, 1})
			e.Record(func() {
				newer(func(e *wire.Encoder) {
					e.Word(0)
					e.String("all")
					e.String("")
					e.Words([]uint64{2, 4, 5, 0, 1, 1})
				})(e)
			})
			e.Words([]uint64{77, 99})
		}).Payload, 0)
		require.NoError(t, err)
		assert.Equal(t, uint64(77), stamp)
		assert.Equal(t, []mpit.Category{{Name: "all", Variables: []int{4, 5}, Subcategories: []int{1}}}, list)
		list, _, _, stamp, err = mpit.DecodeCategories(record(wire.TypeCategories, []uint64{1, 1}, words()).Payload, 0)
		require.NoError(t, err)
		assert.Zero(t, stamp, "not known")
		assert.Equal(t, []mpit.Category{{}}, list)
	})
}

// Numbers that a newer agent has and this side doesn't know.
func TestUnknownNumbers(t *testing.T) {
	s, err := feed(new(mpit.Answers), record(wire.TypeVariables, []uint64{1},
		words(0, 0, 10, 10, 16, 0, 12, 0, 0, 300, 300)), busySample())
	require.NoError(t, err)
	assert.Equal(t, mpit.Variable{
		Class: mpit.ClassUnknown, Verbosity: mpit.VerbosityUnknown, Datatype: mpit.DatatypeOther,
		Bind:  mpit.BindUnknown,
		State: 255, Code: mpit.ErrOther,
	}, s.Variables.ByID[0])
}

// Everything that contradicts itself is refused.
func TestAnswersThatAreRefused(t *testing.T) {
	object := []fields{objectFields}
	for name, c := range map[string]struct {
		frames []wire.Frame
		reason string
	}{
		"a variable after a gap": {[]wire.Frame{record(wire.TypeVariables, []uint64{1}, words(1))},
			mpit.ReasonMalformed},
		"a variable twice": {[]wire.Frame{oneVariable, oneVariable}, mpit.ReasonMalformed},
		"a distribution no more": {[]wire.Frame{
			record(wire.TypeVariables, []uint64{1}, words(0, 0, 6, 1, 11, 8, 0, 8)), busySample(),
			record(wire.TypeVariables, []uint64{2}, words(0, 0, 6, 1, 11, 8, 0, 0)),
		}, mpit.ReasonMalformed},
		"a variable that becomes other": {[]wire.Frame{oneVariable, busySample(),
			record(wire.TypeVariables, []uint64{2}, words(0, 0, 1))}, mpit.ReasonMalformed},
		"an unknown enumeration": {[]wire.Frame{record(wire.TypeVariables, []uint64{1},
			words(0, 0, 0, 0, 0, 0, 0, 0, 1))}, mpit.ReasonMalformed},
		"an enumeration beyond 32 bits": {[]wire.Frame{oneEnum,
			record(wire.TypeVariables, []uint64{1}, words(0, 0, 0, 0, 0, 0, 0, 0, 1<<32+4))}, mpit.ReasonMalformed},
		"an enumeration twice": {[]wire.Frame{oneEnum, oneEnum}, mpit.ReasonMalformed},
		"an enumeration that changes": {[]wire.Frame{oneEnum, busySample(), record(wire.TypeEnums, nil, words(3))},
			mpit.ReasonMalformed},
		"elements of negative size": {[]wire.Frame{record(wire.TypeVariables, []uint64{1},
			words(0, 0, 0, 0, 0, ^uint64(0)))}, mpit.ReasonMalformed},
		"two layouts": {[]wire.Frame{oneVariable, layoutFrame(object, nil),
			layoutFrame(object, nil)}, mpit.ReasonMalformed},
		"object 0": {[]wire.Frame{layoutFrame([]fields{words(0, 1)}, nil)}, mpit.ReasonMalformed},
		"an object twice": {[]wire.Frame{layoutFrame([]fields{objectFields, objectFields}, nil)},
			mpit.ReasonMalformed},
		"a handle of no variable": {[]wire.Frame{layoutFrame(object, []fields{handleFields})},
			mpit.ReasonMalformed},
		"a handle on no object": {[]wire.Frame{oneVariable, layoutFrame(nil, []fields{handleFields})},
			mpit.ReasonMalformed},
		"a handle twice": {[]wire.Frame{oneVariable,
			layoutFrame(object, []fields{words(5, 0, 0), words(5, 0, 1)})}, mpit.ReasonMalformed},
		"two handles for one": {[]wire.Frame{oneVariable,
			layoutFrame(object, []fields{words(5, 0, 1), words(6, 0, 1)})}, mpit.ReasonMalformed},
		"a handle of too many": {[]wire.Frame{oneVariable,
			layoutFrame(object, []fields{words(5, 0, 1, 1<<20)})}, mpit.ReasonTooLarge},
		"first values that are missing": {[]wire.Frame{oneVariable,
			layoutFrame(object, []fields{words(5, 0, 1, 2, 0, 1, 7)})}, mpit.ReasonMalformed},
		"too many values in all": {[]wire.Frame{oneVariable, layoutFrame(object, []fields{words(5, 0, 1,
			200_000, 0, 4), words(6, 0, 0, 200_000, 0, 4)})}, mpit.ReasonTooLarge},
		"remains twice in one answer": {[]wire.Frame{oneVariable, record(wire.TypeRemains, []uint64{1, 0},
			remainFields), record(wire.TypeRemains, []uint64{1, 0}, remainFields)}, mpit.ReasonMalformed},
		"remains of no variable": {[]wire.Frame{record(wire.TypeRemains, []uint64{1, 0}, remainFields)},
			mpit.ReasonMalformed},
		"remains of a name twice": {[]wire.Frame{oneVariable, built(wire.TypeRemains, func(e *wire.Encoder) {
			e.Words([]uint64{1, 0, 2})
			e.Record(func() { remainFields(e) })
			e.Record(func() { remainFields(e) })
		})}, mpit.ReasonMalformed},
		"remains that are cut": {[]wire.Frame{oneVariable,
			record(wire.TypeRemains, []uint64{1, 0}, words(0, 2, 1, 0, 1, 2, 3))}, mpit.ReasonMalformed},
		"fewer than no contributions": {[]wire.Frame{oneVariable,
			record(wire.TypeRemains, []uint64{1, 0}, words(0, 0, ^uint64(0)))}, mpit.ReasonMalformed},
		"values of no layout": {[]wire.Frame{simpleSample(0, 1)}, mpit.ReasonMalformed},
		"values of another layout": {[]wire.Frame{oneVariable, layoutFrame(object, []fields{handleFields}),
			simpleSample(2, 30, 31)}, mpit.ReasonMalformed},
		"too few values": {[]wire.Frame{oneVariable, layoutFrame(object, []fields{handleFields}),
			simpleSample(1, 30)}, mpit.ReasonMalformed},
		"too many values": {[]wire.Frame{oneVariable, layoutFrame(object, []fields{handleFields}),
			simpleSample(1, 30, 31, 32)}, mpit.ReasonMalformed},
		"values in a busy answer": {[]wire.Frame{built(wire.TypeSample,
			words(0, 1, 0, 0, 0, 0, 0, 1, 5, 0))}, mpit.ReasonMalformed},
		"an unknown status": {[]wire.Frame{built(wire.TypeSample, words(0, 5))}, mpit.ReasonMalformed},
		"a failed handle that isn't": {[]wire.Frame{built(wire.TypeSample,
			words(0, 0, 0, 0, 0, 0, 0, 0, 1, 5, 16))}, mpit.ReasonMalformed},
		"a failed handle not selected": {[]wire.Frame{oneVariable, layoutFrame(object, []fields{words(5, 0, 1,
			2)}), built(wire.TypeSample, words(1, 0, 0, 0, 0, 0, 0, 0, 1, 5, 16))}, mpit.ReasonMalformed},
		"a handle that fails twice": {[]wire.Frame{oneVariable, layoutFrame(object, []fields{handleFields}),
			built(wire.TypeSample, words(1, 0, 0, 0, 0, 0, 0, 2, 30, 31, 2, 5, 16, 5, 16))}, mpit.ReasonMalformed},
		"failed handles that are cut": {[]wire.Frame{built(wire.TypeSample,
			words(0, 0, 0, 0, 0, 0, 0, 0, 1, 5))}, mpit.ReasonMalformed},
		"a time inside MPI below zero": {[]wire.Frame{built(wire.TypeSample,
			words(0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, ^uint64(0)))}, mpit.ReasonMalformed},
		"a call without a record": {[]wire.Frame{built(wire.TypeSample,
			words(0, 0, 0, 0, 0, 0, 0, 0, 0, 1))}, mpit.ReasonMalformed},
		"a function that is cut": {[]wire.Frame{built(wire.TypeSample,
			words(0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 6, 1, 2, 3, 1, 1, 50))}, mpit.ReasonMalformed},
		"nine threads": {[]wire.Frame{built(wire.TypeSample, func(e *wire.Encoder) {
			e.Words(append(make([]uint64, 9), 1))
			e.Record(func() {
				e.Words(append(make([]uint64, 11), 9))
				for range 9 {
					e.Word(0)
				}
			})
		})}, mpit.ReasonTooLarge},
		"two longest calls": {[]wire.Frame{built(wire.TypeSample,
			words(0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0))}, mpit.ReasonTooLarge},
		"control variables in a sample": {[]wire.Frame{built(wire.TypeCvars, words())}, mpit.ReasonMalformed},
		"an object on itself": {[]wire.Frame{layoutFrame([]fields{words(1, 1, 0, 0, 0, 0, 0, 1)}, nil)},
			mpit.ReasonMalformed},
		"17 details": {[]wire.Frame{layoutFrame([]fields{detailed(make([]mpit.Detail, 17)...)},
			nil)}, mpit.ReasonTooLarge},
		"a detail too long": {[]wire.Frame{layoutFrame([]fields{detailed(mpit.Detail{Key: "keys",
			Value: strings.Repeat("x", 513)})}, nil)}, mpit.ReasonTooLarge},
		"details too long together": {[]wire.Frame{layoutFrame([]fields{detailed(mpit.Detail{Key: "a",
			Value: strings.Repeat("x", 255)}, mpit.Detail{Key: "b", Value: strings.Repeat("x", 256)})}, nil)},
			mpit.ReasonTooLarge},
		"a detail twice": {[]wire.Frame{layoutFrame([]fields{detailed(mpit.Detail{Key: "a"},
			mpit.Detail{Key: "a"})}, nil)}, mpit.ReasonMalformed},
		"excluded values that are cut": {[]wire.Frame{oneVariable,
			layoutFrame(object, []fields{words(5, 0, 1, 2, 0, 8, 7)})}, mpit.ReasonMalformed},
		"a tool's answer in a sample": {[]wire.Frame{built(wire.TypeTool, words())}, mpit.ReasonMalformed},
		"a level beyond an int": {[]wire.Frame{built(wire.TypeSample,
			words(0, 0, 0, 0, 0, 0, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1<<32))}, mpit.ReasonMalformed},
		"a variable beyond the limit": {[]wire.Frame{record(wire.TypeVariables, []uint64{1}, words(1<<16))},
			mpit.ReasonMalformed},
		"more variables than the limit": {[]wire.Frame{built(wire.TypeVariables, words(1, 1<<20))},
			mpit.ReasonTooLarge},
		"more objects than the limit": {[]wire.Frame{built(wire.TypeLayout, words(1, 0, 0, 1<<20))},
			mpit.ReasonTooLarge},
		"a time before the world's birth": {[]wire.Frame{built(wire.TypeSample, words(0, 0, 0, 1<<63))},
			mpit.ReasonMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			a := new(mpit.Answers)
			for _, f := range c.frames[:len(c.frames)-1] {
				_, _, err := a.Frame(f)
				require.NoError(t, err)
			}
			_, _, err := a.Frame(c.frames[len(c.frames)-1])
			var breach *wire.Error
			require.ErrorAs(t, err, &breach)
			assert.Equal(t, c.reason, breach.Reason, "%v", err)
		})
	}
}

// Details as large as they may be, in whatever encoding. What an object was made on may be gone.
func TestDetails(t *testing.T) {
	list := []mpit.Detail{{Key: "name", Value: "caf\xe9"},
		{Key: "long", Value: strings.Repeat("x", wire.MaxDetailBytes-8-4-15*5)}}
	for i := range 14 {
		list = append(list, mpit.Detail{Key: fmt.Sprintf("no %02d", i)})
	}
	s, err := feed(new(mpit.Answers), layoutFrame([]fields{detailed(list...)}, nil), simpleSample(1))
	require.NoError(t, err)
	got := s.Layout.Objects[0].Details
	assert.Len(t, got, wire.MaxDetails)
	assert.Equal(t, "café", got[0].Value)
	assert.Equal(t, list[1:], got[1:])
}

// An earlier agent has samples that it kept at MPI_Pcontrol(2): one that has come is not asked for again.
func TestKeptIsSkipped(t *testing.T) {
	a := new(mpit.Answers)
	kept := built(wire.TypeKept, words(3, 1_000_000_000, 5, 1, 6, 0, 0, 0, 0, 1, 7, 0))
	_, err := feed(a, oneVariable, kept, busySample())
	require.NoError(t, err)
	assert.Equal(t, uint64(3), a.Request().Kept)
}

// What an operation gives depends on which it is.
func TestToolAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		frame wire.Frame
		op    wire.ToolOperation
		want  mpit.ToolAnswer
	}{
		"a session": {toolFrame(wire.ToolSessionCreate, 0, "", 3), wire.ToolSessionCreate,
			mpit.ToolAnswer{Session: 3}},
		"a handle": {toolFrame(wire.ToolHandleAlloc, 0, "", 4, 2), wire.ToolHandleAlloc,
			mpit.ToolAnswer{Handle: 4, Count: 2}},
		"nothing": {toolFrame(wire.ToolStart, 0, ""), wire.ToolStart, mpit.ToolAnswer{}},
		"values": {toolFrame(wire.ToolRead, 0, "", 2, 7, 8), wire.ToolRead,
			mpit.ToolAnswer{Words: []uint64{7, 8}}},
		"words": {toolFrame(wire.ToolCvarRead, 0, "", 1, 2, 7, 8), wire.ToolCvarRead,
			mpit.ToolAnswer{Value: mpit.CvarValue{Values: []uint64{7, 8}}}},
		"a text": {toolFrame(wire.ToolCvarRead, 0, "", 2, 3, 'a'|','<<8|0xff<<16), wire.ToolCvarRead,
			mpit.ToolAnswer{Value: mpit.CvarValue{Text: "a,ÿ", IsText: true}}},
		"no value": {toolFrame(wire.ToolCvarRead, 0, ""), wire.ToolCvarRead, mpit.ToolAnswer{}},
		"a variable": {toolFrame(wire.ToolPvarIndex, 0, "", 12, 1), wire.ToolPvarIndex,
			mpit.ToolAnswer{Index: 12, Known: true}},
		"a variable unknown": {toolFrame(wire.ToolPvarIndex, 0, "", 12, 0), wire.ToolPvarIndex,
			mpit.ToolAnswer{Index: 12}},
		"an index": {toolFrame(wire.ToolCategoryIndex, 0, "", 5, 99), wire.ToolCategoryIndex,
			mpit.ToolAnswer{Index: 5}},
		"the library's no": {toolFrame(wire.ToolReset, mpit.ErrPvarNoWrite, ""), wire.ToolReset,
			mpit.ToolAnswer{Refused: &mpit.RefusedError{Operation: "reset", Code: mpit.ErrPvarNoWrite}}},
		"the agent's no": {toolFrame(wire.ToolStop, mpit.ErrPvarNoStartStop, "not here"), wire.ToolStop,
			mpit.ToolAnswer{Refused: &mpit.RefusedError{Operation: "stop", Code: mpit.ErrPvarNoStartStop,
				Why: "not here"}}},
		"a newer code": {toolFrame(wire.ToolStop, 200, ""), wire.ToolStop,
			mpit.ToolAnswer{Refused: &mpit.RefusedError{Operation: "stop", Code: 200}}},
	} {
		got, err := mpit.DecodeTool(c.frame.Payload, c.op, 2)
		require.NoError(t, err, name)
		assert.Equal(t, c.want, got, name)
	}
	for name, c := range map[string]struct {
		frame wire.Frame
		op    wire.ToolOperation
	}{
		"another operation":       {toolFrame(wire.ToolStart, 0, ""), wire.ToolStop},
		"session 0":               {toolFrame(wire.ToolSessionCreate, 0, ""), wire.ToolSessionCreate},
		"handle 0":                {toolFrame(wire.ToolHandleAlloc, 0, "", 0, 1), wire.ToolHandleAlloc},
		"a handle of too many":    {toolFrame(wire.ToolHandleAlloc, 0, "", 1, wire.MaxValues+1), wire.ToolHandleAlloc},
		"fewer values":            {toolFrame(wire.ToolRead, 0, "", 1, 7), wire.ToolRead},
		"values that are cut":     {toolFrame(wire.ToolReadReset, 0, "", 2, 7), wire.ToolReadReset},
		"a value of kind 3":       {toolFrame(wire.ToolCvarRead, 0, "", 3), wire.ToolCvarRead},
		"a negative index":        {toolFrame(wire.ToolCvarIndex, 0, "", ^uint64(0)), wire.ToolCvarIndex},
		"a variable beyond":       {toolFrame(wire.ToolPvarIndex, 0, "", 1, wire.MaxVariables+1), wire.ToolPvarIndex},
		"a reason without an end": {built(wire.TypeTool, words(uint64(wire.ToolStart), 0, 100)), wire.ToolStart},
	} {
		_, err := mpit.DecodeTool(c.frame.Payload, c.op, 2)
		var breach *wire.Error
		assert.ErrorAs(t, err, &breach, name)
	}
}

// Handles may come in any order, and are found again by number.
func TestHandlesInAnyOrder(t *testing.T) {
	s, err := feed(new(mpit.Answers), oneVariable,
		layoutFrame([]fields{objectFields}, []fields{words(9, 0, 1, 1, 0, 4), words(2, 0, 0, 1, 0, 4)}),
		built(wire.TypeSample, words(1, 0, 0, 0, 0, 0, 0, 2, 70, 71, 2, 2, 16, 9, 6)))
	require.NoError(t, err)
	assert.Equal(t, []mpit.FailedHandle{{Handle: 2, Code: mpit.ErrInvalid},
		{Handle: 9, Code: mpit.ErrInvalidHandle}}, s.Failed)
	assert.Equal(t, []uint64{71}, s.Of(&s.Layout.Handles[1]))
}

// No answer, however many frames it has, and no catalogue takes more memory than its limit.
func TestAnswersAreBounded(t *testing.T) {
	t.Run("one answer", func(t *testing.T) {
		a := new(mpit.Answers)
		big := built(wire.TypeEnums, func(e *wire.Encoder) {
			e.Words(make([]uint64,
				wire.MaxAgentPayload/wire.WordBytes))
		})
		var err error
		frames := 0
		for ; err == nil && frames < 100; frames++ {
			_, _, err = a.Frame(big)
		}
		assert.Equal(t, 9, frames)
		assert.ErrorContains(t, err, "an answer of more than")
	})
	t.Run("a catalogue", func(t *testing.T) {
		a := new(mpit.Answers)
		description := string(make([]byte, wire.MaxString))
		id := uint64(0)
		var err error
		for ; err == nil && id < 1000; id++ {
			_, _, err = a.Frame(record(wire.TypeVariables, []uint64{1}, func(e *wire.Encoder) {
				e.Words([]uint64{id, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
				e.String("name")
				e.String(description)
			}))
			if err == nil {
				_, _, err = a.Frame(busySample())
			}
		}
		assert.Less(t, id, uint64(300))
		assert.ErrorContains(t, err, "a catalogue of more than")
	})
}

func TestPagesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		first   int
		payload fields
	}{
		"no progress":         {3, words(10, 3, 0)},
		"backwards":           {3, words(10, 2, 0)},
		"backwards, of fewer": {2, words(2, 1, 0)}, // or a rank's answer never ends
		"beyond the end":      {0, words(10, 11, 0)},
		"too many":            {0, words(1<<20, 1<<20, 0)},
		"an index before":     {3, words(10, 5, 1, 1, 2)},
		"an index behind":     {3, words(10, 5, 1, 1, 5)},
		"an index twice":      {3, words(10, 5, 2, 1, 3, 1, 3)},
		"more than there are": {0, words(10, 5, 4, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, _, err := mpit.DecodeControlVariables(built(wire.TypeCvars, c.payload).Payload, c.first)
			assert.Error(t, err)
			_, _, _, _, err = mpit.DecodeCategories(built(wire.TypeCategories, c.payload).Payload, c.first)
			assert.Error(t, err)
		})
	}
	_, _, _, err := mpit.DecodeControlVariables(record(wire.TypeCvars, []uint64{1, 1},
		words(0, 0, 0, 0, 0, 0, 0, 3)).Payload, 0)
	assert.ErrorContains(t, err, "value of a control variable of kind 3")
}

func TestValuesOnObjectsThatAreRefused(t *testing.T) {
	bound := func(objects ...fields) []byte {
		return record(wire.TypeCvars, []uint64{1, 1}, func(e *wire.Encoder) {
			e.Words([]uint64{0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, uint64(len(objects))})
			for _, fields := range objects {
				e.Record(func() { fields(e) })
			}
		}).Payload
	}
	for name, payload := range map[string][]byte{
		"object 0":            bound(words(0)),
		"an object twice":     bound(words(3), words(3)),
		"too many objects":    bound(slices.Repeat([]fields{words(3)}, wire.MaxCvarObjects+1)...),
		"a value of a kind 3": bound(words(3, 0, 3)),
		"a value that is cut": bound(words(3, 0, 1, 2, 7)),
	} {
		_, _, _, err := mpit.DecodeControlVariables(payload, 0)
		assert.Error(t, err, name)
	}
}

// A catalogue of many frames is one answer.
func TestLargeCatalogue(t *testing.T) {
	cfg := mpittest.Config{}
	description := string(make([]byte, 1000))
	for range 1100 {
		cfg.Variables = append(cfg.Variables, mpit.Variable{
			Name: "v", Description: description, Class: mpit.ClassCounter, Datatype: mpit.DatatypeUnsignedLong,
			DatatypeBytes: 8,
		})
	}
	frames := dialed(t, mpittest.New(cfg)).answer(wire.SampleRequest{})
	assert.Greater(t, len(frames), 5)
	s, err := feed(new(mpit.Answers), frames...)
	require.NoError(t, err)
	assert.Len(t, s.Variables.ByID, 1100)
	assert.Len(t, s.Values, 1100)
}

// Each flag of a variable is a field of its own.
func TestFlagsOfVariables(t *testing.T) {
	for flags, want := range map[uint64]mpit.Variable{
		0:        {},
		1:        {ReadOnly: true},
		2:        {Continuous: true},
		4:        {Atomic: true},
		8:        {Distribution: true},
		1<<4 | 8: {Distribution: true}, // what a later version may say
	} {
		s, err := feed(new(mpit.Answers), record(wire.TypeVariables, []uint64{1},
			words(0, 0, 6, 1, 11, 8, 1, flags)), busySample())
		require.NoError(t, err)
		got := s.Variables.ByID[0]
		assert.Equal(t, want, mpit.Variable{ReadOnly: got.ReadOnly, Continuous: got.Continuous, Atomic: got.Atomic,
			Distribution: got.Distribution}, flags)
	}
}

// A rank has very many handles, most of which have nothing earlier.
func TestHandlesAreSmall(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(mpit.Handle{}), uintptr(64))
}
