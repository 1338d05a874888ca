package mpit

import "time"

// RankID names one process for as long as it lives: 128 random bits of the agent's own.
// A pid will not do, for containers repeat them.
type RankID [16]byte

// Peer is what the kernel says of the process at the other end (SO_PEERCRED).
type Peer struct {
	PID int32 // in the exporter's pid namespace; 0 where the kernel can't say
	UID uint32
	GID uint32
}

// ABI is the binary interface of the MPI library in a rank.
type ABI uint8

// The ABIs that an agent knows.
const (
	ABIUnknown ABI = iota
	ABIOpenMPI
	ABIMPICH
	ABIStandard // MPI-5's own, which several libraries have
)

// Hello is what a rank says of itself when it connects. None of it is verified.
type Hello struct {
	ProtocolVersion uint16
	Final           bool // this connection brings the last sample only
	ID              RankID
	PID             int
	Rank, Size      int // in MPI_COMM_WORLD
	ThreadLevel     int // of the program: 0 single … 3 multiple; -1: not known, it has not called MPI_Init
	ABI             ABI
	Passive         bool // samples are taken in the program's own calls only
	WriteAllowed    bool // the job's environment lets control variables and performance variables be written
	SessionsOnly    bool // an MPI-4 program without MPI_Init: Rank and Size are those of mpi://WORLD
	InitTime        time.Time
	AgentVersion    string
	LibraryVersion  string // first line of MPI_Get_library_version
	Host            string
	Executable      string
	Attributes      map[string]string // scheduler's and launcher's environment variables, ppid
}

// VariableState says whether the agent could open a variable.
type VariableState uint8

// The states of docs/internals/protocol.md, frame VARIABLES.
const (
	VariableOpen VariableState = iota
	VariableDenied
	VariableAllocFailed
	VariableStartFailed
	VariableReadFailed
	VariableBadDatatype
	VariableExhausted
	VariableOnRequest // nobody has requested it yet: see Variable.OnRequest
)

// Variable is a performance variable as the library describes it (MPI_T_pvar_get_info).
type Variable struct {
	ID            uint32 // the agent's number, stable in one process
	Index         int    // MPI_T's, which differs from run to run
	Name          string
	Description   string
	Class         Class
	Verbosity     Verbosity
	Datatype      Datatype
	DatatypeBytes int // size of one element in bytes
	Bind          Bind
	ReadOnly      bool
	Continuous    bool
	Atomic        bool
	// Distribution says that the elements are not alike: the first is a sum, of durations where the class is TIMER, of
	// sizes in bytes where it is AGGREGATE; the others are the numbers of durations or sizes in buckets. See
	// DistributionUnit.
	Distribution bool
	// OnRequest says that the program pays for it from when it is opened on, so that it is opened only on request: by
	// MPIT_AGENT_OPEN in the rank's environment, or by Session.Open. What counts begins then.
	OnRequest bool
	Enum      *Enum // nil: none
	State     VariableState
	Code      ReturnCode // belongs to State
}

// DistributionUnit is the unit of a TIMER's first element where it is a Distribution, in seconds: 2⁻³⁰; an AGGREGATE's
// is a byte. The second element counts durations or sizes of at most one unit, element k+1 those above 2^(k-1) and up
// to 2^k units, the last one all that are longer or larger.
const DistributionUnit = 1.0 / (1 << 30)

// Enum is an enumeration of MPI_T (MPI-4.1 §15.3.5).
type Enum struct {
	ID    uint32
	Name  string
	Items []EnumItem
}

// EnumItem is one value of an enumeration.
type EnumItem struct {
	Value int64  `json:"value"`
	Name  string `json:"name"`
}

// Object is an MPI object that variables are bound to.
type Object struct {
	ID         uint32
	Kind       Bind
	Name       string // as MPI_*_set_name gave it; empty: none
	Predefined bool
	Inter      bool // an intercommunicator
	Size, Rank int  // the object's, not the world's; -1 both: the kind has none
	Created    time.Time
	// Object.ID of the communicator that a window, file or request was made on; 0: none, or not tracked
	On      uint32
	Details []Detail // what else MPI tells of it, by docs/internals/protocol.md, Objects
}

// Detail is one property of an object, for example dims and "4,2".
type Detail struct{ Key, Value string }

// Handle is a variable bound to an object, open in the rank for as long as both exist.
type Handle struct {
	ID       uint32
	Variable uint32    // Variable.ID
	Object   uint32    // Object.ID, 0: none
	Count    int       // elements
	Created  time.Time // or its object's last rename, whichever is later
	Earlier  *Earlier  // nil: all zero. Most handles have none
	Offset   int       // where its elements start in Sample.Values; -1: not selected
}

// Earlier is what a handle's values were before.
type Earlier struct {
	First    []uint64 // values when the handle was made, as in Sample.Values; nil: zeros
	Origin   []uint64 // values at the last rename of the object; nil: never renamed
	Excluded []uint64 // gained, int64 or double bits, during MPI_Pcontrol(0) since Origin; nil: zeros
}

