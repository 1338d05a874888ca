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

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// round is one asking of all ranks. Whoever wants to read soon after it has begun waits for it instead of starting another.
// It is over when all have answered, or nobody waits any more; whose deadline comes earlier gets a page of what has come by
// then. Rounds may overlap: a rank that still owes an answer is not asked again.
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
	known []*question // to ranks that have answered before, and owed nothing: to the end
	fresh []*question // to ranks that have never answered: while others of them do
	tardy []*question // to ranks that have owed an answer for longer than overdue: for the patience, once
	rest  []*question // the same, of which an earlier round had that patience: not at all
}

func (q *questions) all() [4][]*question { return [...][]*question{q.known, q.fresh, q.tardy, q.rest} }

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
	messages *messages           // nil: nobody wants them
	families []*dto.MetricFamily // of messages, and own
	bodies   [ways]*body         // the page as text, without own; nil: nobody wants it
	data     [ways]copies        // the page as metric data, with own
	own      []*dto.MetricFamily // the exporter's figures of itself, which nobody changes
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

// Gather asks all ranks, or joins the round that is under way, and returns the page: families sorted by name, series in a
// stable order. The page must not be changed and is valid until done, which is never nil and must be called; calling it says
// that the reader has got all of it. Holding it long costs memory, but holds up nobody.
//
// The deadline of ctx (10 s where it has none) is the ranks': those who miss it are reported as late on this page, and Gather
// returns what has come. The only errors are a canceled ctx and bugs.
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

// Snapshot is Gather for a reader that can't say when it is done: a prometheus.GathererFunc, fit for prometheus.Gatherers.
// The families are the caller's to keep, but not to change. The next one has to make its messages anew; a Gather costs less.
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
	r := e.join(w) //nolint:contextcheck // a round belongs to all who wait for it, not to who began it
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
func (e *Exporter) ask() (all questions) {
	e.mu.Lock()
	ranks := slices.Clone(e.table.ordered)
	e.mu.Unlock()
	now := time.Now()
	for _, r := range ranks {
		e.askInto(&all, r, now)
	}
	return all
}

// askInto adds the question that is open to a rank, asking it if there is none.
func (e *Exporter) askInto(all *questions, r *rank, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.session == nil || r.end != mpit.EndNone {
		return
	}
	if r.line.asked == nil {
		q := &question{rank: r, session: r.session, line: r.line, pending: r.session.Ask(), at: now, taken: make(chan struct{})}
		if r.line.asked = q; q.isAnswered() {
			r.line.nudge() // it has failed, which nobody else tells
		}
	}
	list := &all.known
	switch q := r.line.asked; {
	case q.waited:
		list = &all.rest
	case !r.facts.sampled:
		list = &all.fresh
	case now.Sub(q.at) >= e.overdue:
		list = &all.tardy
	}
	*list = append(*list, r.line.asked)
}

// await waits for answers to be taken in: of ranks that have answered before until the round ends. Others have had as long by then.
func (e *Exporter) await(r *round) {
	for _, q := range r.questions.known {
		select {
		case <-q.taken:
		case <-r.ctx.Done():
			return
		}
	}
	patience := time.NewTimer(time.Until(r.start.Add(e.patience)))
	defer patience.Stop()
	e.awaitUntil(r, r.questions.tardy, patience.C, func() bool { return false })
	// Those that have just come may be many: as long as some of them answer, the others may.
	answered := 0
	patience.Reset(time.Until(r.start.Add(e.welcome)))
	e.awaitUntil(r, r.questions.fresh, patience.C, func() bool {
		before := answered
		answered = 0
		for _, q := range r.questions.fresh {
			if q.isTaken() {
				answered++
			}
		}
		if answered == before {
			return false
		}
		patience.Reset(e.welcome)
		return true
	})
}

// awaitUntil waits for answers until the patience is over, and more of it is not granted. It reports whether all have come, and notes that those
// ranks which have not answered are not to be waited for again.
func (e *Exporter) awaitUntil(r *round, questions []*question, patience <-chan time.Time, more func() bool) bool {
	for _, q := range questions {
		for over := false; !over; {
			select {
			case <-q.taken:
				over = true
			case <-r.ctx.Done():
				return false
			case <-patience:
				if more() {
					continue
				}
				e.mu.Lock()
				defer e.mu.Unlock()
				for _, q := range questions {
					q.waited = q.waited || !q.isTaken()
				}
				return false
			}
		}
	}
	return true
}

func (q *question) isAnswered() bool {
	select {
	case <-q.pending.Done():
		return true
	default:
		return false
	}
}

func (q *question) isTaken() bool {
	select {
	case <-q.taken:
		return true
	default:
		return false
	}
}

// release gives back what the reader has. It may be called more than once.
func (l *lease) release() {
	l.once.Do(func() {
		switch l.way {
		case asMessages:
			l.messages.leases.Add(-1)
		case asValues:
		default:
			l.bodies[l.way].release()
		}
	})
}

// points is the reader's copy of the metric data; it is called once.
func (l *lease) points() []metricdata.Metrics {
	c := &l.data[l.way]
	return c.list[c.taken.Add(1)-1]
}

// keep makes the messages the reader's for ever, which counts as delivered; the exporter goes on with others, as these stay leased.
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
