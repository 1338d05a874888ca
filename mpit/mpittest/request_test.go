package mpittest

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

func TestRequestsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sample := wire.SampleRequest{
			Variables: rapid.Uint64().Draw(t, "variables"), Layout: rapid.Uint64().Draw(t, "layout"),
			Remains: rapid.Uint64().Draw(t, "remains"),
			Kept:    rapid.Uint64().Draw(t, "kept"),
		}
		selection := wire.SelectRequest{Default: rapid.Bool().Draw(t, "default"),
			Map: rapid.SliceOfN(rapid.Uint64(), 1, 20).Draw(t, "map")}
		var open wire.SelectRequest
		ids := rapid.SliceOfN(rapid.Uint32Range(0, wire.MaxVariables-1), 0, 20).Draw(t, "variables to open")
		for _, id := range ids {
			open.Set(id, true)
		}
		first := rapid.IntRange(0, wire.MaxVariables).Draw(t, "first")
		var e wire.Encoder
		sample.Append(&e, 1)
		selection.Append(&e, 2)
		wire.AppendIndexRequest(&e, wire.TypeAskCvars, 4, first)
		open.AppendOpen(&e, 5)

		r := wire.NewReader(bytes.NewReader(e.Bytes()), wire.MaxExporterPayload)
		next := func(typ uint16, seq uint32) []byte {
			f, err := r.Next()
			require.NoError(t, err)
			require.Equal(t, typ, f.Type)
			require.Equal(t, seq, f.Seq)
			return f.Payload
		}
		require.Equal(t, sample, decodeSampleRequest(next(wire.TypeAskSample, 1)))
		gotSelection, err := decodeSelectRequest(next(wire.TypeSelect, 2))
		require.NoError(t, err)
		require.Equal(t, selection, gotSelection)
		gotFirst, err := decodeIndexRequest(next(wire.TypeAskCvars, 4))
		require.NoError(t, err)
		require.Equal(t, first, gotFirst)
		gotOpen, err := decodeOpenRequest(next(wire.TypeOpen, 5))
		require.NoError(t, err)
		for _, id := range append(ids, rapid.Uint32Range(0, 2*wire.MaxVariables).Draw(t, "any variable")) {
			require.Equal(t, slices.Contains(ids, id), selected(gotOpen, id), id)
		}
	})
}

// allTools has a request of each operation with all fields that the operation has.
func allTools() []wire.ToolRequest {
	return []wire.ToolRequest{
		{Operation: wire.ToolSessionCreate},
		{Operation: wire.ToolSessionFree, Session: 1},
		{Operation: wire.ToolHandleAlloc, Session: 1, Variable: 2, Object: 3},
		{Operation: wire.ToolHandleFree, Session: 1, Handle: 4},
		{Operation: wire.ToolStart, Session: 1, Handle: 4},
		{Operation: wire.ToolStop, Session: 1},
		{Operation: wire.ToolRead, Session: 1, Handle: 4},
		{Operation: wire.ToolWrite, Session: 1, Handle: 4, Words: []uint64{5, math.MaxUint64}},
		{Operation: wire.ToolReset, Session: 1, Handle: 4},
		{Operation: wire.ToolReadReset, Session: 1, Handle: 4},
		{Operation: wire.ToolCvarRead, Index: 6, Object: 3},
		{Operation: wire.ToolCvarWrite, Index: 6, Value: wire.Value{Kind: wire.ValueWords, Words: []uint64{7, 8}}},
		{Operation: wire.ToolCvarWrite, Index: 6, Object: 3, Value: wire.Value{Kind: wire.ValueText, Text: "self,tcp"}},
		{Operation: wire.ToolPvarIndex, Class: 9, Name: "queue"},
		{Operation: wire.ToolCvarIndex, Name: "eager limit"},
		{Operation: wire.ToolCategoryIndex, Name: "all"},
	}
}

func TestToolRequestsComeBack(t *testing.T) {
	for _, want := range allTools() {
		var e wire.Encoder
		want.Append(&e, 1)
		got, err := decodeToolRequest(e.Bytes()[wire.HeaderBytes:])
		require.NoError(t, err, want.Operation)
		assert.Equal(t, want, got, want.Operation)
	}
	const unknown = wire.ToolCategoryIndex + 1
	for _, c := range []struct {
		words []uint64
		want  string
	}{{[]uint64{uint64(unknown)}, "operation 15"}, {[]uint64{uint64(wire.ToolCvarWrite), 6, 0, 3}, "value of kind 3"}} {
		var e wire.Encoder
		e.Words(c.words)
		_, err := decodeToolRequest(e.Bytes())
		assert.EqualError(t, err, c.want)
	}
	assert.Equal(t, "readreset", wire.ToolReadReset.String())
	assert.Equal(t, "unknown operation", unknown.String())
}

func TestSelected(t *testing.T) {
	r := wire.SelectRequest{Default: true}
	r.Set(4, false)
	assert.True(t, selected(r, 3))
	assert.False(t, selected(r, 4))
	assert.True(t, selected(r, 64), "beyond the map")
}

// FuzzRequest decodes a payload as each request.
func FuzzRequest(f *testing.F) {
	var e wire.Encoder
	wire.SelectRequest{Default: true, Map: []uint64{5, 6}}.Append(&e, 1)
	f.Add(e.Bytes()[wire.HeaderBytes:])
	e = wire.Encoder{}
	wire.SelectRequest{Map: []uint64{5, 6}}.AppendOpen(&e, 1)
	f.Add(e.Bytes()[wire.HeaderBytes:])
	e = wire.Encoder{}
	for _, r := range allTools() {
		e = wire.Encoder{}
		r.Append(&e, 1)
		f.Add(e.Bytes()[wire.HeaderBytes:])
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		payload = payload[:len(payload)/wire.WordBytes*wire.WordBytes]
		decodeSampleRequest(payload)
		if r, err := decodeSelectRequest(payload); err == nil && len(r.Map) > wire.MaxVariables/64 {
			t.Fatalf("a map of %d words", len(r.Map))
		}
		if r, err := decodeOpenRequest(payload); err == nil && len(r.Map) > wire.MaxVariables/64 {
			t.Fatalf("a map of %d words", len(r.Map))
		}
		if first, err := decodeIndexRequest(payload); err == nil && first < 0 {
			t.Fatalf("first index %d", first)
		}
		if r, err := decodeToolRequest(payload); err == nil {
			if r.Operation > wire.ToolCategoryIndex || len(r.Name) > wire.MaxString || len(r.Value.Text) > wire.MaxString ||
				len(r.Words) > wire.MaxValues {
				t.Fatalf("out of bounds: %+v", r)
			}
		}
	})
}
