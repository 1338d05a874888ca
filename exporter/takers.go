package exporter

import (
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/self"
)

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
