package board

import (
	"slices"
	"strings"
	"sync"

	dto "github.com/prometheus/client_model/go"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/self"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// Family describes one metric family of the exporter's own: everything on the page that is not a performance variable.
type Family = exposition.Family

// rankLabels stand on everything that belongs to one rank.
var rankLabels = self.PlainLabels("jobid", "world", "user", "rank")

// The labels that describe performance variables, and those of objects.
var (
	variableLabels = []exposition.Label{
		{Name: "name", Attribute: "mpi.pvar.name"},
		{Name: "class", Attribute: "mpi.pvar.class"},
		{Name: "unit", Attribute: "mpi.pvar.unit"},
		{Name: "bind", Attribute: "mpi.pvar.bind"},
		{Name: "verbosity", Attribute: "mpi.pvar.verbosity"},
		{Name: "bits", Attribute: "mpi.pvar.bits", Integer: true},
	}
	categoryLabel  = exposition.Label{Name: "category", Attribute: "mpi.category.name"}
	objectLabelled = []exposition.Label{
		{Name: "kind", Attribute: "mpi.object.kind"},
		{Name: "name", Attribute: "mpi.object.name"},
	}
)

// The families that say something of a rank, with labels of their own, or of all ranks. The list of reserved names
// and the documentation are made from these.
var (
	familyProcessInfo = Family{
		Name: "mpit_process_info",
		Help: "The rank's process, MPI library and job; always 1. pid is the exporter's view where the kernel gives one.",
		Type: dto.MetricType_GAUGE,
		Labels: append(rankLabels[:4:4], []exposition.Label{
			{Name: "pid", Attribute: "process.pid", Integer: true},
			{Name: "uid", Attribute: "process.user.id", Integer: true},
			{Name: "host", Attribute: "host.name"},
			{Name: "executable", Attribute: "process.executable.path"},
			{Name: "library", Attribute: "mpi.library.name"},
			{Name: "library_version", Attribute: "mpi.library.version"},
			{Name: "world_size", Attribute: "mpi.world_size", Integer: true},
			{Name: "thread_level", Attribute: "mpi.thread_level"},
			{Name: "agent_version", Attribute: "mpi.agent.version"},
			{Name: "jobname", Attribute: "mpi.job.name"},
			{Name: "partition", Attribute: "mpi.job.partition"},
			{Name: "jobid_source", Attribute: "mpi.job.id_source"},
			{Name: "cgroup_jobid", Attribute: "mpi.job.cgroup_id"},
			{Name: "jobid_check", Attribute: "mpi.job.id_check"},
		}...),
	}
	familyRankEnd = Family{
		Name:   "mpit_rank_end_info",
		Help:   "How a rank ended (finalize, exit, abort; lost: without a last sample); always 1, only on ended ranks.",
		Type:   dto.MetricType_GAUGE,
		Labels: append(rankLabels[:4:4], self.PlainLabels("reason")...),
	}
	familyPvarInfo = Family{
		Name:   "mpit_pvar_info",
		Help:   "Performance variables that the ranks have, as MPI_T describes them; always 1.",
		Type:   dto.MetricType_GAUGE,
		Labels: variableLabels,
	}
	familyObjectInfo = Family{
		Name: "mpit_object_info",
		Help: "An MPI object whose name is unique in its rank: how many processes it spans, the rank's own number in it, " +
			"and what else MPI tells of it; always 1.",
		Type:   dto.MetricType_GAUGE,
		Labels: slices.Concat(rankLabels, objectLabelled, objectDetailLabels()),
	}
	familyPvarCategory = Family{
		Name:   "mpit_pvar_category_info",
		Help:   "Categories that a performance variable stands in, as one rank of each world says; always 1.",
		Type:   dto.MetricType_GAUGE,
		Labels: append(variableLabels[:2:2], categoryLabel),
	}
	familyCategoryParent = Family{
		Name:   "mpit_category_parent_info",
		Help:   "Categories that a category stands in, as one rank of each world says; always 1.",
		Type:   dto.MetricType_GAUGE,
		Labels: []exposition.Label{categoryLabel, {Name: "parent", Attribute: "mpi.category.parent"}},
	}
	familyControlRanks = Family{
		Name:   "mpit_cvar_ranks",
		Help:   "Ranks of this node in which a control variable has this value. Only control variables that were chosen.",
		Type:   dto.MetricType_GAUGE,
		Counts: "{rank}",
		Labels: append(rankLabels[:3:3], []exposition.Label{
			{Name: "name", Attribute: "mpi.cvar.name"}, {Name: "value", Attribute: "mpi.cvar.value"},
		}...),
	}
	familyNodeExtreme = Family{
		Name:   mapping.ExtremeName,
		Help:   mapping.ExtremeHelp,
		Type:   dto.MetricType_GAUGE,
		Labels: append(rankLabels[:3:3], self.PlainLabels("metric")...),
	}
	familyObjects = Family{
		Name:   "mpit_objects",
		Help:   "MPI objects of one kind and name that are alive in the rank.",
		Type:   dto.MetricType_GAUGE,
		Counts: "{object}",
		Labels: append(rankLabels[:4:4], objectLabelled...),
	}
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
	{Family{
		Name:   "mpit_rank_up",
		Help:   "1: the rank answered in this scrape; 0: it was late, or has ended.",
		Type:   dto.MetricType_GAUGE,
		Labels: rankLabels,
	}, always, false, func(r *portrait) float64 {
		if r.Live() {
			return 1
		}
		return 0
	}},
	{Family{
		Name:   "mpit_rank_start_time_seconds",
		Help:   "When the rank's MPI_T session was opened, right after MPI_Init, since the epoch.",
		Type:   dto.MetricType_GAUGE,
		Labels: rankLabels,
	}, always, false, func(r *portrait) float64 { return self.Seconds(r.rank.Started) }},
	{Family{
		Name:   "mpit_rank_agent_cpu_seconds_total",
		Help:   "CPU time of the agent's thread in the rank.",
		Type:   dto.MetricType_COUNTER,
		Labels: rankLabels,
	}, onceSampled, false, func(r *portrait) float64 { return r.stats.CPUTime.Seconds() }},
	{Family{
		Name:   "mpit_rank_agent_gate_wait_seconds_total",
		Help:   "Time that the program's threads waited for a sample to end.",
		Type:   dto.MetricType_COUNTER,
		Labels: rankLabels,
	}, onceSampled, false, func(r *portrait) float64 { return r.stats.GateWaitTime.Seconds() }},
	{Family{
		Name:   "mpit_rank_agent_gate_wait_max_seconds",
		Help:   "Longest time that a thread of the program waited for a sample to end.",
		Type:   dto.MetricType_GAUGE,
		Labels: rankLabels,
	}, onceSampled, false, func(r *portrait) float64 { return r.stats.GateWaitMax.Seconds() }},
	{Family{
		Name:   "mpit_rank_agent_samples_total",
		Help:   "Samples that the rank's agent has taken.",
		Type:   dto.MetricType_COUNTER,
		Counts: "{sample}",
		Labels: rankLabels,
	}, onceSampled, false, func(r *portrait) float64 { return float64(r.stats.Samples) }},
	{Family{
		Name:   "mpit_rank_agent_busy_total",
		Help:   "Requests that the agent answered without values, because the program was making or freeing MPI objects.",
		Type:   dto.MetricType_COUNTER,
		Counts: "{request}",
		Labels: rankLabels,
	}, onceSampled, false, func(r *portrait) float64 { return float64(r.stats.Busy) }},
	{Family{
		Name:   "mpit_rank_agent_read_errors_total",
		Help:   "Reads of performance variables that MPI_T refused.",
		Type:   dto.MetricType_COUNTER,
		Counts: "{error}",
		Labels: rankLabels,
	}, onceSampled, false, func(r *portrait) float64 { return float64(r.stats.ReadErrors) }},
	{Family{
		Name: "mpit_pcontrol_level",
		Help: "Level of the program's last MPI_Pcontrol: 0 off, 1 on, others its own phases. " +
			"Only of ranks that have called it.",
		Type:   dto.MetricType_GAUGE,
		Labels: rankLabels,
	}, onceControlled, true, func(r *portrait) float64 { return float64(r.stats.PcontrolLevel) }},
	{Family{
		Name:   "mpit_pcontrol_calls_total",
		Help:   "Calls of MPI_Pcontrol. Only of ranks that have called it.",
		Type:   dto.MetricType_COUNTER,
		Counts: "{call}",
		Labels: rankLabels,
	}, onceControlled, false, func(r *portrait) float64 { return float64(r.stats.PcontrolCalls) }},
	{Family{
		Name:   "mpit_pcontrol_paused_seconds_total",
		Help:   "Time after MPI_Pcontrol(0), in which nothing was counted. Only of ranks that have called MPI_Pcontrol.",
		Type:   dto.MetricType_COUNTER,
		Labels: rankLabels,
	}, onceControlled, false, func(r *portrait) float64 { return r.stats.PausedTime.Seconds() }},
	{Family{
		Name:   "mpit_pcontrol_kept_total",
		Help:   "Samples that MPI_Pcontrol(2) has kept. Only of ranks that have called MPI_Pcontrol.",
		Type:   dto.MetricType_COUNTER,
		Counts: "{sample}",
		Labels: rankLabels,
	}, onceControlled, false, func(r *portrait) float64 { return float64(r.stats.KeptSamples) }},
}

// Families returns every family of the exporter's own, sorted by name. No performance variable may have one of these
// names.
func Families() []Family {
	all := append(self.Families(), familyProcessInfo, familyRankEnd, familyPvarInfo, familyObjectInfo, familyObjects,
		familyPvarCategory, familyCategoryParent, familyControlRanks, familyNodeExtreme)
	for _, f := range rankFamilies {
		all = append(all, f.Family)
	}
	slices.SortFunc(all, func(a, b Family) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// ByName are these by their names.
var ByName = sync.OnceValue(func() map[string]*Family {
	byName := map[string]*Family{}
	for _, f := range Families() {
		byName[f.Name] = &f
	}
	return byName
})

// Prefix begins the names of the exporter's figures of itself; all names with it are reserved.
const Prefix = "mpit_exporter_"

// Reserved says whether a performance variable of a rank may not have this name, for the exporter itself uses it, or
// would in OpenMetrics, where counters' families have no _total; or for the families of several ranks together do.
func Reserved(name string) bool {
	return strings.HasPrefix(name, Prefix) || strings.HasPrefix(name, mapping.NodePrefix) ||
		reservedNames()[name] || reservedNames()[strings.TrimSuffix(name, "_total")]
}

var reservedNames = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, f := range Families() {
		for _, name := range f.SampleNames() {
			names[name] = true
		}
	}
	return names
})