// Before returns what the handle's values were before, whether it has that or not.
func (h Handle) Before() Earlier {
	if h.Earlier == nil {
		return Earlier{}
	}
	return *h.Earlier
}

// Layout is everything that a rank has open, at one generation.
type Layout struct {
	Generation      uint64
	ObjectsOverflow uint64
	HandlesOverflow uint64
	Objects         []Object
	Handles         []Handle
	Values          int // how many values a sample has
}

// Remain is what freed or renamed objects of one name have counted of one variable (docs/internals/protocol.md,
// REMAINS).
type Remain struct {
	Variable      uint32
	Name          string // the objects' name
	Contributions int
	Created       time.Time
	Gained        []uint64 // int64 or double bits
	First         []uint64 // int64 or double bits
	Max, Min      []uint64 // as in Sample.Values
}

// Remains is all of them, at one generation.
type Remains struct {
	Generation uint64
	Lost       uint64
	List       []Remain
}

// SampleStatus says what a sample is worth.
type SampleStatus uint8

// The states of docs/internals/protocol.md, frame SAMPLE.
const (
	SampleFresh SampleStatus = iota
	SampleBusy
	SamplePassive
	SampleFinal
	SamplePaused // the program has called MPI_Pcontrol(0): values of that moment
)

// EndReason says how a rank ended.
type EndReason uint8

// Ends of a rank; EndLost is the exporter's own: end of file without a last sample.
const (
	EndNone EndReason = iota
	EndFinalize
	EndExit
	EndAbort
	EndLost
)

// AgentStats is what the agent counts of itself. In a busy sample Samples, ReadErrors and ObjectsAlive are those of the
// sample before. All but ObjectsAlive never fall.
type AgentStats struct {
	Samples      uint64
	Busy         uint64
	ReadErrors   uint64
	GateWaits    uint64
	GateWaitTime time.Duration // all of them
	GateWaitMax  time.Duration
	CPUTime      time.Duration // of the agent's thread
	ObjectsAlive uint64

	PcontrolLevel int           // of the last MPI_Pcontrol; 1 before any
	PcontrolCalls uint64        // calls of MPI_Pcontrol
	PausedTime    time.Duration // in MPI_Pcontrol(0), the present one included
	CategoryStamp uint64        // changes with the categories; 0: not known
}

// CallKind is what a call of MPI does, as far as it says who waits for whom (docs/internals/protocol.md, SAMPLE).
type CallKind int

// The kinds of calls.
const (
	CallSend       CallKind = iota // hands data over, or begins something that ends later
	CallWait                       // waits for messages, requests, windows
	CallCollective                 // returns when all of a communicator have taken part
	CallFile                       // works on a file
	CallPoll                       // tests or probes, and the first microsecond after it
	CallKinds                      // how many there are
)

// UnderWay is what the call profile says of one moment: that of the request, whatever the sample's Status is. None of
// it needs MPI_T, so that a passive rank tells it too.
type UnderWay struct {
	// Inside is the time inside MPI of the thread that initialised MPI, to the moment: a call that it is in counts, and
	// so does the first microsecond after a test or probe.
	// Observed is the time for which calls were measured, read at the same instant. Neither falls, and Inside never
	// gains more than Observed.
	Inside, Observed time.Duration
	// InsideBy is Inside by kind of call. None falls, and together they are no more than Inside; less, where nobody
	// knows: an older agent tells none.
	InsideBy [CallKinds]time.Duration
	// Running is how long the longest call under way of any thread has taken; 0: there is none.
	Running  time.Duration
	Function string // that call's, with MPI_
	Bind     Bind   // kind of object that the function names
	Object   uint32 // Object.ID; 0: none, or not tracked
	// Module is the file that the call was made from, as the rank sees it, and Offset the address it returns to, in
	// that file. "": the call has taken less than a second, or nobody knows.
	Module string
	Offset uint64
	// Finalize is for how long MPI_Finalize has been under way; 0: it has not begun.
	Finalize time.Duration
	// CPU is the process's time on cores, of all its threads; negative: not known.
	CPU time.Duration
	// Threads are those that call MPI, at most eight, the one that initialised it first. Of an older agent none.
	Threads []Thread
	Kernel  *Kernel // nil: not read in this sample
	// Phases are those that the program has begun with MPI_Pcontrol.
	Phases []Phase
}

// Phase is the time of all phases of one number, of the thread that initialised MPI. Observed and InsideBy are as in
// UnderWay.
type Phase struct {
	Number   int // of MPI_Pcontrol, from 3; 0: those for which the agent has no room
	Observed time.Duration
	InsideBy [CallKinds]time.Duration
}

// Kernel is what the kernel says of a rank, every few seconds.
type Kernel struct {
	Cores       int   // that the thread which initialised MPI may use; 0: not known
	Nice        int   // of that one
	MajorFaults int64 // of the process; negative: not known
	Resident    int64 // bytes; negative: not known
	GPU         bool  // it holds a GPU's device open. Looked for while a thread sleeps only
	// Throttled is for how long its control group was stopped by a limit; negative: there is none, or it isn't known.
	Throttled time.Duration
}

