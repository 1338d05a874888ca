package dashboards

import (
	"fmt"

	"github.com/mpit-exporter/mpit-exporter/dashboards/internal/grafana"
)

// variables is the dashboard of single variables of a library, whatever it has, and of what describes ranks.
func variables() grafana.Dashboard {
	counter := labels("counter", "Counter", "Any counter of the job",
		`{__name__=~"mpit_[^:]+_total", __name__!~"mpit_rank_.+", `+
			ofOneJob+`}`, "__name__", grafana.SortAlphabetical)
	level := labels("level", "Level", "Any level, size, share or watermark of the job", `{__name__=~"mpit_[^:]+", `+
		`__name__!~"mpit_.+_(total|bucket|sum|count|info|time_seconds)|mpit_(rank_.+|pcontrol_.+|objects|cvar_ranks|call_[a-z]+_seconds)", `+
		ofOneJob+`}`, "__name__", grafana.SortAlphabetical)
	timer := labels("timer", "Timer", "Any timer of the job", named("mpit_.+_seconds(_bucket)?", ofOneJob+
		`, __name__!~"mpit_(rank|pcontrol)_.+|mpit_call_running_seconds|mpit_.+_(highwatermark|lowwatermark)_seconds"`), "__name__", grafana.SortAlphabetical)
	timer.Regex = "(.+?)(?:_bucket)?"

	return board{
		uid: uidVariables, title: "MPI variables of a job", from: "now-1h",
		description: "Any performance variable that the job's library has, by what it is bound to and by rank; rows for " +
			"what " +
			"single libraries have; ranks, MPI objects, agents and control variables.",
		variables: ofJob(rank(), counter, level, timer),
		rows: []row{
			{title: "Counter: $counter", panels: anyCounter()},
			{title: "Level: $level", panels: anyLevel()},
			{title: "Timer: $timer", collapsed: true, panels: anyTimer()},
			{title: "Ranks, objects and control variables", collapsed: true, panels: describing()},
			{title: "What the agents cost, and MPI_Pcontrol", collapsed: true, panels: agents()},
			{title: "Open MPI with monitoring", collapsed: true, panels: ofMonitoring()},
			{title: "Open MPI built with SPC", collapsed: true, panels: ofSPC()},
			{title: "MPICH built with pvars", collapsed: true, panels: ofMPICH()},
			{title: "MVAPICH", collapsed: true, panels: ofMVAPICH()},
		},
	}.grafana()
}

// What variables are bound to, or are split by.
const (
	things     = "comm, win, file, function, direction, operation, collective, algorithm, peer"
	thingsName = " {{comm}} {{win}} {{file}} {{function}} {{direction}} {{operation}} {{collective}} {{algorithm}} " +
		"{{peer}}"
)

// endings are the units that a family's name may end in; the first query of a panel is of all others.
type endings []struct{ end, unit string }

// ofUnits asks once for each unit: Grafana knows no unit that depends on a variable.
func (p *panel) ofUnits(ends endings, family string, ask func(selector string)) *panel {
	matched := ""
	for i, u := range ends {
		matched += "|" + u.end
		p.ofQuery(refID(i+1), u.unit)
	}
	of := func(operator, pattern string) {
		ask(`{__name__="` + family + `", __name__` + operator + `"` + pattern + `", ` + ofRanks + `}`)
	}
	of("!~", ".+("+matched[1:]+")")
	for _, u := range ends {
		of("=~", ".+"+u.end)
	}
	return p
}

func anyCounter() []*panel {
	ends := endings{{"_bytes_total", "binBps"}, {"_seconds_total", "percentunit"}}
	byThing := many("By what it is bound to", "How fast it grows in all ranks together: the ten fastest.", "cps")
	ranks := heatOfRanks("Rank by rank", "How fast it grows.", "cps", "Blues", "topk")
	return []*panel{
		byThing.ofUnits(ends, "$counter", func(selector string) {
			byThing.longest(things, "all ranks"+thingsName, func(over string) string {
				return sumBy(things, rateOf(selector,
					over))
			})
		}),
		ranks.ofUnits(ends, "$counter", func(selector string) {
			ranks.query(top(mostRanks, "rank", func(over string) string { return sumBy("rank", rateOf(selector, over)) }),
				"{{rank}}")
		}),
	}
}

