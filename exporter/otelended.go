package exporter

import (
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
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
	if !r.facts.figures || !e.wanted(r) {
		return
	}
	reason := droppedUndelivered
	if !r.scraped && len(r.took) == 0 {
		reason = droppedEvicted
	}
	e.drop(reason, r.facts.series)
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
	if !reader.open() {
		return nil, nil, errReaderClosed
	}
	e.pages.mu.Lock()
	defer e.pages.mu.Unlock()
	defer e.saveThePage(&err)
	p := e.pages.board
	p.KeepCreated()
	wanted := map[exposition.Owner]exposition.Portion{}
	for _, end := range e.untaken(reader, e.refresh()) {
		r := p.ranks[end.rank]
		if r == nil {
			continue
		}
		ended = append(ended, end)
		wanted[r] = exposition.Whole
		if g := p.groups[end.rank.world]; g != nil {
			wanted[g] = exposition.Lasting // the others are of ranks that nobody has asked now
		}
	}
	if len(ended) == 0 {
		return nil, nil, nil
	}
	return p.Points(exposition.PointStyle{At: e.now().Round(0), Exponential: reader.cfg.Exponential, Only: wanted}), ended, nil
}

// untaken returns those ended ranks that a reader has not taken.
func (e *Exporter) untaken(reader *OTelReader, all []ending) (list []ending) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, end := range all {
		if !end.rank.took[reader] {
			list = append(list, end)
		}
	}
	return list
}

// closeReader forgets a reader; what ended ranks it was still to get is counted.
func (e *Exporter) closeReader(reader *OTelReader) {
	func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if !e.readers[reader] {
			return
		}
		delete(e.readers, reader)
		for _, r := range e.table.ordered {
			if r.end != mpit.EndNone && r.facts.figures && !r.took[reader] {
				e.drop(droppedUndelivered, r.facts.series)
			}
		}
	}()
	p, unlock := e.pages.lock()
	defer unlock()
	e.tidySets(p)
}

// tidySets gives up what is kept for readers of metric data, if there are none. It is called by who has the page.
func (e *Exporter) tidySets(p *board) {
	e.mu.Lock()
	needed := len(e.readers) > 0 || e.producing
	e.mu.Unlock()
	if !needed {
		p.ForgetSets()
	}
}
