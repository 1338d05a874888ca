package series

import (
	"math"
	"time"
)

// timersStart is where the TIMERs of a process begin that have an offset. A library has one clock for all of them, and
// MPICH's begin at minus the time of day, in whole hours. A handle that is made when the library first uses a TIMER
// finds time in it already; the least that any TIMER below zero was found at is without it, but for parts of a second.
// A derived library's own TIMERs may begin at zero, beside those.
type timersStart struct {
	below float64   // where those begin that are below zero; 0: none has been seen
	since time.Time // when the agent began; zero: not known
}

// maxInit is the most time that a TIMER is believed to have accumulated in MPI_Init, before the agent began.
const maxInit = time.Minute

// saw takes in the value that a TIMER's handle was made at.
func (s *timersStart) saw(first float64) {
	if first < s.below && !math.IsInf(first, 0) {
		s.below = math.Floor(first)
	}
}

// of is where a TIMER began whose handle read that value first. It can't have accumulated more than there has been
// time for: one that would have begins at that value.
func (s *timersStart) of(first uint64, created time.Time) uint64 {
	x, began := math.Float64frombits(first), 0.0
	if s == nil {
		return first
	}
	if x < 0 {
		began = s.below
	}
	if !(x-began <= (created.Sub(s.since) + maxInit).Seconds()) {
		return first
	}
	return math.Float64bits(began)
}
