package exporter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/self"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/guard"
)

// round is one asking of all ranks. Whoever wants to read soon after it has begun waits for it instead of starting
// another. It is over when all have answered, or nobody waits any more; a reader whose deadline comes earlier gets a
// page of what has come by then. Rounds may overlap: a rank that still owes an answer is not asked again.
type round struct {
	start     time.Time
	questions questions
	ctx       context.Context
	cancel    context.CancelFunc
	done      chan struct{} // closed when there is a page for all who wait
	result    *result       // set before done is closed
	err       error

	// Who waits for it belongs to rounds.shared.
	waiting readers
	served  bool // somebody has got a page
	over    bool // nobody can join it; there is a page already, or soon
}

// questions are those of a round, by how long their answers are waited for.
type questions [4]asking

const (
	known = iota // ranks that have answered before, and owed nothing: to the end
	fresh        // ranks that have never answered: while others of them do
	tardy        // ranks that have owed an answer for longer than overdue: for the patience, once
	rest         // the same, of which an earlier round had that patience: not at all
)

// asking is questions that are waited for together.
type asking struct {
	list []*question
	open *countdown
}

// rounds lets readers share rounds. It is safe for concurrent use.
type rounds struct {
	*ranks
	pages  *pages
	shared guard.Mutex[sharedRound]
}

// sharedRound is the last round that is under way, as long as it can be joined; nil: there is none. To have one is to
// hold its lock, which guards who attends any round.
type sharedRound struct{ *round }

// leave takes a reader out of a round that does not wait for it to be over; false: it is over.
func (s *sharedRound) leave(r *round, w way, late bool, m *self.Metrics) bool {
	if r.over {
		return false
	}
	r.served = r.served || late
	if r.waiting[w]--; r.waiting == (readers{}) {
		s.end(r, m)
	}
	return true
}

// close ends a round of which the page is made next, and returns who waits for it: nobody, if all have gone.
func (s *sharedRound) close(r *round, m *self.Metrics) readers {
	if r.over {
		return readers{}
	}
	r.served = true
	s.end(r, m)
	return r.waiting
}

// end takes no more readers into a round, which counts if anybody gets something of it.
func (s *sharedRound) end(r *round, m *self.Metrics) {
	r.over = true
	r.cancel()
	if s.round == r {
		s.round = nil
	}
	if r.served {
		m.Rounds.Inc()
		m.RoundDuration.Observe(time.Since(r.start).Seconds())
	}
}

// gather returns one reader's hold on the page as it wants it.
func (rs *rounds) gather(ctx context.Context, w way) (*lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("exporter: gathering: %w", err)
	}
	if _, ok := ctx.Deadline(); !ok {
		limited, cancel := context.WithTimeout(ctx, defaultTimeout)
		defer cancel()
		ctx = limited
	}
	r := rs.join(w)
	select {
	case <-r.done:
		return &lease{r.result, w}, r.err
	case <-ctx.Done():
	}
	late := errors.Is(ctx.Err(), context.DeadlineExceeded)
	s := rs.shared.Lock()
	left := s.leave(r, w, late, rs.self)
	rs.shared.Unlock()
	if !left {
		<-r.done // this reader's page is being made
		return &lease{r.result, w}, r.err
	}
	if !late {
		return nil, fmt.Errorf("exporter: gathering: %w", ctx.Err())
	}
	var alone readers
	alone[w]++
	result, err := rs.pages.commit(&r.questions, alone)
	return &lease{result, w}, err
}

// join takes part in the round that has just begun, or begins one.
func (rs *rounds) join(w way) *round {
	s := rs.shared.Lock()
	defer rs.shared.Unlock()
	if s.round == nil || time.Since(s.start) >= rs.shareable {
		s.round = &round{start: time.Now(), done: make(chan struct{})}
		s.ctx, s.cancel = context.WithCancel(context.Background())
		s.questions = rs.ask()
		go rs.run(s.round)
	}
	s.waiting[w]++
	return s.round
}

