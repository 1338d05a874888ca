package wire

// SampleRequest is the payload of a SAMPLE request: the generations that the exporter has, and the number of the
// last KEPT, which an agent that still sends it would otherwise send again.
type SampleRequest struct {
	Variables, Layout, Remains, Kept uint64
}

// Append appends the request as a frame.
func (r SampleRequest) Append(e *Encoder, seq uint32) {
	e.Begin(TypeAskSample, seq)
	e.Word(r.Variables)
	e.Word(r.Layout)
	e.Word(r.Remains)
	e.Word(r.Kept)
	e.Finish()
}

// DecodeSampleRequest reads a SampleRequest.
func DecodeSampleRequest(payload []byte) SampleRequest {
	var err error // can't happen: every payload is a valid request
	d := NewDecoder(payload, &err)
	return SampleRequest{Variables: d.Word(), Layout: d.Word(), Remains: d.Word(), Kept: d.Word()}
}

// SelectRequest is the payload of SELECT.
type SelectRequest struct {
	Default bool     // whether variables beyond the map are read
	Map     []uint64 // bit n%64 of word n/64: whether variable n is read
}

// Selected reports whether a variable is to be read.
func (r SelectRequest) Selected(variable uint32) bool {
	if word := int(variable / 64); word < len(r.Map) {
		return r.Map[word]>>(variable%64)&1 != 0
	}
	return r.Default
}

// Append appends the request as a frame.
func (r SelectRequest) Append(e *Encoder, seq uint32) {
	e.Begin(TypeSelect, seq)
	if r.Default {
		e.Word(1)
	} else {
		e.Word(0)
	}
	e.Array(r.Map)
	e.Finish()
}

// DecodeSelectRequest reads a SelectRequest.
func DecodeSelectRequest(payload []byte) (SelectRequest, error) {
	var err error
	d := NewDecoder(payload, &err)
	r := SelectRequest{Default: d.Word() != 0, Map: d.Array("words of the selection", MaxVariables/64)}
	return r, err
}

// OpenRequest is the payload of OPEN.
type OpenRequest struct {
	Map []uint64 // bit n%64 of word n/64: whether variable n is to be opened
}

// Set adds a variable.
func (r *OpenRequest) Set(variable uint32) {
	for len(r.Map) <= int(variable/64) {
		r.Map = append(r.Map, 0)
	}
	r.Map[variable/64] |= 1 << (variable % 64)
}

// Opens reports whether a variable is to be opened.
func (r OpenRequest) Opens(variable uint32) bool {
	word := int(variable / 64)
	return word < len(r.Map) && r.Map[word]>>(variable%64)&1 != 0
}

// Append appends the request as a frame.
func (r OpenRequest) Append(e *Encoder, seq uint32) {
	e.Begin(TypeOpen, seq)
	e.Array(r.Map)
	e.Finish()
}

// DecodeOpenRequest reads an OpenRequest.
func DecodeOpenRequest(payload []byte) (OpenRequest, error) {
	var err error
	d := NewDecoder(payload, &err)
	r := OpenRequest{Map: d.Array("words of variables to open", MaxVariables/64)}
	return r, err
}

// AppendIndexRequest appends CVARS or CATEGORIES, which ask for what follows an index.
func AppendIndexRequest(e *Encoder, typ uint16, seq uint32, first int) {
	e.Begin(typ, seq)
	e.Int(first)
	e.Finish()
}

// DecodeIndexRequest reads the first index of CVARS or CATEGORIES.
func DecodeIndexRequest(payload []byte) (first int, err error) {
	d := NewDecoder(payload, &err)
	first = d.Int("first index")
	if first < 0 {
		d.Fail(ReasonMalformed, "first index %d", first)
	}
	return first, err
}

// SeqFinal is the sequence number of FINAL: its answer is, frame for frame, what comes unasked over a connection that
// only brings a last sample.
const SeqFinal = 0

// AppendFinal appends FINAL.
func AppendFinal(e *Encoder) {
	e.Begin(TypeAskFinal, SeqFinal)
	e.Finish()
}
