// Package spent counts how long a rank has been in each state.
package spent

import (
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Time is how long a rank has been in each state until its last sample. None falls, whatever the rank claims, and
// together they are the longest time observed that it has claimed, and that in MPI_Finalize.
type Time [api.TimeStates]time.Duration

// Add takes in what a rank says of a moment. What a state has gained is not more than what all have, and the rest was
// outside MPI.
func (t *Time) Add(u *mpit.UnderWay) {
	t[api.Finalize] = max(t[api.Finalize], u.Finalize)
	gained := u.Observed
	for _, d := range t[:api.Finalize] {
		gained -= d
	}
	gained = max(gained, 0)
	for kind, now := range u.InsideBy {
		state := &t[int(api.Send)+kind]
		more := min(max(now-*state, 0), gained)
		*state += more
		gained -= more
	}
	t[api.Outside] += gained
}

// Seconds is the same in seconds.
func (t *Time) Seconds() (s api.StateSeconds) {
	for i, d := range t {
		s[i] = d.Seconds()
	}
	return s
}
