package mpittest

import (
	"fmt"
	"math"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

// As in the agent.
const (
	maxToolSessions = 16
	maxToolHandles  = 4096
)

// tools are the sessions and handles of tools that one connection has. The rank's mu guards it.
type tools struct {
	sessions                []uint32
	handles                 []toolHandle
	lastSession, lastHandle uint32
}

// toolHandle is a tool's handle, with values that belong to nobody else.
type toolHandle struct {
	number, session  uint32
	variable, object uint32
	values           []uint64
	running          bool
	begun            bool // it has been started once
	ended            bool // its object has
}

// sums reports whether a handle begins with zero and adds up what happens while it runs.
func sums(c mpit.Class) bool {
	return c == mpit.ClassCounter || c == mpit.ClassAggregate || c == mpit.ClassTimer
}

// observe tells the handles that run of what the library's values have become.
func (t *tools) observe(v *variable, h *handle, before []uint64) {
	for i := range t.handles {
		th := &t.handles[i]
		if th.running && th.variable == h.Variable && th.object == h.Object {
			for at := range th.values {
				th.values[at] = th.next(v, th.values[at], before[at], h.values[at])
			}
		}
	}
}

// next returns what a value of the handle becomes as the library's goes from one to another.
func (th *toolHandle) next(v *variable, old, from, to uint64) uint64 {
	switch {
	case sums(v.Class):
		return fit(v, add(v.Datatype, old, to, from))
	case v.Class == mpit.ClassHighWatermark && less(v.Datatype, to, old), v.Class == mpit.ClassLowWatermark &&
		less(v.Datatype, old, to):
		return old
	}
	return to
}

// start begins to follow the library's values.
func (th *toolHandle) start(v *variable, values []uint64) {
	if th.running {
		return
	}
	if !sums(v.Class) {
		for at := range th.values {
			if !th.begun {
				th.values[at] = values[at]
			}
			th.values[at] = th.next(v, th.values[at], values[at], values[at])
		}
	}
	th.running, th.begun = true, true
}

// reset gives the handle the values that it would begin with now.
func (th *toolHandle) reset(v *variable, values []uint64) {
	for at := range th.values {
		th.values[at] = values[at]
		if sums(v.Class) {
			th.values[at] = 0 // of a double as well
		}
	}
}

func (t *tools) objectEnds(id uint32) {
	for i := range t.handles {
		if t.handles[i].object == id {
			t.handles[i].ended = true
		}
	}
}

// refusal is why an operation is not done; why is empty where it is the library that refuses.
type refusal struct {
	code mpit.ReturnCode
	why  string
}

func byAgent(code mpit.ReturnCode, why string) *refusal { return &refusal{code: code, why: why} }

func byLibrary(code mpit.ReturnCode) *refusal {
	if code == mpit.Success {
		return nil
	}
	return &refusal{code: code}
}

// tool appends the answer to an operation of TOOL. The caller holds mu.
func (r *Rank) tool(e *wire.Encoder, seq uint32, q wire.ToolRequest) {
	gives, refused := r.operate(q)
	e.Begin(wire.TypeTool, seq)
	e.Word(uint64(q.Operation))
	if refused != nil {
		e.Word(uint64(refused.code))
		e.String(refused.why)
	} else {
		e.Word(uint64(mpit.Success))
		e.String("")
		if gives != nil {
			gives(e)
		}
	}
	e.Finish()
}

// given is what an operation gives: a function that appends it, behind the answer's beginning.
type given func(e *wire.Encoder)

func numbers(words ...uint64) given {
	return func(e *wire.Encoder) { e.Words(words) }
}

// operate does what TOOL asks for.
func (r *Rank) operate(q wire.ToolRequest) (given, *refusal) {
	switch q.Operation {
	case wire.ToolSessionCreate:
		return r.createSession()
	case wire.ToolCvarRead, wire.ToolCvarWrite:
		return r.operateCvar(q)
	case wire.ToolPvarIndex, wire.ToolCvarIndex, wire.ToolCategoryIndex:
		return r.indexOf(q)
	}
	t := &r.tools
	if !slices.Contains(t.sessions, q.Session) {
		return nil, byAgent(mpit.ErrInvalidSession, fmt.Sprintf("there is no session %d", q.Session))
	}
	switch {
	case q.Operation == wire.ToolSessionFree:
		t.sessions = slices.DeleteFunc(t.sessions, func(n uint32) bool { return n == q.Session })
		t.handles = slices.DeleteFunc(t.handles, func(h toolHandle) bool { return h.session == q.Session })
		return nil, nil
	case q.Operation == wire.ToolHandleAlloc:
		return r.allocHandle(q)
	case q.Handle == 0 && (q.Operation == wire.ToolStart || q.Operation == wire.ToolStop ||
		q.Operation == wire.ToolReset):
		r.operateAll(q)
		return nil, nil
	}
	at := slices.IndexFunc(t.handles, func(h toolHandle) bool {
		return h.session == q.Session &&
			h.number == q.Handle
	})
	switch {
	case at < 0:
		return nil, byAgent(mpit.ErrInvalidHandle, fmt.Sprintf("there is no handle %d in the session", q.Handle))
	case q.Operation == wire.ToolHandleFree:
		t.handles = slices.Delete(t.handles, at, at+1)
		return nil, nil
	case t.handles[at].ended:
		return nil, byAgent(mpit.ErrInvalidHandle, "the handle's object has ended")
	}
	return r.operateHandle(&t.handles[at], q)
}

func (r *Rank) createSession() (given, *refusal) {
	t := &r.tools
	if len(t.sessions) >= maxToolSessions {
		return nil, byAgent(mpit.ErrOutOfSessions, fmt.Sprintf("a connection has at most %d sessions",
			maxToolSessions))
	}
	t.lastSession++
	t.sessions = append(t.sessions, t.lastSession)
	return numbers(uint64(t.lastSession)), nil
}

func (r *Rank) allocHandle(q wire.ToolRequest) (given, *refusal) {
	t := &r.tools
	if int(q.Variable) >= len(r.variables) {
		return nil, byAgent(mpit.ErrInvalidIndex, fmt.Sprintf("there is no variable %d", q.Variable))
	}
	v := &r.variables[q.Variable]
	o := r.object(q.Object)
	switch {
	case v.State == mpit.VariableDenied:
		return nil, byAgent(mpit.ErrNotAccessible, "the variable is on the deny list")
	case v.State != mpit.VariableOpen && v.Code == mpit.Success:
		return nil, byLibrary(mpit.ErrOther)
	case v.State != mpit.VariableOpen:
		return nil, byLibrary(v.Code)
	case v.Bind == mpit.BindNone:
		q.Object = 0 // the standard ignores it
	case o == nil || o.Kind != v.Bind:
		return nil, byAgent(mpit.ErrInvalidHandle, fmt.Sprintf("there is no %s %d", v.Bind.Label(), q.Object))
	}
	if len(t.handles) >= maxToolHandles {
		return nil, byAgent(mpit.ErrOutOfHandles, fmt.Sprintf("a connection has at most %d handles", maxToolHandles))
	}
	source := r.source(q.Variable, q.Object)
	t.lastHandle++
	th := toolHandle{number: t.lastHandle, session: q.Session, variable: q.Variable, object: q.Object,
		values: make([]uint64, source.Count)}
	th.reset(v, source.values)
	if v.Continuous {
		th.start(v, source.values)
	}
	t.handles = append(t.handles, th)
	return numbers(uint64(th.number), uint64(source.Count)), nil
}

// source returns the rank's own handle, which has the library's values.
func (r *Rank) source(variable, object uint32) *handle {
	for i := range r.handles {
		if r.handles[i].Variable == variable && r.handles[i].Object == object {
			return &r.handles[i]
		}
	}
	return &handle{}
}

// operateAll starts, stops or resets what can be in a session.
func (r *Rank) operateAll(q wire.ToolRequest) {
	for i := range r.tools.handles {
		if th := &r.tools.handles[i]; th.session == q.Session && !th.ended {
			_, _ = r.operateHandle(th, q) // what it must not do it does not
		}
	}
}

func (r *Rank) operateHandle(th *toolHandle, q wire.ToolRequest) (given, *refusal) {
	v, source := &r.variables[th.variable], r.source(th.variable, th.object)
	if refused := r.forbids(&v.Variable, q); refused != nil {
		return nil, refused
	}
	if source.failed != mpit.Success {
		return nil, byLibrary(source.failed)
	}
	words := slices.Clone(th.values)
	read := func(e *wire.Encoder) { e.Array(words) }
	switch q.Operation {
	case wire.ToolStart:
		th.start(v, source.values)
	case wire.ToolStop:
		th.running = false
	case wire.ToolRead:
		return read, nil
	case wire.ToolReadReset:
		th.reset(v, source.values)
		return read, nil
	case wire.ToolReset:
		th.reset(v, source.values)
	case wire.ToolWrite:
		if len(q.Words) != len(th.values) {
			return nil, byAgent(mpit.ErrInvalid, fmt.Sprintf("%d values for %d elements", len(q.Words),
				len(th.values)))
		}
		for at, w := range q.Words {
			th.values[at] = fit(v, w)
		}
	}
	return nil, nil
}

// forbids returns why the agent doesn't even ask the library.
func (r *Rank) forbids(v *mpit.Variable, q wire.ToolRequest) *refusal {
	switch q.Operation {
	case wire.ToolStart, wire.ToolStop:
		if v.Continuous {
			return byAgent(mpit.ErrPvarNoStartStop, "the variable is continuous")
		}
	case wire.ToolWrite, wire.ToolReset, wire.ToolReadReset:
		if v.ReadOnly {
			return byAgent(mpit.ErrPvarNoWrite, "the variable is readonly")
		}
	}
	if q.Operation == wire.ToolReadReset && !v.Atomic {
		return byAgent(mpit.ErrPvarNoAtomic, "the variable is not atomic")
	}
	if q.Operation == wire.ToolWrite && !r.hello.WriteAllowed {
		return byAgent(mpit.ErrNotAccessible, writingForbidden)
	}
	return nil
}

const writingForbidden = "MPIT_AGENT_ALLOW_WRITE is not set in the job's environment"

// RefuseCvar makes the library refuse to write a control variable with a code, until it is called with mpit.Success.
func (r *Rank) RefuseCvar(index int, code mpit.ReturnCode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusing[index] = code
}

// ControlVariables returns the control variables with their present values.
func (r *Rank) ControlVariables() []mpit.ControlVariable {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.cvars)
}

