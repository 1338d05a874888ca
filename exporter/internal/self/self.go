// Package self has the exporter's figures of itself, in one table. Only the command's HTTP server, log and sandbox and
// package otlp count for themselves.
//
// Begin reading at Metrics.
package self

import (
	"math"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mpit-exporter/mpit-exporter/exporter/control"
	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Metrics are the exporter's figures of itself: few, so that ordinary instruments will do. To add one, give it a
// field here and an entry in New: its family, its name in OpenTelemetry and the documentation follow. Count it where
// it happens, with a test there: no other test sees a metric that never moves.
type Metrics struct {
	instruments

	Ranks, Variables, Connections, SeriesLimit, SeriesUsed           *prometheus.GaugeVec
	Series, InFlight, ScrapeTimeout, Reloaded, ReloadTime, NoQueue   prometheus.Gauge
	Rounds, Evicted, Panics, Clashes, Mismatches                     prometheus.Counter
	Samples, Dropped, ProtocolErrors, Refused, Accepted, ScrapesDone *prometheus.CounterVec
	CvarWrites, Reloads                                              *prometheus.CounterVec
	RoundDuration                                                    prometheus.Histogram
}

// New returns them with a registry of their own. What stands in braces is what a metric counts, {rank}, as
// OpenTelemetry annotates a unit; "" for what counts nothing.
func New() *Metrics {
	i := &instruments{Registry: prometheus.NewRegistry()}
	s := &Metrics{
		Ranks: i.gauges("mpit_exporter_ranks", "state", "{rank}",
			"Ranks by their state in the last round; unseen: started here by a launcher, and never connected."),
		NoQueue: i.gauge("mpit_exporter_ranks_without_cpu_times", "{rank}",
			"Live ranks with the call profile of which the kernel doesn't say how long they were on a core or waited for "+
				"one: no schedstat, a filter of system calls, an older agent. Verdicts can't say of them that they had no core."),
		Variables: i.gauges("mpit_exporter_variables", "state", "{variable}",
			"Performance variables of all live ranks, by whether their agents could open them."),
		Series: i.gauge("mpit_exporter_series", "{series}",
			"Series of ranks on the last page; a histogram counts as one."),
		SeriesLimit: i.gauges("mpit_exporter_series_limit", "scope", "{series}",
			"Maximum number of series of performance variables, by scope; a histogram counts as many as it has lines."),
		SeriesUsed: i.gauges("mpit_exporter_series_used", "scope", "{series}",
			"Series of performance variables in use, by scope: for job, user and rank, of the one with the most."),
		Rounds: i.counter("mpit_exporter_rounds_total", "{round}",
			"Rounds over all ranks; simultaneous scrapes share one."),
		RoundDuration: i.histogram("mpit_exporter_round_duration_seconds",
			"Time from asking the first rank to having all answers that came in time.",
			.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10),
		Samples: i.counters("mpit_exporter_samples_total", "result", "{sample}",
			"Requests to ranks, and last samples, by result.",
			ResultFresh, ResultBusy, ResultPassive, ResultPaused, ResultFinal, ResultLate, ResultFailed),
		Dropped: i.counters("mpit_exporter_series_dropped_total", "reason", "{item}",
			"What was left out of the page, by reason, over all ranks so far: variables, values or whole series.",
			DroppedReasons()...),
		Evicted: i.counter("mpit_exporter_ranks_evicted_total", "{rank}",
			"Ended ranks dropped early because too many were kept."),
		Panics: i.counter("mpit_exporter_rank_panics_total", "{panic}",
			"Ranks whose data made the exporter's mapping panic: a bug, please report it."),
		ProtocolErrors: i.counters("mpit_exporter_protocol_errors_total", "reason", "{error}",
			"Connections closed because the peer broke the protocol, by reason.",
			mpit.Reasons()...),
		Refused: i.counters("mpit_exporter_connections_refused_total", "reason", "{connection}",
			"Connections refused, by reason.",
			RefusedUID, RefusedRanks, RefusedFinals),
		Connections: i.gauges("mpit_exporter_connections", "user", "{connection}",
			"Open connections of ranks, by the user that the kernel reports."),
		Accepted: i.counters("mpit_exporter_connections_accepted_total", "user", "{connection}",
			"Connections of ranks accepted so far, by the user that the kernel reports."),
		Clashes: i.counter("mpit_exporter_label_clashes_total", "{rank}",
			"Ranks that came with the same labels as another one still on the page; they have the label dup."),
		Mismatches: i.counter("mpit_exporter_jobid_mismatches_total", "{rank}",
			"Ranks that claimed a job other than that of their control group: jobid_check on mpit_process_info."),
		ScrapesDone: i.counters("mpit_exporter_scrapes_total", "result", "{request}",
			"HTTP requests for metrics, by result.",
			ScrapeOK, ScrapeFailed, ScrapeAborted),
		ScrapeTimeout: i.gauge("mpit_exporter_scrape_timeout_seconds", "",
			"Timeout of the last scraper that announced one; 0: none has."),
		InFlight: i.gauge("mpit_exporter_scrapes_in_flight", "{request}",
			"HTTP requests for metrics being served."),
		CvarWrites: i.counters("mpit_exporter_cvar_writes_total", "result", "{request}",
			"Requests to set a control variable, by result.",
			control.OK, control.Refused, control.Failed),
		Reloaded: i.gauge("mpit_exporter_config_last_reload_successful", "",
			"1: the rules that were read last are in force; 0: they could not be used, and the earlier ones still are."),
		ReloadTime: i.gauge("mpit_exporter_config_last_reload_success_timestamp_seconds", "",
			"When the rules in force were read, in seconds since the epoch."),
		Reloads: i.counters("mpit_exporter_config_reloads_total", "result", "{attempt}",
			"Attempts to reload the rules, by result.",
			ReloadSuccess, ReloadFailure),
	}
	s.instruments = *i
	return s
}

// Families describes them. The list is the caller's.
func Families() []exposition.Family { return slices.Clone(New().families) }

// Results of asking a rank, label `result` of mpit_exporter_samples_total.
const (
	ResultFresh   = "fresh"
	ResultBusy    = "busy"
	ResultPassive = "passive"
	ResultPaused  = "paused"
	ResultFinal   = "final"
	ResultLate    = "late"
	ResultFailed  = "failed"
)

// Reasons of mpit_exporter_connections_refused_total.
const (
	RefusedUID    = "other_uid"       // another user presented the id of a known rank
	RefusedRanks  = "too_many_ranks"  // of one user
	RefusedFinals = "too_many_finals" // of one user at once
)

// Reasons of mpit_exporter_series_dropped_total that are not the mapping's.
const (
	DroppedEvicted = "ended_evicted" // series of an ended rank, given up before anybody had them
	// of what describes objects, variables, categories, and of control variables
	DroppedBound     = "series_over_bound"
	DroppedControl   = "cvar_unreadable"      // a control variable that was to be on the page
	DroppedVariables = "variables_over_bound" // of one rank

	DroppedUndelivered = "ended_undelivered" // series of an ended rank that a reader of metric data has not got
)

// DroppedReasons are those that are there from the start.
func DroppedReasons() []string {
	return []string{
		DroppedEvicted, exposition.DroppedReserved, exposition.DroppedConflict, exposition.DroppedDuplicate,
		DroppedBound, DroppedControl, DroppedVariables, DroppedUndelivered,
		string(mapping.ReasonSeriesOverLimit), string(mapping.ReasonJobOverLimit), string(mapping.ReasonUserOverLimit),
		string(mapping.ReasonRankOverLimit), string(mapping.ReasonVariableOverLimit),
	}
}

// Results of mpit_exporter_scrapes_total.
const (
	ScrapeOK      = "ok"
	ScrapeFailed  = "failed"
	ScrapeAborted = "aborted" // the client went away
)

// Results of mpit_exporter_config_reloads_total.
const (
	ReloadSuccess = "success"
	ReloadFailure = "failure"
)

// Seconds is a time since the epoch in seconds, to the microsecond that a float64 can hold.
func Seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return math.Round(float64(t.UnixNano())/1e3) / 1e6
}

