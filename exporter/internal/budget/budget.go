// Package budget bounds the series of performance variables: of all ranks, of each job, of each user and of each
// rank. Series count by their weight (series.Rank.Weight).
//
// Begin reading at Account.
package budget

import (
	"sync"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Budgets is how many series there are, and may be. Who has series keeps them, whoever comes; an ended rank has them
// for as long as it stands on the page, which is not long where there is no room for others. It is safe for
// concurrent use.
type Budgets struct {
	mu     sync.Mutex
	limits rules.Limits // without zeros
	all    int
	jobs   map[Job]int
	users  map[uint32]int
}

// Job is a job of one user: others may claim to be of it.
type Job struct {
	ID  string
	UID uint32
}

// New returns Budgets of which nothing is used, or may be before SetLimits.
func New() *Budgets { return &Budgets{jobs: map[Job]int{}, users: map[uint32]int{}} }

// SetLimits puts new limits into force, zeros standing for the defaults: for what comes. With an error the old ones
// stay.
func (b *Budgets) SetLimits(l rules.Limits) error {
	if err := l.Check(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limits = l.WithDefaults()
	return nil
}

// Limits returns those that are in force.
func (b *Budgets) Limits() rules.Limits {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limits
}

// scope is what is left in one, and what it is called where there is nothing.
type scope struct {
	room   int
	reason mapping.Reason
}

// left is what is left in each scope for who is of a job, below zero if too much has been given out. Of all
// series there is some room for the next user, whoever has come before. mu is held.
func (b *Budgets) left(job Job) [3]scope {
	return [...]scope{
		{b.limits.SeriesPerJob - b.jobs[job], mapping.ReasonJobOverLimit},
		{b.limits.SeriesPerUser - b.users[job.UID], mapping.ReasonUserOverLimit},
		{mpit.Room(b.limits.Series, b.all, b.users[job.UID]), mapping.ReasonSeriesOverLimit},
	}
}

// add gives out so much more. mu is held.
func (b *Budgets) add(job Job, weight int) {
	b.all += weight
	if b.jobs[job] += weight; b.jobs[job] == 0 {
		delete(b.jobs, job)
	}
	if b.users[job.UID] += weight; b.users[job.UID] == 0 {
		delete(b.users, job.UID)
	}
}

// Use is how many series there are: in all, and of those jobs, users and ranks that have most.
type Use struct{ All, Job, User, Rank int }

// Used returns how many there are. ranks are those that count for Use.Rank.
func (b *Budgets) Used(ranks []*Account) Use {
	b.mu.Lock()
	defer b.mu.Unlock()
	use := Use{All: b.all}
	for _, weight := range b.jobs {
		use.Job = max(use.Job, weight)
	}
	for _, weight := range b.users {
		use.User = max(use.User, weight)
	}
	for _, a := range ranks {
		use.Rank = max(use.Rank, a.weight)
	}
	return use
}

// Account is what one rank has. It is a series.Room. It is safe for concurrent use.
type Account struct {
	budgets *Budgets
	job     Job
	weight  int // guarded by budgets
}

// Open returns an account that has nothing.
func (b *Budgets) Open(job Job) *Account { return &Account{budgets: b, job: job} }

// tightest is how much more a rank may have, and what bounds it. The budgets' mu is held.
func (a *Account) tightest() (room int, reason mapping.Reason) {
	room, reason = a.budgets.limits.SeriesPerRank-a.weight, mapping.ReasonRankOverLimit
	for _, scope := range a.budgets.left(a.job) {
		if scope.room < room {
			room, reason = scope.room, scope.reason
		}
	}
	return room, reason
}

// Take gives a rank so much more, or nothing, and says why.
func (a *Account) Take(weight int) mapping.Reason {
	a.budgets.mu.Lock()
	defer a.budgets.mu.Unlock()
	if room, reason := a.tightest(); weight > room {
		return reason
	}
	a.budgets.add(a.job, weight)
	a.weight += weight
	return ""
}

// Short says whether there is no room for one more like this one.
func (a *Account) Short() bool {
	a.budgets.mu.Lock()
	defer a.budgets.mu.Unlock()
	for _, scope := range a.budgets.left(a.job) {
		if scope.room < a.weight {
			return true
		}
	}
	return false
}

// Settle notes what the account has now. What was taken beyond that is given back.
func (a *Account) Settle(weight int) {
	a.budgets.mu.Lock()
	defer a.budgets.mu.Unlock()
	if weight == a.weight { // as nearly always
		return
	}
	a.budgets.add(a.job, weight-a.weight)
	a.weight = weight
}
