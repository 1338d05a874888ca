package exporter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// timeoutHeader is how a Prometheus server says when it will stop waiting, in seconds.
const timeoutHeader = "X-Prometheus-Scrape-Timeout-Seconds"

const (
	// maxTimeout bounds what the header may ask for. It is less than an HTTP server's usual limits on writing an answer, for
	// else a scraper that waits long enough would get none at all.
	maxTimeout = 100 * time.Second
	// timeoutMargin of the scraper's time is left for rendering and sending the page, though never more than a quarter.
	timeoutMargin = 500 * time.Millisecond
)

// formats are what the page can be had as. A client that accepts anything gets text.
var formats = []expfmt.Format{expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtOpenMetrics_0_0_1, expfmt.FmtProtoDelim, expfmt.FmtText}

// Handler serves the page as text 0.0.4, OpenMetrics or delimited protobuf, gzipped where the client takes it. The families
// of extra gatherers (the Go runtime, the process) are merged in; where one has the name of a family of the exporter's, the
// exporter's stays. An extra gatherer that fails costs its own families only.
//
// All handlers of an Exporter share the limit Config.MaxScrapes.
func (e *Exporter) Handler(extra ...prometheus.Gatherer) http.Handler {
	return &handler{e: e, extra: slices.Clone(extra)}
}

type handler struct {
	e     *Exporter
	extra []prometheus.Gatherer
}

var (
	bodies  = sync.Pool{New: func() any { return new(bytes.Buffer) }}
	zippers = sync.Pool{New: func() any {
		// Level 1 costs a third of the default level and makes the body a few per cent larger.
		z, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
		if err != nil {
			panic(err) // the level is a constant
		}
		return z
	}}
)

func (h *handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are served here", http.StatusMethodNotAllowed)
		return
	}
	e := h.e
	select {
	case e.scrapes <- struct{}{}:
		defer func() { <-e.scrapes }()
	default:
		e.self.scrapesDone.WithLabelValues(scrapeRefused).Inc()
		http.Error(w, fmt.Sprintf("%d scrapes are being served already", cap(e.scrapes)), http.StatusServiceUnavailable)
		return
	}
	e.self.inFlight.Inc()
	defer e.self.inFlight.Dec()

	body := bodies.Get().(*bytes.Buffer)
	defer func() {
		body.Reset()
		bodies.Put(body)
	}()
	format := expfmt.NegotiateAccept(req.Header, formats...)

	// The page is given back before the client gets a byte: how fast it reads is nobody else's matter.
	ended, err := h.render(req, format, body)
	if err != nil {
		result := scrapeFailed
		if req.Context().Err() != nil {
			result = scrapeAborted
		} else {
			e.log.Error("serving metrics failed", "err", err)
		}
		e.self.scrapesDone.WithLabelValues(result).Inc()
		http.Error(w, "gathering metrics failed: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", string(format))
	w.Header().Add("Vary", "Accept, Accept-Encoding")
	if err := send(w, req, body); err != nil {
		e.self.scrapesDone.WithLabelValues(scrapeAborted).Inc()
		e.log.Debug("sending metrics failed", "err", err)
		return
	}
	e.self.scrapesDone.WithLabelValues(scrapeOK).Inc()
	if req.Method == http.MethodGet {
		e.delivered(ended)
	}
}

// render writes the page to body and returns the ended ranks that stand on it.
func (h *handler) render(req *http.Request, format expfmt.Format, body *bytes.Buffer) (ended []ending, err error) {
	ctx, cancel := context.WithTimeout(req.Context(), scrapeTimeout(req.Header))
	defer cancel()
	l, err := h.e.gather(ctx)
	if err != nil {
		return nil, err
	}
	defer l.release()

	families := l.families
	var foreign map[*dto.MetricFamily]bool
	for i, g := range h.extra {
		more, err := g.Gather()
		if err != nil {
			h.e.log.Warn("an extra gatherer failed", "number", i, "err", err)
		}
		if len(more) == 0 {
			continue
		}
		if foreign == nil {
			foreign = map[*dto.MetricFamily]bool{}
		}
		for _, f := range more {
			foreign[f] = true
		}
		families = mergeFamilies(families, more)
	}

	// The exporter's own names need no escaping, and looking at each series to find that out costs as much as a rendering.
	var options []expfmt.EncoderOption
	if h.e.cfg.Created {
		options = append(options, expfmt.WithCreatedLines())
	}
	plain := expfmt.NewEncoder(body, format.WithEscapingScheme(model.NoEscaping), options...)
	escaping := expfmt.NewEncoder(body, format, options...)
	for _, f := range families {
		encoder := plain
		if foreign[f] {
			encoder = escaping
		}
		if len(f.Metric) == 0 {
			continue
		}
		if err := encoder.Encode(f); err != nil {
			return nil, fmt.Errorf("rendering %s: %w", f.GetName(), err)
		}
	}
	if closer, ok := plain.(expfmt.Closer); ok { // # EOF in OpenMetrics
		if err := closer.Close(); err != nil {
			return nil, fmt.Errorf("rendering the end: %w", err)
		}
	}
	return l.ended, nil
}

// send writes the body to the client.
func send(w http.ResponseWriter, req *http.Request, body *bytes.Buffer) error {
	if !acceptsGzip(req.Header) {
		w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
		if req.Method == http.MethodHead {
			return nil
		}
		_, err := w.Write(body.Bytes())
		return err
	}
	w.Header().Set("Content-Encoding", "gzip")
	if req.Method == http.MethodHead {
		return nil
	}
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
	z.Reset(w)
	_, err := z.Write(body.Bytes())
	return errors.Join(err, z.Close())
}

// scrapeTimeout is the time that the ranks have: the scraper's, less a margin; 10 s where it says nothing sensible.
func scrapeTimeout(header http.Header) time.Duration {
	s, err := strconv.ParseFloat(header.Get(timeoutHeader), 64)
	if err != nil || math.IsNaN(s) || s <= 0 {
		return defaultTimeout
	}
	timeout := maxTimeout
	if s < maxTimeout.Seconds() {
		timeout = time.Duration(s * float64(time.Second))
	}
	return timeout - min(timeoutMargin, timeout/4)
}

// acceptsGzip reads Accept-Encoding (RFC 9110 §12.5.3).
func acceptsGzip(header http.Header) bool {
	accepted := false
	for _, value := range header.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(value, ",") {
			coding, params, _ := strings.Cut(part, ";")
			coding = strings.TrimSpace(coding)
			if !strings.EqualFold(coding, "gzip") && coding != "*" {
				continue
			}
			ok := true
			if q, found := strings.CutPrefix(strings.ToLower(strings.TrimSpace(params)), "q="); found {
				weight, err := strconv.ParseFloat(q, 64)
				ok = err == nil && weight > 0
			}
			if coding != "*" {
				return ok
			}
			accepted = ok
		}
	}
	return accepted
}
