package exporter

import (
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// clashLogInterval is how often one user's clashes of labels are worth a line: he can make any number of them.
const clashLogInterval = time.Minute

// maxClashLogged bounds the users of whom it is known when a clash was logged.
const maxClashLogged = 256

// maxWays is at how many ranks with the same labels a new one looks, for an ended one in whose place it could be.
const maxWays = 16

// makeWay removes the ended rank whose labels a new one would have, if it is the same user's and nobody waits for its last values.
// A job that is requeued, or a program that is started again and again by one shell, so goes on in the same series, which begin anew; with
// a label dup it would be another one until its end. Others keep their labels. The caller holds mu.
func (e *Exporter) makeWay(id Identity, uid uint32) {
	for ; id.Dup < maxWays; id.Dup++ {
		i, found := e.table.find(id)
		if !found {
			return
		}
		if old := e.table.ordered[i]; old.end != mpit.EndNone && !e.wanted(old) && old.peer.UID == uid {
			e.remove(old)
			return
		}
	}
}

// noteClash counts and logs that a new rank has the labels of another one, or is in a world that another user claims too: once for
// each world, and of one user at most one line in clashLogInterval. The caller holds mu.
func (e *Exporter) noteClash(r *rank) {
	if r.id.Dup > 0 {
		e.self.clashes.Inc()
	}
	if r.id.Dup == 0 && r.world.dup == 0 || r.world.warned {
		return
	}
	now := e.now()
	if last, found := e.clashLogged[r.peer.UID]; found && now.Sub(last) < clashLogInterval {
		return
	}
	if len(e.clashLogged) >= maxClashLogged {
		clear(e.clashLogged) // a few lines more
	}
	e.clashLogged[r.peer.UID] = now
	r.world.warned = true
	e.log.Warn("ranks have the labels of others; the later ones have a label dup (further clashes of this world are only counted)",
		append(rankAttrs(r), "pid", r.about.PID, "jobid_source", r.about.JobIDSource, "jobid_check", r.about.JobIDCheck)...)
}
