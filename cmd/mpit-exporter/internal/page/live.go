package page

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/client"
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
	// sitesApart is how old the sites of a job may be: all of its ranks are asked for them. siteTimeout is how long they
	// may take.
	sitesApart, siteTimeout = 10 * time.Second, time.Second
)

// Window returns what reports are made of, within bounds (exporter.Exporter.Window).
type Window func(ctx context.Context) (api.ValueList, error)

// Sites returns the places from which ranks call MPI at which most time was waited (exporter.Exporter.Sites).
type Sites func(ctx context.Context, jobID, world, user string) []api.Site

// Live knows what all jobs do, and some numbers of the last moments. It is safe for concurrent use.
type Live struct {
	window  Window
	ask     Sites
	callers *client.Callers

	turn   *semaphore.Weighted // to ask and answer
	past   job.Window
	left   []api.LeftOut // ranks that had no room the last time
	sites  map[[3]string]found
	forget *time.Timer
}

// found is the sites of a job, of when they were asked for.
type found struct {
	at    time.Time
	sites []job.Site
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

// NewLive returns a Live that knows nothing yet. callers names the code that calls; nil: module and offset are
// shown.
func NewLive(window Window, sites Sites, callers *client.Callers) *Live {
	l := &Live{window: window, ask: sites, callers: callers, sites: map[[3]string]found{}, turn: semaphore.NewWeighted(1),
		past: job.Window{Longest: longest}}
	l.forget = time.AfterFunc(Kept, l.drop)
	return l
}

// drop forgets everything: there has been no request for long.
func (l *Live) drop() {
	_ = l.turn.Acquire(context.Background(), 1) // which always ends
	defer l.turn.Release(1)
	l.past, l.left = job.Window{Longest: longest}, nil
	clear(l.sites)
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
			l.past.Add(list.Time, job.Of([]api.ValueList{list}, l.callers.OfRank))
			l.left = list.LeftOut
		}
	}
	jobs := l.past.Since(window)
	for _, r := range jobs {
		r.Sites = l.sitesOf(ctx, r)
		r.Locate()
	}
	return look{l.past.Now(), jobs, l.left}, nil
}

// sitesOf are those where most is waited in a job, not older than the other figures by more than sitesApart.
func (l *Live) sitesOf(ctx context.Context, r *job.Report) []job.Site {
	if !r.Answers() {
		return nil
	}
	key, now := [3]string{r.Job.ID, r.Job.World, r.Job.User}, l.past.Now()
	if was, known := l.sites[key]; known && now.Sub(was.at) < sitesApart {
		return was.sites
	}
	maps.DeleteFunc(l.sites, func(_ [3]string, was found) bool { return now.Sub(was.at) > longest })
	ctx, cancel := context.WithTimeout(ctx, siteTimeout)
	defer cancel()
	r.Sites = nil
	for _, of := range l.ask(ctx, r.Job.ID, r.Job.World, r.Job.User) {
		r.Sites = append(r.Sites, job.Site{Site: of, From: fmt.Sprintf("%s+%#x", path.Base(of.Module), of.Offset)})
	}
	l.callers.NameSites(r)
	l.sites[key] = found{now, r.Sites}
	return r.Sites
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
