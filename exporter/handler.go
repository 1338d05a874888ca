package exporter

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"golang.org/x/net/http/httpguts"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/body"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/self"
)

// timeoutHeader is how a Prometheus server says when it will stop waiting, in seconds.
const timeoutHeader = "X-Prometheus-Scrape-Timeout-Seconds"

const (
	// maxTimeout bounds what the header may ask for. It is less than an HTTP server's usual limits on writing an
	// answer, for else a scraper that waits long enough would get none at all.
	maxTimeout = 100 * time.Second
	// timeoutMargin of the scraper's time is left for rendering and sending the page, though never more than a quarter.
	timeoutMargin = 500 * time.Millisecond
	// renderRate is how many bytes of the page are rendered and sent in a second, on a busy node. The time for all of
	// them is left, too, though never more than half.
	renderRate = 8 << 20
)

// formats are what the page can be had as. A client that accepts anything gets text.
var formats = []expfmt.Format{
	expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtOpenMetrics_0_0_1, expfmt.FmtProtoDelim, expfmt.FmtText,
}

// Handler serves the page as text 0.0.4, OpenMetrics or delimited protobuf, compressed with gzip where the client
// names that, without a weight. The families of extra gatherers (the Go runtime, the process) are merged in; where one
// has the name of a family of the exporter's, the exporter's stays. An extra gatherer that fails costs its own families
// only.
//
// How many scrapes are served at once is up to the server around it. Pages that are being sent are bounded in bytes.
func (e *Exporter) Handler(extra ...prometheus.Gatherer) http.Handler {
	return &handler{e: e, extra: slices.Clone(extra)}
}

type handler struct {
	e     *Exporter
	extra []prometheus.Gatherer
}

func (h *handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are served here", http.StatusMethodNotAllowed)
		return
	}
	e := h.e
	e.self.InFlight.Inc()
	defer e.self.InFlight.Dec()

	format := expfmt.NegotiateAccept(req.Header, formats...)
	// No lock is held when the client gets its first byte: how fast it reads is nobody else's matter.
	l, page, err := h.render(req, format, wayOf(format))
	if err != nil {
		result := self.ScrapeFailed
		if req.Context().Err() != nil {
			result = self.ScrapeAborted
		} else {
			e.log.Error("serving metrics failed", "err", err)
		}
		e.self.ScrapesDone.WithLabelValues(result).Inc()
		http.Error(w, "gathering metrics failed: "+err.Error(), http.StatusInternalServerError)
		return
	}
	defer l.release()
	defer e.lending.add(l.bodies[l.way], w, e.lent)()
	w.Header().Set("Content-Type", string(format))
	w.Header().Add("Vary", "Accept, Accept-Encoding")
	if err := send(page, w, req); err != nil {
		e.self.ScrapesDone.WithLabelValues(self.ScrapeAborted).Inc()
		e.log.Debug("sending metrics failed", "err", err)
		return
	}
	e.self.ScrapesDone.WithLabelValues(self.ScrapeOK).Inc()
	if req.Method == http.MethodGet {
		e.delivered(l.ended)
	}
}

// wayOf says how the page is written in this format.
func wayOf(format expfmt.Format) way {
	switch format.FormatType() {
	case expfmt.TypeTextPlain:
		return asText
	case expfmt.TypeOpenMetrics:
		return asOpenMetrics
	}
	return asProtobuf
}

// render returns the page in this format, in memory that is lent until the lease is released. The body is shared with
// others; what comes to it is this client's.
func (h *handler) render(req *http.Request, format expfmt.Format, w way) (l *lease, r *body.Response, err error) {
	timeout, said := timeoutOf(req.Header)
	if said {
		h.e.self.ScrapeTimeout.Set(timeout.Seconds())
	}
	ctx, cancel := context.WithTimeout(req.Context(), scrapeTimeout(timeout, said, h.e.pages.bytes(w)))
	defer cancel()
	if l, err = h.e.rounds.gather(ctx, w); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			l.release()
		}
	}()

	page, families := l.bodies[w], l.own
	for i, g := range h.extra {
		more, err := g.Gather()
		if err != nil {
			h.e.log.Warn("an extra gatherer failed", "number", i, "err", err)
		}
		families = mergeFamilies(families, more)
	}

	var own bytes.Buffer
	encoder := expfmt.NewEncoder(&own, format)
	for _, f := range families {
		if len(f.Metric) == 0 || page.Has(f.GetName()) {
			continue
		}
		if err := encoder.Encode(f); err != nil {
			return l, nil, fmt.Errorf("rendering %s: %w", f.GetName(), err)
		}
	}
	if format.FormatType() == expfmt.TypeOpenMetrics {
		own.WriteString("# EOF\n")
	}
	return l, page.Response(own.Bytes()), nil
}

// mergeFamilies merges two lists; where a name stands in both, the first's stays. The result is sorted by name.
func mergeFamilies(a, b []*dto.MetricFamily) []*dto.MetricFamily {
	byName := func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) }
	all := slices.Concat(a, b)
	slices.SortStableFunc(all, byName)
	return slices.CompactFunc(all, func(a, b *dto.MetricFamily) bool { return byName(a, b) == 0 })
}

// send writes a page to the client.
func send(page *body.Response, w http.ResponseWriter, req *http.Request) error {
	gzipped := httpguts.HeaderValuesContainsToken(req.Header.Values("Accept-Encoding"), "gzip")
	if gzipped {
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.Header().Set("Content-Length", strconv.Itoa(page.Length(gzipped)))
	if req.Method == http.MethodHead {
		return nil
	}
	return page.WriteTo(w, gzipped)
}

// timeoutOf is how long the scraper waits for the page; said is false where it says nothing sensible.
func timeoutOf(header http.Header) (timeout time.Duration, said bool) {
	s, err := strconv.ParseFloat(header.Get(timeoutHeader), 64)
	if err != nil || math.IsNaN(s) || s <= 0 {
		return 0, false
	}
	if s < maxTimeout.Seconds() {
		return time.Duration(s * float64(time.Second)), true
	}
	return maxTimeout, true
}

// scrapeTimeout is the time that the ranks have for a page of so many bytes: the scraper's, if it has said so, less
// what rendering and sending may take; else 10 s.
func scrapeTimeout(timeout time.Duration, said bool, bytes int) time.Duration {
	if !said {
		return defaultTimeout
	}
	rendering := time.Duration(float64(bytes) / renderRate * float64(time.Second))
	return max(timeout/2, timeout-min(timeoutMargin, timeout/4)-rendering)
}

// lending is the scrapes whose pages are being sent, oldest first. It is safe for concurrent use.
type lending struct {
	mu   sync.Mutex
	list []*loan
}

// loan is a body that is being sent to somebody; others may be sent the same.
type loan struct {
	of    *body.Body
	end   func() // makes sending fail
	ended bool
}

// add notes that a body is being sent by w until leave is called, and ends what is too much with it.
func (ls *lending) add(of *body.Body, w http.ResponseWriter, most int) (leave func()) {
	l := &loan{of: of, end: func() { _ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0)) }}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.list = append(ls.list, l)
	bytes, counted := 0, map[*body.Body]bool{}
	for i := len(ls.list) - 1; i >= 0; i-- {
		l := ls.list[i]
		if !counted[l.of] {
			counted[l.of] = true
			bytes += l.of.Memory()
		}
		if bytes > most && i < len(ls.list)-1 && !l.ended {
			l.ended = true
			l.end()
		}
	}
	return func() {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		ls.list = slices.DeleteFunc(ls.list, func(other *loan) bool { return other == l })
	}
}
