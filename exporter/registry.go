package exporter

import (
	"errors"
	"slices"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/budget"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/self"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/guard"
)

// ranks is what connections, rounds and the page share: the registry behind its lock, and what has a lock of its own.
type ranks struct {
	*base
	registry guard.Mutex[registry]
}

func newRanks(b *base) *ranks {
	rs := &ranks{base: b}
	*rs.registry.Lock() = registry{
		base: b, giveUp: rs.registry.Unlock, table: newTable(), worlds: newWorlds(),
		takers: takers{open: map[taker]bool{}}, finals: map[uint32]int{}, clashes: map[uint32]time.Time{},
		inquiries: map[uint32]int{},
	}
	rs.registry.Unlock()
	return rs
}

// lock waits for the registry's lock. The registry may be used until its unlock.
func (rs *ranks) lock() *registry { return rs.registry.Lock() }

// with does something with the registry.
func (rs *ranks) with(do func(g *registry)) {
	g := rs.lock()
	defer g.unlock()
	do(g)
}

// registry is all ranks that there are. To have one is to hold its lock, which guards the attendance of ranks, their
// questions and their worlds as well. It is held for a look or a change, never while a rank is taken in; a rank's own
// lock comes before it, those of tables such as budgets after it.
type registry struct {
	*base
	giveUp func() // the lock

	table     table
	worlds    worlds
	takers    takers
	finals    finals
	clashes   clashes
	inquiries map[uint32]int // ranks that are being asked for more than a sample, by uid
	removed   []*rank        // from the table, to be closed
}

// unlock gives the lock back, and closes what has been removed from the table.
func (g *registry) unlock() {
	removed := g.removed
	g.removed = nil
	g.giveUp()
	for _, r := range removed {
		r.close()
	}
}

// connect gives a rank its connection, which has been opened by such a process. A rank that was known before goes on
// with it: its agent has connected anew. old is the connection that it had.
func (g *registry) connect(l *line, w identity.Process) (r *rank, old *line, err error) {
	h, peer := l.session.Hello(), l.session.Peer()
	r = g.table.byID[h.ID]
	switch {
	case r != nil && r.UID != peer.UID:
		g.self.Refused.WithLabelValues(self.RefusedUID).Inc()
		return nil, nil, errors.New("another user has a rank with the same id")
	case (r == nil || r.end != mpit.EndNone) && g.table.alive(peer.UID) >= g.cfg.MaxRanks:
		g.self.Refused.WithLabelValues(self.RefusedRanks).Inc()
		return nil, nil, errors.New("the user has too many ranks")
	case r == nil:
		r = g.add(h, peer, w)
		r.watch(l.session)
	case r.end == mpit.EndLost:
		r.revive()
	}
	old, r.line = r.line, l
	r.gone = time.Time{}
	if r.state == stateLate {
		r.state = stateNew
	}
	if r.send.selected {
		// An agent may or may not remember what its last connection selected.
		r.send.selection = true
	}
	if r.Old && !r.facts.Load().Figured {
		l.question(r, time.Now()) // some figures begin with the first answer: no scrape is waited for
	}
	g.table.enter(r)
	r.nudge()
	return r, old, nil
}

// add puts a new rank into the table.
func (g *registry) add(h mpit.Hello, peer mpit.Peer, w identity.Process) *rank {
	g.makeWay(w.ID, peer.UID)
	r := g.table.add(g.base, h, peer, w)
	r.account = g.budgets.Open(budget.Job{ID: r.ID.JobID, UID: r.UID})
	if r.Old = h.InitTime.Before(g.started); r.Old {
		r.since = g.now()
	}
	g.worlds.join(r, w.Here)
	g.noteClash(r)
	if w.Check == identity.Differs {
		g.self.Mismatches.Inc()
		g.log.Debug("a rank claims another job than the kernel says", append(r.attrs(), "cgroup_jobid", w.CgroupJobID)...)
	}
	return r
}

// disconnect notes the end of a connection, unless the rank has a newer one.
func (g *registry) disconnect(r *rank, l *line) {
	if r.line != l {
		return
	}
	r.line = nil
	g.abandon(r)
	if r.end == mpit.EndNone {
		r.gone = g.now()
		r.state = stateLate
	}
	g.table.enter(r)
	g.evict()
}

