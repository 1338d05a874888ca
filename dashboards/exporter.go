package dashboards

import "github.com/mpit-exporter/mpit-exporter/dashboards/internal/grafana"

// exporter is the dashboard of the exporters themselves, one for each node.
func exporter() grafana.Dashboard {
	instance := many(labels("instance", "Exporter", "Label instance: the exporters' addresses",
		`mpit_exporter_rounds_total{job=~"$job"}`, "instance",
		grafana.SortNatural))
	return board{
		uid: uidExporter, title: "MPI exporters", from: "now-6h",
		description: "mpit-exporter itself, on each node: scrapes and rounds, what became of the ranks, what did " +
			"not come onto the page and why, rules, memory.",
		variables: []grafana.Variable{datasource(), scrapeJob(), instance},
		rows: []row{
			{title: "Exporters", panels: exporterNow()},
			{title: "Scrapes and rounds", panels: exporterRounds()},
			{title: "Ranks", panels: exporterRanks()},
			{title: "Series", panels: exporterSeries()},
			{title: "Process", panels: exporterProcess()},
			{title: "OTLP", collapsed: true, panels: exporterOTLP()},
		},
	}.grafana()
}

// own is a self metric, without mpit_exporter_.
func own(name string) string { return selector("mpit_exporter_"+name, ofNodes) }

func exporterNow() []*panel {
	tight := steps(step{color: "green"}, step{"orange", nearLimit}, step{"red", 1})
	return []*panel{
		stat("Exporters up", "Exporters that Prometheus could scrape.", "short",
			steps(step{"red", 0}, step{"green", 1})).
			instant(orZero("count("+selector("up", ofNodes)+" == 1)"), "up"),
		stat("Exporters down", "Exporters that Prometheus could not scrape.", "short", bad(1)).
			instant(orZero("count("+selector("up", ofNodes)+" == 0)"), "down"),
		stat("Ranks", "Ranks that answered in the last round.", "short", steps(step{color: "text"})).
			instant(orZero("sum("+selector("mpit_exporter_ranks", ofNodes+`, state=~"up|busy|passive|paused"`)+")"),
				"ranks"),
		stat("Rules not in force", "Exporters whose rule files could not be read the last time: the rules before "+
			"them are in force.", "short", bad(1)).
			instant(orZero("count("+own("config_last_reload_successful")+" == 0)"), "exporters"),
		stat("Nearest limit", "Of all limits on series the one that is used up most.", "percentunit", tight).
			instant("max("+own("series_used")+" / "+own("series_limit")+")", "used"),
		stat("Series over a limit", "What did not come onto the page within the time range, or was given up, for "+
			"want of room. A limit is near, or was reached.",
			"short", steps(step{color: "green"}, step{"orange", 1})).
			instant(orZero("sum(increase("+selector("mpit_exporter_series_dropped_total",
				ofNodes+`, reason=~".+_over_(limit|bound|max)|remains_lost|ended_evicted"`)+inRange+"))"), "left out"),
		table("Exporters", "Version, and when its rules were read.",
			column{label: "instance"}, column{label: "version"}, column{label: "revision"}, column{label: "goversion"},
			column{title: "Build", hidden: true, expr: countBy("instance, version, revision, goversion",
				last(selector("mpit_exporter_build_info", ofNodes)))},
			column{title: "Ranks", expr: sumBy("instance",
				selector("mpit_exporter_ranks", ofNodes+`, state=~"up|busy|passive|paused"`))},
			column{title: "Series", expr: maxBy("instance", own("series"))},
			column{title: "Rules read", expr: maxBy("instance",
				own("config_last_reload_success_timestamp_seconds")) + " * 1000", unit: "dateTimeAsIso"},
			column{title: "Landlock", expr: maxBy("instance", own("landlock_abi"))},
			column{title: "Memory", expr: maxBy("instance", selector("process_resident_memory_bytes", ofNodes)),
				unit: "bytes"},
		).size(24, 7),
	}
}

