package exporter

import (
	"slices"
	"strings"
	"sync"

	dto "github.com/prometheus/client_model/go"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// Family describes one metric family of the exporter's own: everything on the page that is not a performance variable.
type Family struct {
	Name   string
	Help   string
	Type   dto.MetricType
	Labels []string // besides the scraper's, and besides `dup` on what stands once per rank or world
}

// rankLabels stand on everything that belongs to one rank.
var rankLabels = []string{"jobid", "world", "user", "rank"}

// The families that say something of a rank. Kept apart from their values so that the list of reserved names and the
// documentation can't differ from the code.
var (
	familyRankUp = Family{"mpit_rank_up",
		"1: the rank answered in this scrape; 0: it was late, or has ended.",
		dto.MetricType_GAUGE, rankLabels}
	familyProcessInfo = Family{"mpit_process_info",
		"The rank's process, MPI library and job; always 1. pid is the exporter's view where the kernel gives one.",
		dto.MetricType_GAUGE, append(rankLabels[:4:4], "pid", "uid", "host", "executable", "library", "library_version",
			"world_size", "thread_level", "agent_version", "jobname", "partition", "jobid_source", "cgroup_jobid", "jobid_check")}
	familyRankStart = Family{"mpit_rank_start_time_seconds",
		"When the rank's MPI_T session was opened, right after MPI_Init, since the epoch.",
		dto.MetricType_GAUGE, rankLabels}
	familyRankEnd = Family{"mpit_rank_end_info",
		"How a rank ended (finalize, exit, abort; lost: without a last sample); always 1, only on ended ranks.",
		dto.MetricType_GAUGE, append(rankLabels[:4:4], "reason")}
	familyAgentCPU = Family{"mpit_rank_agent_cpu_seconds_total",
		"CPU time of the agent's thread in the rank.",
		dto.MetricType_COUNTER, rankLabels}
	familyAgentGateWait = Family{"mpit_rank_agent_gate_wait_seconds_total",
		"Time that the program's threads waited for a sample to end.",
		dto.MetricType_COUNTER, rankLabels}
	familyAgentGateWaitMax = Family{"mpit_rank_agent_gate_wait_max_seconds",
		"Longest time that a thread of the program waited for a sample to end.",
		dto.MetricType_GAUGE, rankLabels}
	familyAgentSamples = Family{"mpit_rank_agent_samples_total",
		"Samples that the rank's agent has taken.",
		dto.MetricType_COUNTER, rankLabels}
	familyAgentBusy = Family{"mpit_rank_agent_busy_total",
		"Requests that the agent answered without values, because the program was making or freeing MPI objects.",
		dto.MetricType_COUNTER, rankLabels}
	familyAgentReadErrors = Family{"mpit_rank_agent_read_errors_total",
		"Reads of performance variables that MPI_T refused.",
		dto.MetricType_COUNTER, rankLabels}
	familyPvarInfo = Family{"mpit_pvar_info",
		"Performance variables that the ranks have, as MPI_T describes them; always 1.",
		dto.MetricType_GAUGE, []string{"name", "class", "unit", "bind", "verbosity", "bits"}}
	familyObjectInfo = Family{"mpit_object_info",
		"An MPI object whose name is unique in its rank: how many processes it spans, the rank's own number in it, and what else MPI tells of it; always 1.",
		dto.MetricType_GAUGE, append(append(rankLabels[:4:4], "kind", "name", "size", "object_rank", "predefined", "inter", "on"), objectDetailLabels...)}
	familyPcontrolLevel = Family{"mpit_pcontrol_level",
		"Level of the program's last MPI_Pcontrol: 0 off, 1 on, others its own phases. Only of ranks that have called it.",
		dto.MetricType_GAUGE, rankLabels}
	familyPcontrolCalls = Family{"mpit_pcontrol_calls_total",
		"Calls of MPI_Pcontrol. Only of ranks that have called it.",
		dto.MetricType_COUNTER, rankLabels}
	familyPcontrolPaused = Family{"mpit_pcontrol_paused_seconds_total",
		"Time after MPI_Pcontrol(0), in which nothing was counted. Only of ranks that have called MPI_Pcontrol.",
		dto.MetricType_COUNTER, rankLabels}
	familyPcontrolKept = Family{"mpit_pcontrol_kept_total",
		"Samples that MPI_Pcontrol(2) has kept. Only of ranks that have called MPI_Pcontrol.",
		dto.MetricType_COUNTER, rankLabels}
	familyPvarCategory = Family{"mpit_pvar_category_info",
		"Categories that a performance variable stands in, as one rank of each world says; always 1.",
		dto.MetricType_GAUGE, []string{"name", "class", "category"}}
	familyCategoryParent = Family{"mpit_category_parent_info",
		"Categories that a category stands in, as one rank of each world says; always 1.",
		dto.MetricType_GAUGE, []string{"category", "parent"}}
	familyControlRanks = Family{"mpit_cvar_ranks",
		"Ranks of this node in which a control variable has this value. Only control variables that were chosen.",
		dto.MetricType_GAUGE, []string{"jobid", "world", "user", "name", "value"}}
	familyNodeExtreme = Family{mapping.ExtremeName, mapping.ExtremeHelp,
		dto.MetricType_GAUGE, []string{"jobid", "world", "user", "metric"}}
	familyObjects = Family{"mpit_objects",
		"MPI objects of one kind and name that are alive in the rank.",
		dto.MetricType_GAUGE, append(rankLabels[:4:4], "kind", "name")}
)

// presence says from when on a rank has a family.
type presence uint8

const (
	always         presence = iota
	onceSampled             // from the rank's first answer on
	onceControlled          // once the program has called MPI_Pcontrol
)

// rankFamilies are those whose value is a number of the rank, without further labels: filled in at each round, and but
// for those that say what is present kept on the page when the rank is late or has ended.
var rankFamilies = []struct {
	Family
	when     presence
	liveOnly bool
	value    func(r *portrait) float64
}{
	{familyRankUp, always, false, func(r *portrait) float64 {
		if r.live() {
			return 1
		}
		return 0
	}},
	{familyRankStart, always, false, func(r *portrait) float64 { return seconds(r.rank.started) }},
	{familyAgentCPU, onceSampled, false, func(r *portrait) float64 { return r.stats.CPUTime.Seconds() }},
	{familyAgentGateWait, onceSampled, false, func(r *portrait) float64 { return r.stats.GateWaitTime.Seconds() }},
	{familyAgentGateWaitMax, onceSampled, false, func(r *portrait) float64 { return r.stats.GateWaitMax.Seconds() }},
	{familyAgentSamples, onceSampled, false, func(r *portrait) float64 { return float64(r.stats.Samples) }},
	{familyAgentBusy, onceSampled, false, func(r *portrait) float64 { return float64(r.stats.Busy) }},
	{familyAgentReadErrors, onceSampled, false, func(r *portrait) float64 { return float64(r.stats.ReadErrors) }},
	{familyPcontrolLevel, onceControlled, true, func(r *portrait) float64 { return float64(r.stats.PcontrolLevel) }},
	{familyPcontrolCalls, onceControlled, false, func(r *portrait) float64 { return float64(r.stats.PcontrolCalls) }},
	{familyPcontrolPaused, onceControlled, false, func(r *portrait) float64 { return r.stats.PausedTime.Seconds() }},
	{familyPcontrolKept, onceControlled, false, func(r *portrait) float64 { return float64(r.stats.KeptSamples) }},
}

// The exporter's figures of itself.
var (
	familyRanks = Family{"mpit_exporter_ranks",
		"Ranks by what became of them in the last round.",
		dto.MetricType_GAUGE, []string{"state"}}
	familyVariables = Family{"mpit_exporter_variables",
		"Performance variables of all live ranks, by whether their agents could open them.",
		dto.MetricType_GAUGE, []string{"state"}}
	familySeries = Family{"mpit_exporter_series",
		"Series of ranks on the last page, a histogram counting as one.",
		dto.MetricType_GAUGE, nil}
	familySeriesLimit = Family{"mpit_exporter_series_limit",
		"How many series of performance variables there may be, by whose they are; a histogram counts for as many as it has lines.",
		dto.MetricType_GAUGE, []string{"scope"}}
	familySeriesUsed = Family{"mpit_exporter_series_used",
		"How many of them there are; of jobs, users and ranks that which has most.",
		dto.MetricType_GAUGE, []string{"scope"}}
	familyRounds = Family{"mpit_exporter_rounds_total",
		"Rounds over all ranks; simultaneous scrapes share one.",
		dto.MetricType_COUNTER, nil}
	familyRoundDuration = Family{"mpit_exporter_round_duration_seconds",
		"Time from asking the first rank to having all answers that came in time.",
		dto.MetricType_HISTOGRAM, nil}
	familySamples = Family{"mpit_exporter_samples_total",
		"Requests to ranks and last samples, by result.",
		dto.MetricType_COUNTER, []string{"result"}}
	familyDropped = Family{"mpit_exporter_series_dropped_total",
		"What did not come onto the page, by reason, over all ranks ever seen: variables, values or whole series.",
		dto.MetricType_COUNTER, []string{"reason"}}
	familyEvicted = Family{"mpit_exporter_ranks_evicted_total",
		"Ended ranks given up before their time, because too many were kept.",
		dto.MetricType_COUNTER, nil}
	familyPanics = Family{"mpit_exporter_rank_panics_total",
		"Ranks whose figures made the exporter's mapping fail: a bug, please report it.",
		dto.MetricType_COUNTER, nil}
	familyProtocolErrors = Family{"mpit_exporter_protocol_errors_total",
		"Connections that were closed because the peer broke the protocol, by reason.",
		dto.MetricType_COUNTER, []string{"reason"}}
	familyRefused = Family{"mpit_exporter_connections_refused_total",
		"Connections that were refused, by reason.",
		dto.MetricType_COUNTER, []string{"reason"}}
	familyConnections = Family{"mpit_exporter_connections",
		"Open connections of ranks, by the kernel's word on whose they are.",
		dto.MetricType_GAUGE, []string{"user"}}
	familyAccepted = Family{"mpit_exporter_connections_accepted_total",
		"Connections of ranks so far, by the kernel's word on whose they are.",
		dto.MetricType_COUNTER, []string{"user"}}
	familyClashes = Family{"mpit_exporter_label_clashes_total",
		"Ranks that came with the labels of another one that is still on the page; they have a label dup.",
		dto.MetricType_COUNTER, nil}
	familyMismatches = Family{"mpit_exporter_jobid_mismatches_total",
		"Ranks that claimed another job than their control group is of, by the kernel's word: jobid_check on mpit_process_info.",
		dto.MetricType_COUNTER, nil}
	familyScrapes = Family{"mpit_exporter_scrapes_total",
		"HTTP requests for metrics, by result.",
		dto.MetricType_COUNTER, []string{"result"}}
	familyCvarWrites = Family{"mpit_exporter_cvar_writes_total",
		"Requests to set a control variable, by result.",
		dto.MetricType_COUNTER, []string{"result"}}
	familyReloaded = Family{"mpit_exporter_config_last_reload_successful",
		"1: the rules in force are those that were read last; 0: those could not be used, and the ones before them are in force.",
		dto.MetricType_GAUGE, nil}
	familyReloadTime = Family{"mpit_exporter_config_last_reload_success_timestamp_seconds",
		"When the rules in force were read, since the epoch.",
		dto.MetricType_GAUGE, nil}
	familyReloads = Family{"mpit_exporter_config_reloads_total",
		"Attempts to read the rules anew, by result.",
		dto.MetricType_COUNTER, []string{"result"}}
	familyInFlight = Family{"mpit_exporter_scrapes_in_flight",
		"HTTP requests for metrics that are being served.",
		dto.MetricType_GAUGE, nil}
)

// Families returns every family of the exporter's own, sorted by name. No performance variable may have one of these names.
func Families() []Family {
	all := []Family{
		familyProcessInfo, familyRankEnd, familyPvarInfo, familyObjectInfo, familyObjects,
		familyPvarCategory, familyCategoryParent, familyControlRanks, familyNodeExtreme,
		familyRanks, familyVariables, familySeries, familySeriesLimit, familySeriesUsed, familyRounds, familyRoundDuration, familySamples, familyDropped,
		familyEvicted, familyPanics, familyProtocolErrors, familyRefused, familyConnections, familyAccepted,
		familyClashes, familyMismatches, familyScrapes, familyCvarWrites, familyInFlight,
		familyReloaded, familyReloadTime, familyReloads,
	}
	for _, f := range rankFamilies {
		all = append(all, f.Family)
	}
	slices.SortFunc(all, func(a, b Family) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Prefix begins the names of the exporter's figures of itself; all names with it are reserved.
const Prefix = "mpit_exporter_"

// Reserved says whether a performance variable of a rank may not have this name, for the exporter itself uses it, or would in
// OpenMetrics, where counters' families have no _total; or for the families of several ranks together do.
func Reserved(name string) bool {
	return strings.HasPrefix(name, Prefix) || strings.HasPrefix(name, mapping.NodePrefix) ||
		reservedNames()[name] || reservedNames()[strings.TrimSuffix(name, "_total")]
}

var reservedNames = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, f := range Families() {
		for _, name := range ownedNames(f.Name, f.Type) {
			names[name] = true
		}
	}
	return names
})
