package dashboards

import "github.com/mpit-exporter/mpit-exporter/dashboards/internal/grafana"

// exporter is the dashboard of the exporters themselves, one for each node.
func exporter() grafana.Dashboard {
	scrapeJob := anyOf(labels("job", "Scrape job", "Label job: what Prometheus' configuration calls the exporters",
		"mpit_exporter_rounds_total", "job", grafana.SortNatural))
	// All is a list here: the scraper's own series, such as up, are there for other targets, too.
	scrapeJob.AllValue = ""
	instance := anyOf(labels("instance", "Exporter", "Label instance: the exporters' addresses",
		`mpit_exporter_rounds_total{job=~"$job"}`, "instance", grafana.SortNatural))
	return board{
		uid: uidExporter, title: "MPI exporters", from: "now-6h",
		description: "mpit-exporter itself, on each node: scrapes and rounds, what became of the ranks, what did " +
			"not come onto the page and why, rules, memory.",
		variables: []grafana.Variable{datasource(), scrapeJob, instance},
		rows: []row{
			{title: "Are the exporters well?", panels: exporterNow()},
			{title: "Are scrapes quick, and do ranks answer?", panels: exporterRounds()},
			{title: "What is left out, and what does it cost?", panels: exporterCosts()},
			{title: "OTLP", collapsed: true, panels: exporterOTLP()},
		},
	}.grafana()
}

// own is a self metric, without mpit_exporter_.
func own(name string) string { return selector("mpit_exporter_"+name, ofNodes) }

func exporterNow() []*panel {
	return []*panel{
		stat("Exporters up", "Exporters that Prometheus could scrape.", "short",
			neutral).
			instant(orZero("count("+selector("up", ofNodes)+" == 1)"), "up"),
		stat("Exporters down", "Exporters that Prometheus could not scrape.", "short", bad(1)).
			instant(orZero("count("+selector("up", ofNodes)+" == 0)"), "down"),
		stat("Ranks", "Ranks that answered in the last round.", "short", neutral).
			instant(orZero("sum("+selector("mpit_exporter_ranks", ofNodes+`, state=~"up|busy|passive|paused"`)+")"),
				"ranks"),
		stat("Rules not in force", "Exporters whose rule files could not be read the last time: the rules before "+
			"them are in force.", "short", bad(1)).
			instant(orZero("count("+own("config_last_reload_successful")+" == 0)"), "exporters"),
		stat("Series over a limit", "What did not come onto the page within the time range, or was given up, for "+
			"want of room. A limit is near, or was reached.",
			"short", steps(step{color: "text"}, step{palette["late"], 1})).
			instant(orZero("sum(increase("+selector("mpit_exporter_series_dropped_total",
				ofNodes+`, reason=~".+_over_(limit|bound|max)|remains_lost|ended_evicted"`)+inRange+"))"), "left out"),
		table("Exporters", "Version, and when its rules were read.",
			column{label: "instance"}, column{label: "version"}, column{label: "goversion"},
			column{title: "Build", hidden: true, expr: countBy("instance, version, goversion",
				last(selector("mpit_exporter_build_info", ofNodes)))},
			column{title: "Ranks", expr: sumBy("instance",
				selector("mpit_exporter_ranks", ofNodes+`, state=~"up|busy|passive|paused"`))},
			column{title: "Series", expr: maxBy("instance", own("series"))},
			column{title: "Rules read", expr: maxBy("instance",
				own("config_last_reload_success_timestamp_seconds")) + " * 1000", unit: "dateTimeAsIso"},
			column{title: "Landlock", expr: maxBy("instance", own("landlock_abi"))},
			column{title: "Memory", expr: maxBy("instance", selector("process_resident_memory_bytes", ofNodes)),
				unit: "bytes"},
		).sorted("Series", true).size(24, 7),
	}
}

