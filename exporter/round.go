package exporter

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// round is one asking of all ranks. Whoever wants to read while it is under way waits for it instead of starting another.
type round struct {
	ctx    context.Context // ends at the earliest deadline of those who wait
	cancel context.CancelFunc
	timer  *time.Timer

	// Exporter.mu guards these until done is closed.
	deadline time.Time
	waiting  int
	page     *page // nil: not committed
	ended    []ending
	err      error

	done chan struct{}
}

// ending is an ended rank that stands on a page, with how often it had brought something new by then.
type ending struct {
	rank    *rank
	version int
}

// lease is one reader's hold on a page.
type lease struct {
	e        *Exporter
	page     *page
	families []*dto.MetricFamily
	ended    []ending
	once     sync.Once
}

// Gather asks all ranks, or joins the round that is under way, and returns the page: families sorted by name, series in a
// stable order. The page must not be changed and is valid until done, which is never nil and must be called; calling it says
// that the reader has got all of it. Holding it long costs memory, but holds up nobody.
//
// The deadline of ctx (10 s where it has none) is the ranks': those who miss it are reported as late, and Gather returns
// what has come. The only errors are a canceled ctx and bugs.
func (e *Exporter) Gather(ctx context.Context) (families []*dto.MetricFamily, done func(), err error) {
	l, err := e.gather(ctx)
	if err != nil {
		return nil, func() {}, err
	}
	return l.families, func() {
		l.release()
		e.delivered(l.ended)
	}, nil
}

// Snapshot is Gather for a reader that can't say when it is done: a prometheus.GathererFunc, fit for prometheus.Gatherers.
// The families are the caller's to keep, but not to change. The next round has to build its page anew; a Gather costs less.
func (e *Exporter) Snapshot() ([]*dto.MetricFamily, error) {
	ctx, cancel := context.WithTimeout(context.Background(), defaultTimeout)
	defer cancel()
	l, err := e.gather(ctx)
	if err != nil {
		return nil, err
	}
	l.keep()
	return l.families, nil
}

// Gatherer returns Gather, with a deadline of 10 s, as client_golang wants it, for example for
// promhttp.HandlerForTransactional.
func (e *Exporter) Gatherer() prometheus.TransactionalGatherer { return transactional{e} }

type transactional struct{ e *Exporter }

// Gather is Exporter.Gather within 10 s.
func (t transactional) Gather() ([]*dto.MetricFamily, func(), error) {
	ctx, cancel := context.WithTimeout(context.Background(), defaultTimeout)
	defer cancel()
	return t.e.Gather(ctx)
}

func (e *Exporter) gather(ctx context.Context) (*lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("exporter: gathering: %w", err)
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(defaultTimeout)
	}

	e.mu.Lock()
	r := e.round
	switch {
	case r == nil:
		r = newRound(deadline)
		e.round = r
		go e.run(r) //nolint:contextcheck // a round belongs to all who wait for it, not to who began it
	case deadline.Before(r.deadline):
		r.deadline = deadline
		r.timer.Reset(time.Until(deadline))
	}
	r.waiting++
	e.mu.Unlock()

	select {
	case <-r.done:
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) && e.leave(r) {
			return nil, fmt.Errorf("exporter: gathering: %w", ctx.Err())
		}
		// The round has the same deadline, so it comes to its end now.
		<-r.done
	}
	if r.err != nil {
		return nil, r.err
	}
	return &lease{e: e, page: r.page, families: slices.Clip(r.page.out), ended: r.ended}, nil
}

// leave takes one reader out of a round, and reports false where the round is over already. A round that nobody waits for
// is given up.
func (e *Exporter) leave(r *round) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.round != r {
		return false
	}
	r.waiting--
	if r.waiting == 0 {
		e.round = nil
		r.cancel()
	}
	return true
}

