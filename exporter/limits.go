package exporter

import (
	"math"
	"sync"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// maxDescribing is how many series may describe one rank's objects and variables, maxDescribingAll those of all ranks. Each user with ranks may
// have an equal part of these. What describes the variables of a world counts once.
const (
	maxDescribing    = 8192
	maxDescribingAll = 50_000
)

// Values of the label `scope`.
const (
	scopeAll      = "all"
	scopeJob      = "job"
	scopeUser     = "user"
	scopeRank     = "rank"
	scopeVariable = "variable"
)

// budgets is how many series of performance variables there are, and may be: of all ranks, of each job, of each user. Series
// count by their weight (mapping.Rank.Weight). Who has series keeps them, whoever comes; an ended rank has them for as long as it
// stands on the page, which is not long where there is no room for others (Exporter.expire). It is safe for concurrent use.
type budgets struct {
	mu     sync.Mutex
	limits mapping.Limits // without zeros
	all    int
	jobs   map[jobKey]int
	users  map[uint32]int
}

// jobKey is a job of one user: others may claim to be of it.
type jobKey struct {
	jobID string
	uid   uint32
}

func newBudgets(l mapping.Limits) (*budgets, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	return &budgets{limits: l.WithDefaults(), jobs: map[jobKey]int{}, users: map[uint32]int{}}, nil
}

func (r *rank) job() jobKey { return jobKey{r.id.JobID, r.peer.UID} }

// left is what is left in each scope around a rank, below zero if too much has been given out, and what it is called there. Of all series nobody
// has more than he leaves: so there is room for the next user, whoever has come before. mu is held.
func (b *budgets) left(key jobKey) [3]struct {
	room   int
	reason mapping.Reason
} {
	return [3]struct {
		room   int
		reason mapping.Reason
	}{
		{b.limits.SeriesPerJob - b.jobs[key], mapping.ReasonJobOverLimit},
		{b.limits.SeriesPerUser - b.users[key.uid], mapping.ReasonUserOverLimit},
		{(b.limits.Series - b.all - b.users[key.uid]) / 2, mapping.ReasonSeriesOverLimit},
	}
}

// tightest is how much more a rank may have, and what bounds it. mu is held.
func (b *budgets) tightest(r *rank) (room int, reason mapping.Reason) {
	room, reason = b.limits.SeriesPerRank-r.weight, mapping.ReasonRankOverLimit
	for _, scope := range b.left(r.job()) {
		if scope.room < room {
			room, reason = scope.room, scope.reason
		}
	}
	return room, reason
}

// roomOf is the part of the budgets that one rank draws on. It is a mapping.Room.
type roomOf struct {
	*budgets
	rank *rank
}

// Left is how much more the rank may have.
func (o roomOf) Left() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	room, _ := o.tightest(o.rank)
	return room
}

// Take gives the rank so much more, or nothing, and says why.
func (o roomOf) Take(weight int) mapping.Reason {
	o.mu.Lock()
	defer o.mu.Unlock()
	if room, reason := o.tightest(o.rank); weight > room {
		return reason
	}
	o.add(o.rank.job(), weight)
	o.rank.weight += weight
	return ""
}

// short says whether there is no room for one more rank like this one.
func (b *budgets) short(r *rank) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, scope := range b.left(r.job()) {
		if scope.room < r.weight {
			return true
		}
	}
	return false
}

// take notes what a rank has. What it has taken beyond that is given back.
func (b *budgets) take(r *rank, weight int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if weight == r.weight { // as nearly always
		return
	}
	b.add(r.job(), weight-r.weight)
	r.weight = weight
}

// takeMerged notes that series of a job which belong to no rank have this weight instead of what they had.
func (b *budgets) takeMerged(key jobKey, had, weight int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(key, weight-had)
}

// of returns the limits.
func (b *budgets) of() mapping.Limits {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limits
}

// offerMerged is the most that such series may have now.
func (b *budgets) offerMerged(key jobKey, had int) (weight int, reason mapping.Reason) {
	b.mu.Lock()
	defer b.mu.Unlock()
	weight = math.MaxInt
	for _, scope := range b.left(key) {
		if most := had + max(0, scope.room); most < weight {
			weight, reason = most, scope.reason
		}
	}
	return weight, reason
}

// add is called by who holds mu.
func (b *budgets) add(key jobKey, weight int) {
	b.all += weight
	if b.jobs[key] += weight; b.jobs[key] == 0 {
		delete(b.jobs, key)
	}
	if b.users[key.uid] += weight; b.users[key.uid] == 0 {
		delete(b.users, key.uid)
	}
}

// limit puts new limits into force: for what comes.
func (b *budgets) limit(l mapping.Limits) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limits = l.WithDefaults()
}

// used is the most that any job, any user and any rank has, and what all have together.
func (b *budgets) used(ranks []*rank) map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	used := map[string]int{scopeAll: b.all, scopeJob: 0, scopeUser: 0, scopeRank: 0}
	for _, weight := range b.jobs {
		used[scopeJob] = max(used[scopeJob], weight)
	}
	for _, weight := range b.users {
		used[scopeUser] = max(used[scopeUser], weight)
	}
	for _, r := range ranks {
		used[scopeRank] = max(used[scopeRank], r.weight)
	}
	return used
}

// setLimits puts new limits into force, zeros standing for the defaults: for each rank at its next answer. With an error the old
// ones stay.
func (e *Exporter) setLimits(l mapping.Limits) error {
	if err := l.Check(); err != nil {
		return err
	}
	e.budgets.limit(l)
	e.showLimits(e.budgets.of())
	return nil
}

func (e *Exporter) showLimits(l mapping.Limits) {
	for scope, limit := range map[string]int{
		scopeAll: l.Series, scopeJob: l.SeriesPerJob, scopeUser: l.SeriesPerUser, scopeRank: l.SeriesPerRank, scopeVariable: l.SeriesPerVariable,
	} {
		e.self.seriesLimit.WithLabelValues(scope).Set(float64(limit))
	}
}
