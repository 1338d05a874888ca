package exporter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/mpit-exporter/mpit-exporter/exporter/control"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// selfMetrics are the exporter's figures of itself: few, so that ordinary instruments will do.
type selfMetrics struct {
	registry *prometheus.Registry

	ranks, variables, connections, seriesLimit, seriesUsed           *prometheus.GaugeVec
	series, inFlight                                                 prometheus.Gauge
	rounds, evicted, panics, clashes, mismatches                     prometheus.Counter
	samples, dropped, protocolErrors, refused, accepted, scrapesDone *prometheus.CounterVec
	cvarWrites, reloads                                              *prometheus.CounterVec
	reloaded, reloadTime                                             prometheus.Gauge
	roundDuration                                                    prometheus.Histogram
}

// Results of asking a rank, label `result` of mpit_exporter_samples_total.
const (
	resultFresh   = "fresh"
	resultBusy    = "busy"
	resultPassive = "passive"
	resultPaused  = "paused"
	resultFinal   = "final"
	resultLate    = "late"
	resultFailed  = "failed"
)

// Reasons of mpit_exporter_connections_refused_total.
const (
	refusedUID    = "other_uid"       // another user presented the id of a known rank
	refusedRanks  = "too_many_ranks"  // of one user
	refusedFinals = "too_many_finals" // of one user at once
)

// Reasons of mpit_exporter_series_dropped_total that are not the mapping's.
const (
	droppedEvicted   = "ended_evicted"        // series of an ended rank, given up before anybody had them
	droppedReserved  = "reserved_name"        // a series with a name of the exporter's own
	droppedConflict  = "type_conflict"        // a series whose family has another type
	droppedDuplicate = "duplicate_series"     // a series that stands on the page already
	droppedBound     = "series_over_bound"    // of what describes objects, variables, categories, and of control variables
	droppedControl   = "cvar_unreadable"      // a control variable that was to be on the page
	droppedVariables = "variables_over_bound" // of one rank

	droppedUndelivered = "ended_undelivered"  // series of an ended rank that a reader of metric data has not got, though others may have
	droppedIncomplete  = "buckets_incomplete" // a histogram that can't be had as an exponential one
)

// Results of mpit_exporter_scrapes_total.
const (
	scrapeOK      = "ok"
	scrapeRefused = "refused" // too many at once
	scrapeFailed  = "failed"
	scrapeAborted = "aborted" // the client went away
)

// Results of mpit_exporter_config_reloads_total.
const (
	reloadSuccess = "success"
	reloadFailure = "failure"
)

func newSelfMetrics() *selfMetrics {
	s := &selfMetrics{
		registry:       prometheus.NewRegistry(),
		ranks:          gaugeVec(familyRanks),
		variables:      gaugeVec(familyVariables),
		connections:    gaugeVec(familyConnections),
		seriesLimit:    gaugeVec(familySeriesLimit),
		seriesUsed:     gaugeVec(familySeriesUsed),
		series:         prometheus.NewGauge(prometheus.GaugeOpts(opts(familySeries))),
		inFlight:       prometheus.NewGauge(prometheus.GaugeOpts(opts(familyInFlight))),
		rounds:         prometheus.NewCounter(prometheus.CounterOpts(opts(familyRounds))),
		evicted:        prometheus.NewCounter(prometheus.CounterOpts(opts(familyEvicted))),
		panics:         prometheus.NewCounter(prometheus.CounterOpts(opts(familyPanics))),
		clashes:        prometheus.NewCounter(prometheus.CounterOpts(opts(familyClashes))),
		mismatches:     prometheus.NewCounter(prometheus.CounterOpts(opts(familyMismatches))),
		samples:        counterVec(familySamples),
		dropped:        counterVec(familyDropped),
		protocolErrors: counterVec(familyProtocolErrors),
		refused:        counterVec(familyRefused),
		accepted:       counterVec(familyAccepted),
		scrapesDone:    counterVec(familyScrapes),
		cvarWrites:     counterVec(familyCvarWrites),
		reloads:        counterVec(familyReloads),
		reloaded:       prometheus.NewGauge(prometheus.GaugeOpts(opts(familyReloaded))),
		reloadTime:     prometheus.NewGauge(prometheus.GaugeOpts(opts(familyReloadTime))),
		roundDuration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: familyRoundDuration.Name, Help: familyRoundDuration.Help,
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
	}
	s.registry.MustRegister(s.ranks, s.variables, s.connections, s.series, s.seriesLimit, s.seriesUsed, s.inFlight, s.rounds, s.evicted, s.panics, s.clashes,
		s.mismatches, s.samples, s.dropped, s.protocolErrors, s.refused, s.accepted, s.scrapesDone, s.cvarWrites, s.roundDuration,
		s.reloads, s.reloaded, s.reloadTime)

	// A counter that appears with its first event has no rate for it.
	for _, result := range []string{resultFresh, resultBusy, resultPassive, resultPaused, resultFinal, resultLate, resultFailed} {
		s.samples.WithLabelValues(result)
	}
	for _, reason := range []string{refusedUID, refusedRanks, refusedFinals} {
		s.refused.WithLabelValues(reason)
	}
	for _, reason := range []string{droppedEvicted, droppedReserved, droppedConflict, droppedDuplicate, droppedBound, droppedControl, droppedVariables,
		droppedUndelivered, droppedIncomplete} {
		s.dropped.WithLabelValues(reason)
	}
	for _, reason := range []mapping.Reason{
		mapping.ReasonSeriesOverLimit, mapping.ReasonJobOverLimit, mapping.ReasonUserOverLimit, mapping.ReasonRankOverLimit,
		mapping.ReasonVariableOverLimit,
	} {
		s.dropped.WithLabelValues(string(reason))
	}
	for _, result := range []string{scrapeOK, scrapeRefused, scrapeFailed, scrapeAborted} {
		s.scrapesDone.WithLabelValues(result)
	}
	for _, result := range []string{control.OK, control.Refused, control.Failed} {
		s.cvarWrites.WithLabelValues(result)
	}
	for _, result := range []string{reloadSuccess, reloadFailure} {
		s.reloads.WithLabelValues(result)
	}
	for _, reason := range mpit.Reasons() {
		s.protocolErrors.WithLabelValues(reason)
	}
	return s
}

// reloadSucceeded notes when rules came into force.
func (s *selfMetrics) reloadSucceeded(at time.Time) {
	s.reloaded.Set(1)
	s.reloadTime.Set(seconds(at))
}

func opts(f Family) prometheus.Opts { return prometheus.Opts{Name: f.Name, Help: f.Help} }

func gaugeVec(f Family) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts(opts(f)), f.Labels)
}

func counterVec(f Family) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts(opts(f)), f.Labels)
}

// gather returns the families, sorted; nobody changes them afterwards.
func (s *selfMetrics) gather() ([]*dto.MetricFamily, error) { return s.registry.Gather() }