// Thread is a thread of a rank that calls MPI, at one moment. Now, Begun and Ended are by a clock of the rank's that
// only compares with itself.
type Thread struct {
	ID   uint64 // never another thread's of the rank
	TID  int    // the kernel's, as the rank sees it
	Main bool   // it initialised MPI
	Now  time.Duration
	// Observed and InsideBy are as in UnderWay, of this thread. Between two samples they say what it did if the ID is the
	// same in both; a new thread may begin with what another one has counted.
	Observed time.Duration
	InsideBy [CallKinds]time.Duration
	// CPU is its time on cores and Queue its time ready without one; negative: not read in this sample.
	CPU, Queue time.Duration
	Begun      time.Duration // of the call that it is in: in two samples the same of one call only; 0: it is in none
	Ended      time.Duration // of its last call before that; 0: there was none
	// Function, Bind and Object are those of the call that it is in, as in UnderWay.
	Function string
	Bind     Bind
	Object   uint32
	Peer     int // in MPI_COMM_WORLD: whom the call sends to or waits for; NoPeer, AnySource
	// Peers, if there are any, are several in its place: those of a call's requests, of which some may have completed.
	Peers []int
	Tag   int // NoTag: any, or it has none
	Root  int // of a rooted collective, in its communicator; NoRoot
	// Number is of a collective, on its communicator, from 1; 0: not known.
	Number uint64
	// Of is the collective whose request, and no other, the call waits for: then Bind, Object and Number are its own. "":
	// it doesn't, or that isn't known.
	Of string
	// In is the system call that it sleeps in outside MPI, such as "read of fd 3 (a pipe)"; "": it doesn't, has not for
	// most of the time since CPU was read last, or that isn't known.
	In string
}

// What a call that names no rank or tag has in place of one.
const (
	NoPeer    = -1 // or it isn't known
	AnySource = -2
	NoTag     = -1
	NoRoot    = -1
)

// Comm is a communicator, as far as it says who is where in the order of collectives.
type Comm struct {
	Object uint32 // Object.ID
	// Identity is the same in all members, and no other communicator's of the same MPI_COMM_WORLD; 0: not known.
	Identity uint64
	Begun    uint64 // how many collectives the rank has begun on it
	Counted  bool   // Begun is known
}

// FailedHandle is a handle that could not be read in a sample.
type FailedHandle struct {
	Handle uint32
	Code   ReturnCode
}

// Sample is one reading of all selected handles of a rank, with the catalogue it belongs to. A receiver must not
// change what Variables, Layout and Remains point to: the next sample may share them. They are nil until the rank has
// sent them.
type Sample struct {
	Status    SampleStatus
	End       EndReason
	Time      time.Time     // when the values were read, by the rank's clock
	Monotonic time.Duration // CLOCK_MONOTONIC at that moment
	Duration  time.Duration
	Stats     AgentStats
	Variables *Variables
	Layout    *Layout
	Remains   *Remains
	Values    []uint64 // int64, uint64 or double bits, by the variable's datatype; nil when busy
	Failed    []FailedHandle
	UnderWay  *UnderWay // nil: the rank has no call profile
	Comms     []Comm    // of which anything has changed since the sample before; all in a connection's first

	size int // see Size
}

// Size is about how many bytes of memory the catalogue's parts take that the sample refers to: variables, layout
// and remains. Samples of one rank share them as long as they don't change.
func (s *Sample) Size() int { return s.size }

// Of returns the elements of one of the layout's handles, nil where the sample has none. They belong to the sample.
func (s *Sample) Of(h *Handle) []uint64 {
	if h.Offset < 0 || h.Offset+h.Count > len(s.Values) {
		return nil
	}
	return s.Values[h.Offset : h.Offset+h.Count : h.Offset+h.Count]
}

// Variables is a rank's catalogue of performance variables, at one generation. ByID is indexed by Variable.ID.
type Variables struct {
	Generation uint64
	ByID       []Variable
}

// ControlVariable is a control variable with its present value (MPI-4.1 §15.3.6).
type ControlVariable struct {
	Index       int
	Name        string
	Description string
	Scope       Scope
	Verbosity   Verbosity
	Datatype    Datatype
	Bind        Bind
	Enum        *Enum
	Code        ReturnCode // of reading the value
	Values      []uint64   // numbers, as in Sample.Values
	Text        string     // value of a variable of datatype CHAR
	HasValue    bool
	Objects     []ObjectValue // of a bound variable: its values on some of the objects alive
}

// ObjectValue is the value of a bound control variable on one object.
type ObjectValue struct {
	Object   uint32 // Object.ID
	Code     ReturnCode
	Values   []uint64
	Text     string
	HasValue bool
}

// CvarValue is the value of a control variable: Text where its datatype is CHAR, Values otherwise, as in Sample.Values.
type CvarValue struct {
	Values []uint64
	Text   string
	IsText bool
}

// Category is a category of MPI_T with the indices of what it holds (MPI-4.1 §15.3.9).
type Category struct {
	Index            int
	Name             string
	Description      string
	Variables        []int // MPI_T indices: Variable.Index
	ControlVariables []int
	Subcategories    []int
}