func (r *Rank) operateCvar(q wire.ToolRequest) (given, *refusal) {
	if q.Index < 0 || q.Index >= len(r.cvars) {
		return nil, byAgent(mpit.ErrInvalidIndex, fmt.Sprintf("there is no control variable %d", q.Index))
	}
	c := &r.cvars[q.Index]
	// present is where the value stands: in the variable, or in what it has for the object.
	present := mpit.ObjectValue{Code: c.Code, Values: c.Values, Text: c.Text, HasValue: c.HasValue}
	at := slices.IndexFunc(c.Objects, func(o mpit.ObjectValue) bool { return o.Object == q.Object })
	switch {
	case c.Bind == mpit.BindNone:
	case at < 0:
		return nil, byAgent(mpit.ErrInvalidHandle, fmt.Sprintf("there is no %s %d", c.Bind.Label(), q.Object))
	default:
		present = c.Objects[at]
	}
	if q.Operation == wire.ToolCvarRead {
		value := valueOf(present.Values, present.Text, present.HasValue)
		return func(e *wire.Encoder) { e.Value(value) }, byLibrary(present.Code)
	}
	switch {
	case c.Scope == mpit.ScopeConstant || c.Scope == mpit.ScopeReadOnly:
		return nil, byAgent(mpit.ErrCvarSetNever, "its scope is "+c.Scope.String())
	case !r.hello.WriteAllowed:
		return nil, byAgent(mpit.ErrNotAccessible, writingForbidden)
	case r.refusing[q.Index] != mpit.Success:
		return nil, byLibrary(r.refusing[q.Index])
	case !present.HasValue:
		return nil, byLibrary(mpit.ErrNotSupported)
	case q.Value.Kind == wire.ValueText && present.Values == nil:
		present.Text = q.Value.Text
	case q.Value.Kind == wire.ValueWords && len(q.Value.Words) == len(present.Values):
		present.Values = q.Value.Words
	default:
		return nil, byAgent(mpit.ErrInvalid, "the value is of another kind or length than the variable's")
	}
	if c.Bind != mpit.BindNone {
		c.Objects = slices.Clone(c.Objects) // the Config's
		c.Objects[at] = present
	} else {
		c.Values, c.Text = present.Values, present.Text
	}
	return nil, nil
}

// indexOf answers the three operations that find an index by name.
func (r *Rank) indexOf(q wire.ToolRequest) (given, *refusal) {
	at := -1
	switch q.Operation {
	case wire.ToolPvarIndex:
		at = slices.IndexFunc(r.variables, func(v variable) bool {
			return v.Name == q.Name && uint64(v.Class) == min(q.Class, math.MaxUint8)
		})
		if at >= 0 {
			return numbers(uint64(r.variables[at].Index), uint64(at)+1), nil
		}
	case wire.ToolCvarIndex:
		at = slices.IndexFunc(r.cvars, func(c mpit.ControlVariable) bool { return c.Name == q.Name })
	case wire.ToolCategoryIndex:
		at = slices.IndexFunc(r.categories, func(c mpit.Category) bool { return c.Name == q.Name })
	}
	if at < 0 {
		return nil, byLibrary(mpit.ErrInvalidName)
	}
	return numbers(uint64(at)), nil
}
