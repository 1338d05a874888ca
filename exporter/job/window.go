package job

import (
	"slices"
	"time"
)

// Window remembers what jobs had done some moments ago, as numbers of reports, for reports on the time since. It keeps
// nothing that is older than Longest and a bit. The zero value remembers nothing. It is not safe for concurrent use.
type Window struct {
	Longest time.Duration

	now     time.Time
	jobs    []*Report
	moments []moment // the newest last
}

// moment is what is remembered.
type moment struct {
	at   time.Time
	jobs map[[3]string]*Totals
}

// Now is when what is known was said; zero: nothing is.
func (w *Window) Now() time.Time { return w.now }

// Add takes in what all jobs have done until a time: reports on whole jobs. apart is how far moments are apart.
func (w *Window) Add(at time.Time, jobs []*Report, apart time.Duration) {
	m := moment{at, make(map[[3]string]*Totals, len(jobs))}
	for _, r := range jobs {
		if r.Job.Ended == nil {
			m.jobs[r.Job.key()] = r.Totals()
		}
	}
	w.moments = slices.DeleteFunc(w.moments, func(m moment) bool { return at.Sub(m.at) > w.Longest+apart })
	w.now, w.jobs, w.moments = at, jobs, append(w.moments, m)
}

// Since returns a report on each job of the time since the newest moment that is at least so long ago, or else since
// the oldest that is remembered; of whole jobs if it is 0 or nothing is remembered.
func (w *Window) Since(long time.Duration) []*Report {
	var before moment
	for _, m := range w.moments {
		if long > 0 && m.at.Before(w.now) && (before.at.IsZero() || w.now.Sub(m.at) >= long) {
			before = m
		}
	}
	jobs := make([]*Report, len(w.jobs))
	for i, r := range w.jobs {
		jobs[i] = r.Since(before.jobs[r.Job.key()])
	}
	return jobs
}
