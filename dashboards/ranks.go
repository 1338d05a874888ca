package dashboards

import "github.com/mpit-exporter/mpit-exporter/dashboards/internal/grafana"

// ranksAndObjects is the dashboard of what describes ranks, their MPI objects, their agents and their variables.
func ranksAndObjects() grafana.Dashboard {
	kind := anyOf(labels("kind", "Kind of object", "comm, win, file, datatype …", selector("mpit_objects", ofOneJob),
		"kind", grafana.SortAlphabetical))
	return board{
		uid: uidRanks, title: "MPI ranks and objects", from: "now-1h",
		description: "The ranks of a job: processes, ends, MPI objects, MPI_Pcontrol, control variables, what their " +
			"agents cost, and which variables there are.",
		variables: []grafana.Variable{datasource(), scrapeJob(), jobID(), user(), world(), rank(), kind},
		rows: []row{
			{title: "Ranks", panels: ranksThemselves()},
			{title: "MPI objects", panels: rankObjects()},
			{title: "What the agents cost", panels: rankAgents()},
			{title: "MPI_Pcontrol", collapsed: true, panels: rankPcontrol()},
			{title: "Variables", collapsed: true, panels: rankVariables()},
		},
	}.grafana()
}

func ranksThemselves() []*panel {
	up := selector("mpit_rank_up", ofRanks)
	answered := map[string]grafana.MappingText{
		"0": {Text: "ended or silent", Color: "text", Index: 0}, "1": {Text: "answers", Color: "green", Index: 1},
	}
	return []*panel{
		table("Ranks", "Ranks within the time range. State is that at its end; reason says how those ended that "+
			"were on their exporter's page within it.",
			column{label: "world"}, column{label: "rank"}, column{label: "dup"},
			column{title: "State", expr: sumBy(process, up) + " or 0 * " + sumBy(process, last(up)), words: answered},
			column{label: "reason"},
			column{label: "user"}, column{label: "host"}, column{label: "instance"}, column{label: "pid"},
			column{label: "executable"}, column{label: "library"},
			column{rows: true, title: "Process", hidden: true, expr: countBy(process+", host, pid, executable, "+
				"library, thread_level, jobid_check", last(selector("mpit_process_info", ofRanks)))},
			column{label: "thread_level"}, column{label: "jobid_check"},
			column{title: "Started", expr: maxBy(process,
				last(selector("mpit_rank_start_time_seconds", ofRanks))) + " * 1000", unit: "dateTimeAsIso"},
			column{title: "End", hidden: true, expr: countBy(process+", reason",
				last(selector("mpit_rank_end_info", ofRanks)))},
			column{title: "Objects", expr: sumBy(process, last(selector("mpit_objects", ofRanks)))},
		).without("jobid").sorted("rank", false).size(24, 11),
		heat("Who answered", "1 where the rank answered in the scrape, 0 where it was late or had ended; a row for "+
			"each rank.", "none", "rank").
			query(maxBy("rank", up), "{{rank}}"),
		graph("Ranks that ended", "By how. Ended ranks are on their exporter's page until they have been scraped, "+
			"and for the retention time.", "short").stacked().
			query(countBy("reason", selector("mpit_rank_end_info", ofRanks)), "{{reason}}").colored("",
			endings).size(12, 9),
	}
}

func rankObjects() []*panel {
	ofKind := ofRanks + `, kind=~"$kind"`
	return []*panel{
		graph("Objects by kind", "MPI objects that are alive in these ranks. A number that only grows is a leak.",
			"short").stacked().
			query(sumBy("kind", selector("mpit_objects", ofKind)), "{{kind}}"),
		graph("Objects of one name", "The ten names with most objects in one rank. Many objects of one name share "+
			"their series.", "short").
			query("topk(10, "+maxBy("kind, name", selector("mpit_objects", ofKind))+")", "{{kind}} {{name}}"),
		table("Objects", "Named objects that are one of their kind and name in their rank, by what MPI tells of "+
			"them; predefined ones are left out.",
			column{label: "kind"}, column{label: "name"}, column{label: "size"}, column{label: "on"},
			column{label: "inter"}, column{label: "remote_size"},
			column{label: "topology"}, column{label: "dims"}, column{label: "bytes"}, column{label: "flavor"},
			column{label: "model"}, column{label: "mode"},
			column{label: "combiner"}, column{label: "operation"},
			column{title: "Ranks", expr: countBy("kind, name, size, on, inter, remote_size, topology, dims, bytes, "+
				"flavor, model, mode, combiner, operation",
				last(selector("mpit_object_info", ofKind+`, predefined=""`)))},
		).sorted("kind", false),
	}
}

