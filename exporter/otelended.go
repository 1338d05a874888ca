package exporter

import (
	"time"
)

// scraperAway is for how long a scraper that does not come is waited for with what ended ranks have left, if somebody
// else has taken it.
const scraperAway = time.Hour

// wanted says whether somebody is still to get what an ended rank has left: a reader of metric data, or a scraper.
// Where there are readers, a scraper is somebody who has come within scraperAway. The caller holds mu.
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

// countLost counts what of an ended rank somebody will not get, who has been waited for: once, however many there
// are. The caller holds mu.
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
		case reader <- struct{}{}:
		default: // it knows
		}
	}
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
