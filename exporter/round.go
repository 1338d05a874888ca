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
	questions []question
	prompt    int // so many of them, from the first on, are to ranks that owed nothing
	ctx       context.Context
	cancel    context.CancelFunc
	done      chan struct{} // closed when there is a page for all who wait

	// Exporter.mu guards these until done is closed.
	waiting readers
	served  bool // somebody has got a page
	over    bool
	result  *result
	err     error
}

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

// gather returns one reader's hold on the page as he wants it.
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

	e.mu.Lock()
	defer e.mu.Unlock()
	if r.over {
		return e.lease(r.result, w, r.err)
	}
	late := errors.Is(ctx.Err(), context.DeadlineExceeded)
	r.served = r.served || late
	if r.waiting[w]--; r.waiting == (readers{}) {
		e.end(r)
	}
	if !late {
		return nil, fmt.Errorf("exporter: gathering: %w", ctx.Err())
	}
	var alone readers
	alone[w]++
	result, err := e.commit(r.questions, alone)
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
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.round; r != nil && time.Since(r.start) < e.shareable {
		r.waiting[w]++
		return r
	}
	r := &round{start: time.Now(), done: make(chan struct{})}
	r.waiting[w]++
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.questions, r.prompt = e.ask()
	e.round = r
	go e.run(r)
	return r
}

// end takes no more readers into a round, which counts if anybody has got something of it. The caller holds mu.
func (e *Exporter) end(r *round) {
	r.over = true
	r.cancel()
	if e.round == r {
		e.round = nil
	}
	if r.served {
		e.self.rounds.Inc()
		e.self.roundDuration.Observe(time.Since(r.start).Seconds())
	}
}

// run waits for the answers of a round.
func (e *Exporter) run(r *round) {
	e.await(r.ctx, r.questions[:r.prompt])
	// Those who owed an answer before had as long as the others; what remains of the patience is theirs.
	patient, cancel := context.WithDeadline(r.ctx, r.start.Add(e.patience))
	defer cancel()
	e.await(patient, r.questions[r.prompt:])

	e.mu.Lock()
	defer e.mu.Unlock()
	if r.over {
		return // everybody has gone
	}
	r.served = true
	e.end(r)
	r.result, r.err = e.commit(r.questions, r.waiting)
	close(r.done)
}

// question is one rank that was asked.
type question struct {
	rank    *rank
	session *mpit.Session
	pending *mpit.Pending
}

// ask sends the request to all ranks before any answer is waited for, and returns the questions. The first of them are to
// ranks that owed nothing; the others have owed an answer for longer than overdue. It does not wait. The caller holds mu.
func (e *Exporter) ask() (questions []question, prompt int) {
	now := time.Now()
	e.turns.share(e.table.ordered)
	var tardy []question
	for _, r := range e.table.ordered {
		if r.session == nil || r.end != mpit.EndNone {
			continue
		}
		e.take(r)         // what came after the last round was over is as good
		if r.answered() { // and not yet taken in
			questions = append(questions, question{r, r.session, r.asked})
			continue
		}
		open := r.asked
		r.asked = r.session.Ask()
		if r.asked != open {
			r.askedAt = now
		}
		q := question{r, r.session, r.asked}
		if now.Sub(r.askedAt) >= e.overdue {
			tardy = append(tardy, q)
		} else {
			questions = append(questions, q)
		}
	}
	return append(questions, tardy...), len(questions)
}