func anyLevel() []*panel {
	ends := endings{{"_bytes", "bytes"}, {"_ratio", "percentunit"}}
	byThing := many("By what it is bound to", "The rank that has most: the ten highest.", "short")
	ranks := heatOfRanks("Rank by rank", "What a rank has of it in several objects is summed up.", "short", "Blues",
		"topk")
	return []*panel{
		byThing.ofUnits(ends, "$level", func(selector string) {
			byThing.query(most(10, things, selector), "highest rank"+thingsName)
		}),
		ranks.ofUnits(ends, "$level", func(selector string) {
			ranks.query(fmt.Sprintf("%s\nand on (rank) topk(%d, %s)", sumBy("rank", selector), mostRanks,
				sumBy("rank", "max_over_time("+selector+atTheEnd+")")), "{{rank}}")
		}),
	}
}

func anyTimer() []*panel {
	// By a matcher: a job without timers has no name to put in front of the braces.
	part := func(end string) string { return `{__name__="${timer}` + end + `", ` + ofRanks + `}` }
	p, options := heat("Durations", "Events of each duration. Of libraries' timers new events stand in the bucket of "+
		"their mean "+
		"duration in each scrape interval; those of exec --calls are each by itself.", "short", "Oranges")
	options.YAxis.Unit, options.FilterValues.Le = "s", 1e-9
	return []*panel{
		graph("Share of time", "Seconds in a second: the rank that spends most there, the mean and the least.",
			"percentunit").
			spread(sumBy(process,
				"(rate("+part("_sum")+atOnePoint+") or histogram_sum(rate("+part("")+atOnePoint+")))")).size(12, 9),
		p.target(sumBy("le", grow(part("_bucket")))+" or on () sum("+grow(part(""))+")", "heatmap", "{{le}}", false),
	}
}

func describing() []*panel {
	disagree := bad(2)
	return []*panel{
		table("Ranks", "Ranks within the time range; reason says how those ended that were on their exporter's page "+
			"within it.",
			column{label: "rank"}, column{label: "reason"}, column{label: "host"}, column{label: "instance"},
			column{label: "pid"}, column{label: "executable"}, column{label: "library"},
			column{rows: true, title: "Process", hidden: true, expr: countBy(process+", host, pid, executable, "+
				"library, thread_level, jobid_check", last(selector("mpit_process_info", ofRanks)))},
			column{label: "thread_level"}, column{label: "jobid_check"},
			column{title: "Started", expr: maxBy(process, last(selector("mpit_rank_start_time_seconds", ofRanks))) + " * 1000",
				unit: "dateTimeAsIso"},
			column{title: "End", hidden: true, expr: countBy(process+", reason", last(selector("mpit_rank_end_info", ofRanks)))},
			column{title: "Objects", expr: sumBy(process, last(selector("mpit_objects", ofRanks)))},
			column{label: "user"}, column{label: "world"}, column{label: "dup"},
		).without("cluster", "jobid").sorted("rank", false),
		many("Objects of one name", "MPI objects that are alive, in the rank that has most. A number that only grows is "+
			"a leak. The "+
			"ten names with most.", "short").
			query(most(10, "kind, name", selector("mpit_objects", ofRanks)), "{{kind}} {{name}}"),
		table("Objects", "Named objects that are one of their kind and name in their rank, by what MPI tells of them; "+
			"predefined ones "+
			"are left out.",
			column{label: "kind"}, column{label: "name"}, column{label: "size"}, column{label: "on"}, column{label: "inter"},
			column{label: "remote_size"}, column{label: "topology"}, column{label: "dims"}, column{label: "bytes"},
			column{label: "flavor"}, column{label: "model"}, column{label: "mode"}, column{label: "combiner"},
			column{label: "operation"},
			column{title: "Ranks", expr: countBy("kind, name, size, on, inter, remote_size, topology, dims, bytes, "+
				"flavor, model, mode, combiner, operation", last(selector("mpit_object_info", ofRanks+`, predefined=""`)))},
		).sorted("kind", false).size(12, 9),
		table("Control variables", "Values of those that the exporter's --cvar.name chooses, and in how many ranks; two "+
			"values of one "+
			"name are ranks that disagree.",
			column{label: "name"}, column{label: "value"},
			column{title: "Ranks", expr: sumBy("world, name, value", last(selector("mpit_cvar_ranks", ofOneJob)))},
			column{title: "Values", expr: "count by (world, name) (" + sumBy("world, name, value",
				last(selector("mpit_cvar_ranks", ofOneJob))) + ")", steps: &disagree},
			column{label: "world"},
		).sorted("Values", true).size(12, 9),
		table("Performance variables", "Those that ranks of the chosen clusters had, whatever job, as MPI_T describes them; "+
			"mpit-exporter list shows what becomes of them.",
			column{label: "name"}, column{label: "class"}, column{label: "bind"}, column{label: "unit"},
			column{label: "verbosity"},
			column{title: "Exporters", expr: countBy("name, class, bind, unit, verbosity", last(selector("mpit_pvar_info",
				inClusters)))},
		).sorted("name", false).size(12, 9),
		table("Which rank holds a watermark", "Of each high watermark the rank that has the highest at the end of the "+
			"time range, or "+
			"had it at its own end.",
			column{label: "__name__"}, column{label: "rank"}, column{label: "comm"},
			column{title: "Highest", expr: "topk by (__name__) (1, " + maxBy("__name__, world, rank, comm, win",
				last(named("mpit_.+_highwatermark(_[a-z]+)?", ofRanks))) + ")"},
			column{label: "world"},
		).without("win").size(24, 6),
	}
}

