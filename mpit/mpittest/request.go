package mpittest

import "github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"

// The exporter's requests, as a rank reads them.

func decodeSampleRequest(payload []byte) wire.SampleRequest {
	var err error // can't happen: every payload is a valid request
	d := wire.NewDecoder(payload, &err)
	return wire.SampleRequest{Variables: d.Word(), Layout: d.Word(), Remains: d.Word(), Kept: d.Word()}
}

func decodeSelectRequest(payload []byte) (wire.SelectRequest, error) {
	var err error
	d := wire.NewDecoder(payload, &err)
	r := wire.SelectRequest{Default: d.Word() != 0, Map: d.Array("words of the selection", wire.MaxVariables/64)}
	return r, err
}

func decodeOpenRequest(payload []byte) (wire.SelectRequest, error) {
	var err error
	d := wire.NewDecoder(payload, &err)
	r := wire.SelectRequest{Map: d.Array("words of variables to open", wire.MaxVariables/64)}
	return r, err
}

// selected reports whether a request means a variable.
func selected(r wire.SelectRequest, variable uint32) bool {
	if word := int(variable / 64); word < len(r.Map) {
		return r.Map[word]>>(variable%64)&1 != 0
	}
	return r.Default
}

// decodeIndexRequest reads the first index of CVARS or CATEGORIES.
func decodeIndexRequest(payload []byte) (first int, err error) {
	d := wire.NewDecoder(payload, &err)
	first = d.Int("first index")
	if first < 0 {
		d.Fail(wire.ReasonMalformed, "first index %d", first)
	}
	return first, err
}

func decodeToolRequest(payload []byte) (wire.ToolRequest, error) {
	var err error
	d := wire.NewDecoder(payload, &err)
	r := wire.ToolRequest{Operation: wire.ToolOperation(d.Word())}
	switch r.Operation {
	case wire.ToolSessionCreate:
	case wire.ToolSessionFree:
		r.Session = d.Uint32("session")
	case wire.ToolHandleAlloc:
		r.Session, r.Variable, r.Object = d.Uint32("session"), d.Uint32("variable"), d.Uint32("object")
	case wire.ToolHandleFree, wire.ToolStart, wire.ToolStop, wire.ToolRead, wire.ToolReset, wire.ToolReadReset:
		r.Session, r.Handle = d.Uint32("session"), d.Uint32("handle")
	case wire.ToolWrite:
		r.Session, r.Handle = d.Uint32("session"), d.Uint32("handle")
		r.Words = d.Array("values", wire.MaxValues)
	case wire.ToolCvarRead, wire.ToolCvarWrite:
		r.Index, r.Object = d.Int("index"), d.Uint32("object")
		if r.Operation == wire.ToolCvarWrite {
			r.Value = d.Value("value")
		}
	case wire.ToolPvarIndex:
		r.Class = d.Word()
		r.Name = d.String("name")
	case wire.ToolCvarIndex, wire.ToolCategoryIndex:
		r.Name = d.String("name")
	default:
		d.Fail(wire.ReasonMalformed, "operation %d", uint64(r.Operation))
	}
	return r, err
}