// await takes all answers in as they come, or until ctx ends. mu is free in between, so that a rank whose figures take long
// holds others up no longer than for itself.
func (e *Exporter) await(ctx context.Context, questions []question) {
	for _, q := range questions {
		select {
		case <-q.pending.Done():
			e.mu.Lock()
			e.take(q.rank)
			e.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

// commit brings the page up to date, with the answers that have come to these questions, and makes of it what these readers want.
// Ranks that have not answered are late. The caller holds mu.
func (e *Exporter) commit(questions []question, want readers) (r *result, err error) {
	defer e.saveThePage(&err)
	for _, q := range questions {
		r := q.rank
		e.take(r)
		switch {
		case r.end != mpit.EndNone || r.session != q.session:
			// It has brought its last sample, lost its connection or made a new one meanwhile: that is what it is.
		case r.asked == q.pending:
			result := resultLate
			if r.answered() {
				result = resultDeferred
			}
			r.state = stateLate
			e.self.samples.WithLabelValues(result).Inc()
		default:
			r.state = r.last
		}
	}
	ended := e.refresh()
	p := e.page
	r = &result{ended: ended}
	if want[asMessages] > 0 {
		r.messages = p.fill()
	}
	for _, w := range []way{asText, asOpenMetrics} {
		if want[w] > 0 {
			b := newBody(pageBodies, want[w])
			r.bodies[w] = b
			b.text = slices.Grow(b.text, p.size[w]) // else it is copied again and again while it grows
			p.render(b, textStyle{openMetrics: w == asOpenMetrics, created: e.cfg.Created})
			p.size[w] = len(b.text) + len(b.text)/16
		}
	}
	style := pointStyle{at: e.now().Round(0)}
	for _, w := range []way{asPoints, asExponential} {
		style.exponential = w == asExponential
		for range want[w] {
			r.data[w].list = append(r.data[w].list, p.points(style))
		}
	}
	e.setSelf(p)
	if r.own, err = e.self.gather(); err != nil {
		e.log.Error("gathering the exporter's own metrics failed", "err", err)
	}
	if r.messages != nil {
		r.families = mergeFamilies(r.messages.families, r.own)
		r.messages.leases += want[asMessages]
		clear(r.messages.families) // they are not to be held when their series have left
	}
	for _, w := range []way{asPoints, asExponential} {
		for i, list := range r.data[w].list {
			r.data[w].list[i] = append(list, ownPoints(r.own, style.at)...)
		}
	}
	e.tidySets()
	e.committed = time.Now()
	e.inquire()
	return r, nil
}

// refresh brings the page up to date and returns the ended ranks on it. The caller holds mu.
func (e *Exporter) refresh() (ended []ending) {
	e.expire()

	p := e.page
	for _, r := range e.table.ordered {
		if !e.guard(r, "looking at its series", func() { p.outdate(r) }) {
			p.remove(r)
			if r.end == mpit.EndNone {
				r.state = stateLate
			}
		}
	}
	described := map[uint32]int{} // by each user's ranks
	for _, r := range e.table.ordered {
		if !r.visible() {
			continue
		}
		uid := r.peer.UID
		room, took := min(e.describing, e.describingUser-described[uid]), 0
		end := e.turns.begin(uid)
		if !e.guard(r, "making its series", func() { took = p.update(r, room) }) {
			p.remove(r)
			if r.end == mpit.EndNone {
				r.state = stateLate
			}
			took = p.update(r, room) // without figures
		}
		end()
		described[uid] += took
		if r.end != mpit.EndNone {
			ended = append(ended, ending{r, r.lives})
		}
	}
	e.updateGroups(p)
	p.addInfos(e.table.ordered, e.infos)
	p.addCategories(&e.categories)
	p.addControls(&e.controls)
	return ended
}

// take takes a rank's answer in, once, if it has come and it is its turn. The caller holds mu.
func (e *Exporter) take(r *rank) {
	if !r.answered() || !e.turns.may(r.peer.UID) {
		return
	}
	defer e.turns.begin(r.peer.UID)()
	sample, err := r.asked.Sample()
	r.asked = nil
	var result string
	result, r.last = e.accept(r, &sample, err)
	e.self.samples.WithLabelValues(result).Inc()
	r.nudge()
}

// takeLast is take for a connection that ends: what is not taken in now never will be. The caller holds mu.
func (e *Exporter) takeLast(r *rank) {
	if e.take(r); r.answered() {
		e.self.samples.WithLabelValues(resultDeferred).Inc()
	}
}

// accept returns what came of a question. The caller holds mu.
func (e *Exporter) accept(r *rank, sample *mpit.Sample, err error) (result string, state rankState) {
	switch {
	case errors.Is(err, mpit.ErrCongested):
		return resultLate, stateLate
	case err != nil:
		e.log.Debug("asking a rank failed", append(rankAttrs(r), "err", err)...)
		return resultFailed, stateLate
	case sample.Status == mpit.SampleBusy:
		r.count(&sample.Stats)
		return resultBusy, stateBusy
	case r.end == mpit.EndFinalize || r.end == mpit.EndExit || r.end == mpit.EndAbort:
		return resultFresh, stateEnded // older than the last sample
	case !e.absorb(r, sample):
		return resultFailed, stateLate
	case sample.Status == mpit.SamplePassive:
		return resultPassive, statePassive
	case sample.Status == mpit.SamplePaused:
		return resultPaused, statePaused
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
	for scope, n := range e.budgets.used(e.table.ordered) {
		e.self.seriesUsed.WithLabelValues(scope).Set(float64(n))
	}
}

// release gives back what the reader has. It may be called more than once.
func (l *lease) release() {
	l.once.Do(func() {
		switch l.way {
		case asMessages:
			l.e.mu.Lock()
			defer l.e.mu.Unlock()
			l.messages.leases--
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
