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

// SelectRequest is the payload of SELECT, and without Default that of OPEN.
type SelectRequest struct {
	Default bool     // what holds for variables beyond the map
	Map     []uint64 // bit n%64 of word n/64: whether variable n is meant
}

// Set says whether a variable is meant.
func (r *SelectRequest) Set(variable uint32, meant bool) {
	for len(r.Map) <= int(variable/64) {
		word := uint64(0)
		if r.Default {
			word = ^word
		}
		r.Map = append(r.Map, word)
	}
	bit := uint64(1) << (variable % 64)
	if meant {
		r.Map[variable/64] |= bit
	} else {
		r.Map[variable/64] &^= bit
	}
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

// AppendOpen appends the request as a frame that has variables opened.
func (r SelectRequest) AppendOpen(e *Encoder, seq uint32) {
	e.Begin(TypeOpen, seq)
	e.Array(r.Map)
	e.Finish()
}

// AppendIndexRequest appends CVARS, CATEGORIES or SITES, which ask for what follows an index.
func AppendIndexRequest(e *Encoder, typ uint16, seq uint32, first int) {
	e.Begin(typ, seq)
	e.Int(first)
	e.Finish()
}

// SeqFinal is the sequence number of FINAL: its answer is, frame for frame, what comes unasked over a connection that
// only brings a last sample.
const SeqFinal = 0

// AppendFinal appends FINAL.
func AppendFinal(e *Encoder) {
	e.Begin(TypeAskFinal, SeqFinal)
	e.Finish()
}
