package mpit_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// wholeWords cuts an input as a frame's payload always is.
func wholeWords(b []byte) []byte { return b[:len(b)/wire.WordBytes*wire.WordBytes] }

// FuzzHello reads a payload as HELLO.
func FuzzHello(f *testing.F) {
	seed(f, "FuzzHello", "small", dialed(f, mpittest.New(small())).hello.Payload)
	f.Fuzz(func(t *testing.T, payload []byte) {
		h, err := mpit.DecodeHello(wire.Frame{Type: wire.TypeHello, Version: wire.Version,
			Payload: wholeWords(payload)})
		if err != nil {
			return
		}
		if len(h.Attributes) > wire.MaxAttributes || h.Rank < 0 || h.Size < 0 {
			t.Fatalf("out of bounds: %+v", h)
		}
	})
}

// FuzzAnswer reads a stream of frames as answers to SAMPLE, one after the other, and checks what a receiver relies on.
func FuzzAnswer(f *testing.F) {
	r := mpittest.New(small())
	a := dialed(f, r)
	first := encoded(a.answer(wire.SampleRequest{})...)
	seed(f, "FuzzAnswer", "first", first)
	comm := r.AddObject(mpit.Object{Kind: mpit.BindComm, Name: "solver", Size: 2})
	_ = r.RenameObject(comm, "renamed")
	_ = r.FreeObject(comm)
	_ = r.FailRead("messages", mpit.ClassCounter, 0, mpit.ErrInvalid)
	second := encoded(a.answer(wire.SampleRequest{Variables: 6})...)
	seed(f, "FuzzAnswer", "second", append(bytes.Clone(first), second...))
	r.Pcontrol(0)
	_ = r.Set("messages", mpit.ClassCounter, 0, 1)
	seed(f, "FuzzAnswer", "paused", encoded(a.answer(wire.SampleRequest{})...))
	r.Pcontrol(1)
	seed(f, "FuzzAnswer", "excluded", encoded(a.answer(wire.SampleRequest{})...))
	r.AddVariable(mpittest.DistributionVariable("calls", mpit.BindComm), mpittest.DistributionElements)
	_ = r.Add("calls", mpit.ClassTimer, 1, mpittest.Distribution(time.Microsecond, time.Second)...)
	seed(f, "FuzzAnswer", "distribution", encoded(a.answer(wire.SampleRequest{})...))
	r.Busy(1)
	seed(f, "FuzzAnswer", "busy", encoded(a.answer(wire.SampleRequest{})...))
	r.UnderWay(mpit.UnderWay{Inside: 3 * time.Second, Observed: 4 * time.Second, Running: 2 * time.Second,
		Function: "MPI_Barrier", Bind: mpit.BindComm, Object: 1, Module: "/opt/solver", Offset: 0x1234,
		InsideBy: [mpit.CallKinds]time.Duration{time.Second, time.Second, time.Second}, CPU: 5 * time.Second,
		Threads: []mpit.Thread{{ID: 1, TID: 77, Main: true, Now: 9, Observed: 8, CPU: -1, Queue: -1, Peer: -1, Tag: -1,
			Root: -1}, {ID: 3, TID: 78, Now: 9, Begun: 7, Ended: 6, Function: "MPI_Recv", Bind: mpit.BindComm, Object: 1,
			Peer: mpit.AnySource, Tag: 5, Root: -1}},
		Kernel: &mpit.Kernel{Cores: 2, Resident: 1 << 20},
		Phases: []mpit.Phase{{Number: 3, Observed: time.Second}}})
	seed(f, "FuzzAnswer", "underway", encoded(a.answer(wire.SampleRequest{})...))

	f.Fuzz(func(t *testing.T, stream []byte) {
		frames := wire.NewReader(bytes.NewReader(stream), wire.MaxAgentPayload)
		var answers mpit.Answers
		for {
			frame, err := frames.Next()
			if err != nil {
				return
			}
			s, whole, err := answers.Frame(frame)
			if err != nil {
				return
			}
			if whole {
				checkSample(t, &s)
			}
		}
	})
}

