package mpit

import (
	"context"

	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

// PvarSession is a session of performance variables in a rank (MPI_T_pvar_session_create, MPI-4.1 §15.3.7): a tool's
// own, beside that from which samples are taken, with handles that nothing else starts, stops or resets. It ends with
// the connection. It is safe for concurrent use; what is asked at the same time is done in any order.
//
// The errors of its methods, and of its handles', are: a *RefusedError with the return code of MPI_T, which errors.Is
// finds; a *RequestError where the agent is too old or can't be asked now; ErrFinal; ErrCongested; the context's,
// where it ended before the answer came, so that nobody knows whether it was done; that of Session.Err. Once freed, a
// session is ErrInvalidSession and a handle ErrInvalidHandle. So is a handle whose object has ended.
type PvarSession struct {
	s      *Session
	number uint32 // the connection's, which never uses it again
}

// PvarHandle is a performance variable bound to an object, in a PvarSession. It is safe for concurrent use.
type PvarHandle struct {
	session          *PvarSession
	number           uint32
	variable, object uint32
	count            int
}

// CreatePvarSession is MPI_T_pvar_session_create. A rank has room for 16 of a connection's; one more is
// ErrOutOfSessions.
func (s *Session) CreatePvarSession(ctx context.Context) (*PvarSession, error) {
	a, err := s.tool(ctx, wire.ToolRequest{Operation: wire.ToolSessionCreate}, 0)
	if err != nil {
		return nil, err
	}
	return &PvarSession{s: s, number: a.session}, nil
}

// Free is MPI_T_pvar_session_free. The session's handles end with it. Where it fails because the request could not be
// sent, the session lives on, and Free may be called again.
func (p *PvarSession) Free(ctx context.Context) error { return p.do(ctx, wire.ToolSessionFree) }

// AllocHandle is MPI_T_pvar_handle_alloc of a variable (Variable.ID) on an object (Object.ID, 0 for a variable without
// one). A connection has room for 4,096 handles; one more is ErrOutOfHandles.
func (p *PvarSession) AllocHandle(ctx context.Context, variable, object uint32) (*PvarHandle, error) {
	r := wire.ToolRequest{Operation: wire.ToolHandleAlloc, Session: p.number, Variable: variable, Object: object}
	a, err := p.s.tool(ctx, r, 0)
	if err != nil {
		return nil, err
	}
	return &PvarHandle{session: p, number: a.handle, variable: variable, object: object, count: a.count}, nil
}

// StartAll is MPI_T_pvar_start with MPI_T_PVAR_ALL_HANDLES: it starts all handles of the session that can be started.
func (p *PvarSession) StartAll(ctx context.Context) error { return p.do(ctx, wire.ToolStart) }

// StopAll is MPI_T_pvar_stop with MPI_T_PVAR_ALL_HANDLES. It is ErrPvarNoStartStop where not all that run could be
// stopped (see PvarHandle.Stop); the others are.
func (p *PvarSession) StopAll(ctx context.Context) error { return p.do(ctx, wire.ToolStop) }

// ResetAll is MPI_T_pvar_reset with MPI_T_PVAR_ALL_HANDLES: readonly variables stay as they are.
func (p *PvarSession) ResetAll(ctx context.Context) error { return p.do(ctx, wire.ToolReset) }

func (p *PvarSession) do(ctx context.Context, op wire.ToolOperation) error {
	return p.s.do(ctx, wire.ToolRequest{Operation: op, Session: p.number})
}

// Variable returns the number of the handle's variable, a Variable.ID.
func (h *PvarHandle) Variable() uint32 { return h.variable }

// Object returns the number of the object that the handle is bound to, an Object.ID; 0: none.
func (h *PvarHandle) Object() uint32 { return h.object }

// Count returns how many elements the handle has.
func (h *PvarHandle) Count() int { return h.count }

// Start is MPI_T_pvar_start. A continuous variable is ErrPvarNoStartStop: it always runs.
func (h *PvarHandle) Start(ctx context.Context) error { return h.do(ctx, wire.ToolStart) }

// Stop is MPI_T_pvar_stop. It is ErrPvarNoStartStop for a continuous variable, and for one that the library would
// stop for everybody.
func (h *PvarHandle) Stop(ctx context.Context) error { return h.do(ctx, wire.ToolStop) }

// Reset is MPI_T_pvar_reset. A readonly variable is ErrPvarNoWrite.
func (h *PvarHandle) Reset(ctx context.Context) error { return h.do(ctx, wire.ToolReset) }

// Free is MPI_T_pvar_handle_free. Where it fails because the request could not be sent, the handle lives on, and Free
// may be called again.
func (h *PvarHandle) Free(ctx context.Context) error { return h.do(ctx, wire.ToolHandleFree) }

// Read is MPI_T_pvar_read. It returns Count elements: see Datatype.Float64 for what they stand for.
func (h *PvarHandle) Read(ctx context.Context) ([]uint64, error) { return h.read(ctx, wire.ToolRead) }

// ReadReset is MPI_T_pvar_readreset. A variable that isn't atomic is ErrPvarNoAtomic.
func (h *PvarHandle) ReadReset(ctx context.Context) ([]uint64, error) {
	return h.read(ctx, wire.ToolReadReset)
}

// Write is MPI_T_pvar_write, of Count elements as Read returns them, at most 16,000. It needs Hello.WriteAllowed. A
// readonly variable is ErrPvarNoWrite.
func (h *PvarHandle) Write(ctx context.Context, words []uint64) error {
	if err := checkWords(len(words)); err != nil {
		return err
	}
	r := h.request(wire.ToolWrite)
	r.Words = words
	return h.session.s.do(ctx, r)
}

func (h *PvarHandle) request(op wire.ToolOperation) wire.ToolRequest {
	return wire.ToolRequest{Operation: op, Session: h.session.number, Handle: h.number}
}

func (h *PvarHandle) do(ctx context.Context, op wire.ToolOperation) error {
	return h.session.s.do(ctx, h.request(op))
}

func (h *PvarHandle) read(ctx context.Context, op wire.ToolOperation) ([]uint64, error) {
	a, err := h.session.s.tool(ctx, h.request(op), h.count)
	return a.words, err
}

// PvarIndex is MPI_T_pvar_get_index (MPI-4.1 §15.3.7): MPI_T's index of the variable of a name and class, which
// together name it. variable is its Variable.ID, if it is known: the rank's catalogue may not have it yet. A name
// that the library doesn't know is ErrInvalidName.
func (s *Session) PvarIndex(ctx context.Context, name string, class Class) (index int, variable uint32, known bool,
	err error) {
	if err := checkText("the name", name); err != nil {
		return 0, 0, false, err
	}
	a, err := s.tool(ctx, wire.ToolRequest{Operation: wire.ToolPvarIndex, Class: uint64(class), Name: name}, 0)
	return a.index, a.variable, a.known, err
}

// Find returns the variable of a name and class, without asking the rank.
func (v *Variables) Find(name string, class Class) (Variable, bool) {
	return v.first(func(x *Variable) bool { return x.Class == class && x.Name == name })
}

// ByIndex returns the variable with MPI_T's index, without asking the rank.
func (v *Variables) ByIndex(index int) (Variable, bool) {
	return v.first(func(x *Variable) bool { return x.Index == index })
}

// first returns the first variable that fits. A nil Variables, which a rank has before its first sample, has none.
func (v *Variables) first(fits func(*Variable) bool) (Variable, bool) {
	if v != nil {
		for i := range v.ByID {
			if fits(&v.ByID[i]) {
				return v.ByID[i], true
			}
		}
	}
	return Variable{}, false
}

// Find returns the first object of a kind and name. A nil Layout, which a busy rank may have, has none.
func (l *Layout) Find(kind Bind, name string) (Object, bool) {
	if l != nil {
		for i := range l.Objects {
			if o := &l.Objects[i]; o.Kind == kind && o.Name == name {
				return *o, true
			}
		}
	}
	return Object{}, false
}