func agents() []*panel {
	spread := func(title, description, unit, family string) *panel {
		return graph(title, description, unit).spread(sumBy(process, rateAt(selector(family, ofRanks)))).axis(0, 0.001)
	}
	const only = " Only of ranks that have called MPI_Pcontrol."
	return []*panel{
		spread("CPU time of agents", "Share of a core that the agent's thread uses in its rank.", "percentunit",
			"mpit_rank_agent_cpu_seconds_total"),
		spread("The program waits", "Share of time in which threads of the program waited for a sample to end.",
			"percentunit",
			"mpit_rank_agent_gate_wait_seconds_total"),
		graph("Requests that had no answer", "Of all ranks: busy because the program was making or freeing MPI objects; "+
			"readings that "+
			"MPI_T refused.", "ops").axis(0, 0.1).
			query("sum("+rateAt(selector("mpit_rank_agent_busy_total", ofRanks))+")", "busy").
			query("sum("+rateAt(selector("mpit_rank_agent_read_errors_total", ofRanks))+")", "refused readings"),
		graph("Ranks by level of MPI_Pcontrol",
			"0 switches observation off, 1 on, others are the program's own phases."+only, "short").
			stacked().query(`count_values("level", `+selector("mpit_pcontrol_level", ofRanks)+")", "level {{level}}"),
	}
}

// rates is a graph of how fast families grow, each by labels.
func rates(title, description, unit, by, legend string, families ...string) *panel {
	p := many(title, description, unit)
	for _, family := range families {
		name := legend
		if name == "" {
			name = family
		}
		p.longest(by, name, func(over string) string { return sumBy(by, rateOf(selector(family, ofRanks), over)) })
	}
	return p
}

func ofMonitoring() []*panel {
	const needs = " With `OMPI_MCA_pml_monitoring_enable=2`."
	calls := many("Collectives", "Calls of all ranks, by kind and communicator: the three fastest of each kind."+needs,
		"cps")
	bytes := many("Bytes of collectives",
		"Sent by all ranks, by kind and communicator: the three fastest of each kind."+needs, "binBps")
	for _, kind := range []struct{ name, what string }{{"a2a", "all-to-all"}, {"a2o", "all-to-one"}, {"o2a",
		"one-to-all"}} {
		of := func(family string) string {
			return top(3, "comm", func(over string) string { return sumBy("comm", rateOf(selector(family, ofRanks), over)) })
		}
		calls.query(of("mpit_coll_monitoring_"+kind.name+"_count_total"), kind.what+" on {{comm}}")
		bytes.query(of("mpit_coll_monitoring_"+kind.name+"_bytes_total"), kind.what+" on {{comm}}")
	}
	return []*panel{calls, bytes}
}

