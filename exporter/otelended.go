package exporter

import (
	"fmt"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// scraperAway is for how long a scraper that does not come is waited for with what ended ranks have left, if somebody else has taken it.
const scraperAway = time.Hour

// wanted says whether somebody is still to get what an ended rank has left: a reader of metric data, or a scraper. Where there are
// readers, a scraper is somebody who has come within scraperAway. The caller holds mu.
func (e *Exporter) wanted(r *rank) bool {
	for reader := range e.readers {
		if !r.took[reader] {
			return true
		}
	}
	if r.scraped {
		return false
	}
	last := e.lastScrape.Load()
	return len(e.readers) == 0 || last != nil && e.now().Sub(*last) < scraperAway
}

// took notes that a reader has delivered what these ended ranks have left.
func (e *Exporter) took(reader *OTelReader, ended []ending) {
	e.note(ended, func(r *rank) {
		if r.took == nil {
			r.took = map[*OTelReader]bool{}
		}
		r.took[reader] = true
	})
}

// countLost counts what of an ended rank somebody will not get, who has been waited for: once, however many there are. The caller
// holds mu.
func (e *Exporter) countLost(r *rank) {
	if r.figures == nil || !e.wanted(r) {
		return
	}
	reason := droppedUndelivered
	if !r.scraped && len(r.took) == 0 {
		reason = droppedEvicted
	}
	e.guard(r, "counting its series", func() { e.drop(reason, len(r.figures.Series())) })
}

// tellReaders tells all readers that a rank has ended. It does not wait. The caller holds mu.
func (e *Exporter) tellReaders() {
	for reader := range e.readers {
		select {
		case reader.ended <- struct{}{}:
		default: // it knows
		}
	}
}

// readEnded returns what ranks have left that have ended and that the reader has not taken. With them come the groups of their worlds,
// where their last values may stand alone.
func (e *Exporter) readEnded(reader *OTelReader) (metrics []metricdata.Metrics, ended []ending, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.saveThePage(&err)
	if !e.readers[reader] {
		return nil, nil, errReaderClosed
	}
	wanted := map[owner]portion{}
	for _, end := range e.refresh() {
		if end.rank.took[reader] {
			continue
		}
		ended = append(ended, end)
		wanted[end.rank] = wholePart
		if g := end.rank.world.group; g != nil {
			wanted[g] = lastingPart // the others are of ranks that nobody has asked now
		}
	}
	if len(ended) == 0 {
		return nil, nil, nil
	}
	return e.page.points(pointStyle{at: e.now().Round(0), exponential: reader.cfg.Exponential, ended: wanted}), ended, nil
}

// closeReader forgets a reader; what ended ranks it was still to get is counted.
func (e *Exporter) closeReader(reader *OTelReader) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.readers[reader] {
		return
	}
	delete(e.readers, reader)
	for _, r := range e.table.ordered {
		if r.end != mpit.EndNone && r.figures != nil && !r.took[reader] {
			e.guard(r, "counting its series", func() { e.drop(droppedUndelivered, len(r.figures.Series())) })
		}
	}
	e.tidySets()
}

// tidySets gives up what is kept for readers of metric data, if there are none. The caller holds mu.
func (e *Exporter) tidySets() {
	if len(e.readers) == 0 && !e.producing {
		e.page.forgetSets()
	}
}

// saveThePage turns a panic while the page is being made into an error; the page is made anew. It is to be deferred by who holds mu.
func (e *Exporter) saveThePage(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("exporter: making the page: panic: %v", p)
		e.page = e.newPage() // the old one is half done
		e.log.Error("panic while making the page; please report it", "panic", p, "stack", string(debug.Stack()))
	}
}
