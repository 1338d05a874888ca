package board

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/self"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/series"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// rankLabels stand on everything that belongs to one rank.
var rankLabels = []string{"jobid", "world", "user", "rank"}

// The labels that describe performance variables, and those of objects.
var (
	variableLabels = []string{"name", "class", "unit", "bind", "verbosity", "bits"}
	objectLabelled = []string{"kind", "name"}
)

// The families that say something of a rank, with labels of their own, or of all ranks. The list of reserved names
// and the documentation are made from these.
var (
	familyProcessInfo = gauge("mpit_process_info", "",
		"The rank's process, MPI library and job; always 1. pid is as the exporter sees it, where the kernel tells.",
		rankLabels, processLabels())
	familyRankEnd = gauge("mpit_rank_end_info", "",
		"How a rank ended: finalize, exit, abort, or lost (no last sample); always 1. Only for ended ranks.",
		rankLabels, []string{"reason"})
	familyPvarInfo = gauge("mpit_pvar_info", "",
		"Performance variables of the ranks as MPI_T describes them, except those by peer; always 1.",
		variableLabels)
	familyObjectInfo = gauge("mpit_object_info", "",
		"An MPI object whose name is unique in its rank: its number of processes, the rank's own number in it, and "+
			"what else MPI tells about it; always 1.",
		rankLabels, objectLabelled, []string{"size", "object_rank", "predefined", "inter", "on"}, objectDetails)
	familyObjects = gauge("mpit_objects", "{object}",
		"Live MPI objects of one kind and name in the rank.",
		rankLabels, objectLabelled)
	familyPvarCategory = gauge("mpit_pvar_category_info", "",
		"Categories of a performance variable, as told by one rank of each world; always 1.",
		variableLabels[:2], []string{"category"})
	familyControlRanks = gauge("mpit_cvar_ranks", "{rank}",
		"Ranks of this node in which a control variable has this value. Only for variables chosen with --cvar.name.",
		rankLabels[:3], []string{"name", "value"})
	familyCallRunning = gauge("mpit_call_running_info", "",
		"The longest MPI call under way in any thread of the rank, if it has taken longer than a second: its "+
			"communicator, window or file, and where it returns to (module and offset); always 1.",
		rankLabels, []string{"function", "comm", "win", "file", "module", "offset"})
	familyRankSeconds = counter("mpit_rank_seconds_total", "",
		"The rank's time by what it does, to the moment, a call that has not returned included: outside MPI, or in "+
			"calls that send (hand data over, or start something), wait (for messages, requests, windows), are "+
			"collective, work on a file, or poll (tests and probes); the sum of these is the time for which calls were "+
			"measured. After it finalize (in MPI_Finalize) and ended, while other ranks of its world run on the node. "+
			"Only for ranks with the call profile.",
		rankLabels, []string{"state"})
	familyVerdict = gauge(api.VerdictName, "", api.VerdictHelp, api.VerdictLabels[:]) // the program adds it
)

func gauge(name, counts, help string, labels ...[]string) exposition.Family {
	return exposition.Family{Name: name, Help: help, Type: mapping.KindGauge, Counts: counts,
		Labels: slices.Concat(labels...)}
}

func counter(name, counts, help string, labels ...[]string) exposition.Family {
	f := gauge(name, counts, help, labels...)
	f.Type = mapping.KindCounter
	return f
}

// stateRows are the rows of familyRankSeconds, of a rank with the call profile.
func stateRows(r *portrait) (rows []exposition.Row) {
	for i, name := range api.TimeStateNames {
		rows = append(rows, exposition.Row{
			Labels: []mapping.Label{{Name: "state", Value: name}},
			Number: func() float64 { return r.Calls.State[i] + r.since[i] },
		})
	}
	return rows
}

// processLabelled are the labels of mpit_process_info, besides the rank's.
func processLabelled(a *api.RankStatus) []mapping.Label {
	return []mapping.Label{
		{Name: "pid", Value: strconv.Itoa(a.PID)},
		{Name: "uid", Value: strconv.FormatUint(uint64(a.UID), 10)},
		{Name: "host", Value: a.Host},
		{Name: "executable", Value: a.Executable},
		{Name: "library", Value: a.Library},
		{Name: "library_version", Value: a.LibraryVersion},
		{Name: "world_size", Value: strconv.Itoa(a.WorldSize)},
		{Name: "thread_level", Value: a.ThreadLevel},
		{Name: "agent_version", Value: a.AgentVersion},
		{Name: "jobname", Value: a.JobName},
		{Name: "partition", Value: a.Partition},
		{Name: "jobid_source", Value: a.JobIDSource},
		{Name: "cgroup_jobid", Value: a.CgroupJobID},
		{Name: "jobid_check", Value: a.JobIDCheck},
		{Name: "account", Value: a.Account},
		{Name: "qos", Value: a.QOS},
	}
}