func exporterRounds() []*panel {
	slowest := func(p *panel, quantile float64, name string) *panel {
		return p.query(quantileOf(quantile, "", own("round_duration_seconds_bucket")), name)
	}
	return []*panel{
		graph("Scrapes", "HTTP requests for metrics, by result: refused are too many at once, aborted went away.",
			"reqps").stacked().
			query(sumBy("result", rateOf(own("scrapes_total"))), "{{result}}"),
		slowest(slowest(graph("Duration of rounds", "From asking the first rank to having all answers that came in "+
			"time: half of the rounds, and 99 in 100, of "+
			"all exporters; and the mean of the slowest exporter.", "s"), 0.5, "median"), 0.99, "99th percentile").
			query("max("+rateOf(own("round_duration_seconds_sum"))+" / "+rateOf(own("round_duration_seconds_count"))+")", "mean of the slowest"),
		graph("Rounds", "Rounds over all ranks; scrapes at the same time share one.", "ops").
			query("sum("+rateOf(own("rounds_total"))+")", "rounds").query("sum("+rateOf(own("scrapes_total"))+")",
			"scrapes"),
		heat("Duration of rounds, all exporters", "Rounds of each duration.", "short", "duration").duration().
			target(bucketsOf(own("round_duration_seconds_bucket")), "heatmap", "{{le}}", false).size(12, 8),
		graph("What Prometheus sees", "How long the slowest scrape of an exporter takes for Prometheus, and on how "+
			"many series it ends.", "s").
			query("max("+selector("scrape_duration_seconds", ofNodes)+")", "slowest scrape"),
		graph("Scrapes under way", "HTTP requests for metrics that are being served.", "short").
			query("max("+own("scrapes_in_flight")+")", "most of one exporter"),
	}
}

func exporterRanks() []*panel {
	return []*panel{
		graph("Ranks by state", "What became of them in the last round. busy was making or freeing objects, passive "+
			"forbids to be asked by its thread level, paused called MPI_Pcontrol(0), late missed the deadline, "+
			"ended is kept until it has been scraped.",
			"short").stacked().
			query(sumBy("state", own("ranks")), "{{state}}").
			colored("", series{"up": "green", "busy": "yellow", "passive": "semi-dark-blue", "paused": "light-blue",
				"new": "purple", "late": "red", "ended": "gray"}),
		graph("Samples", "Requests to ranks and last samples, by result.",
			"ops").query(sumBy("result", rateOf(own("samples_total"))), "{{result}}"),
		graph("Connections", "Open connections of ranks, by user.",
			"short").stacked().query(sumBy("user", own("connections")), "{{user}}"),
		graph("Connections accepted", "By user: many short-lived jobs, or agents that come back.", "cps").
			query(sumBy("user", rateOf(own("connections_accepted_total"))), "{{user}}"),
		graph("Connections refused or broken", "Between two points: refused by reason, and closed because the peer "+
			"broke the protocol.", "short").
			query(sumBy("reason", grow(own("connections_refused_total"))), "refused: {{reason}}").
			query(sumBy("reason", grow(own("protocol_errors_total"))),
				"protocol: {{reason}}").thresholds(bad(1)).axis(0, 2),
		graph("What should not happen", "Between two points: two ranks with the same labels, a job's id that the "+
			"kernel denies, ended ranks given up before they were scraped, bugs.", "short").
			query("sum("+grow(own("label_clashes_total"))+")", "label clashes").
			query("sum("+grow(own("jobid_mismatches_total"))+")", "job ids that differ").
			query("sum("+grow(own("ranks_evicted_total"))+")", "ended ranks evicted").
			query("sum("+grow(own("rank_panics_total"))+")", "panics").thresholds(bad(1)).axis(0, 2),
	}
}

