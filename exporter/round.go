package exporter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// round is one asking of all ranks. Whoever wants to read soon after it has begun waits for it instead of starting
// another. It is over when all have answered, or nobody waits any more; whose deadline comes earlier gets a page of
// what has come by then. Rounds may overlap: a rank that still owes an answer is not asked again.
type round struct {
	start     time.Time
	questions questions
	ctx       context.Context
	cancel    context.CancelFunc
	done      chan struct{} // closed when there is a page for all who wait

	// rounds.mu guards these until done is closed.
	waiting readers
	served  bool // somebody has got a page
	over    bool // nobody can join it; there is a page already, or soon
	result  *result
	err     error
}

// rounds lets readers share rounds.
type rounds struct {
	mu      sync.Mutex
	current *round // the last one that is under way
}

// questions are those of a round, by how long their answers are waited for.
type questions struct {
	known asking // ranks that have answered before, and owed nothing: to the end
	fresh asking // ranks that have never answered: while others of them do
	tardy asking // ranks that have owed an answer for longer than overdue: for the patience, once
	rest  asking // the same, of which an earlier round had that patience: not at all
}

// asking is questions that are waited for together.
type asking struct {
	list []*question
	open *countdown
}

func newQuestions() questions {
	of := func() asking { return asking{open: newCountdown()} }
	return questions{of(), of(), of(), of()}
}

func (q *questions) all() [4]asking { return [...]asking{q.known, q.fresh, q.tardy, q.rest} }

// way is what a reader wants the page as.
type way uint8

const (
	asMessages way = iota
	asText
	asOpenMetrics
	asValues      // not at all: the reader looks at its series (values.go)
	asPoints      // metric data of OpenTelemetry
	asExponential // the same with exponential histograms
	ways
)

// readers is how many there are that want each.
type readers [ways]int

// result is a page as its readers want it: each way is made once, for all who wait for it, and counts them already.
type result struct {
	messages *exposition.Messages   // nil: nobody wants them
	families []*dto.MetricFamily    // of messages, and own
	bodies   [ways]*exposition.Body // the page as text, without own; nil: nobody wants it
	data     [ways]copies           // the page as metric data, with own
	own      []*dto.MetricFamily    // the exporter's figures of itself, which nobody changes
	ended    []ending
}

// copies are the same metric data once for each reader, whose they are.
type copies struct {
	list  [][]metricdata.Metrics
	taken atomic.Int32
}

// ending is an ended rank that stands on a page, with how often it had brought something new by then.
type ending struct {
	rank  *rank
	lives int
}

// lease is one reader's hold on a result.
type lease struct {
	*result
	e    *Exporter
	way  way
	once sync.Once
}

// Gather asks all ranks, or joins the round that is under way, and returns the page: families sorted by name, series
// in a stable order. The page must not be changed and is valid until done, which is never nil and must be called;
// calling it says that the reader has got all of it. Holding it long costs memory, but holds up nobody.
//
// The deadline of ctx (10 s where it has none) is the ranks': those who miss it are reported as late on this page,
// and Gather returns what has come. The only errors are a canceled ctx and bugs.
func (e *Exporter) Gather(ctx context.Context) (families []*dto.MetricFamily, done func(), err error) {
	l, err := e.gather(ctx, asMessages)
	if err != nil {
		return nil, func() {}, err
	}
	return slices.Clip(l.families), func() {
		l.release()
		e.delivered(l.ended)
	}, nil
}

// Snapshot is Gather for a reader that can't say when it is done: a prometheus.GathererFunc, fit for
// prometheus.Gatherers. The families are the caller's to keep, but not to change. The next one has to make its
// messages anew; a Gather costs less.
func (e *Exporter) Snapshot() ([]*dto.MetricFamily, error) {
	ctx, cancel := context.WithTimeout(context.Background(), defaultTimeout)
	defer cancel()
	l, err := e.gather(ctx, asMessages)
	if err != nil {
		return nil, err
	}
	l.keep()
	return slices.Clip(l.families), nil
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

// gather returns one reader's hold on the page as it wants it.
func (e *Exporter) gather(ctx context.Context, w way) (*lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("exporter: gathering: %w", err)
	}
	if _, ok := ctx.Deadline(); !ok {
		limited, cancel := context.WithTimeout(ctx, defaultTimeout)
		defer cancel()
		ctx = limited
	}
	r := e.join(w)
	select {
	case <-r.done:
		return e.lease(r.result, w, r.err)
	case <-ctx.Done():
	}
	late := errors.Is(ctx.Err(), context.DeadlineExceeded)
	if !e.depart(r, w, late) {
		<-r.done // this reader's page is being made
		return e.lease(r.result, w, r.err)
	}
	if !late {
		return nil, fmt.Errorf("exporter: gathering: %w", ctx.Err())
	}
	var alone readers
	alone[w]++
	result, err := e.commit(&r.questions, alone)
	return e.lease(result, w, err)
}

// lease returns one reader's hold on a result that counts it already.
func (e *Exporter) lease(r *result, w way, err error) (*lease, error) {
	if err != nil {
		return nil, err
	}
	return &lease{result: r, e: e, way: w}, nil
}

