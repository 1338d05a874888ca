package mpittest

import (
	"slices"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Pcontrol is the program's call of MPI_Pcontrol: 0 switches observation off, 1 on again; other levels are only told.
// Set and Add go on changing what the library has: while observation is off, samples don't show it.
func (r *Rank) Pcontrol(level int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.PcontrolLevel = level
	r.stats.PcontrolCalls++
	switch level {
	case 0:
		r.pauseValues()
	case 1:
		r.resumeValues()
	}
}

func (r *Rank) pauseValues() {
	if r.paused {
		return
	}
	r.paused, r.pausedAt = true, r.clock()
	for i := range r.handles {
		r.handles[i].frozen = slices.Clone(r.handles[i].values)
	}
}

// resumeValues counts what the values have gained meanwhile as excluded.
func (r *Rank) resumeValues() {
	if !r.paused {
		return
	}
	for i := range r.handles {
		h := &r.handles[i]
		if !slices.Equal(h.values, h.frozen) {
			d := r.variables[h.Variable].Datatype
			if h.Excluded == nil {
				h.Excluded = make([]uint64, h.Count)
			}
			for at := range h.values {
				h.Excluded[at] = add(d, h.Excluded[at], h.values[at], h.frozen[at])
			}
			r.layoutGen++
		}
		h.frozen = nil
	}
	r.paused = false
	r.stats.PausedTime += r.clock().Sub(r.pausedAt)
}

// shown returns the values of a handle that a sample has.
func (r *Rank) shown(h *handle) []uint64 {
	if r.paused {
		return h.frozen
	}
	return h.values
}

// object returns the object with a number, nil where there is none.
func (r *Rank) object(id uint32) *mpit.Object {
	for i := range r.objects {
		if r.objects[i].ID == id {
			return &r.objects[i]
		}
	}
	return nil
}

// monotonic returns the rank's other clock at a moment: it begins with the rank.
func (r *Rank) monotonic(at time.Time) time.Duration { return max(0, at.Sub(r.hello.InitTime)) }
