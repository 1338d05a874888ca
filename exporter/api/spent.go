package api

import (
	"encoding/json"
	"fmt"
	"math"
)

// TimeState is what a rank does with its time: it is in one of them at any moment.
type TimeState int

// The states. Send to Poll are the kinds of calls (mpit.CallKind).
const (
	Outside    TimeState = iota // MPI
	Send                        // hands data over, or begins something that ends later
	Wait                        // for messages, requests, windows
	Collective                  // returns when all of a communicator have taken part
	File                        // works on a file
	Poll                        // tests or probes, and the first microsecond after one that was unsuccessful
	Finalize                    // is in MPI_Finalize
	Ended                       // has ended, and another rank of its world on the node runs
	TimeStates                  // how many there are
)

// TimeStateNames are their names, in labels and JSON.
var TimeStateNames = [TimeStates]string{"outside", "send", "wait", "collective", "file", "poll", "finalize", "ended"}

// StateSeconds is how long a rank has been in each state, in seconds.
type StateSeconds [TimeStates]float64

// Inside is the time in MPI that is of a kind of calls.
func (s *StateSeconds) Inside() float64 { return s[Send] + s[Wait] + s[Collective] + s[File] + s[Poll] }

// Plus is both together.
func (s StateSeconds) Plus(more StateSeconds) StateSeconds {
	for i := range s {
		s[i] += more[i]
	}
	return s
}

// Sum is all of it.
func (s *StateSeconds) Sum() (seconds float64) {
	for _, in := range s {
		seconds += in
	}
	return seconds
}

// MarshalJSON writes the seconds by the states' names.
func (s StateSeconds) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i, in := range s {
		value, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("time %s: %w", TimeStateNames[i], err)
		}
		text = fmt.Appendf(text, "%q:%s,", TimeStateNames[i], value)
	}
	text[len(text)-1] = '}'
	return text, nil
}

// UnmarshalJSON reads what MarshalJSON has written, bounded. States that it doesn't know are left out.
func (s *StateSeconds) UnmarshalJSON(text []byte) error {
	var by map[string]float64
	if err := json.Unmarshal(text, &by); err != nil {
		return fmt.Errorf("time by state: %w", err)
	}
	for i := range s {
		s[i] = min(max(by[TimeStateNames[i]], 0), math.MaxInt64)
	}
	return nil
}