// leftOut are those of them that are left out where they are empty.
var leftOut = []string{"cgroup_jobid", "account", "qos"}

func processLabels() (labels []string) {
	for _, l := range processLabelled(&api.RankStatus{}) {
		labels = append(labels, l.Name)
	}
	return labels
}

// Of which ranks a family is; nil: of all.
func sampled(r *portrait) bool  { return r.Sampled }
func profiled(r *portrait) bool { return r.Calls != nil }

// controlled says whether the program has called MPI_Pcontrol.
func controlled(r *portrait) bool { return r.Stats.PcontrolCalls > 0 }

// rankFamily is a family whose value is a number of the rank, without further labels: filled in at each round.
type rankFamily struct {
	exposition.Family
	when     func(r *portrait) bool
	value    func(r *portrait) float64
	liveOnly bool
}

func ofRank(name, counts string, when func(r *portrait) bool, help string, value func(r *portrait) float64) rankFamily {
	f := gauge(name, counts, help, rankLabels)
	if strings.HasSuffix(name, "_total") {
		f = counter(name, counts, help, rankLabels)
	}
	return rankFamily{f, when, value, false}
}

// whileLive is a family that a rank has while it is live.
func whileLive(f rankFamily) rankFamily {
	f.liveOnly = true
	return f
}

var rankFamilies = []rankFamily{
	ofRank("mpit_rank_up", "", nil,
		"1: the rank answered in this scrape; 0: it was late or has ended.",
		func(r *portrait) float64 {
			if r.up {
				return 1
			}
			return 0
		}),
	ofRank("mpit_rank_start_time_seconds", "", nil,
		"When the rank's MPI_T session was opened, right after MPI_Init, in seconds since the epoch.",
		func(r *portrait) float64 { return self.Seconds(r.rank.Started) }),
	ofRank("mpit_rank_agent_cpu_seconds_total", "", sampled,
		"CPU time of the agent's thread in the rank.",
		func(r *portrait) float64 { return r.Stats.CPUTime.Seconds() }),
	ofRank("mpit_rank_agent_gate_wait_seconds_total", "", sampled,
		"Time that the program's threads waited for a sample to end.",
		func(r *portrait) float64 { return r.Stats.GateWaitTime.Seconds() }),
	ofRank("mpit_rank_agent_gate_wait_max_seconds", "", sampled,
		"Longest time that a thread of the program waited for a sample to end.",
		func(r *portrait) float64 { return r.Stats.GateWaitMax.Seconds() }),
	ofRank("mpit_rank_agent_samples_total", "{sample}", sampled,
		"Samples taken by the rank's agent.",
		func(r *portrait) float64 { return float64(r.Stats.Samples) }),
	ofRank("mpit_rank_agent_busy_total", "{request}", sampled,
		"Requests that the agent answered without values because the program was making or freeing MPI objects.",
		func(r *portrait) float64 { return float64(r.Stats.Busy) }),
	ofRank("mpit_rank_agent_read_errors_total", "{error}", sampled,
		"Reads of performance variables that MPI_T refused.",
		func(r *portrait) float64 { return float64(r.Stats.ReadErrors) }),
	whileLive(ofRank("mpit_pcontrol_level", "", controlled,
		"Level of the program's last MPI_Pcontrol: 0 off, 1 on, others as the program defines them. Only "+
			"for ranks that have called it.",
		func(r *portrait) float64 { return float64(r.Stats.PcontrolLevel) })),
	ofRank("mpit_pcontrol_calls_total", "{call}", controlled,
		"Calls of MPI_Pcontrol. Only for ranks that have called it.",
		func(r *portrait) float64 { return float64(r.Stats.PcontrolCalls) }),
	ofRank("mpit_pcontrol_paused_seconds_total", "", controlled,
		"Time after MPI_Pcontrol(0), in which nothing was counted. Only for ranks that have called MPI_Pcontrol.",
		func(r *portrait) float64 { return r.Stats.PausedTime.Seconds() }),
	ofRank("mpit_call_messages_total", "{message}", profiled,
		"Point-to-point sends and puts, including those to MPI_PROC_NULL: a sum of mpit_call_time_seconds_count. Only "+
			"for ranks with the call profile.",
		func(r *portrait) float64 { return r.sums.messages }),
	ofRank("mpit_call_message_bytes_total", "By", profiled,
		"Bytes in mpit_call_messages_total: a sum of mpit_call_bytes_total. Only for ranks with the call profile.",
		func(r *portrait) float64 { return r.sums.messageBytes }),
	ofRank("mpit_call_collectives_total", "{call}", profiled,
		"Collectives that no rank leaves before all have entered (see docs/calls.md), on communicators with a name of "+
			"their own: a sum of mpit_call_time_seconds_count. Only for ranks with the call profile.",
		func(r *portrait) float64 { return r.sums.collectives }),
	ofRank("mpit_call_collective_seconds_total", "", profiled,
		"Time in mpit_call_collectives_total: a sum of mpit_call_time_seconds_sum. Only for ranks with the call profile.",
		func(r *portrait) float64 { return r.sums.collectiveS }),
	whileLive(ofRank("mpit_call_running_seconds", "", profiled,
		"How long the longest MPI call under way in any thread of the rank has taken so far; 0: there is none. Only "+
			"for ranks with the call profile.",
		func(r *portrait) float64 { return r.Calls.Running })),
}