// run waits for the answers of a round.
func (rs *rounds) run(r *round) {
	rs.await(r)
	s := rs.shared.Lock()
	waiting := s.close(r, rs.self)
	rs.shared.Unlock()
	if waiting == (readers{}) {
		return
	}
	r.result, r.err = rs.pages.commit(&r.questions, waiting)
	close(r.done)
}

// ask sends the request to all ranks before any answer is waited for, and returns the questions. It does not wait.
func (rs *rounds) ask() (all questions) {
	for i := range all {
		all[i].open = newCountdown()
	}
	g := rs.lock()
	g.expire() // so that those which come find room
	list := g.table.connected()
	g.unlock()
	now := time.Now()
	for some := range slices.Chunk(list, askedAtOnce) {
		g := rs.lock()
		for _, r := range some {
			g.ask(&all, r, now)
		}
		g.unlock()
	}
	for _, a := range all {
		a.open.less()
	}
	return all
}

// askedAtOnce is how many ranks a round asks before it lets others have the registry's lock. A round that took it for
// each rank anew would wait as often for those who are at the lock.
const askedAtOnce = 64

// maxAwaited is how many rounds wait for one answer. Readers in a hurry can begin any number of them.
const maxAwaited = 64

// ask adds the question that is open to a rank, asking it if there is none.
func (g *registry) ask(all *questions, r *rank, now time.Time) {
	if r.line == nil || r.end != mpit.EndNone {
		return
	}
	q := r.line.question(r, now)
	to := &all[known]
	switch {
	case q.waited || len(q.awaited) == maxAwaited:
		all[rest].list = append(all[rest].list, q)
		return
	case !r.facts.Load().Sampled:
		to = &all[fresh]
	case now.Sub(q.at) >= g.overdue:
		to = &all[tardy]
	}
	to.list = append(to.list, q)
	to.open.left.Add(1)
	q.awaited = append(q.awaited, to.open)
}

// judge says of all ranks that were asked what has become of them.
func (g *registry) judge(asked *questions) {
	now := time.Now()
	for _, a := range asked {
		for _, q := range a.list {
			r := q.rank
			switch {
			case r.end != mpit.EndNone || r.line != q.line:
				// It has brought its last sample, lost its connection or made a new one meanwhile: that is what it is.
			case r.line.asked.Load() != q:
				r.state = r.last
			default:
				g.self.Samples.WithLabelValues(self.ResultLate).Inc()
				if r.state != stateNew || r.facts.Load().Sampled || now.Sub(q.at) >= g.overdue { // else it has just come
					r.state = stateLate
				}
			}
		}
	}
}

// await waits for answers to be taken in: of ranks that have answered before until the round ends. Others have had as
// long by then.
func (rs *rounds) await(r *round) {
	select {
	case <-r.questions[known].open.over:
	case <-r.ctx.Done():
		return
	}
	rs.awaitUntil(r, &r.questions[tardy], time.Until(r.start.Add(rs.patience)), 0)
	// Those that have just come may be many: as long as some of them answer, the others may.
	rs.awaitUntil(r, &r.questions[fresh], time.Until(r.start.Add(rs.welcome)), rs.welcome)
}

// awaitUntil waits for answers for so long, and for more of it whenever some have come meanwhile. Ranks that have not
// answered by then are not waited for again.
func (rs *rounds) awaitUntil(r *round, a *asking, patience, more time.Duration) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for left := int64(len(a.list)); ; {
		select {
		case <-a.open.over:
			return
		case <-r.ctx.Done():
			return
		case <-timer.C:
		}
		was := left
		if left = a.open.left.Load(); more > 0 && left < was {
			timer.Reset(more)
			continue
		}
		rs.with(func(*registry) {
			for _, q := range a.list {
				q.waited = q.waited || !q.taken
			}
		})
		return
	}
}
