package job

import (
	"slices"
	"time"
)

// Window remembers what jobs had done some moments ago, as numbers of reports, for reports on the time since: the older
// a moment, the fewer beside it, and at most one that is older than Longest. It is not safe for concurrent use, and the
// zero value remembers nothing.
type Window struct {
	Longest time.Duration

	now     time.Time
	jobs    []*Report
	moments []moment // the newest last
	paces   map[[3]string]*pace
}

// moment is what is remembered.
type moment struct {
	at   time.Time
	jobs map[[3]string]*Totals
}

// pace is how often the ranks of a job have begun collectives, as far as looks at it show, and what was said of it.
type pace struct {
	begun   uint64    // by all ranks
	at      time.Time // when there were more than before
	longest [2]time.Duration
	since   time.Time // of the first of longest; the other one is of the time before
	// The state said at a moment, and that before it, from which a state goes on until it has ended for sure.
	said       time.Time
	state, was string
}

// Now is when what is known was said; zero: nothing is.
func (w *Window) Now() time.Time { return w.now }

// Add takes in what all jobs have done until a time, which is later than the one before: reports on whole jobs.
func (w *Window) Add(at time.Time, jobs []*Report) {
	m := moment{at, make(map[[3]string]*Totals, len(jobs))}
	paces := make(map[[3]string]*pace, len(jobs))
	for _, r := range jobs {
		if r.Job.Ended == nil {
			key := r.Job.key()
			m.jobs[key] = r.Totals()
			if paces[key] = w.paces[key]; paces[key] == nil {
				paces[key] = &pace{begun: r.begun(), at: at, since: at}
			}
			paces[key].look(at, r.begun(), w.Longest)
		}
	}
	w.now, w.jobs, w.paces = at, jobs, paces
	kept := []moment{m}
	for i, m := range slices.Backward(w.moments) {
		next := kept[len(kept)-1].at
		isBetween := i > 0 && next.Sub(w.moments[i-1].at) <= at.Sub(m.at)/4
		if at.Sub(next) < w.Longest && !isBetween {
			kept = append(kept, m)
		}
	}
	slices.Reverse(kept)
	w.moments = kept
}

// begun is how many collectives its ranks have begun.
func (r *Report) begun() (begun uint64) {
	for i := range r.Ranks {
		for _, c := range r.Ranks[i].Comms {
			if c.Number != nil {
				begun += *c.Number
			}
		}
	}
	return begun
}

// look notes how many collectives had been begun at a time. What was long is forgotten after Longest, or twice that.
func (p *pace) look(at time.Time, begun uint64, longest time.Duration) {
	if at.Sub(p.since) > longest {
		p.longest[0], p.longest[1], p.since = 0, p.longest[0], at
	}
	if begun != p.begun {
		p.longest[0] = max(p.longest[0], at.Sub(p.at))
		p.begun, p.at = begun, at
	}
}

// steps are the longest intervals between collectives: of those that are over, or the mean one if none has been seen,
// and with the one that goes on. Of a job that has long had none, or hardly ever has one, they are 0.
func (w *Window) steps(r *Report) (over, all time.Duration) {
	p, bound := w.paces[r.Job.key()], w.Longest/2
	if p.begun == 0 {
		return 0, 0
	}
	mean := time.Duration(r.Lasted() * float64(len(r.Ranks)) / float64(p.begun) * float64(time.Second))
	if over = max(p.longest[0], p.longest[1], mean); mean > bound || over > bound {
		return 0, 0
	}
	if all = w.now.Sub(p.at); all > bound {
		all = 0
	}
	return over, max(over, all)
}

// Since returns a report on each job of at least so long, and of ten seconds and two steps of the job, so that it is
// not of one half of a step and then of the other; of whole jobs if that is 0, or longer than is remembered.
func (w *Window) Since(long time.Duration) []*Report {
	jobs := make([]*Report, len(w.jobs))
	for i, r := range w.jobs {
		p := w.paces[r.Job.key()]
		if jobs[i] = r; p == nil || long <= 0 {
			continue
		}
		over, step := w.steps(r)
		least := min(max(long, 2*step), w.Longest)
		var before *Totals
		for _, m := range w.moments {
			age := w.now.Sub(m.at)
			if t := m.jobs[r.Job.key()]; t != nil && age >= least && (before == nil || age >= Waiting) {
				before = t
			}
		}
		if p.said != w.now {
			p.said, p.was = w.now, p.state
		}
		jobs[i] = r.since(before, p.was, over)
		p.state = jobs[i].Verdict.State
	}
	return jobs
}