// finish marks a rank as ended and makes room for it.
func (g *registry) finish(r *rank, reason mpit.EndReason, at time.Time) {
	r.finish(reason, at)
	r.world.ran = latest(r.world.ran, r.ended)
	if r.line != nil {
		if q := r.line.asked.Load(); q != nil {
			q.settle() // no round waits until it is let go from MPI_Finalize
		}
	}
	g.table.enter(r)
	g.dropControls(r)
	g.log.Debug("rank ended", append(r.attrs(), "reason", r.end.String())...)
	g.takers.tell()
	g.evict()
}

// evict makes room for ended ranks.
func (g *registry) evict() {
	for {
		victim := g.table.surplus(g.cfg.MaxEnded, g.endedBytes)
		if victim == nil {
			return
		}
		g.self.Evicted.Inc()
		if reason := g.takers.loss(victim, g.now()); reason != "" {
			g.drop(reason, victim.facts.Load().Series)
		}
		g.remove(victim)
	}
}

// remove forgets a rank; it leaves the page when that is made next.
func (g *registry) remove(r *rank) {
	g.table.remove(r)
	if g.worlds.leave(r) {
		g.categories.Replace(r.UID, r.world.rows, nil)
	}
	r.process.Close()
	g.removed = append(g.removed, r)
}

// exitWait is for how long the status of a process that has gone is waited for: descriptors are few.
const exitWait = 10 * time.Second

