package page

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
)

const (
	// Kept is the longest window that may be asked for.
	Kept = 10 * time.Second
	// longest is that of a job with long steps.
	longest = 2 * time.Minute
	// apart is how far moments are apart at least.
	apart = time.Second
)

// Window returns what reports are made of, within bounds (exporter.Exporter.Window).
type Window func(ctx context.Context) (api.ValueList, error)

// Live knows what all jobs do, and some numbers of the last moments. It is safe for concurrent use.
type Live struct {
	window Window

	turn   *semaphore.Weighted // to ask and answer
	past   job.Window
	left   []api.LeftOut // ranks that had no room the last time
	place  func(r *api.RankStatus) string
	forget *time.Timer
}

// look is what is known of all jobs. It is never changed.
type look struct {
	at   time.Time
	jobs []*job.Report // in the order of their labels
	left []api.LeftOut // ranks that are not in them
}

// seenBy leaves what a user may see; nil: all.
func (l look) seenBy(uid *uint32) look {
	if uid == nil {
		return l
	}
	l.jobs = slices.DeleteFunc(slices.Clone(l.jobs), func(r *job.Report) bool {
		return slices.ContainsFunc(r.Ranks, func(of job.Rank) bool { return of.UID != *uid })
	})
	l.left = slices.DeleteFunc(slices.Clone(l.left), func(of api.LeftOut) bool { return of.UID != *uid })
	return l
}

// NewLive returns a Live that knows nothing yet. place says where a rank has made its long call, and is asked of one
// rank at a time; nil: module and offset are shown.
func NewLive(window Window, place func(r *api.RankStatus) string) *Live {
	l := &Live{window: window, place: place, turn: semaphore.NewWeighted(1), past: job.Window{Longest: longest}}
	l.forget = time.AfterFunc(Kept, l.drop)
	return l
}

// drop forgets everything: there has been no request for long.
func (l *Live) drop() {
	_ = l.turn.Acquire(context.Background(), 1) // which always ends
	defer l.turn.Release(1)
	l.past, l.left = job.Window{Longest: longest}, nil
}

// look returns the report on every job of the last window (job.Window.Since). The caller has the turn.
func (l *Live) look(ctx context.Context, window time.Duration) (look, error) {
	l.forget.Reset(2 * Kept)
	if time.Since(l.past.Now()) >= apart {
		list, err := l.window(ctx)
		if err != nil {
			return look{}, err
		}
		if list.Time.Sub(l.past.Now()) >= apart { // unless it has been known
			l.past.Add(list.Time, job.Of([]api.ValueList{list}, l.place))
			l.left = list.LeftOut
		}
	}
	jobs := l.past.Since(window)
	for _, r := range jobs {
		r.Locate()
	}
	return look{l.past.Now(), jobs, l.left}, nil
}

// Job is what is said of a job in a line.
type Job struct {
	Job     job.Job        `json:"job"`
	States  map[string]int `json:"states"`  // of its ranks: how many are in each
	Seconds float64        `json:"seconds"` // of how long this is said
	Whole   bool           `json:"whole"`   // since the job began
	Verdict job.Verdict    `json:"verdict"`
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
	Reports []*job.Report `json:"reports"` // in the order of jobid, world, user
	// LeftOut is ranks of all jobs that had no room.
	LeftOut []api.LeftOut `json:"left_out,omitempty"`
}

func jobsOf(now look) JobList {
	list := JobList{Time: now.at, Jobs: []Job{}, LeftOut: now.left}
	for _, r := range job.ByNeed(now.jobs) {
		j := Job{Job: r.Job, States: map[string]int{}, Seconds: r.Seconds, Whole: r.Whole, Verdict: r.Verdict}
		for i := range r.Ranks {
			j.States[r.Ranks[i].State]++
		}
		list.Jobs = append(list.Jobs, j)
	}
	return list
}