// join takes part in the round that has just begun, or begins one.
func (e *Exporter) join(w way) *round {
	e.rounds.mu.Lock()
	defer e.rounds.mu.Unlock()
	if r := e.rounds.current; r != nil && time.Since(r.start) < e.shareable {
		r.waiting[w]++
		return r
	}
	r := &round{start: time.Now(), done: make(chan struct{})}
	r.waiting[w]++
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.questions = e.ask()
	e.rounds.current = r
	go e.run(r)
	return r
}

// depart takes a reader out of a round that does not wait for it to be over; false: it is over.
func (e *Exporter) depart(r *round, w way, late bool) bool {
	e.rounds.mu.Lock()
	defer e.rounds.mu.Unlock()
	if r.over {
		return false
	}
	r.served = r.served || late
	if r.waiting[w]--; r.waiting == (readers{}) {
		e.rounds.end(r, e.self)
	}
	return true
}

// end takes no more readers into a round, which counts if anybody gets something of it. The caller holds mu.
func (rs *rounds) end(r *round, self *selfMetrics) {
	r.over = true
	r.cancel()
	if rs.current == r {
		rs.current = nil
	}
	if r.served {
		self.rounds.Inc()
		self.roundDuration.Observe(time.Since(r.start).Seconds())
	}
}

// run waits for the answers of a round.
func (e *Exporter) run(r *round) {
	e.await(r)
	waiting, over := func() (readers, bool) {
		e.rounds.mu.Lock()
		defer e.rounds.mu.Unlock()
		if r.over {
			return readers{}, true // everybody has gone
		}
		r.served = true
		e.rounds.end(r, e.self)
		return r.waiting, false
	}()
	if over {
		return
	}
	r.result, r.err = e.commit(&r.questions, waiting)
	close(r.done)
}

// ask sends the request to all ranks before any answer is waited for, and returns the questions. It does not wait.
func (e *Exporter) ask() questions {
	e.mu.Lock()
	e.expire() // so that those which come find room
	ranks := slices.Clone(e.table.ordered)
	e.unlock()
	all, now := newQuestions(), time.Now()
	for _, r := range ranks {
		e.askInto(&all, r, now)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range all.all() {
		a.open.less()
	}
	return all
}

// maxAwaited is how many rounds wait for one answer. Readers in a hurry can begin any number of them.
const maxAwaited = 64

// askInto adds the question that is open to a rank, asking it if there is none.
func (e *Exporter) askInto(all *questions, r *rank, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.session == nil || r.end != mpit.EndNone {
		return
	}
	q := r.line.asked.Load()
	if q == nil {
		q = &question{rank: r, session: r.session, line: r.line, pending: r.session.Ask(), at: now}
		if r.line.asked.Store(q); q.isAnswered() {
			r.line.nudge() // it has failed, which nobody else tells
		}
	}
	to := &all.known
	switch {
	case q.waited || len(q.awaited) == maxAwaited:
		all.rest.list = append(all.rest.list, q)
		return
	case !r.facts.sampled:
		to = &all.fresh
	case now.Sub(q.at) >= e.overdue:
		to = &all.tardy
	}
	to.list = append(to.list, q)
	to.open.left++
	q.awaited = append(q.awaited, to.open)
}

// await waits for answers to be taken in: of ranks that have answered before until the round ends. Others have had as
// long by then.
func (e *Exporter) await(r *round) {
	select {
	case <-r.questions.known.open.over:
	case <-r.ctx.Done():
		return
	}
	e.awaitUntil(r, &r.questions.tardy, time.Until(r.start.Add(e.patience)), 0)
	// Those that have just come may be many: as long as some of them answer, the others may.
	e.awaitUntil(r, &r.questions.fresh, time.Until(r.start.Add(e.welcome)), e.welcome)
}

// awaitUntil waits for answers for so long, and for more of it whenever some have come meanwhile. Ranks that have not
// answered by then are not waited for again.
func (e *Exporter) awaitUntil(r *round, a *asking, patience, more time.Duration) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for left := len(a.list); ; {
		select {
		case <-a.open.over:
			return
		case <-r.ctx.Done():
			return
		case <-timer.C:
		}
		was := left
		if left = e.leftOf(a); more > 0 && left < was {
			timer.Reset(more)
			continue
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, q := range a.list {
			q.waited = q.waited || !q.taken
		}
		return
	}
}

// leftOf is how many questions are open.
func (e *Exporter) leftOf(a *asking) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return a.open.left
}

// release gives back what the reader has. It may be called more than once.
func (l *lease) release() {
	l.once.Do(func() {
		switch l.way {
		case asMessages:
			l.messages.Release()
		case asValues:
		default:
			l.bodies[l.way].Release()
		}
	})
}

// points is the reader's copy of the metric data; it is called once.
func (l *lease) points() []metricdata.Metrics {
	c := &l.data[l.way]
	return c.list[c.taken.Add(1)-1]
}

// keep makes the messages the reader's for ever, which counts as delivered; the exporter goes on with others, as
// these stay leased.
func (l *lease) keep() { l.once.Do(func() { l.e.delivered(l.ended) }) }

// delivered notes that a scraper has got a page with these ended ranks, which lets them go in time.
func (e *Exporter) delivered(ended []ending) {
	now := e.now()
	e.lastScrape.Store(&now)
	e.note(ended, func(r *rank) { r.scraped = true })
}

// note does something with those ended ranks that have brought nothing new since.
func (e *Exporter) note(ended []ending, do func(r *rank)) {
	if len(ended) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, end := range ended {
		if end.rank.lives == end.lives {
			do(end.rank)
		}
	}
}