func exporterSeries() []*panel {
	return []*panel{
		graph("Series on the page", "Series of ranks on the last page, by exporter; a histogram is one.", "short").
			query("topk(10, "+own("series")+")", "{{instance}}"),
		graph("Series against limits", "Used share of each limit: of all ranks of a node, and of the job, the user, "+
			"the rank and the variable that has most; the fullest exporter.", "percentunit").
			query(maxBy("scope", own("series_used")+" / "+own("series_limit")),
				"{{scope}}").thresholds(bad(nearLimit)),
		graph("Left out", "What did not come onto the page, by reason, between two points: variables, values or "+
			"whole series. docs/mapping.md has the reasons.",
			"short").stacked().axis(0, 1).query(sumBy("reason", grow(own("series_dropped_total"))), "{{reason}}"),
		bars("Left out so far", "By reason, over all ranks that these exporters have ever seen.", "short").
			instant("sort_desc("+sumBy("reason", own("series_dropped_total"))+")", "{{reason}}"),
		graph("Variables of live ranks", "By whether their agents could open them; denied ones are not safe to read.", "short").stacked().
			query(sumBy("state", own("variables"))+" > 0", "{{state}}").
			colored("", series{"open": "green", "denied": "gray"}),
		graph("Limits", "How many series there may be, and are, by whose they are: the fullest exporter. The axis "+
			"is logarithmic.", "short").logarithmic().
			query(maxBy("scope", own("series_limit")), "limit: {{scope}}").query(maxBy("scope", own("series_used")),
			"used: {{scope}}"),
	}
}

func exporterProcess() []*panel {
	process := func(family string) string { return selector(family, ofNodes) }
	return []*panel{
		graph("Memory", "Resident memory of the exporters that have most.",
			"bytes").query("topk(10, "+process("process_resident_memory_bytes")+")", "{{instance}}"),
		graph("CPU", "Share of a core: the exporters that use most.", "percentunit").
			query("topk(10, "+rateOf(process("process_cpu_seconds_total"))+")", "{{instance}}"),
		graph("Heap", "Go's heap in use, and from where on it is collected: of all exporters the largest.", "bytes").
			query("max("+process("go_memstats_heap_inuse_bytes")+")",
				"in use").query("max("+process("go_memstats_next_gc_bytes")+")", "next collection"),
		graph("File descriptors", "Open ones as a share of what the process may have: the fullest exporter.",
			"percentunit").
			query("max("+process("process_open_fds")+" / "+process("process_max_fds")+")",
				"open").upTo(1).thresholds(bad(nearLimit)),
		graph("Goroutines", "The exporters that have most.", "short").query("topk(10, "+process("go_goroutines")+")",
			"{{instance}}"),
		graph("Reading rules anew, writing control variables", "Attempts between two points, by result.", "short").
			query(sumBy("result", grow(own("config_reloads_total"))), "rules: {{result}}").
			query(sumBy("result", grow(own("cvar_writes_total"))), "cvar set: {{result}}").axis(0, 1),
		graph("Refused and lost", "Between two points: connections and requests of scrapers that were too many, by "+
			"reason, and lines of the log that nobody read in time.", "short").
			query(sumBy("reason", grow(own("http_refused_total"))), "HTTP: {{reason}}").
			query("sum("+grow(own("log_lines_lost_total"))+")", "log lines").thresholds(bad(1)).axis(0, 2),
	}
}

func exporterOTLP() []*panel {
	const only = " Only of exporters that push."
	return []*panel{
		graph("Pushes", "Pushes that had something to send, by result."+only,
			"ops").query(sumBy("result", rateOf(own("otlp_pushes_total"))), "{{result}}"),
		graph("Data points", "By what became of them: failed ones are sent again with the next push, rejected and "+
			"too large ones are lost, base is what deltas are counted from."+only, "cps").stacked().
			query(sumBy("result", rateOf(own("otlp_points_total"))), "{{result}}"),
		graph("Duration of pushes", "Reading the ranks, and all messages with their repetitions: half of the "+
			"pushes, and 99 in 100, of all exporters."+only, "s").
			query(quantileOf(0.5, "", own("otlp_push_duration_seconds_bucket")), "median").
			query(quantileOf(0.99, "", own("otlp_push_duration_seconds_bucket")), "99th percentile"),
		graph("Since the last accepted push", "The five exporters whose last accepted push is longest ago; one that "+
			"never had any is left out."+only, "dtdurations").
			query("topk(5, time() - ("+own("otlp_last_success_timestamp_seconds")+" > 0))", "{{instance}}"),
		graph("Series with deltas", "Series of which is known what has been delivered, to tell what has been added "+
			"since: the five exporters with most."+only, "short").
			query("topk(5, "+own("otlp_delta_series")+")", "{{instance}}"),
	}
}
