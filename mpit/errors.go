package mpit

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

// The reasons of a ProtocolError: a small fixed set, fit for a metric's label.
const (
	ReasonBadMagic         = wire.ReasonBadMagic    // the bytes are not the protocol's
	ReasonTooLarge         = wire.ReasonTooLarge    // a limit of docs/internals/protocol.md was broken
	ReasonTruncated        = wire.ReasonTruncated   // end of file in the middle of something
	ReasonMalformed        = wire.ReasonMalformed   // what was said contradicts itself, or was not asked for
	ReasonVersion          = wire.ReasonVersion     // a version of the protocol that this package does not speak
	ReasonHandshakeTimeout = "handshake_timeout"    // no HELLO in time
	ReasonTooMany          = "too_many"             // one user's connections without HELLO are over the limit
	ReasonConnections      = "too_many_connections" // one user's connections are over that user's share
	// what one user's ranks have sent is over that user's share of memory
	ReasonMemory = wire.ReasonMemory
	ReasonIO     = "io" // the kernel reported an error
)

// Reasons returns all reasons of a ProtocolError.
func Reasons() []string {
	return []string{
		ReasonBadMagic, ReasonConnections, ReasonHandshakeTimeout, ReasonIO, ReasonMalformed, ReasonMemory,
		ReasonTooLarge, ReasonTooMany, ReasonTruncated, ReasonVersion,
	}
}

// ErrSocketInUse is the error of Listen where another process listens at the path.
var ErrSocketInUse = errors.New("another process listens there")

// ErrFinal is the error of a request to a rank that only came to leave its last sample.
var ErrFinal = errors.New("mpit: the connection only brings a last sample")

// ErrCongested is the error of a request that could not be sent: so much that was sent before is still unread by the
// rank. The session lives on.
var ErrCongested = errors.New("mpit: the rank does not read what it is sent")

// ProtocolError says why a connection was given up.
type ProtocolError struct {
	Reason string // one of the Reason constants
	Err    error
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("mpit: protocol (%s): %v", e.Reason, e.Err)
}

// Unwrap returns Err.
func (e *ProtocolError) Unwrap() error { return e.Err }

// protocolError makes a ProtocolError of what reading or decoding gave.
func protocolError(doing string, err error) *ProtocolError {
	reason := ReasonIO
	var breach *wire.Error
	if errors.As(err, &breach) {
		reason = breach.Reason
	}
	return &ProtocolError{Reason: reason, Err: fmt.Errorf("%s: %w", doing, err)}
}

// RequestError is a rank's own answer that it will not do what it was asked for (docs/internals/protocol.md, ERROR).
// The session lives on.
type RequestError struct {
	Code uint64 // 1 unsupported, 2 malformed, 3 too large, 4 not now
	Text string
}

func (e *RequestError) Error() string {
	known := map[uint64]string{
		wire.ErrorUnsupported: "unsupported", wire.ErrorMalformed: "malformed", wire.ErrorTooLarge: "too large",
		wire.ErrorNotNow: "not now",
	}
	return fmt.Sprintf("mpit: the rank refused (%s): %s", cmp.Or(known[e.Code], fmt.Sprint("code ", e.Code)), e.Text)
}

// RefusedError is a return code of MPI_T other than success, from the rank's library or, with Why, from its agent.
// errors.Is finds the ReturnCode.
type RefusedError struct {
	Operation string // as in docs/internals/protocol.md, TOOL
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
