package node

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// ordinary has the series of a page, and makes a const metric of each at each scrape, with other values each time. It
// asks nobody for them.
type ordinary struct {
	series  []series
	scrapes int
}

type series struct {
	desc   *prometheus.Desc
	kind   dto.MetricType
	labels []string
	first  *dto.Metric
}

// playOrdinary serves the series of the page that stands in a file, and writes its own address to another one.
func playOrdinary() error {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		return err
	}
	page, err := harness.ParseText(text)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(newOrdinary(page))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := os.WriteFile(os.Args[2], []byte(listener.Addr().String()), 0o600); err != nil {
		return err
	}
	server := http.Server{Handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}),
		ReadHeaderTimeout: time.Minute}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

func newOrdinary(page *harness.Scrape) *ordinary {
	o := &ordinary{}
	for _, f := range page.Families {
		descs := map[string]*prometheus.Desc{} // by the labels' names
		for _, m := range f.Metric {
			names, values := make([]string, len(m.Label)), make([]string, len(m.Label))
			for i, l := range m.Label {
				names[i], values[i] = l.GetName(), l.GetValue()
			}
			key := fmt.Sprint(names)
			if descs[key] == nil {
				descs[key] = prometheus.NewDesc(f.GetName(), f.GetHelp(), names, nil)
			}
			m.Label = nil
			o.series = append(o.series, series{descs[key], f.GetType(), values, m})
		}
	}
	return o
}

func (o *ordinary) Describe(chan<- *prometheus.Desc) {}

func (o *ordinary) Collect(ch chan<- prometheus.Metric) {
	o.scrapes++
	for i := range o.series {
		ch <- o.series[i].now(uint64(o.scrapes))
	}
}

func (s *series) now(more uint64) prometheus.Metric {
	switch s.kind {
	case dto.MetricType_HISTOGRAM:
		h := s.first.Histogram
		buckets := make(map[float64]uint64, len(h.Bucket))
		for _, b := range h.Bucket {
			buckets[b.GetUpperBound()] = b.GetCumulativeCount() + more
		}
		return prometheus.MustNewConstHistogram(s.desc, h.GetSampleCount()+more, h.GetSampleSum()+float64(more), buckets,
			s.labels...)
	case dto.MetricType_COUNTER:
		return prometheus.MustNewConstMetric(s.desc, prometheus.CounterValue, s.first.Counter.GetValue()+float64(more),
			s.labels...)
	}
	return prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, s.first.GetGauge().GetValue()+float64(more),
		s.labels...)
}