func ofSPC() []*panel {
	const needs = " Open MPI 5 built with --enable-spc, with `exec --monitoring` or rules that open its counters."
	return []*panel{
		rates("Calls of MPI functions", "The ten most frequent."+needs, "cps", "function", "{{function}}",
			"mpit_runtime_spc_calls_total"),
		rates("Bytes", "By direction, and by whether the program or the library itself sent them."+needs, "binBps",
			"direction, by", "{{direction}} {{by}}", "mpit_runtime_spc_bytes_total"),
		rates("Messages that came too early or out of order", "Unexpected: before their receive."+needs, "mps", "", "",
			"mpit_runtime_spc_unexpected_messages_total", "mpit_runtime_spc_out_of_sequence_messages_total"),
		graph("Time spent matching", "Share of time: the rank that spends most, the mean and the least."+needs,
			"percentunit").
			spread(sumBy(process, rateAt(selector("mpit_runtime_spc_match_time_seconds_sum", ofRanks)))).size(12, 9),
	}
}

func ofMPICH() []*panel {
	const needs = " MPICH, Intel MPI or Cray MPICH built with --enable-mpit-pvars=all; Debian's MPICH has no " +
		"performance variables."
	return []*panel{
		rates("Bytes through network cards", "Of all ranks."+needs, "binBps", "", "", "mpit_nic_sent_bytes_total",
			"mpit_nic_recvd_bytes_total"),
		rates("Searches of the queues", "How often the queues of receives and messages are searched."+needs, "cps", "", "",
			"mpit_posted_recvq_match_attempts_total", "mpit_unexpected_recvq_match_attempts_total"),
		graph("Bytes that unexpected messages take up", "The rank with most, the mean and the least."+needs, "bytes").
			spread(selector("mpit_unexpected_recvq_buffer_bytes", ofRanks)).size(12, 9),
		rates("Handlers of one-sided operations", "Packets of the device ch3, call-backs of ch4."+needs, "cps", "operation",
			"{{operation}}",
			"mpit_rma_packet_handler_calls_total", "mpit_rma_target_callback_calls_total"),
	}
}

func ofMVAPICH() []*panel {
	const two, four = " MVAPICH2.", " MVAPICH 3 and 4."
	const coll, collName = "collective, algorithm", "{{collective}} {{algorithm}}"
	return []*panel{
		rates("Messages", "By operation."+two, "mps", "operation", "{{operation}}", "mpit_mv2_pt2pt_messages_total"),
		rates("Collectives by algorithm", "Calls: the ten most frequent."+two, "cps", coll, collName,
			"mpit_mv2_coll_algorithm_calls_total"),
		rates("Time in collectives", "Seconds in a second, of all ranks: the ten longest."+two, "s", coll, collName,
			"mpit_mv2_coll_algorithm_time_seconds_sum"),
		rates("Collectives by algorithm (MVAPICH 3 and 4)", "Calls: the ten most frequent."+four, "cps",
			"collective, communicators, algorithm",
			"{{collective}} {{communicators}} {{algorithm}}", "mpit_mvp_coll_algorithm_calls_total"),
		rates("Cache of registered memory", "A miss registers memory anew."+two, "cps", "", "",
			"mpit_mv2_reg_cache_hits_total", "mpit_mv2_reg_cache_misses_total"),
		graph("Network buffers free", "The rank with fewest."+two, "short").size(12, 9).
			query("min("+selector("mpit_mv2_vbuf_available", ofRanks)+")", "connections").
			query("min("+selector("mpit_mv2_ud_vbuf_available", ofRanks)+")", "datagrams"),
	}
}