func latest(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

// expire ends ranks whose last sample is overdue and forgets ended ones whose time is over, or whose room others need.
func (g *registry) expire() {
	now := g.now()
	var over, lost []*rank
	for _, r := range g.table.ordered {
		if r.left.IsZero() && r.line == nil && r.process.Gone() {
			r.left = now
		}
		if r.exit == "" && r.line == nil {
			r.exit = r.process.Status()
		}
		if !r.left.IsZero() && now.Sub(r.left) >= exitWait {
			r.process.Close()
		}
		if r.end == mpit.EndNone {
			r.world.ran = now
		}
		switch {
		case r.end != mpit.EndNone && !g.takers.want(r, now) &&
			(now.Sub(r.over()) >= g.cfg.Retention || r.account.Short()):
			over = append(over, r)
		case r.end == mpit.EndNone && r.line == nil && now.Sub(r.gone) >= g.grace:
			lost = append(lost, r)
		}
	}
	for _, r := range over {
		g.remove(r)
	}
	for _, r := range lost {
		if g.table.byID[r.Key] == r { // and has not been evicted meanwhile
			g.finish(r, mpit.EndLost, r.gone)
		}
	}
}

// look appends what there is of each rank to views.
func (g *registry) look(views []view) []view {
	g.expire()
	for _, r := range g.table.ordered {
		views = append(views, view{r, r.state, r.end, r.lives, r.sinceEnd(), r.facts.Load()})
	}
	return views
}

// each does something with those ended ranks that have brought nothing new since.
func (g *registry) each(ended []ending, do func(r *rank)) {
	for _, end := range ended {
		if end.rank.lives == end.lives {
			do(end.rank)
		}
	}
}

// delivered notes that a scraper has got a page with these ended ranks, which lets them go in time.
func (rs *ranks) delivered(ended []ending) {
	g := rs.lock()
	defer g.unlock()
	g.takers.lastScrape = g.now()
	g.each(ended, func(r *rank) { r.scraped = true })
}

// maxWays is at how many ranks with the same labels a new one looks, for an ended one in whose place it could be.
const maxWays = 16

// makeWay removes the ended rank whose labels a new one would have, if it is the same user's and nobody waits for its
// last values. A job that is requeued, or a program that is started again and again by one shell, so goes on in the
// same series, which begin anew; with a label dup it would be another one until its end. Others keep their labels.
func (g *registry) makeWay(id Identity, uid uint32) {
	for ; id.Dup < maxWays; id.Dup++ {
		i, found := g.table.find(id)
		if !found {
			return
		}
		if old := g.table.ordered[i]; old.end != mpit.EndNone && !g.takers.want(old, g.now()) && old.UID == uid {
			g.remove(old)
			return
		}
	}
}

// noteClash counts and logs that a new rank has the labels of another one, or is in a world that another user claims
// too: once for each world, and of one user at most one line in clashLogInterval.
func (g *registry) noteClash(r *rank) {
	if r.ID.Dup > 0 {
		g.self.Clashes.Inc()
	}
	if r.ID.Dup == 0 && r.world.Dup == 0 || r.world.warned || !g.clashes.logs(r.UID, g.now()) {
		return
	}
	r.world.warned = true
	g.log.Warn("ranks have the labels of others; the later ones have a label dup (further clashes of this world are "+
		"only counted)", append(r.attrs(), "pid", r.About.PID, "jobid_source", r.About.JobIDSource, "jobid_check",
		r.About.JobIDCheck)...)
}

// publish tells all who don't have the rank's lock what is in it now, and the session's goroutine what the agent is
// to be told. It reports whether the figures, if there are some, are sound.
func (rs *ranks) publish(c *contents) (sound bool) {
	f, sound := c.snapshot()
	tell := c.tell
	c.tell = outbox{}
	r, g := c.rank, rs.lock()
	defer g.unlock()
	r.facts.Store(f)
	c.comms.Most = mostComms(len(g.table.ordered))
	g.table.enter(r)
	if tell.selected {
		r.send.selected, r.send.selection, r.send.def, r.send.ids = true, true, tell.def, tell.ids
	}
	if tell.open != nil {
		r.send.open = tell.open
	}
	r.nudge()
	return sound
}

// finals is the connections that are to bring a last sample, by uid. It belongs to the registry.
type finals map[uint32]int

// enter counts one more, if a user with so many living ranks may have it.
func (f finals) enter(uid uint32, alive int) bool {
	if f[uid] >= maxFinals+alive {
		return false
	}
	f[uid]++
	return true
}

func (f finals) leave(uid uint32) {
	if f[uid]--; f[uid] == 0 {
		delete(f, uid)
	}
}

// clashes is when a clash of labels was logged, by uid.
type clashes map[uint32]time.Time

const (
	// clashLogInterval is how often one user's clashes of labels are worth a line: a user can make any number of them.
	clashLogInterval = time.Minute
	// maxClashLogged bounds the users of whom it is known when a clash was logged.
	maxClashLogged = 256
)

// logs says whether a user's clash is to be logged now, and notes it.
func (c clashes) logs(uid uint32, now time.Time) bool {
	if last, found := c[uid]; found && now.Sub(last) < clashLogInterval {
		return false
	}
	if len(c) >= maxClashLogged {
		clear(c) // a few lines more
	}
	c[uid] = now
	return true
}

// scraperAway is for how long a scraper that does not come is waited for with what ended ranks have left, if somebody
// else has taken it.
const scraperAway = time.Hour

// takers is who takes the last values of ended ranks. It belongs to the registry.
type takers struct {
	open       map[taker]bool // readers of metric data
	lastScrape time.Time      // when the last page was delivered to a scraper; zero: none has been
}

// want says whether somebody is still to get what an ended rank has left: a reader of metric data, or a scraper.
// Where there are readers, a scraper is somebody who has come within scraperAway.
func (t *takers) want(r *rank, now time.Time) bool {
	for reader := range t.open {
		if !r.took[reader] {
			return true
		}
	}
	if r.scraped {
		return false
	}
	return len(t.open) == 0 || !t.lastScrape.IsZero() && now.Sub(t.lastScrape) < scraperAway
}

// loss says why an ended rank's series are dropped if it goes now; "": everybody has got them who was waited for.
func (t *takers) loss(r *rank, now time.Time) (reason string) {
	switch {
	case !r.facts.Load().Figured || !t.want(r, now):
		return ""
	case !r.scraped && len(r.took) == 0:
		return self.DroppedEvicted
	}
	return self.DroppedUndelivered
}

// tell tells all readers that a rank has ended. It does not wait.
func (t *takers) tell() {
	for reader := range t.open {
		select {
		case reader <- struct{}{}:
		default: // it knows
		}
	}
}