// checkSample checks that everything that a sample refers to exists.
func checkSample(t *testing.T, s *mpit.Sample) {
	t.Helper()
	variables := 0
	if s.Variables != nil {
		variables = len(s.Variables.ByID)
		for i, v := range s.Variables.ByID {
			if v.ID != uint32(i) {
				t.Fatalf("variable %d stands at %d", v.ID, i)
			}
		}
	}
	if s.Remains != nil {
		for _, m := range s.Remains.List {
			if int(m.Variable) >= variables || len(m.First) != len(m.Gained) || len(m.Max) != len(m.Gained) ||
				len(m.Min) != len(m.Gained) {
				t.Fatalf("remains %+v", m)
			}
		}
	}
	if u := s.UnderWay; u != nil && (u.Inside < 0 || u.Observed < 0 || u.Running < 0 || u.Finalize < 0 || u.CPU < -1 ||
		len(u.Threads) > wire.MaxThreads || len(u.Phases) > wire.MaxPhases ||
		u.Running == 0 && (u.Function != "" || u.Module != "" || u.Offset != 0 || u.Bind != 0 || u.Object != 0)) {
		t.Fatalf("under way: %+v", u)
	}
	if s.UnderWay != nil {
		for _, h := range s.UnderWay.Threads {
			if h.Begun < 0 || h.Ended < 0 || h.Now < 0 || h.CPU < -1 || h.Queue < -1 ||
				h.Begun == 0 && (h.Function != "" || h.Peer != mpit.NoPeer || h.Peers != nil || h.Root != mpit.NoRoot) {
				t.Fatalf("thread: %+v", h)
			}
		}
	}
	if s.Layout == nil {
		if len(s.Values) != 0 {
			t.Fatal("values without a layout")
		}
		return
	}
	if s.Status != mpit.SampleBusy && len(s.Values) != s.Layout.Values {
		t.Fatalf("%d values, the layout has %d", len(s.Values), s.Layout.Values)
	}
	for _, o := range s.Layout.Objects {
		if len(o.Details) > wire.MaxDetails || o.On == o.ID {
			t.Fatalf("object %+v", o)
		}
	}
	end := 0
	for _, h := range s.Layout.Handles {
		if int(h.Variable) >= variables {
			t.Fatalf("handle %d of variable %d", h.ID, h.Variable)
		}
		before := h.Before()
		for _, words := range [][]uint64{before.First, before.Origin, before.Excluded} {
			if words != nil && len(words) != h.Count {
				t.Fatalf("handle %+v", h)
			}
		}
		if h.Offset >= 0 {
			if h.Offset != end {
				t.Fatalf("handle %d begins at %d instead of %d", h.ID, h.Offset, end)
			}
			end += h.Count
		}
	}
	if end != s.Layout.Values {
		t.Fatalf("handles end at %d of %d", end, s.Layout.Values)
	}
}

// FuzzControlVariables reads a payload as CVARS.
func FuzzControlVariables(f *testing.F) {
	a := dialed(f, mpittest.New(small()))
	answer := a.ask(func(e *wire.Encoder) { wire.AppendIndexRequest(e, wire.TypeAskCvars, 1, 0) }, wire.TypeCvars)
	seed(f, "FuzzControlVariables", "small", answer[0].Payload)
	f.Fuzz(func(t *testing.T, payload []byte) {
		list, next, total, err := mpit.DecodeControlVariables(wholeWords(payload), 0)
		if err != nil {
			return
		}
		if next > total || next == 0 && total > 0 || len(list) > next {
			t.Fatalf("%d records, next %d of %d", len(list), next, total)
		}
		for _, c := range list {
			if len(c.Objects) > wire.MaxCvarObjects {
				t.Fatalf("values on %d objects", len(c.Objects))
			}
		}
	})
}

// FuzzCategories reads a payload as CATEGORIES.
func FuzzCategories(f *testing.F) {
	a := dialed(f, mpittest.New(small()))
	answer := a.ask(func(e *wire.Encoder) { wire.AppendIndexRequest(e, wire.TypeAskCategories, 1, 0) },
		wire.TypeCategories)
	seed(f, "FuzzCategories", "small", answer[0].Payload)
	f.Fuzz(func(t *testing.T, payload []byte) {
		list, next, total, _, err := mpit.DecodeCategories(wholeWords(payload), 0)
		if err != nil {
			return
		}
		if next > total || next == 0 && total > 0 || len(list) > next {
			t.Fatalf("%d records, next %d of %d", len(list), next, total)
		}
	})
}

// FuzzTool reads a payload as the answer to each operation of TOOL; the first word of the input is the operation's.
func FuzzTool(f *testing.F) {
	for name, frame := range map[string]wire.Frame{
		"session": toolFrame(wire.ToolSessionCreate, 0, "", 1),
		"handle":  toolFrame(wire.ToolHandleAlloc, 0, "", 1, 2),
		"read":    toolFrame(wire.ToolRead, 0, "", 2, 7, 8),
		"value":   toolFrame(wire.ToolCvarRead, 0, "", 1, 1, 7),
		"text":    toolFrame(wire.ToolCvarRead, 0, "", 2, 3, 'a'),
		"index":   toolFrame(wire.ToolPvarIndex, 0, "", 12, 1),
		"refused": toolFrame(wire.ToolStop, mpit.ErrPvarNoStartStop, "not here"),
	} {
		seed(f, "FuzzTool", name, frame.Payload)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		payload = wholeWords(payload)
		d := wire.NewDecoder(payload, new(error))
		a, err := mpit.DecodeTool(payload, wire.ToolOperation(d.Word()), 2)
		if err != nil {
			return
		}
		if a.Words != nil && len(a.Words) != 2 || a.Count > wire.MaxValues || a.Index < 0 ||
			a.Variable >= wire.MaxVariables ||
			a.Refused != nil && a.Refused.Code == mpit.Success {
			t.Fatalf("out of bounds: %+v", a)
		}
	})
}
