package job

import (
	"math"
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
	// Hung is how long a call goes on in which a rank is taken to be stuck.
	Hung = 5 * time.Minute
	// Waiting is how long it goes on until it is said.
	Waiting = 10 * time.Second
	// few is the part of the ranks that may be elsewhere than the others, who wait for them.
	few = 0.1
)

// Words of the states.
const (
	WrongProgram  = "wrong program" // ranks are in different functions as one collective
	Deadlock      = "deadlock"
	Unknown       = "unknown" // nothing was observed
	Broken        = "broken"  // ranks have ended without MPI_Finalize, or none answers
	Healthy       = "healthy"
	IsHung        = "hung"
	Waits         = "waiting"       // all ranks are in calls, or all but a few
	WaitsForOne   = "late rank"     // its ranks lose time by waiting for one of them
	Communication = "communication" // much of their time, and no rank is late
)

// State is what is to be said of a job in a word, and how. Each is said the same on the page, in top, reports, alerts
// and boards.
type State struct {
	Word   string // in JSON, too
	Colour string // of the page's palette; empty: none
	Board  string // the same for Grafana; empty: no board has the state
	Alert  string // which has a runbook of that name; empty: none
}

// States are all there are, those that need attention first.
func States() []State {
	return []State{
		{Word: IsHung, Colour: "hung", Board: "dark-red", Alert: "MPIJobHung"},
		{Word: Broken, Colour: "hung", Alert: "MPIRankGone"},
		{Word: Waits, Colour: "collective", Board: "orange", Alert: "MPIJobWaitsForRank"},
		{Word: WaitsForOne, Colour: "collective", Alert: "MPIRanksWaitForOne"},
		{Word: Communication, Colour: "send", Alert: "MPIJobMostlyInMPI"},
		{Word: Healthy, Colour: "useful"},
		{Word: Unknown},
	}
}

// Needs is smaller the sooner the job needs attention. One that has ended badly comes just before the healthy ones.
func (r *Report) Needs() int {
	ended, word := r.Job.Ended != nil, r.Verdict.State
	if ended && word != Broken {
		return math.MaxInt // it is too late
	}
	if ended {
		word = Healthy
	}
	needs := 2 * slices.IndexFunc(States(), func(s State) bool { return s.Word == word })
	if ended {
		needs--
	}
	return needs
}
