package exporter

import "time"

const (
	// burst is how long ranks may keep everybody waiting, all users together, before those whose ranks have done so have to wait
	// themselves. It is for the beginning of jobs, when everything is new.
	burst = 2 * time.Second
	// share is how much of the time ranks may keep everybody waiting in the long run.
	share = 0.5
)

// turns says whose ranks' answers are taken in now. Taking one in holds Exporter.mu: a few microseconds, unless the rank says new things
// all the time. While several users have ranks, each may have so much of the time; the ranks of who has had it are late. It belongs to
// Exporter.mu.
type turns struct {
	users int // that have ranks
	debts map[uint32]debt
	now   func() time.Time
	since func(start time.Time) time.Duration
}

// debt is time that ranks of one user have cost and that is not yet forgiven.
type debt struct {
	spent time.Duration
	at    time.Time
}

func newTurns() turns {
	return turns{debts: map[uint32]debt{}, now: time.Now, since: time.Since}
}

// owed is a user's debt now.
func (t *turns) owed(uid uint32) time.Duration {
	d, ok := t.debts[uid]
	if !ok {
		return 0
	}
	forgiven := time.Duration(float64(t.now().Sub(d.at)) * share / float64(max(t.users, 1)))
	return max(0, d.spent-forgiven)
}

// may says whether an answer of a user's rank may be taken in.
func (t *turns) may(uid uint32) bool {
	return t.users < 2 || t.owed(uid) < burst/time.Duration(t.users)
}

// begin measures what is done on a user's account until the function that it returns is called.
func (t *turns) begin(uid uint32) (end func()) {
	start := t.now()
	return func() { t.debts[uid] = debt{t.owed(uid) + t.since(start), t.now()} }
}

// share counts the users of ranks, and forgets who owes nothing.
func (t *turns) share(ranks []*rank) {
	seen := map[uint32]bool{}
	for _, r := range ranks {
		seen[r.peer.UID] = true
	}
	t.users = len(seen)
	for uid := range t.debts {
		if t.owed(uid) == 0 {
			delete(t.debts, uid)
		}
	}
}