// longCallLabels are those of mpit_call_running_info. What isn't there is left out.
func longCallLabels(c *api.LongCall) []mapping.Label {
	labels := []mapping.Label{{Name: "function", Value: c.Function}}
	if c.Kind != "" {
		labels = append(labels, mapping.Label{Name: c.Kind, Value: c.Object})
	}
	if c.Module != "" {
		labels = append(labels, mapping.Label{Name: "module", Value: c.Module},
			mapping.Label{Name: "offset", Value: fmt.Sprintf("%#x", c.Offset)})
	}
	return labels
}

// objectDetails are the properties of objects that are labels of mpit_object_info, out of those in
// docs/internals/protocol.md. A window's base is not among them: it differs in every process and says nothing outside
// of it.
var objectDetails = []string{
	"remote_size", "topology", "dims", "periods", "nodes", "edges", "indegree", "outdegree", // communicators
	"bytes", "disp_unit", "flavor", "model", // windows
	"mode",                     // files
	"extent", "lb", "combiner", // datatypes, and bytes
	onDetail,      // error handlers
	"commutative", // operators
	"operation",   // requests
	"keys",        // info
}

// onDetail is the label for what kind of object an error handler is for, the property on, since the label on names a
// communicator.
const onDetail = "errhandler_on"

// objectLabels are the labels of mpit_object_info besides kind and name. What an object does not have, has no label.
func objectLabels(o *series.ObjectInfo) (labels []mapping.Label) {
	add := func(name, value string) {
		if value != "" {
			labels = append(labels, mapping.Label{Name: name, Value: value})
		}
	}
	if o.Object.Size >= 0 {
		add("size", strconv.Itoa(o.Object.Size))
	}
	if o.Object.Rank >= 0 {
		add("object_rank", strconv.Itoa(o.Object.Rank))
	}
	if o.Object.Predefined {
		add("predefined", "true")
	}
	if o.Object.Inter {
		add("inter", "true")
	}
	add("on", o.On)
	for _, label := range objectDetails {
		key := strings.TrimPrefix(label, "errhandler_")
		if i := slices.IndexFunc(o.Object.Details, func(d mpit.Detail) bool { return d.Key == key }); i >= 0 {
			add(label, clean.Label(o.Object.Details[i].Value))
		}
	}
	return labels
}

// Families returns every family of the exporter's own, sorted by name. No performance variable may have one of these
// names.
func Families() []exposition.Family {
	all := append(self.Families(), familyProcessInfo, familyRankEnd, familyPvarInfo, familyObjectInfo, familyObjects,
		familyPvarCategory, familyControlRanks, familyCallRunning, familyRankSeconds, familyVerdict)
	for _, f := range rankFamilies {
		all = append(all, f.Family)
	}
	slices.SortFunc(all, func(a, b exposition.Family) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// ByName are these by their names.
var ByName = sync.OnceValue(func() map[string]*exposition.Family {
	byName := map[string]*exposition.Family{}
	for _, f := range Families() {
		byName[f.Name] = &f
	}
	return byName
})

// Prefix begins the names of the exporter's figures of itself; all names with it are reserved.
const Prefix = "mpit_exporter_"

// Reserved says whether a performance variable of a rank may not have this name, for the exporter itself uses it, or
// would in OpenMetrics, where counters' families have no _total.
func Reserved(name string) bool {
	return strings.HasPrefix(name, Prefix) || reservedNames()[name] || reservedNames()[strings.TrimSuffix(name, "_total")]
}

var reservedNames = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, f := range Families() {
		for _, name := range mapping.OwnedNames(f.Name, f.Type) {
			names[name] = true
		}
	}
	return names
})
