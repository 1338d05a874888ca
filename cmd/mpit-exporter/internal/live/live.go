// Package live answers what the jobs of a node do now: a report on each of the last seconds (package report).
//
// The exporter's values are totals. Somebody has to remember what they were some seconds ago, and it is better one
// server than every viewer, some of which can't keep a thousand ranks: Live does, but only while somebody asks. Begin
// with Live.Handler.
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

// Values returns what stands on the exporter's page (exporter.Exporter.Values).
type Values func(ctx context.Context, which api.Selector, fresh bool) (api.ValueList, error)

// Live remembers the last moments of all jobs. It is safe for concurrent use.
type Live struct {
	values Values

	turn    chan struct{} // has a token: whoever takes it asks, and everybody else waits for the answer
	mu      sync.Mutex
	moments []moment // the newest last
	forget  *time.Timer
}

// moment is what was known of all jobs. It is never changed.
type moment struct {
	at   time.Time
	jobs []*report.Report // in the order of their labels
}

// New returns a Live that knows nothing yet.
func New(values Values) *Live {
	l := &Live{values: values, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	l.forget = time.AfterFunc(Kept, l.drop)
	return l
}

// drop forgets everything: nobody has asked for long.
func (l *Live) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moments = nil
}

// look returns the report on every job of the last window: of the time since the newest moment that is at least that
// long ago, or else since the oldest that is remembered. With a window of zero, or if nothing is remembered, reports
// are of whole jobs.
func (l *Live) look(ctx context.Context, window time.Duration) (time.Time, []*report.Report, error) {
	select {
	case <-l.turn:
		defer func() { l.turn <- struct{}{} }()
	case <-ctx.Done():
		return time.Time{}, nil, fmt.Errorf("waiting for the ranks' values: %w", ctx.Err())
	}
	now, fresh := l.last()
	if !fresh {
		list, err := l.values(ctx, api.Selector{}, false)
		if err != nil {
			return time.Time{}, nil, err
		}
		now = l.take(list)
	}
	before := l.since(now, window)
	reports := slices.Clone(now.jobs)
	for i, r := range reports {
		reports[i] = r.Since(before.of(r))
	}
	return now.at, reports, nil
}

// last is the last moment. Unless it is fresh, the exporter is to be asked: all of its values are copied then, for which
// scrapes wait.
func (l *Live) last() (m moment, fresh bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget.Reset(2 * Kept)
	if len(l.moments) == 0 {
		return moment{}, false
	}
	m = l.moments[len(l.moments)-1]
	return m, time.Since(m.at) < apart
}

// take remembers what the exporter has answered, unless it has been known.
func (l *Live) take(list api.ValueList) moment {
	if m, _ := l.last(); list.Time.Sub(m.at) < apart {
		return m
	}
	now := moment{list.Time, report.Of([]api.ValueList{list}, nil)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moments = slices.DeleteFunc(l.moments, func(m moment) bool { return now.at.Sub(m.at) > Kept+apart })
	l.moments = append(l.moments, now)
	return now
}

// since is the beginning of a window; the zero moment: nothing is remembered.
func (l *Live) since(now moment, window time.Duration) (before moment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.moments {
		if window > 0 && m.at.Before(now.at) && (before.at.IsZero() || now.at.Sub(m.at) >= window) {
			before = m
		}
	}
	return before
}

// of is the report on the same job; nil: it was not there.
func (m *moment) of(r *report.Report) *report.Report {
	for _, other := range m.jobs {
		if a, b := &other.Job, &r.Job; a.ID == b.ID && a.World == b.World && a.User == b.User {
			return other
		}
	}
	return nil
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
}

// ReportList is the answer to GET /api/v1/report.
type ReportList struct {
	Reports []*report.Report `json:"reports"` // in the order of jobid, world, user
}

func jobsOf(at time.Time, reports []*report.Report) JobList {
	list := JobList{Time: at, Jobs: []Job{}}
	reports = slices.SortedStableFunc(slices.Values(reports), func(a, b *report.Report) int {
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
