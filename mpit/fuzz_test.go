package mpit_test

import (
	"bytes"
	"testing"

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
		h, err := mpit.DecodeHello(wire.Frame{Type: wire.TypeHello, Version: wire.Version, Payload: wholeWords(payload)})
		if err != nil {
			return
		}
		if len(h.Blob) > wire.MaxBlob || len(h.Attributes) > wire.MaxAttributes || h.Rank < 0 || h.Size < 0 {
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
	r.Busy(1)
	seed(f, "FuzzAnswer", "busy", encoded(a.answer(wire.SampleRequest{})...))

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
			if int(m.Variable) >= variables || len(m.First) != len(m.Gained) || len(m.Max) != len(m.Gained) || len(m.Min) != len(m.Gained) {
				t.Fatalf("remains %+v", m)
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
	end := 0
	for _, h := range s.Layout.Handles {
		if int(h.Variable) >= variables {
			t.Fatalf("handle %d of variable %d", h.ID, h.Variable)
		}
		if h.First != nil && len(h.First) != h.Count || h.Origin != nil && len(h.Origin) != h.Count {
			t.Fatalf("handle %+v", h)
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
	})
}

// FuzzCategories reads a payload as CATEGORIES.
func FuzzCategories(f *testing.F) {
	a := dialed(f, mpittest.New(small()))
	answer := a.ask(func(e *wire.Encoder) { wire.AppendIndexRequest(e, wire.TypeAskCategories, 1, 0) }, wire.TypeCategories)
	seed(f, "FuzzCategories", "small", answer[0].Payload)
	f.Fuzz(func(t *testing.T, payload []byte) {
		list, next, total, err := mpit.DecodeCategories(wholeWords(payload), 0)
		if err != nil {
			return
		}
		if next > total || next == 0 && total > 0 || len(list) > next {
			t.Fatalf("%d records, next %d of %d", len(list), next, total)
		}
	})
}