// ShowLimits shows how many series there may be.
func (s *Metrics) ShowLimits(l rules.Limits) {
	for scope, limit := range map[string]int{
		ScopeAll: l.Series, ScopeJob: l.SeriesPerJob, ScopeUser: l.SeriesPerUser, ScopeRank: l.SeriesPerRank,
		ScopeVariable: l.SeriesPerVariable,
	} {
		s.SeriesLimit.WithLabelValues(scope).Set(float64(limit))
	}
}

// instruments makes them, and notes the family of each.
type instruments struct {
	*prometheus.Registry
	families []exposition.Family
}

// instrument notes a family and registers what has been made for it.
func instrument[T prometheus.Collector](i *instruments, f exposition.Family, made T) T {
	i.families = append(i.families, f)
	i.MustRegister(made)
	return made
}

func labels(label string) []string {
	return slices.DeleteFunc([]string{label}, func(l string) bool { return l == "" })
}

func (i *instruments) gauge(name, counts, help string) prometheus.Gauge {
	return i.gauges(name, "", counts, help).WithLabelValues()
}

// gauges has one for each value of a label; "": it has none.
func (i *instruments) gauges(name, label, counts, help string) *prometheus.GaugeVec {
	f := exposition.Family{Name: name, Help: help, Type: mapping.KindGauge, Counts: counts, Labels: labels(label)}
	return instrument(i, f, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, f.Labels))
}

func (i *instruments) counter(name, counts, help string) prometheus.Counter {
	return i.counters(name, "", counts, help).WithLabelValues()
}

// counters has a counter for each of the label's values from the start: one that appears with its first event has no
// rate for it.
func (i *instruments) counters(name, label, counts, help string, values ...string) *prometheus.CounterVec {
	f := exposition.Family{Name: name, Help: help, Type: mapping.KindCounter, Counts: counts, Labels: labels(label)}
	vec := instrument(i, f, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, f.Labels))
	for _, value := range values {
		vec.WithLabelValues(value)
	}
	return vec
}

func (i *instruments) histogram(name, help string, buckets ...float64) prometheus.Histogram {
	return instrument(i, exposition.Family{Name: name, Help: help, Type: mapping.KindHistogram},
		prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}))
}

// Values of the label `scope`.
const (
	ScopeAll      = "all"
	ScopeJob      = "job"
	ScopeUser     = "user"
	ScopeRank     = "rank"
	ScopeVariable = "variable"
)