func newRound(deadline time.Time) *round {
	r := &round{deadline: deadline, done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.timer = time.AfterFunc(time.Until(deadline), r.cancel)
	return r
}

// question is one rank that was asked.
type question struct {
	rank    *rank
	session *mpit.Session
	pending *mpit.Pending
}

// run is the whole of a round.
func (e *Exporter) run(r *round) {
	defer r.cancel()
	defer r.timer.Stop()
	start := time.Now()
	prompt, tardy := e.ask()
	await(r.ctx, prompt)
	// Those who were late the last time had as long as the others; what remains of the patience is theirs.
	patient, cancel := context.WithDeadline(r.ctx, start.Add(e.patience))
	defer cancel()
	await(patient, tardy)
	e.commit(r, append(prompt, tardy...), time.Since(start))
}

// ask sends the request to all ranks before any answer is waited for. Those that were late in the last round come apart.
func (e *Exporter) ask() (prompt, tardy []question) {
	e.mu.Lock()
	for _, r := range e.table.ordered {
		if r.session == nil || r.end != mpit.EndNone {
			continue
		}
		q := question{rank: r, session: r.session}
		if r.state == stateLate {
			tardy = append(tardy, q)
		} else {
			prompt = append(prompt, q)
		}
	}
	e.mu.Unlock()
	for _, list := range [][]question{prompt, tardy} {
		for i := range list {
			list[i].pending = list[i].session.Ask()
		}
	}
	return prompt, tardy
}

// await waits for all answers, or until ctx ends.
func await(ctx context.Context, questions []question) {
	for _, q := range questions {
		select {
		case <-q.pending.Done():
		case <-ctx.Done():
			return
		}
	}
}

// commit takes the answers in, brings the page up to date and lets those go who wait for it.
func (e *Exporter) commit(r *round, questions []question, took time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.round != r {
		return // everybody has gone
	}
	defer func() {
		if p := recover(); p != nil {
			r.err = fmt.Errorf("exporter: making the page: panic: %v", p)
			e.page = e.newPage() // the old one is half done
			e.log.Error("panic while making the page; please report it", "panic", p, "stack", string(debug.Stack()))
		}
		e.round = nil
		close(r.done)
	}()
	for _, q := range questions {
		e.take(q)
	}
	e.expire()
	e.self.rounds.Inc()
	e.self.roundDuration.Observe(took.Seconds())

	if e.page.leases > 0 {
		e.page = e.newPage()
	}
	p := e.page
	for _, rank := range e.table.ordered {
		if !rank.visible() {
			continue
		}
		if !e.guard(rank, "making its series", func() { p.update(rank, e.cfg.MaxSeries) }) {
			p.remove(rank)
			if rank.end == mpit.EndNone {
				rank.state = stateLate
			}
			p.update(rank, e.cfg.MaxSeries) // without figures
		}
		if rank.end != mpit.EndNone {
			r.ended = append(r.ended, ending{rank, rank.version})
		}
	}
	p.addInfos(e.table.ordered, e.infos)
	p.fill()
	e.setSelf(p)
	own, err := e.self.gather()
	if err != nil {
		e.log.Error("gathering the exporter's own metrics failed", "err", err)
	}
	p.merge(own)
	p.leases += r.waiting
	r.page = p
}

// take takes one rank's answer in. The caller holds mu.
func (e *Exporter) take(q question) {
	r := q.rank
	result, state := e.answer(q)
	e.self.samples.WithLabelValues(result).Inc()
	// A rank that has brought its last sample, lost its connection or made a new one meanwhile is what it has become.
	if r.end == mpit.EndNone && r.session == q.session {
		r.state = state
	}
	if (r.send.blob || r.send.selection) && r.session != nil {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// answer returns what came of a question. The caller holds mu.
func (e *Exporter) answer(q question) (result string, state rankState) {
	select {
	case <-q.pending.Done():
	default:
		return resultLate, stateLate
	}
	sample, err := q.pending.Sample()
	if errors.Is(err, mpit.ErrCongested) {
		return resultLate, stateLate
	}
	if err != nil {
		e.log.Debug("asking a rank failed", append(rankAttrs(q.rank), "err", err)...)
		return resultFailed, stateLate
	}
	if sample.Status == mpit.SampleBusy {
		q.rank.stats = sample.Stats
		q.rank.sampled = true
		return resultBusy, stateBusy
	}
	if q.rank.end == mpit.EndFinalize || q.rank.end == mpit.EndExit || q.rank.end == mpit.EndAbort {
		return resultFresh, stateEnded // older than the last sample
	}
	if !e.absorb(q.rank, &sample) {
		return resultFailed, stateLate
	}
	if sample.Status == mpit.SamplePassive {
		return resultPassive, statePassive
	}
	return resultFresh, stateUp
}

// setSelf sets the gauges of the exporter's own. The caller holds mu.
func (e *Exporter) setSelf(p *page) {
	var states [len(stateNames)]int
	var variables [variableStates]int
	for _, r := range e.table.ordered {
		states[r.state]++
		if r.live() {
			for state, n := range r.byState {
				variables[state] += n
			}
		}
	}
	for state := stateUp; int(state) < len(stateNames); state++ {
		e.self.ranks.WithLabelValues(state.String()).Set(float64(states[state]))
	}
	for state, n := range variables {
		e.self.variables.WithLabelValues(mpit.VariableState(state).String()).Set(float64(n))
	}
	e.self.series.Set(float64(p.series))
}

// release gives the page back. It may be called more than once.
func (l *lease) release() {
	l.once.Do(func() {
		l.e.mu.Lock()
		defer l.e.mu.Unlock()
		l.page.leases--
	})
}

// keep makes the page the reader's for ever, which counts as delivered; the exporter goes on with a new one.
func (l *lease) keep() {
	l.once.Do(func() {
		l.e.mu.Lock()
		if l.e.page == l.page {
			l.e.page = l.e.newPage()
		}
		l.e.mu.Unlock()
		l.e.delivered(l.ended)
	})
}

// delivered notes that a reader has got a page with these ended ranks, which lets them go in time.
func (e *Exporter) delivered(ended []ending) {
	if len(ended) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, end := range ended {
		if end.rank.version == end.version {
			end.rank.scraped = true
		}
	}
}
