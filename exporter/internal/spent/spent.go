// Package spent counts how long a rank has been in each state.
package spent

import (
	"math"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Time is how long a rank has been in each state until its last sample. None falls, whatever the rank claims, and
// together they are the longest time observed that it has claimed, and that in MPI_Finalize. Time between two samples
// is that of one of its threads (choose). The zero Time is that of a rank of which nothing has come.
type Time struct {
	in      [api.TimeStates]time.Duration
	told    kinds // of the thread that initialised MPI, the most that it has claimed
	threads []thread
}

// kinds are times by mpit.CallKind.
type kinds [mpit.CallKinds]time.Duration

// thread is what is remembered of a thread from sample to sample.
type thread struct {
	id           uint64
	inside       kinds
	begun, ended time.Duration
	cpu, read    time.Duration // on a core or ready for one, as read last, and when that was; negative: it wasn't
	core         float64       // share of the time that this was between the last two readings; negative: not known
}

// Add takes in what a rank says of a moment. What states have gained is not more than what all have, and the rest was
// outside MPI.
func (t *Time) Add(u *mpit.UnderWay) {
	t.in[api.Finalize] = max(t.in[api.Finalize], u.Finalize)
	first, gained := true, u.Observed
	for _, d := range t.in[:api.Finalize] {
		first, gained = first && d == 0, gained-d
	}
	if gained <= 0 {
		return
	}
	all := t.intervals(u, gained, first)
	by := all[choose(all)].inside
	for kind, more := range by {
		more = min(more, gained)
		t.in[int(api.Send)+kind] += more
		gained -= more
	}
	t.in[api.Outside] += gained
}

// intervals is what threads have done since the last sample, the one that initialised MPI first. One that is new is
// left out: it may have another one's past.
func (t *Time) intervals(u *mpit.UnderWay, gained time.Duration, first bool) []interval {
	all := []interval{{observed: gained, inside: since(u.InsideBy, t.told), core: -1}}
	for i, d := range u.InsideBy {
		t.told[i] = max(t.told[i], d)
	}
	var now []thread
	for i := range u.Threads {
		of := &u.Threads[i]
		was := thread{id: of.ID, cpu: -1, core: -1}
		known := first
		for _, before := range t.threads {
			if before.id == of.ID {
				was, known = before, true
			}
		}
		is := was.now(of)
		now = append(now, is)
		did := interval{observed: gained, inside: since(of.InsideBy, was.inside), core: is.core,
			stays:  is.begun != 0 && is.begun == was.begun,
			called: is.ended != was.ended || of.Ended > 0 && of.Now-of.Ended < lately}
		switch {
		case of.Main:
			all[0].stays = did.stays && known
		case known:
			all = append(all, did)
		}
	}
	t.threads = now
	return all
}

// now is the thread as it is.
func (t thread) now(of *mpit.Thread) thread {
	t.inside, t.begun, t.ended = of.InsideBy, of.Begun, of.Ended
	if of.CPU >= 0 {
		cpu := of.CPU + min(max(of.Queue, 0), math.MaxInt64-of.CPU)
		if t.cpu >= 0 && of.Now > t.read {
			t.core = float64(cpu-t.cpu) / float64(of.Now-t.read)
		}
		t.cpu, t.read = cpu, of.Now
	}
	if of.In != "" {
		t.core = 0
	}
	return t
}

// since is what times have gained.
func since(now, before kinds) (gained kinds) {
	for i := range now {
		gained[i] = max(now[i]-before[i], 0)
	}
	return gained
}

// interval is what a thread has done between two samples.
type interval struct {
	observed time.Duration
	inside   kinds
	stays    bool    // it was in one call all the time
	called   bool    // a call of its has ended, then or lately
	core     float64 // share of the time that it was on a core or ready for one lately; negative: not known
}

// outside is its time outside MPI.
func (i *interval) outside() time.Duration {
	outside := i.observed
	for _, d := range i.inside {
		outside -= min(d, outside)
	}
	return outside
}

const (
	nearly = 0.9         // is as good as all of a time
	lately = time.Second // a thread in which a call has ended since is at work
)

// waits says that it was in one call, or waited or polled, nearly all the time.
func (i *interval) waits() bool {
	waited := i.inside[mpit.CallWait].Seconds() + i.inside[mpit.CallPoll].Seconds()
	return i.stays || waited >= nearly*i.observed.Seconds()
}

// works says that it did something else. One that was outside MPI has computed if it was on a core, or ready for one;
// where that isn't known, if it has called MPI as well.
func (i *interval) works() bool {
	switch {
	case i.waits():
		return false
	case i.outside().Seconds() < nearly*i.observed.Seconds():
		return true
	case i.core >= 0:
		return i.core >= 0.5
	}
	return i.called
}

// choose returns the thread whose time is the rank's: the first one, which has initialised MPI, unless it waited while
// another one worked. Of several that did, it is the one that was longest outside MPI.
func choose(all []interval) (chosen int) {
	if !all[0].waits() {
		return 0
	}
	most := time.Duration(-1)
	for i := range all[1:] {
		if other := &all[1+i]; other.works() && other.outside() > most {
			chosen, most = 1+i, other.outside()
		}
	}
	return chosen
}

// Seconds is the same in seconds.
func (t *Time) Seconds() (s api.StateSeconds) {
	for i, d := range t.in {
		s[i] = d.Seconds()
	}
	return s
}
