package series

import (
	"math"
	"time"
)

// timersStart is where the TIMERs of a process begin that have an offset. A library has one clock for all of them, and
// MPICH's begin at minus the time of day, in whole hours. A handle that is made when the library first uses a TIMER
// finds time in it already; the least that any TIMER was found at is without it.
type timersStart struct {
	value float64
	known bool
	since time.Time // when the agent began; zero: not known
}

// maxInit is the most time that a TIMER is believed to have accumulated in MPI_Init, before the agent began.
const maxInit = time.Minute

// of is where a TIMER began whose handle read that value first. It can't have accumulated more than there has been
// time for: one that would have begins at that value.
func (s *timersStart) of(first uint64, created time.Time) uint64 {
	if s == nil || !s.known {
		return first
	}
	earlier := math.Float64frombits(first) - s.value
	if !(earlier <= (created.Sub(s.since) + maxInit).Seconds()) {
		return first
	}
	return math.Float64bits(s.value)
}