func exporterRounds() []*panel {
	rounds := own("round_duration_seconds_bucket")
	return []*panel{
		graph("Duration of rounds", "From asking the first rank to having all answers that came in time: half of the "+
			"rounds, and 99 in "+
			"100, of all exporters; and how long the slowest scrape takes for Prometheus.", "s").
			query(quantileOf(0.5, "", rounds, atOnePoint), "median").
			query(quantileOf(0.99, "", rounds, atOnePoint), "99th percentile").
			query("max("+selector("scrape_duration_seconds", ofNodes)+")", "slowest scrape"),
		heatOfBuckets("Duration of rounds, all exporters", "Rounds of each duration.", "s", rounds).size(12, 8),
		graph("Scrapes", "HTTP requests for metrics, by result: refused are too many at once, aborted went away.",
			"reqps").stacked().
			query(sumBy("result", rateAt(own("scrapes_total"))), "{{result}}"),
		graph("Ranks by state", "What became of them in the last round. busy was making or freeing objects, passive "+
			"forbids to be asked by its thread level, paused called MPI_Pcontrol(0), late missed the deadline, "+
			"ended is kept until it has been scraped.", "short").stacked().
			query(sumBy("state", own("ranks")), "{{state}}").
			colored("", series{"up": "green", "busy": "yellow", "passive": "semi-dark-blue", "paused": "light-blue",
				"new": "purple", "late": "red", "ended": "gray"}),
		many("Connections", "Open connections of ranks: the ten users with most.", "short").stacked().
			query(sumBy("user", own("connections"))+"\nand on (user) topk(10, "+sumBy("user",
				"max_over_time("+own("connections")+atTheEnd+")")+")",
				"{{user}}").size(12, 8),
	}
}

func exporterCosts() []*panel {
	highest := func(title, description, unit, family string) *panel {
		return many(title, description+" The ten exporters with most.", unit).query(most(10, "instance", family),
			"{{instance}}")
	}
	process := func(family string) string { return selector(family, ofNodes) }
	return []*panel{
		highest("Series on the page", "Series of ranks on the last page; a histogram is one.", "short", own("series")),
		graph("Series against limits", "Used share of each limit: of all ranks of a node, and of the job, the user, "+
			"the rank and the variable that has most; the fullest exporter.", "percentunit").
			query(maxBy("scope", own("series_used")+" / "+own("series_limit")),
				"{{scope}}").thresholds(bad(nearLimit)).size(12, 9),
		many("Left out", "What did not come onto the page, between two points: variables, values or whole series, for "+
			"the ten most frequent reasons. "+
			"docs/mapping.md has the reasons.", "short").stacked().axis(0, 1).
			query(sumBy("reason", grow(own("series_dropped_total")))+"\nand on (reason) topk(10, "+
				sumBy("reason", "increase("+own("series_dropped_total")+atTheEnd+")")+")", "{{reason}}"),
		graph("Variables of live ranks", "By whether their agents could open them; denied ones are not safe to read.",
			"short").stacked().
			query(sumBy("state", own("variables"))+" > 0", "{{state}}").size(12, 9).
			colored("", series{"open": "green", "denied": "gray"}),
		highest("Memory", "Resident memory.", "bytes", process("process_resident_memory_bytes")),
		many("CPU", "Share of a core. The ten exporters that use most.", "percentunit").
			longest("instance", "{{instance}}", func(over string) string {
				return maxBy("instance", rateOf(process("process_cpu_seconds_total"), over))
			}),
		graph("File descriptors", "Open ones as a share of what the process may have: the fullest exporter.", "percentunit").
			query("max("+process("process_open_fds")+" / "+process("process_max_fds")+")",
				"open").upTo(1).thresholds(bad(nearLimit)),
		graph("Reading rules anew, writing control variables", "Attempts between two points, by result.", "short").
			query(sumBy("result", grow(own("config_reloads_total"))), "rules: {{result}}").
			query(sumBy("result", grow(own("cvar_writes_total"))), "cvar set: {{result}}").axis(0, 1),
	}
}

func exporterOTLP() []*panel {
	const only = " Only of exporters that push."
	pushes := own("otlp_push_duration_seconds_bucket")
	return []*panel{
		graph("Pushes", "Pushes that had something to send, by result."+only, "ops").
			query(sumBy("result", rateAt(own("otlp_pushes_total"))), "{{result}}"),
		graph("Data points", "By what became of them: failed ones are sent again with the next push, rejected and "+
			"too large ones are lost."+only, "cps").stacked().
			query(sumBy("result", rateAt(own("otlp_points_total"))), "{{result}}"),
		graph("Duration of pushes", "Reading the ranks, and all messages with their repetitions: half of the "+
			"pushes, and 99 in 100, of all exporters."+only, "s").
			query(quantileOf(0.5, "", pushes, atOnePoint), "median").
			query(quantileOf(0.99, "", pushes, atOnePoint), "99th percentile"),
		table("Since the last accepted push",
			"At the end of the time range; an exporter that never had one is left out."+only,
			column{label: "instance"},
			column{title: "Since", expr: "topk(20, " + maxBy("instance",
				"time() - ("+own("otlp_last_success_timestamp_seconds")+" > 0)") + ")",
				unit: "dtdurations"},
		).sorted("Since", true).size(12, 8),
	}
}
