package exporter

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Collector returns the Exporter as a collector for somebody else's registry. It is an unchecked one, as the families
// depend on the ranks. The registry reads the messages after Collect has returned, so they are given away and the
// next one makes others; Gatherer and Handler cost a fraction of that.
func (e *Exporter) Collector() prometheus.Collector { return collector{e} }

type collector struct{ e *Exporter }

// Describe sends nothing, which makes the collector an unchecked one.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect asks all ranks, with a deadline of 10 s.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	families, err := c.e.Snapshot()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
		return
	}
	for _, f := range families {
		desc := prometheus.NewDesc(f.GetName(), f.GetHelp(), nil, nil)
		for _, m := range f.Metric {
			ch <- keptMetric{desc, m}
		}
	}
}

// keptMetric is a metric of a page that nobody changes any more.
type keptMetric struct {
	desc   *prometheus.Desc
	metric *dto.Metric
}

// Desc returns the family's name and help.
func (m keptMetric) Desc() *prometheus.Desc { return m.desc }

// Write lets to share what m has.
func (m keptMetric) Write(to *dto.Metric) error {
	to.Label = m.metric.Label
	to.Gauge = m.metric.Gauge
	to.Counter = m.metric.Counter
	to.Untyped = m.metric.Untyped
	to.Histogram = m.metric.Histogram
	return nil
}
