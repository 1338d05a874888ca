package mpit

// ReturnCode is a return code of MPI_T, normalised by the agent. It is an error, comparable with errors.Is.
type ReturnCode uint8

// The return codes of MPI_T (MPI-4.1 §15.3.10), under the numbers of docs/internals/protocol.md.
const (
	Success ReturnCode = iota
	ErrMemory
	ErrNotInitialized
	ErrCannotInit
	ErrInvalidIndex
	ErrInvalidItem
	ErrInvalidHandle
	ErrOutOfHandles
	ErrOutOfSessions
	ErrInvalidSession
	ErrCvarSetNotNow
	ErrCvarSetNever
	ErrPvarNoStartStop
	ErrPvarNoWrite
	ErrPvarNoAtomic
	ErrInvalidName
	ErrInvalid
	ErrNotSupported
	ErrNotAccessible
	ErrOther ReturnCode = 255 // one that the agent has no number for
)

var codeNames = names{
	what: "code",
	list: []string{
		"MPI_SUCCESS", "MPI_T_ERR_MEMORY", "MPI_T_ERR_NOT_INITIALIZED", "MPI_T_ERR_CANNOT_INIT",
		"MPI_T_ERR_INVALID_INDEX", "MPI_T_ERR_INVALID_ITEM", "MPI_T_ERR_INVALID_HANDLE", "MPI_T_ERR_OUT_OF_HANDLES",
		"MPI_T_ERR_OUT_OF_SESSIONS", "MPI_T_ERR_INVALID_SESSION", "MPI_T_ERR_CVAR_SET_NOT_NOW",
		"MPI_T_ERR_CVAR_SET_NEVER", "MPI_T_ERR_PVAR_NO_STARTSTOP", "MPI_T_ERR_PVAR_NO_WRITE",
		"MPI_T_ERR_PVAR_NO_ATOMIC", "MPI_T_ERR_INVALID_NAME", "MPI_T_ERR_INVALID", "MPI_T_ERR_NOT_SUPPORTED",
		"MPI_T_ERR_NOT_ACCESSIBLE",
	},
	last: "MPI_ERR_OTHER",
}

// Error returns the standard's name of the code, as String does.
func (c ReturnCode) Error() string { return c.String() }

// String returns the standard's name, for example "MPI_T_ERR_INVALID_HANDLE".
func (c ReturnCode) String() string { return codeNames.format(uint8(c)) }
