package exporter

import (
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/body"
)

// way is what a reader wants the page as.
type way uint8

const (
	asText        = way(exposition.Text)
	asOpenMetrics = way(exposition.OpenMetrics)
	asProtobuf    = way(exposition.Protobuf)
	asValues      = asProtobuf + 1 // not at all: the reader looks at its series
	asPoints      = asValues + 1   // metric data of OpenTelemetry
	ways          = asPoints + 1
)

// readers is how many there are that want each.
type readers [ways]int

// result is a page as its readers want it: each way is made once, for all who wait for it, and counts them already.
type result struct {
	bodies [ways]*body.Body          // the page as it is written, without own; nil: nobody wants it
	data   chan []metricdata.Metrics // the page as metric data, with own: for each reader a copy, which is the reader's
	own    []*dto.MetricFamily       // the exporter's figures of itself, which nobody changes
	at     time.Time                 // of metric data
	ended  []ending
}

// lease is one reader's hold on a result.
type lease struct {
	*result
	way way
}

// release gives back what the reader has. It is called once.
func (l *lease) release() {
	if b := l.bodies[l.way]; b != nil {
		b.Release()
	}
}

// delivered notes that a scraper has got a page with these ended ranks, which lets them go in time.
func (rs *ranks) delivered(ended []ending) {
	g := rs.lock()
	defer g.unlock()
	g.takers.lastScrape = g.now()
	g.each(ended, func(r *rank) { r.scraped = true })
}
