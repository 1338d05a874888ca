package job

import (
	"slices"
	"time"
)

// Thresholds of the verdict. Alerts, recording rules and boards have the same (TestOneTable).
const (
	// Late is the share of the ranks' time from which on waiting for one of them is the verdict.
	Late = 0.3
	// noted is the share from which on it is mentioned.
	noted = 0.1
	// Efficient is the parallel efficiency from which on nothing is wrong with a job in which no rank is late.
	Efficient = 0.7
	// Hung is how long a call goes on until there is an alert.
	Hung = 5 * time.Minute
	// Waiting is how long it goes on until it is said.
	Waiting = 10 * time.Second
	// Cycle is how long calls for messages go on until they are said to wait for one another.
	Cycle = time.Minute
	// few is the part of the ranks that may be elsewhere than the others, who wait for them.
	few = 0.1
	// busy is the share of its time that a rank is at work which is to be named for not being where others wait.
	busy = 0.5
	// queued is the share of its time in which a rank that is short of cores is ready to run without one.
	queued = 0.2
	// starved is the share from which on all ranks are, whatever they do: less than a half, which is what two ranks on a
	// core lack, give or take a little.
	starved = 0.4
	// small is how many bytes a collective may have of which the time is waiting.
	small = 64 << 10
)

// Words of the states.
const (
	Crashed       = "crashed"       // ranks have ended without MPI_Finalize
	Cancelled     = "cancelled"     // all were ended from outside
	WrongProgram  = "wrong program" // ranks are in different functions as one collective
	Deadlock      = "deadlock"      // none of some ranks can go on before another one does
	Waits         = "waiting"       // ranks are blocked in MPI
	NoCore        = "no core"       // ranks are ready to run, and others run
	LateRanks     = "late rank"     // ranks lose time by waiting for one of them
	LateInTurn    = "late in turn"  // the same, for a different one each time
	Communication = "communication" // much of their time, and no rank is late
	Idle          = "idle"          // ranks neither compute nor communicate
	Healthy       = "healthy"
	Unknown       = "unknown" // nothing was observed, or not for long enough
)

// State is what is to be said of a job in a word, and how. Each is said the same on the page, in top, reports, alerts
// and boards.
type State struct {
	Word   string // in JSON, too
	Colour string // of the page's palette; empty: none
	Alert  string // which has a runbook of that name; empty: none
}

// NeedsAttention says that a job in this state is not as it should be, and still could be helped, or has been lost.
func (s State) NeedsAttention() bool { return s.Colour != "" && s.Colour != "useful" }

// States are all there are, those that need attention first.
func States() []State {
	return []State{
		{Word: Crashed, Colour: "hung", Alert: "MPIRankGone"},
		{Word: Cancelled},
		{Word: WrongProgram, Colour: "hung", Alert: "MPIJobHung"},
		{Word: Deadlock, Colour: "hung", Alert: "MPIJobHung"},
		{Word: Waits, Colour: "late", Alert: "MPIJobWaitsForRank"},
		{Word: NoCore, Colour: "late"},
		{Word: LateRanks, Colour: "late", Alert: "MPIRanksWaitForOne"},
		{Word: LateInTurn, Colour: "late"},
		{Word: Communication, Colour: "send", Alert: "MPIJobMostlyInMPI"},
		{Word: Idle},
		{Word: Healthy, Colour: "useful"},
		{Word: Unknown},
	}
}

// StateOf is the state of that word; one that has no colour if there is none.
func StateOf(word string) State {
	if at := slices.IndexFunc(States(), func(s State) bool { return s.Word == word }); at >= 0 {
		return States()[at]
	}
	return State{Word: word}
}

func needs(word string) int { return 2 * slices.Index(States(), StateOf(word)) }
