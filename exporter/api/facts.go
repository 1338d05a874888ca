package api

// What is known of a rank beyond its time, for who says what a job is doing. None of it is a series.

// Thread is a thread of a rank that has called MPI, at the moment of the rank's last answer.
type Thread struct {
	Main bool `json:"main,omitempty"` // it initialised MPI
	// Call is the one that it is in; absent: it is outside MPI.
	Call *CallUnderWay `json:"call,omitempty"`
	// Moved is how long ago its last call began or ended, in seconds. A loop of tests moves all the time.
	Moved float64 `json:"moved_seconds"`
}

// CallUnderWay is a call of MPI that has not returned yet. What isn't known of it is absent.
type CallUnderWay struct {
	Function string  `json:"function"` // with MPI_
	Seconds  float64 `json:"seconds"`  // how long it has taken
	// Of is the collective whose request, and no other, it waits for: then what follows is of that one.
	Of     string `json:"of,omitempty"`
	Kind   string `json:"kind,omitempty"`   // comm, win or file: of the object that it names; empty: none
	Object string `json:"object,omitempty"` // its name, as in the call profile's series
	// Comm is the identity (Comm.ID) of the communicator that it is on, or on which its window or file was made.
	Comm   string `json:"comm,omitempty"`
	Number uint64 `json:"number,omitempty"` // of a collective: its number on the communicator, from 1
	Root   *int   `json:"root,omitempty"`   // of a rooted collective: its rank in the communicator, or in the other group
	// Peers are whom a message call waits for, by their ranks in MPI_COMM_WORLD. All says that it waits for each of
	// them, otherwise for any. AnySource: any member of the communicator.
	Peers     []int `json:"peers,omitempty"`
	All       bool  `json:"all,omitempty"`
	AnySource bool  `json:"any_source,omitempty"`
	Tag       *int  `json:"tag,omitempty"` // absent: any, or it has none
}

// Comm is a communicator of a rank.
type Comm struct {
	// ID is the same in all its members, and no other communicator's of the job: 16 hexadecimal digits.
	ID    string `json:"id"`
	Name  string `json:"name"` // as in the call profile's series
	Size  int    `json:"size"`
	Inter bool   `json:"inter,omitempty"`
	// Number is how many collectives the rank has begun on it; absent: not known.
	Number *uint64 `json:"number,omitempty"`

	object uint32 // the rank's number for it
}

// CPU is what the kernel says of a rank. What isn't known is absent.
type CPU struct {
	Seconds *float64 `json:"seconds,omitempty"` // that all its threads have been on a core
	// Of the thread that initialised MPI: on a core, and ready without one. Read every few seconds: At is when, in
	// seconds by the rank's clock.
	Thread *float64 `json:"thread_seconds,omitempty"`
	Queue  *float64 `json:"queue_seconds,omitempty"`
	At     float64  `json:"at_seconds,omitempty"`
	// Process is Seconds as they were then: what is more than the thread's is other threads'.
	Process *float64 `json:"process_seconds,omitempty"`
	// Paused is for how long the program has switched measuring off (MPI_Pcontrol): these times went on.
	Paused float64 `json:"paused_seconds,omitempty"`
	Cores  int     `json:"cores,omitempty"` // that it may use
	Nice   int     `json:"nice,omitempty"`
	// Throttled is for how long its control group was stopped by a limit.
	Throttled   *float64 `json:"throttled_seconds,omitempty"`
	MajorFaults *uint64  `json:"major_faults,omitempty"`
	Resident    uint64   `json:"resident_bytes,omitempty"`
	// In is the system call that this thread sleeps in outside MPI, such as "read of fd 3 (a pipe)".
	In  string `json:"in,omitempty"`
	GPU bool   `json:"gpu,omitempty"` // it holds a GPU's device open
}

// The family of verdicts on jobs, which package judge serves.
const (
	VerdictName = "mpit_job_verdict_info"
	VerdictHelp = "What is said of a world of a job (docs/verdict.md): its state, and the rank that the others wait " +
		"for, with its node; always 1. An exporter has those whose ranks are all on its node, mpit-exporter judge those " +
		"on several. At most 256, of each user in turn."
)

// VerdictLabels are those of the family.
var VerdictLabels = [...]string{"jobid", "world", "user", "state", "rank", "node"}