func rankAgents() []*panel {
	top := func(title, description, unit, family string) *panel {
		return graph(title, description+" The five highest ranks.", unit).
			query("topk(5, "+sumBy("world, rank", rateOf(selector(family, ofRanks)))+")", "rank {{rank}}")
	}
	return []*panel{
		top("CPU time of agents", "Share of a core that the agent's thread uses in its rank.", "percentunit",
			"mpit_rank_agent_cpu_seconds_total"),
		top("The program waits", "Share of time in which threads of the program waited for a sample to end.",
			"percentunit", "mpit_rank_agent_gate_wait_seconds_total").
			axis(0, 0.001),
		graph("Longest wait", "The longest time that a thread of the program has waited for a sample to end: the "+
			"five highest ranks.", "s").
			query("topk(5, "+maxBy("world, rank", selector("mpit_rank_agent_gate_wait_max_seconds", ofRanks))+")",
				"rank {{rank}}").axis(0, 0.001),
		top("Samples", "What the agent was asked for.", "ops", "mpit_rank_agent_samples_total"),
		top("Busy", "Requests that the agent answered without values, because the program was making or freeing MPI "+
			"objects.", "ops", "mpit_rank_agent_busy_total").axis(0, 0.1),
		top("Refused readings", "Reads of performance variables that MPI_T refused.", "ops",
			"mpit_rank_agent_read_errors_total").axis(0, 0.1),
	}
}

func rankPcontrol() []*panel {
	const only = " Only of ranks that have called MPI_Pcontrol."
	return []*panel{
		graph("Ranks by level", "Level of the last MPI_Pcontrol: 0 switches observation off, 1 on, others are the "+
			"program's own phases."+only, "short").stacked().
			query(`count_values("level", `+selector("mpit_pcontrol_level", ofRanks)+")", "level {{level}}"),
		graph("Calls", "Calls of MPI_Pcontrol: the five ranks with most."+only, "cps").
			query("topk(5, "+sumBy("world, rank", rateOf(selector("mpit_pcontrol_calls_total", ofRanks)))+")",
				"rank {{rank}}"),
		graph("Not observed", "Share of time after MPI_Pcontrol(0), in which nothing was counted: the highest rank, "+
			"the mean, the lowest."+only, "percentunit").
			spread(sumBy(process, rateOf(selector("mpit_pcontrol_paused_seconds_total", ofRanks)))),
		graph("Samples kept", "Samples that MPI_Pcontrol(2) has kept so far: the five ranks with most. They are at "+
			"/api/v1/kept."+only, "short").
			query("topk(5, "+sumBy("world, rank", selector("mpit_pcontrol_kept_total", ofRanks))+")", "rank {{rank}}"),
	}
}

func rankVariables() []*panel {
	disagree := bad(2)
	return []*panel{
		table("Control variables", "Values of those that the exporter's --cvar.name chooses, and in how many ranks; "+
			"two values of one name are ranks that disagree.",
			column{label: "world"}, column{label: "name"}, column{label: "value"},
			column{title: "Ranks", expr: sumBy("world, name, value", last(selector("mpit_cvar_ranks", ofOneJob)))},
			column{title: "Values", expr: "count by (world, name) (" + sumBy("world, name, value",
				last(selector("mpit_cvar_ranks", ofOneJob))) + ")", steps: &disagree},
		).sorted("Values", true).size(12, 9),
		table("Watermarks of several ranks together", "Which rank holds it, where rules with rank: node or both "+
			"merge the ranks of a node.",
			column{label: "world"}, column{label: "instance"}, column{label: "metric"}, column{label: "comm"},
			column{title: "Rank", expr: maxBy("world, instance, metric, comm, win",
				last(selector("mpit_node_extreme_rank", ofOneJob)))},
		).size(12, 9),
		table("Performance variables", "Those that ranks of the chosen scrape jobs had, whatever job, as MPI_T "+
			"describes them; mpit-exporter list shows what becomes of them.",
			column{label: "name"}, column{label: "class"}, column{label: "bind"}, column{label: "unit"},
			column{label: "verbosity"},
			column{title: "Exporters", expr: countBy("name, class, bind, unit, verbosity",
				last(`mpit_pvar_info{job=~"$job"}`))},
		).sorted("name", false).size(14, 10),
		table("Categories", "Which variables stand in which category, as ranks say.",
			column{label: "category"}, column{label: "name"}, column{label: "class"},
			column{title: "Exporters", expr: countBy("category, name, class",
				last(`mpit_pvar_category_info{job=~"$job"}`))},
		).sorted("category", false).size(10, 10),
	}
}
