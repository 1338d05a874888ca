package mpit

// Class is the class of a performance variable (MPI-4.1 §15.3.7). The numbers are the
// protocol's, not any library's: libraries number them differently.
type Class uint8

// The classes of MPI-4.1 §15.3.7.
const (
	ClassState Class = iota
	ClassLevel
	ClassSize
	ClassPercentage
	ClassHighWatermark
	ClassLowWatermark
	ClassCounter
	ClassAggregate
	ClassTimer
	ClassGeneric
	ClassUnknown Class = 255
)

// Verbosity is the level at which a variable is meant to be seen (MPI-4.1 §15.3.1).
type Verbosity uint8

// The verbosity levels of MPI-4.1 §15.3.1, in rising order.
const (
	VerbosityUnknown Verbosity = iota
	VerbosityUserBasic
	VerbosityUserDetail
	VerbosityUserAll
	VerbosityTunerBasic
	VerbosityTunerDetail
	VerbosityTunerAll
	VerbosityMPIDevBasic
	VerbosityMPIDevDetail
	VerbosityMPIDevAll
)

// Bind is the kind of MPI object that a variable is bound to (MPI-4.1 §15.3.2).
type Bind uint8

// The binds of MPI-4.1 §15.3.2.
const (
	BindNone Bind = iota
	BindComm
	BindDatatype
	BindErrhandler
	BindFile
	BindGroup
	BindOp
	BindRequest
	BindWin
	BindMessage
	BindInfo
	BindSession
	BindUnknown Bind = 255
)

// BindLast is the last kind that has a name: whatever goes through all kinds ends here.
const BindLast = BindSession

// Datatype is the type of a variable's elements (MPI-4.1 §15.3.5).
type Datatype uint8

// The datatypes that MPI libraries are known to use for variables.
const (
	DatatypeOther Datatype = iota
	DatatypeInt
	DatatypeUnsigned
	DatatypeUnsignedLong
	DatatypeUnsignedLongLong
	DatatypeCount
	DatatypeChar
	DatatypeDouble
	DatatypeInt32
	DatatypeInt64
	DatatypeUint32
	DatatypeUint64
	DatatypeLong
	DatatypeLongLong
	DatatypeFloat
	DatatypeBool
)

// Scope says which processes a change of a control variable concerns (MPI-4.1 §15.3.6).
type Scope uint8

// The scopes of MPI-4.1 §15.3.6.
const (
	ScopeConstant Scope = iota
	ScopeReadOnly
	ScopeLocal
	ScopeGroup
	ScopeGroupEq
	ScopeAll
	ScopeAllEq
	ScopeUnknown Scope = 255
)
