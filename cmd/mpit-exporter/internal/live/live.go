// Package live answers what the jobs of a node do now: a report on each of the last seconds (package report).
//
// The exporter's values are totals. Somebody has to remember what they were some seconds ago, and it is better one
// server than every viewer: Live does, of a bounded number of series, and only while somebody asks. Begin with
// Live.Handler.
package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/report"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/verdict"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

const (
	// Kept is how long a moment is remembered, and the longest window.
	Kept = 10 * time.Second
	// apart is how far moments are apart at least.
	apart = time.Second
)

// Window returns what reports are made of, within bounds (exporter.Exporter.Window).
type Window func(ctx context.Context) (api.ValueList, error)

// Live knows what all jobs do, and some numbers of the last moments. It is safe for concurrent use.
type Live struct {
	window Window

	turn    chan struct{} // has a token: whoever takes it asks and answers, and everybody else waits
	mu      sync.Mutex
	now     look
	moments []moment // the newest last
	forget  *time.Timer
}

// look is what is known of all jobs. It is never changed.
type look struct {
	at   time.Time
	jobs []*report.Report // in the order of their labels
	left []api.LeftOut    // ranks that are not in them
}

// moment is what is remembered of a look.
type moment struct {
	at   time.Time
	jobs map[jobKey]*report.Totals
}

// jobKey names a job.
type jobKey struct{ id, world, user string }

func keyOf(r *report.Report) jobKey { return jobKey{r.Job.ID, r.Job.World, r.Job.User} }

// New returns a Live that knows nothing yet.
func New(window Window) *Live {
	l := &Live{window: window, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	l.forget = time.AfterFunc(Kept, l.drop)
	return l
}

// drop forgets everything: nobody has asked for long.
func (l *Live) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now, l.moments = look{}, nil
}

// take waits for the turn.
func (l *Live) take(ctx context.Context) (giveBack func(), err error) {
	select {
	case <-l.turn:
		return func() { l.turn <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the ranks' values: %w", ctx.Err())
	}
}

// look returns the report on every job of the last window: of the time since the newest moment that is at least that
// long ago, or else since the oldest that is remembered. With a window of zero, or if nothing is remembered, reports
// are of whole jobs. The caller has the turn.
func (l *Live) look(ctx context.Context, window time.Duration) (look, error) {
	now, fresh := l.last()
	if !fresh {
		list, err := l.window(ctx)
		if err != nil {
			return look{}, err
		}
		now = l.remember(list)
	}
	before := l.since(now.at, window)
	of := now
	of.jobs = make([]*report.Report, len(now.jobs))
	for i, r := range now.jobs {
		of.jobs[i] = r.Since(before.jobs[keyOf(r)])
	}
	return of, nil
}

// last is the last look. Unless it is fresh, the exporter is to be asked.
func (l *Live) last() (now look, fresh bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget.Reset(2 * Kept)
	return l.now, time.Since(l.now.at) < apart
}

// remember takes in what the exporter has answered, unless it has been known.
func (l *Live) remember(list api.ValueList) look {
	if now, _ := l.last(); list.Time.Sub(now.at) < apart {
		return now
	}
	now := look{list.Time, report.Of([]api.ValueList{list}, nil), list.LeftOut}
	m := moment{now.at, make(map[jobKey]*report.Totals, len(now.jobs))}
	for _, r := range now.jobs {
		if r.Job.Ended == nil {
			m.jobs[keyOf(r)] = r.Totals()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moments = slices.DeleteFunc(l.moments, func(m moment) bool { return now.at.Sub(m.at) > Kept+apart })
	l.now, l.moments = now, append(l.moments, m)
	return now
}

// since is the beginning of a window; the zero moment: nothing is remembered.
func (l *Live) since(now time.Time, window time.Duration) (before moment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.moments {
		if window > 0 && m.at.Before(now) && (before.at.IsZero() || now.Sub(m.at) >= window) {
			before = m
		}
	}
	return before
}

// Job is what is said of a job in a line.
type Job struct {
	Job     report.Job      `json:"job"`
	States  map[string]int  `json:"states"`  // of its ranks: how many are in each
	Seconds float64         `json:"seconds"` // of how long this is said
	Whole   bool            `json:"whole"`   // since the job began
	Verdict verdict.Verdict `json:"verdict"`
}

// JobList is the answer to GET /api/v1/jobs.
type JobList struct {
	Time time.Time `json:"time"` // when the ranks were asked
	Jobs []Job     `json:"jobs"` // those that need attention first
	// LeftOut is ranks that had no room.
	LeftOut []api.LeftOut `json:"left_out,omitempty"`
}

// ReportList is the answer to GET /api/v1/report.
type ReportList struct {
	Reports []*report.Report `json:"reports"` // in the order of jobid, world, user
	// LeftOut is ranks of all jobs that had no room.
	LeftOut []api.LeftOut `json:"left_out,omitempty"`
}

func jobsOf(now look) JobList {
	list := JobList{Time: now.at, Jobs: []Job{}, LeftOut: now.left}
	reports := slices.SortedStableFunc(slices.Values(now.jobs), func(a, b *report.Report) int {
		return cmp.Compare(a.Needs(), b.Needs())
	})
	for _, r := range reports {
		j := Job{Job: r.Job, States: map[string]int{}, Seconds: r.Seconds, Whole: r.Whole, Verdict: r.Verdict}
		for i := range r.Ranks {
			j.States[r.Ranks[i].State]++
		}
		list.Jobs = append(list.Jobs, j)
	}
	return list
}
