package wire

// ToolOperation is an operation of TOOL.
type ToolOperation uint64

// The operations of docs/internals/protocol.md, TOOL.
const (
	ToolSessionCreate ToolOperation = iota
	ToolSessionFree
	ToolHandleAlloc
	ToolHandleFree
	ToolStart
	ToolStop
	ToolRead
	ToolWrite
	ToolReset
	ToolReadReset
	ToolCvarRead
	ToolCvarWrite
	ToolPvarIndex
	ToolCvarIndex
	ToolCategoryIndex
)

var toolNames = [...]string{
	"session create", "session free", "handle alloc", "handle free", "start", "stop", "read", "write", "reset",
	"readreset", "cvar read", "cvar write", "pvar index", "cvar index", "category index",
}

// String returns the operation's name in docs/internals/protocol.md.
func (o ToolOperation) String() string {
	if o < ToolOperation(len(toolNames)) {
		return toolNames[o]
	}
	return "unknown operation"
}

// The kinds of a control variable's value.
const (
	ValueNone  uint64 = 0
	ValueWords uint64 = 1
	ValueText  uint64 = 2
)

// Value is the value of a control variable, as CVARS and TOOL have it.
type Value struct {
	Kind  uint64
	Words []uint64 // kind ValueWords
	Text  string   // kind ValueText
}

// Value appends a value: its kind, then what belongs to it.
func (e *Encoder) Value(v Value) {
	e.Word(v.Kind)
	if v.Kind == ValueText {
		e.String(v.Text)
		return
	}
	e.Array(v.Words)
}

// Value returns a value of one of the three kinds. What stands behind a value of no kind is passed over.
func (d *Decoder) Value(what string) Value {
	v := Value{Kind: d.Word()}
	switch v.Kind {
	case ValueNone:
		d.Array(what, MaxValues)
	case ValueWords:
		v.Words = d.Array(what, MaxValues)
	case ValueText:
		v.Text = d.String(what)
	default:
		d.Fail(ReasonMalformed, "%s of kind %d", what, v.Kind)
	}
	return v
}

// ToolRequest is the payload of a TOOL request. Which fields an operation has, docs/internals/protocol.md says.
type ToolRequest struct {
	Operation        ToolOperation
	Session, Handle  uint32
	Variable, Object uint32
	Index            int    // of a control variable
	Class            uint64 // of a performance variable
	Name             string
	Words            []uint64 // to be written to a performance variable
	Value            Value    // to be written to a control variable
}

// Append appends the request as a frame.
func (r ToolRequest) Append(e *Encoder, seq uint32) {
	e.Begin(TypeAskTool, seq)
	e.Word(uint64(r.Operation))
	switch r.Operation {
	case ToolSessionCreate:
	case ToolSessionFree:
		e.Word(uint64(r.Session))
	case ToolHandleAlloc:
		e.Words([]uint64{uint64(r.Session), uint64(r.Variable), uint64(r.Object)})
	case ToolHandleFree, ToolStart, ToolStop, ToolRead, ToolReset, ToolReadReset:
		e.Words([]uint64{uint64(r.Session), uint64(r.Handle)})
	case ToolWrite:
		e.Words([]uint64{uint64(r.Session), uint64(r.Handle)})
		e.Array(r.Words)
	case ToolCvarRead, ToolCvarWrite:
		e.Int(r.Index)
		e.Word(uint64(r.Object))
		if r.Operation == ToolCvarWrite {
			e.Value(r.Value)
		}
	case ToolPvarIndex:
		e.Word(r.Class)
		e.String(r.Name)
	case ToolCvarIndex, ToolCategoryIndex:
		e.String(r.Name)
	}
	e.Finish()
}
