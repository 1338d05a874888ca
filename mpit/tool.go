package mpit

import (
	"context"
	"errors"
	"fmt"
)

var errToolUnfinished = errors.New("mpit: not written yet")

// RefusedError is a return code of MPI_T other than success, from the rank's library or, with Why, from its agent.
// errors.Is finds the ReturnCode.
type RefusedError struct {
	Operation string // as in docs/protocol.md, TOOL
	Code      ReturnCode
	Why       string // empty: it was the library
}

func (e *RefusedError) Error() string {
	if e.Why == "" {
		return fmt.Sprintf("mpit: %s: %v", e.Operation, e.Code)
	}
	return fmt.Sprintf("mpit: %s: %v: %s", e.Operation, e.Code, e.Why)
}

// Unwrap returns the ReturnCode.
func (e *RefusedError) Unwrap() error { return e.Code }

// CvarValue is the value of a control variable: Text where its datatype is CHAR, Values otherwise, as in Sample.Values.
type CvarValue struct {
	Values []uint64
	Text   string
	IsText bool
}

// PvarSession is a session of performance variables in a rank (MPI_T_pvar_session_create, MPI-4.1 §15.3.7). It ends with the connection.
type PvarSession struct{}

// PvarHandle is a performance variable bound to an object, in a PvarSession.
type PvarHandle struct{}

// CreatePvarSession is MPI_T_pvar_session_create.
func (s *Session) CreatePvarSession(context.Context) (*PvarSession, error) {
	return nil, errToolUnfinished
}

// ReadCvar is MPI_T_cvar_read of the variable with MPI_T's index; object is an Object.ID, 0 for an unbound variable.
func (s *Session) ReadCvar(_ context.Context, index int, object uint32) (CvarValue, error) {
	return CvarValue{}, errToolUnfinished
}

// WriteCvar is MPI_T_cvar_write.
func (s *Session) WriteCvar(_ context.Context, index int, object uint32, v CvarValue) error {
	return errToolUnfinished
}
